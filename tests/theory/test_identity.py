"""Identity of networks: sets that can turn over are found, whatever hides them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from thresher.network import Layer, Network
from thresher.theory.identity import MOST_NEURONS, disagreement_bound, identity


def fused(U: np.ndarray, signs: np.ndarray | None = None) -> Network:
    return Network.fused(U.astype(float), None, np.ones(U.shape[1]) if signs is None else signs)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    arrays(np.int64, (3, 5), elements=st.integers(-2, 2)),
    arrays(np.int64, 5, elements=st.sampled_from([-1, 1])),
)
def test_sets_that_sum_to_zero_are_found_exactly(U: np.ndarray, signs: np.ndarray) -> None:
    live = (U != 0).any(axis=0)
    lines = U[:, live]
    assume(live.any())
    collinear = any(
        np.linalg.matrix_rank(lines[:, [i, j]]) < 2 for i in range(lines.shape[1]) for j in range(i)
    )
    vectors = (lines * signs[live]).T
    zero = any(
        not np.array(chosen) @ vectors[:, 0] and not (np.array(chosen) @ vectors).any()
        for chosen in product((0, 1), repeat=len(vectors))
        if any(chosen)
    )
    assume(not collinear)
    assert identity(fused(U, signs)).told is (not zero)


def test_a_flip_of_a_zero_sum_is_the_same_function_and_is_not_told_apart() -> None:
    U = np.array([[1.0, 0.0, -1.0, 0.3], [0.0, 1.0, -1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    flipped = U.copy()
    flipped[:, :3] *= -1
    X = np.random.default_rng(0).standard_normal((50, 3))
    assert np.allclose(fused(U).predict(X), fused(flipped).predict(X))
    for each in (U, flipped):
        found = identity(fused(each))
        assert found.told is False
        assert "3 neurons sum to zero" in found.reason


def test_a_sum_that_is_zero_to_rounding_counts_as_zero() -> None:
    U = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0 + 1e-12]])
    assert identity(fused(U)).told is False


def test_neurons_on_one_line_are_not_told_apart_unless_they_merge() -> None:
    assert identity(fused(np.array([[1.0, -2.0], [1.0, -2.0]]))).told is False
    # Nearly one line, too near to be sure that it is not.
    assert identity(fused(np.array([[1.0, 2.0], [1.0, 2.0 + 1e-7]]))).told is False
    assert identity(fused(np.array([[1.0, 2.0], [1.0, 2.0]]))).told is True


def test_hidden_biases_do_not_hide_a_flip() -> None:
    U = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    biased = Network((Layer(U, np.array([0.1, 0.2, 0.7])), Layer(np.ones((3, 1)), np.zeros(1))))
    assert identity(biased).told is False


def test_too_many_entangled_neurons_are_left_open() -> None:
    U = np.random.default_rng(0).standard_normal((3, MOST_NEURONS + 1))
    assert identity(fused(U)).told is None
    # Neurons with a feature of their own take part in no set.
    own = np.vstack([U, np.eye(MOST_NEURONS + 1)])
    assert identity(fused(own)).told is True


def test_the_bound_on_disagreement() -> None:
    assert disagreement_bound(300, 0.95) == pytest.approx(np.log(20) / 300)
    assert disagreement_bound(1, 0.99) == 1.0
    # If a share p differs, all N rows agree with probability (1 - p)^N at most, which is below delta.
    share = disagreement_bound(500, 0.99)
    assert (1 - share) ** 500 <= 0.01
