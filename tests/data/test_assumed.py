"""Planted networks of assumption 1: what each part of it promises."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.assumed import assumed
from thresher.errors import ParameterError


@pytest.mark.parametrize("seed", range(5))
def test_part_a_has_signs_times_one_number_for_each_neuron(seed: int) -> None:
    problem = assumed(40, 8, neurons=5, largest=3, kind="a", seed=seed)
    U = problem.weights[0].toarray()
    assert ((U != 0).sum(axis=0) == 3).all()
    for column in U.T:
        assert len(np.unique(np.abs(column[column != 0]))) == 1
    assert problem.nonzeros == 15


@pytest.mark.parametrize("seed", range(5))
def test_part_b_has_real_weights_and_signs(seed: int) -> None:
    problem = assumed(40, 8, neurons=6, largest=4, kind="b", smallest=2, seed=seed)
    sizes = (problem.weights[0].toarray() != 0).sum(axis=0)
    assert problem.signs is not None
    assert ((sizes >= 2) & (sizes <= 4)).all()
    assert set(np.unique(problem.signs)) <= {-1.0, 1.0}
    assert np.allclose(problem.evaluate(problem.X), problem.y, rtol=1e-6, atol=1e-6)


def test_no_two_neurons_share_a_line() -> None:
    for seed in range(20):
        U = assumed(5, 4, neurons=4, largest=1, kind="ab"[seed % 2], seed=seed).weights[0].toarray()
        assert np.linalg.matrix_rank(U) == 4
    with pytest.raises(ParameterError, match="4 are planted already"):
        assumed(5, 4, neurons=5, largest=1, kind="a")


def test_one_sided_neurons_begin_with_a_positive_weight() -> None:
    U = assumed(5, 9, neurons=6, largest=3, one_sided=True).weights[0].toarray()
    assert all(column[column != 0][0] > 0 for column in U.T)


def test_the_same_seed_gives_the_same_bits() -> None:
    one, two, other = (assumed(20, 5, 3, 2, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(one.X, two.X) and np.array_equal(one.y, two.y)
    assert not np.array_equal(one.X, other.X)


def test_bad_settings_are_explained() -> None:
    with pytest.raises(ParameterError, match="'a' and 'b'"):
        assumed(5, 4, 2, 1, "c")
    with pytest.raises(ParameterError, match="at most 4"):
        assumed(5, 4, 2, 5)
