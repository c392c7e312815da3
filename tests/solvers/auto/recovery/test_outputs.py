"""Recovery output by output: planted networks are found whole, and noise is given up soon."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest
import torch
from dense import dense_network
from problems import normal

from thresher import SparseMLPRegressor
from thresher.data.planted import planted, psnr
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import Huber, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.recovery.outputs import (
    Outputs,
    outputs_may_be_exact,
    recover_outputs,
    steady_inputs,
)
from thresher.solvers.auto.recovery.problem import Problem, Progress
from thresher.solvers.auto.recovery.recoveries import recovery_of
from thresher.solvers.auto.recovery.tuning import RecoverTuning

INPUTS, HIDDEN, BUDGET, OUTPUTS = 8, 5, 24, 3


def problem_of(X: np.ndarray, Y: np.ndarray, budget: int = BUDGET, bias: bool = False) -> Problem:
    """Ask for a network of several outputs behind some targets."""
    layout = Layout((X.shape[1], HIDDEN, Y.shape[1]), bias, direct=True)
    targets = torch.from_numpy(np.array(Y, dtype=np.float64)) / max(1e-300, float(np.std(Y)))
    data = Data(X, targets, dtype=torch.float32)
    return Problem(Relu(data, layout, SquaredError()), budget, passes=200.0, batch=100)


def told(search: Generator[Progress, None, bool]) -> tuple[list[Progress], bool]:
    """Run a search to its end: all that it told, and what it returned."""
    found = []
    while True:
        try:
            found.append(next(search))
        except StopIteration as end:
            return found, bool(end.value)


def drawn(seed: int, rows: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Plant a network of five neurons and 24 weights between eight inputs and three outputs."""
    problem = planted(rows, INPUTS, HIDDEN, BUDGET, outputs=OUTPUTS, seed=seed)
    return problem.X.astype(np.float64), problem.evaluate(problem.X)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_network_of_several_outputs_is_found_within_its_budget(seed: int) -> None:
    X, Y = drawn(seed)
    problem = problem_of(X, Y)
    progress, found = told(recover_outputs(problem))
    assert found and [one.found for one in progress] == [False] * (len(progress) - 1) + [True]
    fit = progress[-1].fit
    assert fit is not None and fit.nonzeros <= BUDGET
    outputs = dense_network(problem.objective.layout, fit.point, X=torch.from_numpy(X))(fit.point.w.values)
    targets = problem.objective.data.targets.double()
    assert float((outputs - targets).abs().max()) < 1e-5
    passes = [one.passes for one in progress]
    assert passes == sorted(passes) and passes[-1] < problem.passes


def test_the_same_seed_gives_the_same_bits() -> None:
    X, Y = drawn(1)
    fits = [told(recover_outputs(problem_of(X, Y)))[0][-1].fit for _ in range(2)]
    assert fits[0] is not None and fits[1] is not None
    assert torch.equal(fits[0].point.w.values, fits[1].point.w.values)


def zeroed(Y: np.ndarray) -> np.ndarray:
    return np.column_stack([0 * Y[:, 0], Y[:, 1], Y[:, 2]])


def multiplied(Y: np.ndarray) -> np.ndarray:
    return np.column_stack([Y[:, 0], -3 * Y[:, 0], Y[:, 2]])


def copied(Y: np.ndarray) -> np.ndarray:
    return np.column_stack([Y[:, 1], Y[:, 1], Y[:, 2]])


def constant(Y: np.ndarray) -> np.ndarray:
    return np.column_stack([Y[:, 0], 0 * Y[:, 1] + 5, Y[:, 2]])


def of_different_size(Y: np.ndarray) -> np.ndarray:
    return Y * [1e-6, 1.0, 1e6]


@pytest.mark.parametrize("changed", [zeroed, multiplied, copied, constant, of_different_size])
def test_strange_outputs_are_found_like_any(changed: object) -> None:
    X, Y = drawn(2)
    Y = changed(Y)  # type: ignore[operator]
    model = SparseMLPRegressor(budget=BUDGET + 6, hidden=HIDDEN, random_state=0).fit(X, Y)
    assert model.status_.name in ("recovered", "fitted")
    guess = model.predict(X)
    assert all(psnr(truth, found) > 100 or not truth.any() for truth, found in zip(Y.T, guess.T, strict=True))
    assert np.abs(guess[:, ~Y.any(0)]).max(initial=0.0) < 1e-9


def test_shifted_columns_and_targets_change_nothing_but_biases() -> None:
    X, Y = drawn(0, rows=3000)
    model = SparseMLPRegressor(budget=BUDGET + HIDDEN + OUTPUTS, hidden=HIDDEN, random_state=0)
    model.fit(X + 3, Y + 7)
    assert psnr(Y + 7, model.predict(X + 3)) > 100
    assert model.nonzeros_ <= BUDGET + HIDDEN + OUTPUTS


def test_logits_of_a_network_that_never_sees_a_negative_input_are_found() -> None:
    random = np.random.default_rng(0)
    # Like pixels: many zeros, no negative value, so that sums with positive weights bend nothing.
    X = np.maximum(random.standard_normal((4000, 12)), 0) * 255
    W = np.zeros((12, 6))
    for neuron in range(6):
        W[random.choice(12, 3, replace=False), neuron] = random.standard_normal(3) / 255
    W[:, 0] = np.abs(W[:, 0])
    V = random.standard_normal((6, 4)) * (random.random((6, 4)) < 0.7)
    V[0] = random.standard_normal(4)
    logits = np.maximum(X @ W + 0.1, 0) @ V + random.standard_normal(4)
    budget = int((W != 0).sum() + (V != 0).sum()) + 6 + 4
    model = SparseMLPRegressor(budget=budget, hidden=6, random_state=0).fit(X, logits)
    assert psnr(logits, model.predict(X)) > 100 and model.nonzeros_ <= budget


@pytest.mark.parametrize("outputs", [2, 12])
def test_noise_is_given_up_after_a_look_at_few_outputs(outputs: int) -> None:
    X, Y = normal(1500, INPUTS), normal(1500, outputs, seed=1)
    problem = problem_of(X, Y)
    progress, found = told(recover_outputs(problem))
    assert not found and all(one.fit is None for one in progress)
    assert progress[-1].passes * outputs < 0.2 * problem.passes


def test_few_rows_are_left_to_other_ways_and_give_finite_answers() -> None:
    X, Y = drawn(0, rows=20)
    assert recovery_of(problem_of(X, Y)) is None
    model = SparseMLPRegressor(budget=BUDGET, hidden=HIDDEN, random_state=0, max_iter=30).fit(X, Y)
    assert np.isfinite(model.predict(X)).all() and model.nonzeros_ <= BUDGET
    assert str(model.status_)


def test_a_search_that_is_stopped_hands_out_a_network_of_all_outputs_within_the_budget() -> None:
    X, Y = drawn(1)
    problem = problem_of(X, Y, budget=15)
    students = takewhile(lambda one: one.passes < 8, recover_outputs(problem))
    last = [one for one in students if one.cut is not None][-1]
    assert last.cut is not None
    fit = last.cut()
    assert fit.nonzeros <= 15 and math.isfinite(fit.value)


def test_a_network_that_needs_more_than_the_budget_is_not_found() -> None:
    X, Y = drawn(0)
    progress, found = told(recover_outputs(replace(problem_of(X, Y), budget=14)))
    assert not found
    assert all(one.fit is None or one.fit.nonzeros <= 14 for one in progress)


def test_it_is_for_squared_errors_of_one_hidden_layer_on_enough_rows_that_are_no_labels() -> None:
    X, Y = drawn(0)
    problem = problem_of(X, Y)
    objective = problem.objective
    assert outputs_may_be_exact(problem)
    deep = Layout((INPUTS, HIDDEN, HIDDEN, OUTPUTS), False)
    for other in (replace(objective, loss=Huber(1.0)), replace(objective, layout=deep)):
        assert not outputs_may_be_exact(replace(problem, objective=other))
    assert not outputs_may_be_exact(replace(problem, budget=RecoverTuning().most + 1))
    labels = problem_of(X, np.eye(3)[np.random.default_rng(0).integers(0, 3, len(X))])
    assert not outputs_may_be_exact(labels)


def test_students_are_not_trained_on_inputs_with_rare_large_values() -> None:
    X, Y = drawn(0)
    X[:, 3] *= np.arange(len(X)) % 700 == 7
    X[:, 5] = 0
    assert steady_inputs(problem_of(X, Y).objective, 20.0).tolist() == [
        j not in (3, 5) for j in range(INPUTS)
    ]
    assert steady_inputs(problem_of(0 * X, Y).objective, 20.0).all()


def test_rare_inputs_are_fitted_to_all_rows() -> None:
    """On the rows of a sample alone, an input that few of them have spoils all other rows."""
    rng = np.random.default_rng(0)
    X, Y = drawn(2, rows=11_000)
    rare = np.zeros((len(X), 5))
    rare[rng.integers(0, len(X), (3, 5)), np.arange(5)] = rng.uniform(0.1, 50, (3, 5))
    for inputs, rows in ((X, RecoverTuning().sample), (np.hstack([X, rare]), len(X))):
        assert Outputs(problem_of(inputs, Y), math.inf).lines.objective.data.rows == rows


def test_steps_are_shorter_where_inputs_rise_and_fall_together() -> None:
    X, Y = drawn(2, rows=400)
    X = np.hstack([X, normal(400, 40, seed=5)])
    assert Outputs(problem_of(X, Y), math.inf).coherence == 1.0
    together = np.abs(X + 3)
    eigenvalue = np.linalg.eigvalsh(together.T @ together / len(X))[-1]
    found = Outputs(problem_of(together, Y), math.inf).coherence
    assert found == pytest.approx(math.sqrt(eigenvalue / RecoverTuning().coherent), rel=1e-5)
    assert found > 5
