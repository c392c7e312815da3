"""Theorem 1, run: its bounds hold at every step, and planted weights are reached."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.assumed import assumed
from thresher.errors import DataError, ParameterError
from thresher.experiments.phase_diagram import instance
from thresher.theory.guarantee import inflated_budget, planted_weights, run_theorem, steps_needed


def small(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Unit columns of one of each pair of 1-sparse gates, and planted weights on three of them."""
    return instance(assumed(n, 4, 3, 1, "ab"[seed % 2], one_sided=True, seed=seed))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_weights_are_reached_and_every_bound_is_kept(seed: int) -> None:
    columns, truth = small(seed)
    found = run_theorem(columns, truth)
    assert found.reached and found.allowed and np.isfinite(found.condition)
    assert found.monotone and found.rate_kept and found.distance_kept
    assert found.rate_stated > 50
    assert len(found.losses) <= 1 + steps_needed(found.alpha, found.beta, found.losses[0], found.losses[-1])
    assert np.array_equal(np.flatnonzero(found.weights), np.flatnonzero(truth))


def test_the_loss_never_grows_at_the_planted_budget_though_it_may_stop_elsewhere() -> None:
    reached = []
    for seed in range(6):
        columns, truth = small(seed, n=100)
        found = run_theorem(columns, truth, allowed=3, max_iter=150)
        assert found.monotone and found.distance_kept
        assert found.budget == 3
        reached.append(found.error < 1e-2)
    assert any(reached)


def test_the_rate_is_not_claimed_where_the_budget_is_too_small() -> None:
    columns, truth = small(0)
    found = run_theorem(columns, truth, allowed=4, max_iter=20)
    assert found.asked > 4 and not found.allowed
    assert found.rate_stated == 0


def test_dependent_columns_give_an_infinite_condition_number_where_they_are_visited() -> None:
    columns, truth = small(1)
    twice = np.hstack([columns, columns])
    found = run_theorem(twice, np.concatenate([truth, 0 * truth]), max_iter=30)
    assert found.condition == np.inf
    assert found.worst_alpha == 0
    assert found.monotone


def test_more_conditioning_asks_for_more_budget_and_steps() -> None:
    assert inflated_budget(2, 1.0, 1.0) == 64
    assert inflated_budget(2, 0.0, 1.0) == np.inf
    assert steps_needed(0.1, 1.0, 1.0, 1e-3) == pytest.approx(90 * np.log(1e3))
    with pytest.raises(ParameterError, match="goal=0"):
        steps_needed(0.1, 1.0, 1.0, 0)


def test_what_does_not_fit_together_is_refused() -> None:
    columns, truth = small(0)
    with pytest.raises(DataError, match="planted has shape"):
        run_theorem(columns, truth[:-1])
    gates = np.array([[True, False]])
    with pytest.raises(DataError, match="not in the dictionary"):
        planted_weights(np.ones((1, 1)), gates, ~gates, np.ones(1))
