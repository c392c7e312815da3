"""Deep recovery: planted networks of two hidden layers are found; noise is given up soon."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from dense import dense_network
from problems import normal

from thresher import SparseMLPRegressor
from thresher.data.planted import PlantedProblem, planted, psnr
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import Huber, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.recovery.deep import may_be_deep, recover_deep
from thresher.solvers.auto.recovery.deep_tuning import DeepTuning
from thresher.solvers.auto.recovery.problem import Problem, Progress

TUNING = DeepTuning()
ROWS, INPUTS, HIDDEN, BUDGET = 3000, 6, (3, 3), 12


def problem_of(X: np.ndarray, y: np.ndarray, budget: int = BUDGET, passes: float = 2000.0) -> Problem:
    """Ask for a small deep network behind some targets, of unit size."""
    y = y.reshape(len(y), -1)
    layout = Layout((X.shape[1], *HIDDEN, y.shape[1]), False, fused=y.shape[1] == 1)
    data = Data(X, torch.from_numpy(y / y.std()), dtype=torch.float32)
    return Problem(Relu(data, layout, SquaredError()), budget, passes, batch=50)


def network(outputs: int, seed: int) -> PlantedProblem:
    """Plant a network of two hidden layers."""
    return planted(ROWS, INPUTS, HIDDEN, BUDGET, outputs=outputs, seed=seed)


def explored(search: Generator[Progress, None, bool]) -> tuple[list[Progress], bool]:
    """Run a search to its end: all that it told, and what it returned."""
    told = []
    while True:
        try:
            told.append(next(search))
        except StopIteration as end:
            return told, bool(end.value)


@pytest.mark.parametrize(("outputs", "seed"), [(1, 10), (3, 14)])
def test_a_planted_network_is_found(outputs: int, seed: int) -> None:
    source = network(outputs, seed)
    problem = problem_of(source.X, source.y)
    told, found = explored(recover_deep(problem))
    answer = told[-1]
    assert found and answer.found and answer.fit is not None
    assert not any(one.found for one in told[:-1])
    assert answer.nonzeros == answer.fit.nonzeros <= BUDGET
    assert answer.passes < problem.passes
    X = torch.from_numpy(source.X).double()
    outputs_of = dense_network(problem.objective.layout, answer.fit.point, X=X)(answer.fit.point.w.values)
    assert psnr(source.y.reshape(ROWS, -1) / source.y.std(), outputs_of.numpy()) > 100


def test_the_same_seed_gives_the_same_bits() -> None:
    source = network(1, 10)
    one, other = (list(islice(recover_deep(problem_of(source.X, source.y)), 30)) for _ in range(2))
    assert [told.value for told in one] == [told.value for told in other]


def test_noise_is_given_up_after_a_look() -> None:
    X, y = normal(2000, 5, seed=0), normal(2000, seed=1)
    problem = problem_of(X, X[:, 0] + y)
    told, found = explored(recover_deep(problem))
    assert not found and all(one.fit is None for one in told)
    assert told[-1].passes <= TUNING.look_most * problem.passes + 1


def test_a_search_that_is_stopped_has_a_network_within_budget_and_widths() -> None:
    source = network(1, 10)
    problem = problem_of(source.X, source.y)
    last = list(islice(recover_deep(problem), 5))[-1]
    assert last.cut is not None
    fit = last.cut()
    assert fit.nonzeros <= BUDGET
    assert fit.point.w.size == problem.objective.size
    assert fit.value < 0.5


def test_what_is_taken_on() -> None:
    source = network(1, 10)
    problem = problem_of(source.X, source.y)
    assert may_be_deep(problem)
    shallow = replace(problem.objective, layout=Layout((INPUTS, 3, 1), False, fused=True))
    labels = problem_of(source.X, np.sign(source.y - np.median(source.y)))
    refused = [
        replace(problem, objective=shallow),
        replace(problem, objective=replace(problem.objective, loss=Huber(1.0))),
        replace(problem, budget=ROWS // 5),
        problem_of(source.X[:400], source.y[:400]),
        labels,
    ]
    assert not any(may_be_deep(one) for one in refused)


def test_the_default_solver_finds_a_deep_network() -> None:
    source = network(1, 10)
    model = SparseMLPRegressor(BUDGET, hidden=HIDDEN, bias=False, max_iter=1000, random_state=0)
    model.fit(source.X, source.y)
    assert model.status_.name == "recovered"
    assert model.nonzeros_ <= BUDGET
    assert psnr(source.y, model.predict(source.X)) > 100


def test_the_default_solver_finds_it_among_biases_and_moved_columns() -> None:
    X = normal(3000, 4, seed=3) + 5
    first = np.maximum(X[:, 0] - X[:, 1], 0)
    y = np.maximum(first - 0.5 * np.maximum(X[:, 2] - 5, 0), 0) + 3
    model = SparseMLPRegressor(16, hidden=(3, 3), max_iter=1000, random_state=0).fit(X, y)
    assert model.status_.name == "recovered"
    assert model.nonzeros_ <= 16
