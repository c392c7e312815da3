"""What people require of a network is kept to exactly, whatever the problem; what cannot be is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from thresher import (
    SparseMLPClassifier,
    SparseMLPClassifierCV,
    SparseMLPRegressor,
    SparseMLPRegressorCV,
)
from thresher.data import open_rows
from thresher.errors import ParameterError
from thresher.network.requirements import requirements_of, violations
from thresher.solvers.auto import Tuning
from thresher.solvers.iht import IHT

Rows = tuple[Any, np.ndarray]

# A search that is never small: all rows are gone through by minibatches.
LARGE = replace(Tuning(), judge=replace(Tuning().judge, most=0))


def problem(seed: int, kind: str = "numbers") -> Rows:
    random = np.random.default_rng(seed)
    rows, inputs = int(random.integers(30, 300)), int(random.integers(3, 12))
    X = random.normal(size=(rows, inputs)) * 10.0 ** random.integers(-3, 4) + 5 * random.integers(0, 2)
    if kind == "sparse":
        X = X * (random.random(X.shape) < 0.4)
    scaled = (X - X.mean(0)) / X.std(0)
    y = np.maximum(scaled[:, 0], 0) - scaled[:, 1] * scaled[:, 2] + 0.3 * random.normal(size=rows)
    if kind == "two classes":
        return X, y > np.median(y)
    if kind == "three classes":
        return X, np.digitize(y, np.quantile(y, [0.3, 0.6]))
    if kind == "two targets":
        return X, np.column_stack([y, y**2])
    return (scipy.sparse.csr_array(X) if kind == "sparse" else X), y


def required(seed: int, inputs: int, kind: str) -> dict[str, Any]:
    """Draw what is required, contradictions left out."""
    random = np.random.default_rng([seed, 1])
    order, found = random.permutation(inputs).tolist(), dict[str, Any]()
    if kind in ("numbers", "two classes", "sparse") and random.random() < 0.8:
        chosen = order[: random.integers(1, inputs + 1)]
        found["monotone"] = {column: int(random.choice([-1, 1])) for column in chosen}
    if random.random() < 0.5:
        found["max_fan_in"] = int(random.integers(1, 4))
    if random.random() < 0.5:
        found["max_inputs"] = int(random.integers(1, inputs + 1))
    if random.random() < 0.5:
        found["groups"] = [order[:2]]
    if random.random() < 0.4:
        found["feature_costs"] = {column: float(random.integers(0, 4)) for column in range(inputs)}
        found["max_cost"] = 3.0 + float(random.integers(0, 6))
    return found or {"max_fan_in": 1}


def wrong(model: Any, X: Any, asked: dict[str, Any], seed: int) -> list[str]:
    """Say what a network breaks, seen as a function: rows are moved, outputs compared without tolerance."""
    random, network = np.random.default_rng(seed), model.network_
    X = X.toarray() if scipy.sparse.issparse(X) else X
    rows = X.mean(0) + 4 * X.std(0) * random.standard_normal((2000, X.shape[1]))
    before, moves, found = network.forward(rows), [], []
    for column in range(X.shape[1]):
        other = rows.copy()
        other[:, column] += 4 * X[:, column].std() * random.exponential(size=len(rows))
        change = network.forward(other) - before
        moves.append(bool(change.any()))
        if (change * asked.get("monotone", {}).get(column, 0) < 0).any():
            found.append(f"monotone {column}")
    unit = np.arange(X.shape[1])
    for group in asked.get("groups", []):
        unit[group] = min(group)
    used = np.unique(unit[moves])
    costs = asked.get("feature_costs", {})
    cost = sum(max(costs.get(int(one), 0) for one in np.flatnonzero(unit == of)) for of in used)
    fan_in = max(int((layer.weights.toarray() != 0).sum(0).max()) for layer in network.layers[:-1])
    have = {"max_inputs": len(used), "max_cost": cost, "max_fan_in": fan_in, "budget": network.nonzeros}
    limits = {**asked, "budget": model.budget}
    return found + [f"{name} {count}" for name, count in have.items() if count > limits.get(name, np.inf)]


KINDS = ["numbers", "numbers", "two classes", "three classes", "two targets", "sparse"]


@pytest.mark.parametrize("seed", range(24))
def test_requirements_are_never_broken(seed: int) -> None:
    random, kind = np.random.default_rng([seed, 2]), KINDS[seed % len(KINDS)]
    X, y = problem(seed, kind)
    asked = required(seed, X.shape[1], kind)
    Estimator: Any = SparseMLPClassifier if "classes" in kind else SparseMLPRegressor
    hidden = (8, 5) if random.random() < 0.3 else int(random.integers(1, 20))
    model = Estimator(
        int(random.integers(3, 40)),
        hidden,
        max_iter=int(random.choice([3, 20])),
        tuning=LARGE if random.random() < 0.3 else None,
        random_state=seed,
        **asked,
    ).fit(X, y)
    assert wrong(model, X, asked, seed) == []
    kept = requirements_of(model.network_)
    assert (kept is not None) == bool(set(asked) - {"groups"})


def test_a_violation_would_be_seen() -> None:
    X, y = problem(3)
    model = SparseMLPRegressor(30, 10, max_iter=20, random_state=0).fit(X, y)
    for asked in ({"monotone": {0: -1}}, {"max_inputs": 1}, {"max_fan_in": 1, "groups": [[0, 1]]}):
        assert wrong(model, X, asked, 0)


def test_iterates_keep_to_what_is_required_as_well() -> None:
    """A fit that is stopped early hands out what it has."""
    X, y = problem(5)
    for steps in (1, 2, 4):
        seen: list[Any] = []
        asked: dict[str, Any] = {"monotone": {0: 1, 1: -1}, "max_fan_in": 2, "max_inputs": 2}
        model = SparseMLPRegressor(
            20,
            8,
            callback=lambda record, seen=seen, steps=steps: seen.append(record) or len(seen) >= steps,
            random_state=0,
            **asked,
        ).fit(X, y)
        assert wrong(model, X, asked, 0) == []


def test_a_monotone_fit_of_monotone_data_loses_next_to_nothing() -> None:
    random = np.random.default_rng(0)
    X, fresh = random.normal(size=(400, 5)), random.normal(size=(2000, 5))

    def truth(X: np.ndarray) -> np.ndarray:
        return 2 * np.maximum(X[:, 0], 0) - np.maximum(X[:, 1] + 0.5, 0) + X[:, 3] * (X[:, 2] > 0)

    y = truth(X) + 0.3 * random.normal(size=400)
    free = SparseMLPRegressor(30, 10, random_state=0).fit(X, y)
    bound = SparseMLPRegressor(30, 10, monotone={0: 1, 1: -1}, random_state=0).fit(X, y)
    assert bound.score(fresh, truth(fresh)) > free.score(fresh, truth(fresh)) - 0.005


def test_inputs_are_chosen_by_what_they_tell_together() -> None:
    """Columns 0 and 1 tell nothing alone; column 2 tells a little, alone."""
    random = np.random.default_rng(1)
    X = random.normal(size=(500, 10))
    y = np.sign(X[:, 0]) * np.abs(X[:, 1]) + 0.2 * X[:, 2]
    X[:, 3] = y + 2 * random.normal(size=500)
    model = SparseMLPRegressor(30, 10, max_inputs=2, max_iter=30, random_state=0).fit(X, y)
    assert np.flatnonzero(model.get_support()).tolist() == [0, 1]


def test_inputs_that_go_the_wrong_way_are_not_chosen() -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 6))
    y = -1.5 * X[:, 0] + X[:, 1] - 2 * np.maximum(X[:, 2], 0) + 0.1 * random.normal(size=300)
    asked = {"monotone": {0: 1, 2: -1}, "max_inputs": 2}
    model = SparseMLPRegressor(8, 4, max_iter=10, random_state=0, **asked).fit(X, y)
    assert np.flatnonzero(model.get_support()).tolist() == [1, 2]


def test_costs_decide_between_columns_that_tell_the_same() -> None:
    random = np.random.default_rng(2)
    X = random.normal(size=(200, 4))
    X[:, 1] = X[:, 0] + 0.01 * random.normal(size=200)
    y = np.maximum(X[:, 0], 0) + X[:, 2]
    costs = {"feature_costs": {0: 5.0, 1: 1.0, 2: 2.0}, "max_cost": 4.0}
    model = SparseMLPRegressor(8, 5, max_iter=20, random_state=0, **costs).fit(X, y)
    assert not model.get_support()[0]
    assert model.score(X, y) > 0.97


def test_names_groups_and_a_path_of_budgets() -> None:
    X, y = problem(7)
    frame = pd.DataFrame(X, columns=[f"c{column}" for column in range(X.shape[1])])
    asked: dict[str, Any] = {
        "monotone": {"c0": 1},
        "groups": {"pair": ["c1", "c2"]},
        "feature_costs": {"pair": 2.0, "c0": 1.0},
        "max_cost": 2.0,
        "max_inputs": 2,
    }
    path = SparseMLPRegressorCV([4, 12], 6, cv=2, max_iter=5, random_state=0, **asked).fit(frame, y)
    kept = requirements_of(path.network_)
    assert kept is not None
    assert (kept.monotone, kept.groups, kept.costs) == ({0: 1}, ((1, 2),), {1: 2.0, 2: 2.0, 0: 1.0})
    numbers = {
        "monotone": {0: 1},
        "groups": [[1, 2]],
        "feature_costs": {0: 1.0, 1: 2.0, 2: 2.0},
        "max_cost": 2.0,
        "max_inputs": 2,
    }
    assert wrong(path.estimator_, X, numbers, 0) == []
    # Refits on parts of the rows, which have no names, keep to it as well.
    path.calibrate(frame, y, cv=2)
    for network in path.estimator_.pool(X, y, size=2).networks:
        assert violations(network, kept) == []
    classes = SparseMLPClassifierCV([4], 4, cv=2, max_iter=3, max_inputs=1, random_state=0)
    assert classes.fit(X, y > 0).get_support().sum() <= 1


def test_rows_on_disk_and_warm_starts_keep_to_it(tmp_path: Any) -> None:
    X, y = problem(9)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    rows = open_rows(tmp_path / "rows.npy", target=X.shape[1])
    asked: dict[str, Any] = {"max_inputs": 2, "monotone": {0: 1}, "max_fan_in": 1}
    model = SparseMLPRegressor(10, 5, max_iter=5, warm_start=True, random_state=0, **asked).fit(rows)
    assert wrong(model, X, asked, 0) == []
    assert wrong(model.fit(X, y), X, asked, 0) == []


X, Y = problem(0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"max_inputs": 0}, "max_inputs=0, but it must be a whole number of 1 or more"),
        ({"max_fan_in": 1.5}, "max_fan_in=1.5"),
        ({"max_inputs": True}, "max_inputs=True"),
        ({"monotone": {"age": 1}}, "names 'age', but the columns of X have no names"),
        ({"monotone": {99: 1}}, "names column 99, but X has"),
        ({"monotone": {0: 2}}, r"must be \+1"),
        ({"monotone": {0: True}}, r"must be \+1"),
        ({"monotone": [0]}, "must be a mapping"),
        ({"groups": [[0, 1], [1, 2]]}, "column 1 in two groups"),
        ({"groups": [[]]}, "without columns"),
        ({"groups": "01"}, "must be a list of lists"),
        ({"groups": [0, 1]}, "each group must be a list"),
        ({"feature_costs": {0: 1.0}}, "without max_cost"),
        ({"max_cost": 1.0}, "without feature_costs"),
        ({"feature_costs": {0: -1.0}, "max_cost": 1.0}, "a cost is a number of 0 or more"),
        ({"feature_costs": {0: 1.0}, "max_cost": -1.0}, "max_cost=-1.0, but it must be a number"),
        ({"feature_costs": dict.fromkeys(range(X.shape[1]), 2.0), "max_cost": 1.0}, "the cheapest input"),
        ({"feature_costs": {0: 2.0}, "max_cost": 1.0, "monotone": {0: 1}}, "is left out, since it costs 2"),
        ({"monotone": {0: 1}, "solver": "paper"}, "monotone came, but IHT"),
        ({"max_fan_in": 1, "solver": IHT(), "bias": False}, "max_fan_in came, but IHT"),
    ],
)
def test_what_cannot_be_promised_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        SparseMLPRegressor(10, 5, **asked).fit(X, Y)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    frame = pd.DataFrame(X).rename(columns=str)
    frame = frame.rename(columns={"0": "age"})
    with pytest.raises(ParameterError, match=r"names 'aeg'.*Did you mean 'age'"):
        SparseMLPRegressor(10, 5, monotone={"aeg": 1}).fit(frame, Y)


def test_monotone_is_refused_for_several_outputs() -> None:
    X, y = problem(1, "three classes")
    with pytest.raises(ParameterError, match="3 outputs"):
        SparseMLPClassifier(10, 5, monotone={0: 1}).fit(X, y)
    with pytest.raises(ParameterError, match="2 outputs"):
        SparseMLPRegressor(10, 5, monotone={0: 1}).fit(*problem(1, "two targets"))


def test_partial_fit_and_a_start_that_breaks_it_are_refused() -> None:
    with pytest.raises(ParameterError, match="max_inputs came, but partial_fit"):
        SparseMLPRegressor(10, 5, max_inputs=1).partial_fit(X, Y)
    model = SparseMLPRegressor(20, 5, warm_start=True, max_iter=5, random_state=0).fit(X, Y)
    assert model.get_support().sum() > 1
    with pytest.raises(ParameterError, match=r"warm_start came with a network.*max_inputs=1"):
        model.set_params(max_inputs=1).fit(X, Y)


def test_the_papers_solver_chooses_inputs_too() -> None:
    model = SparseMLPRegressor(10, 5, solver="paper", max_inputs=1, max_iter=5, random_state=0).fit(X, Y)
    assert model.get_support().sum() <= 1
