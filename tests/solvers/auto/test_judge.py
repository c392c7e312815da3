"""The judge: equal rows share a side, weights are repeats, and the simplest of equals wins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from dense import CASES

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.judge import Candidate, chosen, judges_of
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.tuning import JudgeTuning

JUDGE = JudgeTuning()
LAYOUT = Layout((3, 4, 1), fused=True, direct=True)


def objective_of(X: np.ndarray, weight: np.ndarray | None = None) -> Relu:
    given = None if weight is None else torch.from_numpy(weight.astype(np.float64))
    data = Data(X, torch.from_numpy(X[:, :1] ** 2), given, dtype=torch.float64)
    return Relu(data, LAYOUT, SquaredError(), 0.1)


def rows_of(objective: Relu) -> set[tuple[float, ...]]:
    return {tuple(row) for row in objective.data.read(slice(0, objective.data.rows)).tolist()}


def test_equal_rows_share_a_side_and_folds_hold_different_ones() -> None:
    distinct = np.random.default_rng(0).standard_normal((30, 3))
    judges = judges_of(objective_of(np.repeat(distinct, 4, 0)), 20, 0, JUDGE)
    assert len(judges) == JUDGE.folds
    held = [rows_of(judge.unseen) for judge in judges]
    for judge, unseen in zip(judges, held, strict=True):
        searched = rows_of(judge.part)
        assert not searched & unseen
        assert len(searched) + len(unseen) == 30
        assert judge.part.data.rows + judge.unseen.data.rows == 120
        assert judge.unseen.alpha == 0
    assert not held[0] & held[1]


def test_a_weight_equals_repeats() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    times = 1 + np.arange(60) % 3
    weighted = judges_of(objective_of(X, times), 20, 0, JUDGE)
    repeated = judges_of(objective_of(np.repeat(X, times, 0)), 20, 0, JUDGE)
    for one, two in zip(weighted, repeated, strict=True):
        assert rows_of(one.part) == rows_of(two.part)
        assert one.part.data.amount == two.part.data.amount
        assert one.part.alpha == pytest.approx(two.part.alpha)


@pytest.mark.parametrize("rows", [7, 9000])
def test_too_few_rows_and_plenty_of_them_are_judged_by_the_loss(rows: int) -> None:
    objective = objective_of(np.random.default_rng(0).standard_normal((rows, 3)))
    (judge,) = judges_of(objective, 20, 0, JUDGE)
    assert judge.unseen.data.rows == rows
    assert judge.part.data.rows == min(rows, JUDGE.rows)


def candidate(way: str, alpha: float, nonzeros: int, losses: list[float], place: int = 0) -> Candidate:
    """Give a candidate of some size with the losses of five rows."""
    point = CASES[0].point()
    point = point.keep(torch.arange(nonzeros))
    shares = torch.full((len(losses),), 1 / len(losses), dtype=torch.float64)
    return Candidate(
        way, Fit(point, 0.0), alpha, torch.tensor(losses).double(), shares, float(len(losses)), (place,)
    )


def test_the_lowest_score_wins_where_the_difference_is_clear() -> None:
    good = candidate("growing", 0.1, 5, [1.0, 1, 1, 1, 1])
    bad = candidate("growing", 10.0, 1, [2.0, 2, 2, 2, 2], 1)
    assert chosen([bad, good], JUDGE.errors, 0.98) is good


def test_of_equals_the_strongest_penalty_wins_and_then_the_fewest_nonzeros() -> None:
    noisy = [0.0, 2.0, 0.0, 2.0, 1.0]
    best = candidate("growing", 0.1, 5, [1.0, 1, 1, 1, 0.9])
    penalised = candidate("growing", 1.0, 5, noisy, 1)
    smaller = candidate("growing", 1.0, 3, noisy, 2)
    assert chosen([best, penalised, smaller], JUDGE.errors, 0.98) is smaller


def test_a_network_must_beat_a_linear_model_by_a_margin() -> None:
    line = candidate("linear", 0.1, 2, [1.0] * 5)
    for loss, winner in ((0.99, "linear"), (0.9, "growing")):
        assert chosen([candidate("growing", 0.1, 2, [loss] * 5), line], JUDGE.errors, 0.98).way == winner


def test_folds_are_compared_row_by_row_whatever_order_they_were_found_in() -> None:
    # One fold has rows that nothing fits. A place that it reached later is no better and no worse for it.
    easy, hard = [1.0, 1, 1, 1, 1], [1000.0, 1, 1, 1, 1]
    folds = {0: easy, 1: hard}
    found = [
        replace(candidate("growing", 0.1, size, [one + more for one in folds[fold]], place), fold=fold)
        for place, size, more, order in ((0, 1, 1.0, (0, 1)), (1, 5, 0.0, (1, 0)))
        for fold in order
    ]
    assert chosen(found, JUDGE.errors, 0.98).nonzeros == 5
