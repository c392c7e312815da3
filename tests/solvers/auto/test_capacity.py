"""Few rows bear few weights: a budget of more than they bear does no harm."""

from __future__ import annotations

import pytest
from sklearn.datasets import make_friedman1

from thresher import SparseMLPRegressor
from thresher.solvers.auto import Tuning
from thresher.solvers.auto.tuning import CapacityTuning


def score(budget: int, seed: int, tuning: Tuning | None = None) -> tuple[float, int]:
    X, y = make_friedman1(3300, noise=1.0, random_state=seed)
    model = SparseMLPRegressor(budget, 50, tuning=tuning, random_state=0).fit(X[:300], y[:300])
    return model.score(X[300:], y[300:]), model.nonzeros_


@pytest.mark.parametrize("seed", [0, 1])
def test_a_larger_budget_does_no_worse_on_few_noisy_rows(seed: int) -> None:
    assert score(200, seed)[0] > score(30, seed)[0] - 0.01


def test_where_nobody_is_asked_the_whole_budget_is_spent_on_noise() -> None:
    never = Tuning(capacity=CapacityTuning(crowded=1.0))
    (asked, fewer), (unasked, more) = score(200, 0), score(200, 0, never)
    assert fewer < 0.5 * more
    assert asked > unasked + 0.02
