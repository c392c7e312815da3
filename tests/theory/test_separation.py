"""The smallest distance of patterns: exact by every route, and honest bounds where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.errors import DataError
from thresher.theory import separation as module
from thresher.theory.assumptions import epsilon, measure
from thresher.theory.patterns import Patterns, pack
from thresher.theory.separation import separation


def crowd(count: int, rows: int, near: int, seed: int) -> Patterns:
    """Draw far patterns, and one more that is `near` rows from one of them."""
    rng = np.random.default_rng(seed)
    gates = rng.random((count, rows)) > 0.5
    twin = gates[7].copy()
    twin[rng.choice(rows, near, replace=False)] ^= True
    return pack(np.vstack([gates, twin]))


def truth(patterns: Patterns) -> int:
    gates = patterns.gates().astype(int)
    apart = (gates[:, None] != gates[None]).sum(axis=2)
    return int(apart[np.triu_indices(len(gates), 1)].min())


@pytest.mark.parametrize("near", [1, 2, 5, 11])
@pytest.mark.parametrize("rows", [320, 333])
def test_both_routes_find_the_closest_pair(near: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = crowd(120, rows, near, seed=near)
    assert truth(patterns) == near
    direct = separation(patterns)
    monkeypatch.setattr(module, "PAIRWISE_WORK", 0)
    indexed = separation(patterns)
    for found in (direct, indexed):
        assert (found.lower, found.upper, found.pair, found.exact) == (near, near, (7, 120), True)
        assert found.gamma == near / rows


def test_far_patterns_are_bounded_from_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIRWISE_WORK", 0)
    patterns = pack(np.random.default_rng(0).random((100, 400)) > 0.5)
    found = separation(patterns)
    assert not found.exact
    assert 8 <= found.lower <= truth(patterns) <= found.upper
    gates = patterns.gates()
    assert (gates[found.pair[0]] != gates[found.pair[1]]).sum() == found.upper


def test_running_out_of_comparisons_proves_less_and_nothing_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIRWISE_WORK", 0)
    patterns = crowd(60, 400, 3, seed=2)
    found = separation(patterns, comparisons=0)
    assert found.lower <= 3 <= found.upper


def test_repeated_patterns_are_set_aside_and_counted() -> None:
    gates = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]], dtype=bool)
    found = separation(pack(gates))
    assert (found.repeated, found.patterns, found.upper) == (1, 2, 2)
    with pytest.raises(DataError, match="1 distinct pattern"):
        separation(pack(gates[:2]))


def test_epsilon_is_the_smallest_active_share() -> None:
    gates = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], dtype=bool)
    assert epsilon(pack(gates)) == 0.4
    assert measure(pack(gates)).separation.upper == 1
