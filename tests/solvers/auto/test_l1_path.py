"""The path of L1 penalties: from moments as from rows, never too many weights, never empty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Huber, Logistic, Loss, Poisson, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.linear import LAST, Model, _of_moments, _of_rows, l1_model, l1_path
from thresher.solvers.auto.tuning import LinearTuning

TUNING = LinearTuning()
SHARP = replace(TUNING, steps=2000, work=math.inf, tolerance=1e-9)


def objective_of(
    X: np.ndarray,
    y: np.ndarray,
    loss: Loss | None = None,
    weight: np.ndarray | None = None,
    bias: bool = True,
    centred: bool = False,
) -> Relu:
    """Give the objective of linear models."""
    given = None if weight is None else torch.from_numpy(weight.astype(np.float64))
    data = Data(X, torch.from_numpy(y), given, dtype=torch.float64)
    loss = loss or SquaredError()
    outputs = loss.classes if isinstance(loss, CrossEntropy) else y.shape[1]
    layout = Layout((X.shape[1], 2, outputs), bias, fused=outputs == 1, direct=True)
    return Relu(data, layout, loss, middle=torch.zeros(outputs).double() if centred else None)


def rows(count: int, inputs: int, outputs: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows whose first inputs matter most, and noisy targets with a mean."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((count, inputs))
    strength = 0.6 ** np.arange(inputs)[:, None]
    y = X @ (strength * random.choice([-1, 1], (inputs, outputs))) + 0.5
    return X, y + 0.1 * random.standard_normal(y.shape)


def objective_value(objective: Relu, model: Model) -> float:
    """Give the mean loss with the L1 penalty."""
    return _of_rows(objective, model.numbers)[0] + model.penalty * float(model.weights.abs().sum())


KINDS: dict[str, Callable[[], Relu]] = {
    "one output": lambda: objective_of(*rows(60, 5)),
    "two outputs": lambda: objective_of(*rows(60, 5, 2)),
    "no bias": lambda: objective_of(*rows(60, 5), bias=False),
    "centred": lambda: objective_of(*rows(60, 5), centred=True),
    "weights": lambda: objective_of(*rows(60, 5), weight=np.arange(60) % 4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_moments_say_what_rows_say_of_any_model(kind: str) -> None:
    objective, random = KINDS[kind](), np.random.default_rng(1)
    outputs = objective.layout.widths[-1]
    sums = _of_moments(objective, torch.from_numpy(random.standard_normal((6, outputs))))
    for _ in range(3):
        some = random.random((6, outputs)) < 0.6
        numbers = torch.from_numpy(random.standard_normal((6, outputs)) * some)
        for one, two in zip(sums(numbers), _of_rows(objective, numbers), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_a_path_from_moments_is_that_from_rows(outputs: int, bias: bool) -> None:
    X, y = rows(20, 30, outputs)
    # Fewer rows than columns are read again and again; twice the same rows are summed up once.
    from_rows = list(l1_path(objective_of(X, y, bias=bias), 12, TUNING))
    twice = objective_of(np.tile(X, (2, 1)), np.tile(y, (2, 1)), bias=bias)
    from_moments = list(l1_path(twice, 12, TUNING))
    assert len(from_rows) == len(from_moments) > 4
    for one, two in zip(from_rows, from_moments, strict=True):
        assert one.penalty == pytest.approx(two.penalty, rel=1e-12)
        torch.testing.assert_close(one.weights, two.weights, rtol=0, atol=1e-8)
        torch.testing.assert_close(one.constant, two.constant, rtol=0, atol=1e-8)


@pytest.mark.parametrize("shape", [(60, 5), (60, 30), (20, 30)])
def test_every_model_of_a_path_is_as_good_as_that_of_scikit_learn(shape: tuple[int, int]) -> None:
    X, y = rows(*shape)
    objective = objective_of(X, y)
    sharp, quick = (list(l1_path(objective, 12, tuning)) for tuning in (SHARP, TUNING))
    assert len(sharp) > 4 and len(quick) > 4
    for model in (*sharp, *quick):
        truth = Lasso(alpha=model.penalty, tol=1e-12, max_iter=100_000).fit(X, y[:, 0])
        numbers = torch.from_numpy(np.append(truth.coef_, truth.intercept_))[:, None]
        best = Model(numbers, model.penalty, model.curvature)
        least = objective_value(objective, best)
        within = 1e-8 if model in sharp else 0.01
        assert least - 1e-9 <= objective_value(objective, model) <= least * (1 + within)


def test_a_weight_of_two_is_a_repeat() -> None:
    X, y = rows(30, 5)
    times = 1 + np.arange(30) % 2
    weighted = l1_path(objective_of(X, y, weight=times), 5, TUNING)
    repeated = l1_path(objective_of(np.repeat(X, times, 0), np.repeat(y, times, 0)), 5, TUNING)
    for one, two in zip(weighted, repeated, strict=True):
        torch.testing.assert_close(one.weights, two.weights, rtol=0, atol=1e-8)


def targets_of(loss: Loss, y: np.ndarray) -> np.ndarray:
    """Turn numbers into targets that a loss is made for."""
    if loss.name == "logistic":
        return (y > 0.5).astype(np.float64)
    if loss.name == "poisson":
        return np.asarray(np.round(np.exp(y)))
    return (y > 0.5).astype(np.int64) + (y > 1.0) if loss.name == "cross-entropy" else y


LOSSES: list[Loss] = [SquaredError(), Huber(0.7), Poisson(), Logistic(), CrossEntropy(3)]
losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


@losses
@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_path_holds_some_weights_and_never_too_many_and_penalties_fall(loss: Loss, most: int) -> None:
    X, y = rows(80, 6)
    models = list(l1_path(objective_of(X, targets_of(loss, y), loss), most, TUNING))
    assert models
    assert all(1 <= model.nonzeros <= most for model in models)
    penalties = [model.penalty for model in models]
    # The end of the path is its last step, where no shorter one led further.
    assert all(later < earlier for earlier, later in pairwise(penalties[:-1]))
    assert penalties[-1] == min(penalties)
    assert [model.step for model in models] == [*(model.step for model in models[:-1]), LAST]


@pytest.mark.parametrize("seed", range(5))
def test_a_path_of_one_weight_holds_the_input_that_says_most(seed: int) -> None:
    X, y = rows(200, 6, seed=seed)
    models = list(l1_path(objective_of(X, y), 1, TUNING))
    told = np.abs((X - X.mean(0)).T @ (y - y.mean()))[:, 0]
    assert models
    assert all(model.weights[:, 0].nonzero().item() == told.argmax() for model in models)


def test_no_model_is_beyond_the_penalty_that_leaves_nothing() -> None:
    X, y = rows(80, 6)
    strongest = np.abs(X.T @ (y - y.mean())).max() / 80
    models = list(l1_path(objective_of(X, y), 6, TUNING))
    assert TUNING.fall * strongest * (1 - 1e-12) <= models[0].penalty < strongest
    assert models[-1].penalty > TUNING.least * strongest
    assert models[-1].nonzeros == 6


def test_targets_that_are_all_zero_need_no_weights() -> None:
    X, y = rows(80, 6)
    assert list(l1_path(objective_of(X, np.zeros_like(y)), 6, TUNING)) == []


def test_a_step_leads_to_the_model_of_the_path_or_to_its_end() -> None:
    objective = objective_of(*rows(80, 6))
    models = list(l1_path(objective, 4, TUNING))
    for model in models:
        again = l1_model(objective, model.step, 4, TUNING)
        assert torch.equal(again.numbers, model.numbers)
    assert torch.equal(l1_model(objective, 1000, 4, TUNING).numbers, models[-1].numbers)
