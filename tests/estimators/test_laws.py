"""Laws of a few numbers: found exactly, in any units, from either side."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from thresher import SparseMLPRegressor

ROWS = 200


def fitted(X: np.ndarray, y: np.ndarray, budget: int = 30) -> SparseMLPRegressor:
    """Fit with the settings that all of these laws share."""
    return SparseMLPRegressor(budget, 20, random_state=0).fit(X, y)


def kelvin() -> tuple[np.ndarray, np.ndarray]:
    """Degrees above freezing; a second column says nothing."""
    X = np.random.default_rng(0).uniform(250, 310, (ROWS, 2))
    return X, np.maximum(X[:, 0] - 273.15, 0)


def years() -> tuple[np.ndarray, np.ndarray]:
    """A tent over years."""
    X = np.random.default_rng(0).integers(1950, 2020, (ROWS, 2)).astype(np.float64)
    return X, 10 - np.abs(X[:, 0] - 1985)


def cone() -> tuple[np.ndarray, np.ndarray]:
    """A cone, which no network of ReLUs is."""
    X = np.random.default_rng(0).standard_normal((ROWS, 2))
    return X, 30 - 10 * np.hypot(X[:, 0], X[:, 1])


Move = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

MOVES: dict[str, Move] = {
    "as it is": lambda X, y: (X, y),
    "mirrored": lambda X, y: (X, -y),
    "shifted far": lambda X, y: (X + 1000 * X.std(0), y + 1e4),
    "other units": lambda X, y: (X * [1.8, 1e-6] - [459.67, 0.0], 1e3 * y),
}
any_move = pytest.mark.parametrize("move", MOVES)


@any_move
def test_a_hinge_in_kelvin_is_found_exactly_in_any_units(move: str) -> None:
    X, y = MOVES[move](*kelvin())
    model = fitted(X, y)
    assert model.score(X, y) == pytest.approx(1, abs=1e-12)
    assert model.get_support().tolist() == [True, False]
    # A weight and a bias, and the constant where the target has one.
    assert model.nonzeros_ == 2 + (y.min() > 0)


@any_move
def test_a_tent_over_years_is_found_exactly_in_any_units(move: str) -> None:
    X, y = MOVES[move](*years())
    model = fitted(X, y)
    assert model.score(X, y) == pytest.approx(1, abs=1e-12)
    assert model.get_support().tolist() == [True, False]


@pytest.mark.parametrize("move", ["as it is", "mirrored", "shifted far"])
def test_a_cone_is_fitted_equally_well_in_any_units(move: str) -> None:
    X, y = MOVES[move](*cone())
    model = fitted(X, y)
    assert model.nonzeros_ <= 30
    assert model.score(X, y) > 0.998


def test_a_linear_law_costs_one_nonzero_for_each_input_and_is_written_so() -> None:
    X = np.random.default_rng(0).standard_normal((ROWS, 2))
    model = fitted(X, 2 * X[:, 0] - 3 * X[:, 1] + 1)
    assert model.nonzeros_ == 3
    assert model.network_.formula() == "y = 2*x0 - 3*x1 + 1"


@pytest.mark.parametrize("seed", range(2))
def test_few_rows_name_only_the_input_that_matters(seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((30, 5))
    model = fitted(X, 2 * np.maximum(X[:, 0], 0) + 1)
    assert np.flatnonzero(model.get_support()).tolist() == [0]
    assert model.nonzeros_ == 2


@cache
def noisy() -> tuple[np.ndarray, np.ndarray, SparseMLPRegressor]:
    """Give noisy data and the network fitted to it as it is."""
    random = np.random.default_rng(3)
    X = random.normal(3, 2, (150, 2))
    y = np.abs(X[:, 0] - 3) * X[:, 1] + random.normal(0, 1, 150)
    return X, y, fitted(X, y)


@any_move
def test_noisy_targets_give_the_same_network_in_any_units(move: str) -> None:
    X, y, plain = noisy()
    moved = fitted(*MOVES[move](X, y))
    assert moved.nonzeros_ == plain.nonzeros_
    assert moved.score(*MOVES[move](X, y)) == pytest.approx(plain.score(X, y), abs=1e-6)


@pytest.mark.parametrize(("rows", "far"), [(60, True), (150, False)], ids=["60, far", "150, near"])
@pytest.mark.parametrize("draw", ["normal", "heavy tails", "counts and zeros"])
def test_columns_whose_mean_is_near_zero_may_be_shifted(rows: int, far: bool, draw: str) -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((rows, 3)) if draw == "normal" else random.standard_t(2, (rows, 3))
    if draw == "counts and zeros":
        X[:, 1:] = random.poisson(1.0, (rows, 2))
    y = np.abs(X[:, 0]) - 0.5 * X[:, 1] + random.normal(0, 0.3, rows)
    plain = fitted(X, y)
    there = X + (1000 * X.std(0) if far else 37)
    moved = fitted(there, y)
    assert moved.score(there, y) == pytest.approx(plain.score(X, y), rel=5e-3)
    assert moved.nonzeros_ == plain.nonzeros_


def test_few_rows_and_a_tight_budget_need_no_biases() -> None:
    X = np.random.default_rng(0).standard_normal((40, 4))
    y = 2 * np.maximum(X[:, 0], 0) + 1
    assert fitted(X, y, budget=2).score(X, y) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("copies", ["equal", "other units"])
def test_of_equal_columns_one_is_read(noise: float, copies: str) -> None:
    random = np.random.default_rng(5)
    X = random.normal(2, 1, (150, 3))
    X = np.concatenate([X, X if copies == "equal" else 3 - 2 * X], 1)
    for y in (3 * X[:, 0] - X[:, 2] + 7, np.abs(X[:, 0] - 2) + X[:, 1]):
        model = fitted(X, y + noise * random.standard_normal(150))
        used = model.get_support()
        assert not (used[:3] & used[3:]).any()
        # With noise a network may find some use for a column that has none.
        if noise == 0:
            assert used.sum() == 2


def test_a_dozen_noisy_rows_are_not_interpolated() -> None:
    off = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        X = random.standard_normal((14, 6))
        model = fitted(X, X[:, 0] + random.standard_normal(14), budget=50)
        fresh = random.standard_normal((2000, 6))
        off.append(np.mean((model.predict(fresh) - fresh[:, 0]) ** 2))
    # Networks that go through all rows are off by 1.4 to 4.7, the best constant by a variance of one.
    assert np.mean(off) < 0.7
