"""Few rows bear few weights: a budget of more than they bear does no harm."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.linear_model import LassoCV

from thresher import SparseMLPRegressor
from thresher.solvers.auto import Tuning
from thresher.solvers.auto.committee_tuning import CapacityTuning


def score(budget: int, tuning: Tuning | None = None) -> tuple[float, int]:
    X, y = make_friedman1(3300, noise=1.0, random_state=0)
    model = SparseMLPRegressor(budget, 50, tuning=tuning, random_state=0).fit(X[:300], y[:300])
    return model.score(X[300:], y[300:]), model.nonzeros_


def test_a_larger_budget_does_no_worse_on_few_noisy_rows() -> None:
    never = Tuning(capacity=CapacityTuning(crowded=1.0))
    small, (large, fewer), (unasked, more) = score(30), score(200), score(200, never)
    assert large > small[0] - 0.01
    assert fewer < 0.5 * more
    assert large > unasked + 0.02


@pytest.mark.parametrize("seed", [0, 1])
def test_many_nonzeros_do_no_harm_where_a_third_of_what_rows_tell_is_noise(seed: int) -> None:
    X, y = make_friedman1(2800, noise=0.0, random_state=seed)
    noisy = y[:800] + 0.7 * y.std() * np.random.default_rng(seed).standard_normal(800)
    model = SparseMLPRegressor(100, 50, random_state=0).fit(X[:800], noisy)
    assert model.score(X[800:], y[800:]) > 0.94


@pytest.mark.parametrize("budget", [30, 100])
def test_counts_that_bend_are_not_left_to_a_linear_model(budget: int) -> None:
    X, y = make_friedman1(2800, noise=0.0, random_state=0)
    mean = np.exp((y - 14) / 6)
    counts = np.random.default_rng(1).poisson(mean[:800]).astype(float)
    model = SparseMLPRegressor(budget, 50, random_state=0).fit(X[:800], counts)
    linear = LassoCV().fit(X[:800], counts)
    assert model.score(X[800:], mean[800:]) > linear.score(X[800:], mean[800:]) + 0.1


def test_a_committee_that_misses_the_law_is_not_trusted() -> None:
    random = np.random.default_rng(100)
    X = random.uniform(0, 3, (1500, 3))
    y = np.sin(2 * np.pi * X[:, 0]) + 0.07 * random.standard_normal(1500)
    model = SparseMLPRegressor(30, 50, random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.95


def test_columns_in_another_order_in_memory_give_the_same_bits() -> None:
    X, y = make_friedman1(150, noise=0.1, random_state=0)
    model = SparseMLPRegressor(8, 8, max_iter=20, random_state=0)
    by_row, by_column = (model.fit(part, y).predict(X) for part in (X, np.asfortranarray(X)))
    assert (by_row == by_column).all()
