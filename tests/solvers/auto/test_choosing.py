"""Choosing between candidates, and the rows that they are judged on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.judge import Candidate, chosen, judges_of
from thresher.solvers.auto.newton import Fit, measured
from thresher.solvers.auto.tuning import JudgeTuning

JUDGE = JudgeTuning()
LAYOUT = Layout((3, 4, 1), fused=True, direct=True)
ROWS = 40
NOISE = torch.from_numpy(np.random.default_rng(0).standard_normal(ROWS))


def network(nonzeros: int) -> Point:
    """Give a network of so many weights."""
    values = torch.from_numpy(np.random.default_rng(nonzeros).standard_normal(nonzeros))
    signs = torch.ones(LAYOUT.widths[1], dtype=torch.float64)
    return Point(SparseVector(torch.arange(nonzeros), values, LAYOUT.size), signs)


def candidate(
    losses: Tensor,
    nonzeros: int,
    place: int,
    way: str = "growing",
    alpha: float = 0.1,
    weight: Tensor | None = None,
) -> Candidate:
    """Give a candidate with the losses of some rows, which count the same unless they have weights."""
    weight = torch.ones(len(losses), dtype=torch.float64) if weight is None else weight.double()
    amount, fit = float(weight.sum()), Fit(network(nonzeros), 0.0)
    return Candidate(way, fit, alpha, losses, weight / amount, amount, (place,))


def losses_of(mean: float, error: float = 0.0) -> Tensor:
    """Give losses with this mean, and with this standard error of the mean."""
    noise = NOISE - NOISE.mean()
    return torch.add(torch.full_like(noise, mean), noise / torch.linalg.norm(noise), alpha=error * ROWS)


@pytest.mark.parametrize("errors", [0.25, 0.5, 1.0, 2.0])
def test_candidates_within_so_many_standard_errors_are_as_good(errors: float) -> None:
    best = candidate(losses_of(1.0), 9, 0)
    for away, winner in ((0.99 * errors, 3), (1.01 * errors, 9)):
        smaller = candidate(losses_of(1.0 + 0.1 * away, 0.1), 3, 1)
        assert chosen([best, smaller], errors, 0.98).nonzeros == winner


def test_a_weight_counts_as_repeats_in_a_standard_error() -> None:
    times = 1 + torch.arange(ROWS) % 4
    noise = losses_of(0.0, 0.1)
    mean = float((noise * times).sum() / times.sum())
    error = float((noise - mean).repeat_interleave(times).square().mean() / times.sum()) ** 0.5
    for away, winner in ((0.49, 3), (0.51, 9)):
        losses = (torch.ones_like(noise), 1 + noise - mean + away * error)
        weighted = [
            candidate(part, size, size, weight=times) for part, size in zip(losses, (9, 3), strict=True)
        ]
        repeated = [
            candidate(part.repeat_interleave(times), size, size)
            for part, size in zip(losses, (9, 3), strict=True)
        ]
        assert chosen(weighted, 0.5, 0.98).nonzeros == chosen(repeated, 0.5, 0.98).nonzeros == winner


def test_without_errors_the_lowest_score_wins() -> None:
    best = candidate(losses_of(1.0), 9, 0)
    smaller = candidate(losses_of(1.0 + 1e-9, 0.1), 3, 1)
    assert chosen([smaller, best], 0.0, 0.98) is best


def test_of_those_the_fewest_nonzeros_win_and_then_the_strongest_penalty() -> None:
    strong = candidate(losses_of(1.01, 0.1), 5, 0, alpha=3.0)
    best = candidate(losses_of(1.0), 9, 1)
    small = candidate(losses_of(1.01, 0.1), 3, 2, alpha=0.1)
    penalised = candidate(losses_of(1.01, -0.1), 3, 3, alpha=1.0)
    assert chosen([strong, best, small], 0.5, 0.98) is small
    assert chosen([strong, best, small, penalised], 0.5, 0.98) is penalised
    assert chosen([penalised, small, best, strong], 0.5, 0.98) is penalised


def test_a_smaller_network_that_is_clearly_worse_does_not_win() -> None:
    best = candidate(losses_of(1.0), 9, 0)
    good = candidate(losses_of(1.01, 0.1), 5, 1)
    bad = candidate(losses_of(1.2, 0.1), 1, 2)
    assert chosen([bad, best, good], 0.5, 0.98) is good


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("margin", [1.0, 0.98, 0.5])
def test_a_network_must_score_below_the_margin_of_a_linear_model(sign: float, margin: float) -> None:
    line = candidate(losses_of(sign), 5, 0, way="linear")
    least = sign - (1 - margin)
    for score, winner in ((least + 1e-6, "linear"), (least - 1e-6, "growing")):
        network = candidate(losses_of(score), 2, 1)
        assert chosen([network, line], 0.5, margin).way == winner
        assert chosen([line, network], 0.5, margin).way == winner


def test_settings_are_chosen_by_the_mean_over_folds_and_the_better_fold_is_handed_out() -> None:
    lucky = [candidate(losses_of(loss), 3, 0) for loss in (0.1, 3.0)]
    steady = [candidate(losses_of(loss), 3, 1) for loss in (1.0, 0.9)]
    assert chosen([lucky[0], steady[0], lucky[1], steady[1]], 0.0, 0.98) is steady[1]


def test_settings_that_not_all_folds_reached_are_left_out() -> None:
    once = [candidate(losses_of(0.1), 1, 0)]
    twice = [candidate(losses_of(1.0), 3, 1), candidate(losses_of(1.0), 3, 1)]
    assert chosen([*once, *twice], 0.5, 0.98).place == (1,)


def objective_of(X: np.ndarray, weight: np.ndarray | None = None) -> Relu:
    given = None if weight is None else torch.from_numpy(weight.astype(np.float64))
    data = Data(X, torch.from_numpy(X[:, :1] ** 2), given, dtype=torch.float64)
    return Relu(data, LAYOUT, SquaredError(), 0.1)


def drawn(rows: int, seed: int = 0) -> np.ndarray:  # (rows, 3)
    return np.random.default_rng(seed).standard_normal((rows, 3))


def rows_of(objective: Relu) -> list[tuple[float, ...]]:
    return sorted(tuple(row) for row in objective.data.read(slice(0, objective.data.rows)).tolist())


@pytest.mark.parametrize("folds", [2, 3, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_are_held_out_in_turn_and_none_twice(folds: int, seed: int) -> None:
    X = drawn(400)
    judges = judges_of(objective_of(X), 20, seed, replace(JUDGE, folds=folds))
    assert len(judges) == folds
    everything = sorted(tuple(row) for row in X.tolist())
    held: list[tuple[float, ...]] = []
    for judge in judges:
        assert sorted(rows_of(judge.part) + rows_of(judge.unseen)) == everything
        assert judge.share == judge.part.data.rows / 400
        assert abs(judge.unseen.data.rows - JUDGE.share * 400) < 30
        held += rows_of(judge.unseen)
    assert len(set(held)) == len(held)
    if folds == 5:
        assert sorted(held) == everything


def test_the_penalty_stays_what_it_is_beside_a_sum_and_scores_have_none() -> None:
    objective = objective_of(drawn(200))
    for judge in judges_of(objective, 20, 0, JUDGE):
        assert judge.part.alpha * judge.part.data.amount == pytest.approx(objective.alpha * 200)
        assert judge.unseen.alpha == 0


def test_another_seed_holds_out_other_rows_and_the_same_seed_the_same() -> None:
    objective = objective_of(drawn(200))
    first, again, other = (rows_of(judges_of(objective, 20, seed, JUDGE)[0].unseen) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_the_order_of_rows_does_not_matter() -> None:
    X = drawn(200)
    order = np.random.default_rng(5).permutation(200)
    for one, two in zip(
        *(judges_of(objective_of(part), 20, 0, JUDGE) for part in (X, X[order])), strict=True
    ):
        assert rows_of(one.unseen) == rows_of(two.unseen)


@pytest.mark.parametrize("seed", range(3))
def test_many_equal_rows_are_held_out_one_by_one(seed: int) -> None:
    repeated = np.tile(drawn(60), (5, 1))
    for judge in judges_of(objective_of(repeated), 20, seed, JUDGE, folds=5):
        assert sorted(rows_of(judge.unseen)) == sorted(rows_of(objective_of(drawn(60))))


@pytest.mark.parametrize("seed", range(3))
def test_few_equal_rows_stay_together(seed: int) -> None:
    judges = judges_of(objective_of(np.tile(drawn(25), (5, 1))), 20, seed, JUDGE)
    for judge in judges:
        searched, unseen = rows_of(judge.part), rows_of(judge.unseen)
        assert not set(searched) & set(unseen)
        assert all(unseen.count(row) == 5 for row in unseen)


def test_a_weight_of_two_counts_as_a_repeat_on_both_sides() -> None:
    X, point = drawn(60), network(5)
    times = 1 + np.arange(60) % 2
    weighted = judges_of(objective_of(X, times), 20, 0, JUDGE)
    repeated = judges_of(objective_of(np.repeat(X, times, 0)), 20, 0, JUDGE)
    for one, two in zip(weighted, repeated, strict=True):
        assert set(rows_of(one.unseen)) == set(rows_of(two.unseen))
        assert one.unseen.data.amount == two.unseen.data.amount
        scores = [
            judge.candidate("growing", measured(judge.part, point), 0.1, (0,)).score for judge in (one, two)
        ]
        assert scores[0] == pytest.approx(scores[1], rel=1e-12)


@pytest.mark.parametrize("weight", [None, 10.0])
def test_plenty_of_rows_are_judged_by_the_loss_itself(weight: float | None) -> None:
    rows = 800 if weight is None else 80
    objective = objective_of(drawn(rows), None if weight is None else np.full(rows, weight))
    (judge,) = judges_of(objective, 2, 0, JUDGE)
    assert judge.part is objective
    assert judge.share == 1
    point = network(5)
    score = judge.candidate("growing", measured(judge.part, point), 0.1, (0,)).score
    assert score == pytest.approx(replace(objective, alpha=0.0).value(point), rel=1e-12)
    assert len(judges_of(objective, 3, 0, JUDGE)) == JUDGE.folds


def test_a_score_is_the_mean_loss_of_rows_that_the_way_has_not_seen() -> None:
    judge = judges_of(objective_of(drawn(200)), 20, 0, JUDGE)[0]
    point = network(5)
    score = judge.candidate("growing", measured(judge.part, point), 0.1, (0,)).score
    assert score == pytest.approx(judge.unseen.value(point), rel=1e-12)
    assert score != pytest.approx(judge.part.value(point), rel=1e-3)


def test_many_rows_are_held_out_once_and_searched_on_some() -> None:
    tuning = replace(JUDGE, many=300, rows=100, rows_each=1.0)
    (judge,) = judges_of(objective_of(drawn(400)), 20, 0, tuning)
    searched, unseen = set(rows_of(judge.part)), set(rows_of(judge.unseen))
    assert len(searched) == judge.part.data.rows == 100
    assert not searched & unseen
    assert judge.share == 0.25


def test_rows_that_are_all_equal_are_judged_by_the_loss() -> None:
    objective = objective_of(np.ones((50, 3)))
    (judge,) = judges_of(objective, 20, 0, JUDGE)
    assert judge.part.data.rows == judge.unseen.data.rows == 50


def test_of_linear_models_that_are_as_good_the_one_with_the_most_weights_and_a_penalty_wins() -> None:
    best = candidate(losses_of(1.0), 5, 0, "linear")
    larger = replace(candidate(losses_of(1.05, 0.1), 8, 1, "linear"), shrunk=True)
    assert chosen([best, larger], 1.0, 0.98) is best
    assert chosen([best, larger], 1.0, 0.98, most=True) is larger
    assert chosen([best, larger], 0.0, 0.98, most=True) is best
    constant = candidate(losses_of(1.05, 0.1), 1, 2, "constant")
    assert chosen([best, larger, constant], 1.0, 0.98, most=True) is constant
