"""The default solver: within the budget always, the same bits again, and blind to the order of features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from dense import CASES, NetworkCase
from problems import Watch
from sklearn.datasets import load_digits

from thresher import SparseMLPRegressor
from thresher.data.planted import planted
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto import Auto, Tuning
from thresher.solvers.auto.auto import Search
from thresher.solvers.auto.size import Size
from thresher.solvers.auto.tuning import FallingTuning
from thresher.solvers.loop import Start, run

kinds = pytest.mark.parametrize(
    "case",
    [case for case in CASES if len(case.widths) > 2 and not case.absolute and case.bias and case.density < 1],
    ids=str,
)


@kinds
@pytest.mark.parametrize("budget", [1, 6])
def test_what_may_be_handed_out_is_within_the_budget(case: NetworkCase, budget: int) -> None:
    watch = Watch()
    objective = case.objective(count=50)
    solution = run(Auto(passes=2), objective, budget, max_iter=2, tol=-np.inf, callback=watch)
    assert solution.w.nonzeros <= budget
    assert all(iterate.w.nonzeros <= budget for iterate in watch.iterates if iterate.kept)
    assert all(
        iterate.kept or iterate.record["way"] in ("recovery", "training") for iterate in watch.iterates
    )
    point = Point(solution.w, solution.signs)
    assert np.isfinite(objective.to(torch.float64).value(point))
    assert solution.status.name == "finished"


@pytest.mark.parametrize("case", [CASES[1], CASES[8], CASES[18]], ids=str)
def test_the_same_seed_gives_the_same_bits(case: NetworkCase) -> None:
    one, two = (run(Auto(passes=2, seed=4), case.objective(count=50), 6, max_iter=2) for _ in range(2))
    assert torch.equal(one.w.indices, two.w.indices)
    assert torch.equal(one.w.values, two.w.values)
    assert [record["loss"] for record in one.history] == [record["loss"] for record in two.history]


def hinges(order: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Give rows whose columns come in some order, and a law that does not know of it."""
    random = np.random.default_rng(0)
    X = random.standard_normal((150, 4))
    y = np.maximum(X[:, 0] - 0.2, 0) - 2 * np.maximum(X[:, 2] + 0.4, 0)
    return X[:, order], y


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]])
def test_permuting_features_permutes_the_support(order: list[int]) -> None:
    X, y = hinges(order)
    model = SparseMLPRegressor(6, 4, random_state=0).fit(X, y)
    assert {order[place] for place in np.flatnonzero(model.get_support())} == {0, 2}
    assert model.score(X, y) == pytest.approx(1, abs=1e-9)


def test_a_start_is_the_first_candidate_and_the_answer_is_no_worse() -> None:
    X, y = hinges([0, 1, 2, 3])
    layout = Layout((4, 4, 1), fused=True, direct=True)
    data = Data(X, torch.from_numpy(y)[:, None], dtype=torch.float64)
    objective = Relu(data, layout, SquaredError())
    first = run(Auto(passes=20), objective, 6, max_iter=20)
    watch = Watch()
    again = run(
        Auto(passes=5), objective, 6, start=Start(first.w, first.signs), max_iter=5, tol=-1, callback=watch
    )
    assert watch.records[0]["way"] == "start"
    assert torch.equal(watch.iterates[0].w.indices, first.w.indices)
    assert objective.value(Point(again.w, again.signs)) <= objective.value(Point(first.w, first.signs)) + 1e-9


def test_an_incremental_run_trains_once_from_its_start() -> None:
    X, y = hinges([0, 1, 2, 3])
    layout = Layout((4, 4, 1), fused=True, direct=True)
    objective = Relu(Data(X, torch.from_numpy(y)[:, None], dtype=torch.float64), layout, SquaredError())
    solver = replace(Auto(passes=1), incremental=True)
    solution = run(solver, objective, 6, max_iter=1)
    assert {record["way"] for record in solution.history} == {"training"}
    assert solution.w.nonzeros <= 6


@pytest.mark.parametrize(
    ("rows", "told"), [(100, {"linear", "growing", "pruning"}), (150, {"linear", "pruning"})]
)
def test_every_way_and_its_score_is_told(rows: int, told: set[str]) -> None:
    X, y = hinges([0, 1, 2, 3])
    y = y + 0.1 * np.random.default_rng(1).standard_normal(150)
    model = SparseMLPRegressor(6, 4, max_iter=60, random_state=0).fit(X[:rows], y[:rows])
    ways = {record["way"] for record in model.history_}
    assert told <= ways
    assert ("committee" in ways) == (rows >= 128)
    for way in told:
        assert way in model.status_.advice
    searched = [one for one in model.history_[:-1] if one["way"] not in ("recovery", "committee")]
    assert all(np.isfinite(record["score"]) for record in searched)


def planted_objective() -> Relu:
    """Give the objective of a network that recovery takes several passes for."""
    problem = planted(n=2000, d=20, hidden=10, budget=40, seed=0)
    data = Data(problem.X, torch.from_numpy(problem.y)[:, None])
    return Relu(data, Layout((20, 10, 1), bias=False, fused=True), SquaredError())


@pytest.mark.parametrize("passes", [1, 3, 8])
def test_a_recovery_that_is_stopped_hands_out_a_network_within_the_budget(passes: int) -> None:
    objective = planted_objective()
    whole = float(objective.value(Point(SparseVector.zeros(objective.size), torch.ones(10))))
    solution = run(Auto(), objective, 40, callback=lambda record, iterate: record["step"] == passes)
    assert {record["way"] for record in solution.history} == {"recovery"}
    assert solution.status.name == "callback"
    assert 0 < solution.w.nonzeros <= 40
    assert objective.value(Point(solution.w, solution.signs).to(torch.float32)) < 0.3 * whole


def test_a_training_that_is_stopped_hands_out_a_network_within_the_budget() -> None:
    objective = planted_objective()
    solver = replace(Auto(passes=50), incremental=True)
    solution = run(solver, objective, 15, max_iter=50, callback=lambda record, iterate: True)
    assert [record["way"] for record in solution.history] == ["training"]
    assert 0 < solution.w.nonzeros <= 15


def test_what_recovery_nearly_found_is_a_candidate() -> None:
    objective = planted_objective()
    noise = 1e-3 * torch.from_numpy(np.random.default_rng(0).standard_normal((2000, 1))).float()
    noisy = replace(objective, data=Data(objective.data.X, objective.data.targets + noise))
    watch = Watch()
    solution = run(Auto(passes=100), noisy, 40, max_iter=100, callback=watch)
    found = [one for one in watch.iterates if one.kept and one.record["way"] == "recovery"]
    assert found and all(one.w.nonzeros <= 40 and one.score is not None for one in found)
    least = min(noisy.to(torch.float64).value(Point(one.w, one.signs)) for one in found)
    answer = noisy.to(torch.float64).value(Point(solution.w, solution.signs).to(torch.float64))
    assert answer <= 1.1 * least
    assert solution.status.name == "finished"


@pytest.mark.parametrize("budget", [200, 300])
def test_newton_is_asked_only_for_equations_that_fit_into_the_memory_limit(budget: int) -> None:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((400, 5)), torch.from_numpy(random.standard_normal((400, 1)))
    layout = Layout((5, 300, 1), fused=True, direct=True)
    one = 8 * max(60, 2 * budget) ** 2
    for room, pays in ((1, False), (100, True)):
        objective = Relu(Data(X, y), layout, SquaredError(), memory_limit=room * one)
        assert Size(objective, budget, Tuning()).newton_pays is pays


@pytest.mark.parametrize(("most", "candidates"), [(8, 2), (7, 1)])
def test_a_training_for_many_classes_ends_with_an_exchange(most: int, candidates: int) -> None:
    X, y = load_digits(n_class=8, return_X_y=True)
    X, y = X[:600] / 16, torch.from_numpy(y[:600])[:, None]
    layout = Layout((64, 12, 8), direct=True)
    objective = Relu(Data(X, y, dtype=torch.float64), layout, CrossEntropy(8))
    tuning = Tuning(falling=FallingTuning(outputs=most))
    solver = Auto(passes=10, tuning=tuning)
    search = Search(solver, objective, 40)
    answer = list(search.iterates(None))[-1]
    assert len(search.tried) == candidates
    assert answer.w.nonzeros <= 40
    scores = [one.score for one in search.tried]
    # Adam has left much to gain after ten passes.
    assert candidates == 1 or scores[1] < 0.9 * scores[0]


@pytest.mark.parametrize(("hidden", "outputs", "budget", "most"), [((10,), 10, 10, 50), ((6, 6), 6, 24, 100)])
def test_targets_that_are_explained_end_a_training(
    hidden: tuple[int, ...], outputs: int, budget: int, most: int
) -> None:
    problem = planted(n=20_000, d=20, hidden=hidden, budget=budget, outputs=outputs, seed=3)
    model = SparseMLPRegressor(budget, hidden, bias=False, max_iter=200, random_state=0)
    model.fit(problem.X, problem.y)
    assert model.status_.name == "recovered"
    assert model.n_iter_ <= most
    assert model.nonzeros_ <= budget


def test_targets_that_are_not_explained_are_trained_for_as_long_as_planned() -> None:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((600, 6)), random.standard_normal((600, 5))
    model = SparseMLPRegressor(10, 8, max_iter=20, random_state=0).fit(X, y)
    assert model.status_.name == "finished"
    assert model.n_iter_ == 20
