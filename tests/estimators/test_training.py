"""From data to a network: scale, run, fold the scale back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from problems import normal

from thresher import training
from thresher.errors import DataError, MemoryLimitError
from thresher.estimators.training import (
    LARGEST,
    LARGEST_SQUARED,
    Settings,
    Trained,
    refuse_if_too_large,
    refuse_overflow,
)
from thresher.estimators.training import train as run_training
from thresher.linear.vector import SparseVector
from thresher.network import Network
from thresher.objective.linear import Objective
from thresher.objective.losses import Logistic, SquaredError
from thresher.solvers.loop import Iterate, Start, Status

X = normal(200, 5)
Y = 2 * X[:, 0] - np.maximum(X[:, 1], 0) + 0.1 * normal(200, seed=1)
SETTINGS = Settings(budget=8, hidden=4, max_iter=30)


def train(X: Any = X, y: np.ndarray = Y, settings: Settings = SETTINGS, **others: Any) -> Trained:
    return run_training(X, y, None, SquaredError(), settings, **others)


def as_network(trained: Trained) -> Network:
    return Network.fused(trained.weights, trained.bias, trained.signs, output_bias=trained.output_bias)


@pytest.mark.parametrize("solver", ["auto", "paper"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_the_network_takes_raw_inputs(solver: str, scale: bool, bias: bool) -> None:
    wide = X * np.array([1e-3, 1.0, 1e2, 10.0, 1.0]) + np.array([0, 0, 5.0, 0, 0])
    trained = train(wide, settings=replace(SETTINGS, solver=solver, scale=scale, bias=bias, dtype="float64"))
    solution = trained.solution
    loss = 0.5 * np.sum((as_network(trained).predict(wide) - Y) ** 2)
    assert loss == pytest.approx(solution.loss, rel=1e-6)
    assert trained.weights.nnz + np.count_nonzero(trained.bias) + (trained.output_bias != 0) <= 8


def test_scaling_makes_the_units_of_columns_irrelevant() -> None:
    # Powers of two, so that nothing rounds.
    factors = 2.0 ** np.array([-20, 3, 0, 10, 30])
    plain, scaled = train(), train(X * factors)
    assert np.array_equal((plain.weights != 0).toarray(), (scaled.weights != 0).toarray())
    assert np.allclose(plain.weights.toarray(), scaled.weights.toarray() * factors[:, None])


@pytest.mark.parametrize("solver", ["auto", "paper"])
def test_the_paper_has_neither_bias_nor_scale_unless_asked(solver: str) -> None:
    trained = train(y=Y + 3, settings=replace(SETTINGS, solver=solver))
    assert (trained.size, trained.bias.any() or trained.output_bias != 0) == (
        (6 * 4 + 1, True) if solver == "auto" else (5 * 4, False)
    )


@pytest.mark.parametrize("solver", ["auto", "paper"])
def test_a_start_is_written_back_exactly(solver: str) -> None:
    first = as_network(train(y=Y + 1, settings=replace(SETTINGS, solver=solver)))
    seen: list[Start | None] = []

    class Keep:
        """A solver that hands out its start."""

        def init(self, objective: Objective, budget: int, start: Start | None) -> Iterate:
            seen.append(start)
            assert start is not None
            return Iterate(start.w, 1.0, 0.0, start.signs)

        def step(self, iterate: Iterate) -> Iterate:
            return iterate

        def stop(self, iterate: Iterate) -> Status | None:
            return Status("kept", "nothing to do.")

        def rescue(self, iterate: Iterate) -> Iterate:
            return iterate

    again = as_network(train(y=Y + 1, settings=replace(SETTINGS, solver=Keep()), start=first))
    assert len(seen) == 1
    assert again.predict(X) == pytest.approx(first.predict(X))
    assert again.nonzeros == first.nonzeros


def test_weights_that_are_not_finite_are_never_handed_out() -> None:
    class Broken:
        """A solver gone wrong."""

        def init(self, objective: Objective, budget: int, start: Start | None) -> Iterate:
            w = SparseVector(torch.tensor([3]), torch.tensor([torch.nan]), objective.size)
            return Iterate(w, 0.0, 0.0)

        def step(self, iterate: Iterate) -> Iterate:
            return iterate

        def stop(self, iterate: Iterate) -> Status | None:
            return Status("broken", "")

        def rescue(self, iterate: Iterate) -> Iterate:
            return iterate

    with pytest.raises(DataError, match="not finite"):
        train(settings=replace(SETTINGS, solver=Broken()))


def test_held_out_rows_choose() -> None:
    noisy, fresh = normal(40, 30, seed=2), normal(400, 30, seed=3)
    y, y_fresh = noisy[:, 0] + normal(40, seed=4), fresh[:, 0]
    settings = Settings(budget=600, hidden=20, max_iter=60)
    plain = as_network(train(noisy, y, settings))
    chosen = as_network(train(noisy, y, settings, held_out=(fresh, y_fresh, None)))
    error = [np.mean((network.predict(fresh) - y_fresh) ** 2) for network in (plain, chosen)]
    assert error[1] <= error[0]


def test_small_problems_are_computed_in_float64() -> None:
    assert train().solution.w.values.dtype == torch.float64
    wide = replace(SETTINGS, hidden=20_001, budget=3, max_iter=2, solver="paper")
    assert train(settings=wide).solution.w.values.dtype == torch.float32
    asked = replace(SETTINGS, dtype="float32", solver="paper")
    assert train(settings=asked).solution.w.values.dtype == torch.float32


def test_the_logistic_loss_has_neurons_of_both_signs() -> None:
    trained = run_training(X, (Y > 0).astype(np.float64), None, Logistic(), replace(SETTINGS, alpha=1.0))
    live = np.diff(trained.weights.tocsc().indptr) > 0
    assert {-1.0, 1.0} <= set(trained.signs[live]) or trained.output_bias < 0


def test_sizes_beyond_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_memory", lambda: 10_000)
    refuse_if_too_large(hidden=100, budget=50, features=10)
    with pytest.raises(MemoryLimitError, match=r"at least 54,400 bytes, but this machine has 10,000"):
        refuse_if_too_large(hidden=1000, budget=100, features=10)
    # A budget beyond the network is all of it.
    refuse_if_too_large(hidden=1, budget=10**9, features=10)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("squared", "limit"), [(False, LARGEST), (True, LARGEST_SQUARED)])
def test_overflow_is_refused_from_its_limit_on(make: Any, sign: float, squared: bool, limit: float) -> None:
    refuse_overflow("X", make([[0.0, sign * limit]]), squared)
    with pytest.raises(DataError, match="X holds"):
        refuse_overflow("X", make([[0.0, sign * 1.01 * limit]]), squared)


@pytest.mark.parametrize(
    "data", [np.zeros((3, 0)), scipy.sparse.csr_array((3, 4)), np.ones((2, 2), np.int64)]
)
def test_what_cannot_overflow_is_let_through(data: Any) -> None:
    refuse_overflow("X", data, squared=True)
