"""The committee: members are networks, blind to their folds, and their mean is a teacher."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Huber, Logistic, Loss, SquaredError, expected
from thresher.objective.relu import Relu
from thresher.solvers.auto.committee import Committee, SideBySide
from thresher.solvers.auto.committee_tuning import CommitteeTuning
from thresher.solvers.auto.newton import measured

ROWS, INPUTS = 160, 3
TUNING = CommitteeTuning(neurons=6, folds=4, fan=2)
X = np.random.default_rng(0).standard_normal((ROWS, INPUTS))
CURVE = np.abs(X[:, 0]) - X[:, 1]
FOLD = torch.arange(ROWS) % TUNING.folds


def objective_of(y: np.ndarray, loss: Loss, outputs: int = 1) -> Relu:
    data = Data(X, torch.from_numpy(y)[:, None], dtype=torch.float64)
    return Relu(data, Layout((INPUTS, 8, outputs), fused=outputs == 1, direct=True), loss)


def trained(objective: Relu, fold: torch.Tensor = FOLD, passes: float = 12) -> Committee:
    committee = Committee.drawn(objective, 60, fold, 0, TUNING)
    for now, _ in committee.trained(passes, 0, TUNING):
        committee = now
    return committee


CASES: dict[str, tuple[np.ndarray, Loss, int]] = {
    "squared": (CURVE, SquaredError(), 1),
    "logistic": ((CURVE > 0).astype(float), Logistic(), 1),
    "classes": (np.digitize(CURVE, [-1.0, 1.0]), CrossEntropy(3), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_a_member_is_a_network_of_the_objective(name: str) -> None:
    y, loss, outputs = CASES[name]
    objective = objective_of(y, loss, outputs)
    committee = trained(objective)
    every = committee.outputs()
    assert every.shape == (ROWS, 2 * TUNING.folds, outputs)
    for number in (0, 3, 5):
        point = measured(objective, committee.member(number)).point
        output = objective.run(point).forward(objective.data.read(slice(0, ROWS))).output
        assert torch.allclose(output, every[:, number], atol=1e-4)


def test_a_member_knows_nothing_of_the_targets_it_is_blind_to() -> None:
    labels = (CURVE > 0).astype(float)
    # As many of either label as before: members begin with the best constant of all rows.
    hidden, other = np.flatnonzero(FOLD.numpy() == 1), labels.copy()
    other[hidden] = labels[hidden[::-1]]
    assert not np.array_equal(labels, other)
    first, second = (trained(objective_of(y, Logistic())).outputs() for y in (labels, other))
    blind = [1, 1 + TUNING.folds]
    assert torch.equal(first[:, blind], second[:, blind])
    assert not torch.equal(first[:, 0], second[:, 0])


def test_mirrored_targets_make_mirrored_members() -> None:
    skewed = np.exp(CURVE)
    skewed -= skewed.mean()
    first, second = (trained(objective_of(side * skewed, SquaredError())).outputs() for side in (1, -1))
    assert torch.equal(first, -second)


def test_where_nobody_is_blind_two_members_will_do() -> None:
    assert trained(objective_of(CURVE, SquaredError()), torch.full((ROWS,), -1)).members == 2


def test_noise_is_what_members_leave_of_what_a_constant_leaves() -> None:
    pure = np.random.default_rng(1).standard_normal(ROWS)
    assert trained(objective_of(pure, SquaredError()), passes=60).noise() > 0.8
    assert trained(objective_of(CURVE, SquaredError()), passes=60).noise() < 0.2


def test_what_members_fit_of_noise_is_what_they_leave_less_on_rows_they_see() -> None:
    pure = np.random.default_rng(1).standard_normal(ROWS)
    noisy, exact = (trained(objective_of(y, SquaredError()), passes=60) for y in (pure, CURVE))
    assert noisy.fitted_noise() > 5 * exact.fitted_noise()
    assert trained(objective_of(pure, SquaredError()), torch.full((ROWS,), -1)).fitted_noise() == 0


def test_the_mean_of_many_scores_better_than_one_alone() -> None:
    noisy = CURVE + np.random.default_rng(1).standard_normal(ROWS)
    committee = trained(objective_of(noisy, SquaredError()), passes=60)
    every, row = committee.outputs(), torch.arange(ROWS)
    alone = SquaredError().value(every[row, FOLD], torch.from_numpy(noisy)[:, None]).mean()
    assert committee.score() < float(alone)
    assert committee.score() == pytest.approx(float(committee.losses().mean()))


@pytest.mark.parametrize("name", CASES)
def test_targets_are_moved_towards_the_mean_of_the_members(name: str) -> None:
    y, loss, outputs = CASES[name]
    objective = objective_of(y, loss, outputs)
    committee, targets = trained(objective), objective.data.targets
    known, taught = committee.teach(targets, 0.0), committee.teach(targets, 1.0)
    if outputs == 1:
        assert torch.equal(known, targets.double())
    else:
        assert torch.equal(known.argmax(1), targets[:, 0])
        assert torch.allclose(taught.sum(1), torch.ones(ROWS, dtype=torch.float64))
    assert float(taught.min()) >= float(known.min()) and float(taught.max()) <= float(known.max())
    assert torch.allclose(committee.teach(targets, 0.25), 0.75 * known + 0.25 * taught)


@pytest.mark.parametrize("loss", [SquaredError(), Huber(0.7), Logistic(), CrossEntropy(3)])
def test_side_by_side_the_slope_is_the_derivative_of_the_value(loss: Any) -> None:
    draw = torch.Generator().manual_seed(0)
    outputs = 3 if isinstance(loss, CrossEntropy) else 1
    together = SideBySide(loss, torch.tensor([0, 1, 0, 1]))
    output = torch.randn(6, 4 * outputs, generator=draw, dtype=torch.float64)
    fold = torch.arange(6) % 3
    codes = fold if outputs == 3 else (fold > 0).double()
    y = torch.stack([codes, fold.to(codes.dtype)], 1)
    slope = together.slope(output.clone(), y)
    step = 1e-6
    for column in range(output.shape[1]):
        moved = output.clone()
        moved[:, column] += step
        rise = (together.value(moved, y) - together.value(output, y)) / step
        assert torch.allclose(rise, slope[:, column], atol=1e-5)
    blind = slope.view(6, 4, outputs)[fold == 1][:, [1, 3]]
    assert not blind.any()


def test_probabilities_of_classes_teach_what_codes_teach() -> None:
    output = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    codes = torch.tensor([0, 2, 1, 1, 0])[:, None]
    certain = torch.nn.functional.one_hot(codes[:, 0], 3).double()
    loss, share = CrossEntropy(3), torch.full((5,), 0.2, dtype=torch.float64)
    assert torch.allclose(loss.value(output, codes), loss.value(output, certain))
    assert torch.allclose(loss.slope(output, codes), loss.slope(output, certain))
    assert torch.allclose(loss.constant(codes, share), loss.constant(certain, share))


def test_outputs_are_turned_into_what_they_say_of_targets() -> None:
    output = torch.tensor([[0.0, 1.0]])
    assert torch.equal(expected(SquaredError(), output), output)
    assert torch.allclose(expected(Logistic(), output), torch.tensor([[0.5, 0.7310586]]))
    assert torch.allclose(expected(CrossEntropy(2), output).sum(1), torch.ones(1))


def test_a_committee_holds_few_weights_whatever_the_network_could_hold() -> None:
    wide = replace(objective_of(CURVE, SquaredError()), layout=Layout((INPUTS, 10_000, 1), fused=True))
    committee = Committee.drawn(wide, 60, FOLD, 0, TUNING)
    each = TUNING.neurons * (TUNING.fan + 2) + 1
    assert committee.point.w.nonzeros <= 2 * TUNING.folds * each
