"""Exact recovery: a planted network is found; noise, and what others explain better, is given up soon."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from dense import dense_network
from problems import network_problem, normal

from thresher import SparseMLPRegressor
from thresher.experiments import certified_problems
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import Huber, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.recovery import attempt
from thresher.solvers.auto.recovery.problem import Problem, Progress, feature_subset, may_be_exact
from thresher.solvers.auto.recovery.recover import recover
from thresher.solvers.auto.recovery.tuning import RecoverTuning

TUNING = RecoverTuning()
PASSES, HIDDEN, BUDGET = 300.0, 3, 8


def problem_of(
    X: np.ndarray, y: np.ndarray, bias: bool = False, direct: bool = False, centred: bool = False
) -> Problem:
    """Ask for a small network behind some targets."""
    layout = Layout((X.shape[1], HIDDEN, 1), bias, fused=True, direct=direct)
    middle = torch.full((1,), float(y.mean()), dtype=torch.float64) if centred else None
    data = Data(X, torch.from_numpy(y - y.mean() if centred else y)[:, None], dtype=torch.float32)
    return Problem(Relu(data, layout, SquaredError(), middle=middle), BUDGET, PASSES, batch=50)


def explored(search: Generator[Progress, None, bool]) -> tuple[list[Progress], bool]:
    """Run a search to its end: all that it told, and what it returned."""
    told = []
    while True:
        try:
            told.append(next(search))
        except StopIteration as end:
            return told, bool(end.value)


def labelled(seed: int, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Plant a network of three neurons and eight weights among five inputs."""
    planted = network_problem(600, 5, HIDDEN, BUDGET, negative=0.3, noise=noise, seed=seed)
    return planted.X, planted.y


def check(problem: Problem, X: np.ndarray, y: np.ndarray, most: int) -> None:
    """Insist that a search finds a network of no more weights that computes the targets."""
    told, found = explored(recover(problem))
    answer = told[-1]
    assert found and answer.found and answer.phase == "candidate"
    assert not any(one.found for one in told[:-1])
    assert answer.fit is not None
    assert answer.nonzeros == answer.fit.nonzeros <= most
    assert answer.passes < problem.passes
    point = answer.fit.point
    outputs = dense_network(problem.objective.layout, point, X=torch.from_numpy(X).double())(point.w.values)
    assert float((outputs[:, 0].numpy() - y).std()) < 1e-5 * y.std()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_network_is_found(seed: int) -> None:
    X, y = labelled(seed)
    check(problem_of(X, y), X, y, BUDGET)


def test_a_planted_network_is_found_among_direct_connections_and_biases() -> None:
    X, _ = labelled(0)
    y = np.maximum(X[:, 0] - X[:, 1] + 0.3, 0) - np.maximum(X[:, 2] + 0.5, 0) + 0.8 * X[:, 3] + 2
    check(problem_of(X, y, bias=True, direct=True, centred=True), X, y, BUDGET)


def test_the_same_seed_gives_the_same_bits() -> None:
    X, y = labelled(1)
    first, second = (explored(recover(problem_of(X, y)))[0] for _ in range(2))
    assert [(one.phase, one.passes, one.value) for one in first] == [
        (one.phase, one.passes, one.value) for one in second
    ]
    assert first[-1].fit is not None and second[-1].fit is not None
    assert torch.equal(first[-1].fit.point.w.values, second[-1].fit.point.w.values)


def test_students_hold_no_more_than_they_may_and_passes_rise() -> None:
    X, y = labelled(1)
    problem = replace(problem_of(X, y), tuning=replace(TUNING, weights=30, inflation=4.0))
    told, _ = explored(recover(problem))
    assert all(one.nonzeros <= 4 * BUDGET + 5 for one in told)
    assert all(one.nonzeros <= TUNING.kept * BUDGET + 5 for one in told if one.phase == "fixed")
    passes = [one.passes for one in told]
    assert passes == sorted(passes)


@pytest.mark.parametrize("room", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_pure_noise_is_given_up_soon(room: bool, seed: int) -> None:
    X, y = normal(600, 5, seed=seed), normal(600, seed=seed + 10)
    told, found = explored(recover(problem_of(X, y, bias=room, direct=room)))
    assert not found
    assert all(one.fit is None for one in told)
    assert told[-1].passes < 0.1 * PASSES


def test_a_rival_that_is_far_ahead_stops_the_search() -> None:
    X, y = labelled(0, noise=0.05)
    against, found = explored(recover(problem_of(X, y), rival=1e-6))
    assert not found
    assert against[-1].passes < 0.2 * PASSES
    # Alone it is the same search up to there, and goes on.
    alone = list(islice(recover(problem_of(X, y)), 2 * len(against)))
    assert len(alone) == 2 * len(against)
    assert [one.value for one in against] == [one.value for one in alone[: len(against)]]


def test_a_rival_that_is_not_ahead_changes_nothing() -> None:
    X, y = labelled(1)
    (alone, _), (against, found) = (explored(recover(problem_of(X, y), rival)) for rival in (math.inf, 0.1))
    assert found
    assert [one.value for one in against] == [one.value for one in alone]


def test_a_network_that_needs_more_than_the_budget_is_not_found_and_candidates_are_within_it() -> None:
    X, y = labelled(0)
    told, found = explored(recover(replace(problem_of(X, y), budget=5, passes=100.0)))
    assert not found
    assert all(one.nonzeros <= 5 and not one.found for one in told if one.fit is not None)
    assert told[-1].passes <= 110


def test_recovery_is_for_squared_errors_of_one_hidden_layer_on_enough_rows() -> None:
    X, y = labelled(0)
    problem = problem_of(X, y)
    objective = problem.objective
    assert may_be_exact(problem)
    assert not may_be_exact(replace(problem, objective=replace(objective, loss=Huber(1.0))))
    deep = Layout((5, 3, 3, 1), False, fused=True)
    assert not may_be_exact(replace(problem, objective=replace(objective, layout=deep)))
    assert not may_be_exact(replace(problem, budget=TUNING.most + 1))
    # Eight weights, and two numbers for each of five inputs.
    enough = int(TUNING.rows_each * (BUDGET + 2 * 5))
    for rows, takes in ((enough, True), (enough - 1, False)):
        assert may_be_exact(problem_of(X[:rows], y[:rows])) == takes
    assert not may_be_exact(problem_of(X, (y > 0).astype(np.float64)))


def test_a_feature_subset_holds_the_inputs_that_matter() -> None:
    X = normal(300, 40)
    problem = problem_of(X, X[:, 7] - np.maximum(X[:, 30], 0))
    assert torch.equal(feature_subset(problem), torch.arange(40))
    narrow = replace(problem, tuning=replace(TUNING, inputs=6, weights=0, inflation=1.0))
    chosen = feature_subset(narrow).tolist()
    assert len(chosen) == 6
    assert chosen == sorted(chosen)
    assert {7, 30} <= set(chosen)


@pytest.mark.parametrize(("falls", "trained"), [(0.8, 20), (0.99, 8)])
def test_a_student_that_still_falls_fast_is_trained_to_the_end(
    falls: float, trained: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stand at what the training before them has left; the slow one is given up at two fifths."""
    search = attempt.Search(problem_of(*labelled(0)), math.inf)
    form, before = search.start(), 10.0 * search.spread**2

    def train(*arguments: object, **named: object) -> Iterator[tuple[object, float, float]]:
        point = form.held(search.form, every_weight=True, every_fold=True)[1]
        yield from ((point, 2 * before * falls**step, 1.0) for step in range(20))

    monkeypatch.setattr(attempt, "train", train)
    search.tuning = replace(search.tuning, standstill=0.0, glance=0.4)
    search.problem = replace(search.problem, passes=2000.0)
    schedule = replace(search.schedule(1.0, 1.0, 10.0), passes=20.0)
    assert sum(1 for _ in search.trained(form, schedule, "wide", before=before)) == trained


def test_a_student_with_too_many_neurons_for_its_sides_is_cut_to_the_width_asked_for() -> None:
    """Few rows, repeated: three kinks explain them, and a network of two neurons was asked for."""
    drawn = certified_problems.problem_of(rows=600, seed=1, number=14, outputs=1)
    model = SparseMLPRegressor(4, 2, bias=False, max_iter=60, random_state=0).fit(drawn.X, drawn.target)
    assert model.nonzeros_ <= 4
    assert model.network_.hidden == (2,)
