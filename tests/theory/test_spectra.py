"""Lemma 1 beside the truth: what its closed form says, where that fails, and what remains."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.errors import MemoryLimitError, ParameterError
from thresher.theory.assumptions import measure
from thresher.theory.enumeration import enumerate_patterns
from thresher.theory.patterns import pack
from thresher.theory.spectra import (
    dictionary_columns,
    lemma_bounds,
    nonnegative_block_bound,
    random_supports,
    spectrum,
    worst_support,
)


def test_the_closed_form_is_the_papers() -> None:
    found = lemma_bounds(rows=10_000, size=3, epsilon=0.4, gamma=0.36, delta=0.1)
    assert found.alpha == pytest.approx(1 - 1.1 / 0.9 * 0.8 - 3 / (10 * 0.9))
    assert found.beta == pytest.approx(1 + 2 * 1.1 / 0.9 * 0.8 + 3 / (10 * 0.9))
    assert 0 <= found.probability < 1
    with pytest.raises(ParameterError, match=r"delta=0\.9"):
        lemma_bounds(100, 2, 0.4, 0.36, 0.9)


@pytest.mark.parametrize("halves", [2, 3, 5])
def test_a_bipartite_block_breaks_the_lemmas_step(halves: int) -> None:
    """Gates that are the rows and the columns of a grid: entries at most 1/k, yet an eigenvalue of zero.

    The lemma's step would have 1 - 1/k for the smallest eigenvalue; what holds is 1 - c s / 2 = 0.
    """
    place = np.arange(halves * halves).reshape(halves, halves)
    gates = np.array([np.isin(place.ravel(), group) for group in (*place, *place.T)])
    columns, _ = dictionary_columns(np.ones((halves * halves, 1)), pack(gates))
    gram = columns.T @ columns
    largest = (gram - np.eye(len(gram))).max()
    assert largest == pytest.approx(1 / halves)
    assert gram.min() >= 0
    found = spectrum(columns)
    assert found.alpha == pytest.approx(0, abs=1e-12)
    assert found.alpha < 1 - largest - 0.1
    assert nonnegative_block_bound(largest, 2 * halves) == pytest.approx(0, abs=1e-12)


def test_the_bound_for_nonnegative_blocks_holds() -> None:
    rng = np.random.default_rng(0)
    for size in (2, 3, 4, 7):
        for _ in range(50):
            block = rng.random((size, size)) * 0.3
            block = np.triu(block, 1) + np.triu(block, 1).T + np.eye(size)
            assert np.linalg.eigvalsh(block)[0] >= nonnegative_block_bound(0.3, size) - 1e-12


def test_a_pair_of_generators_and_their_negatives_is_dependent_whatever_gamma() -> None:
    X = np.random.default_rng(1).standard_normal((500, 2))
    patterns = enumerate_patterns(X, 1)
    assert measure(patterns).separation.gamma > 0.4
    columns, norms = dictionary_columns(X, patterns)
    # Gates +e_0, +e_1, -e_0, -e_1 with feature 0.
    four = columns[:, [0, 2, 4, 6]]
    whole = four * norms[[0, 2, 4, 6]]
    assert np.allclose(whole[:, 0] + whole[:, 2], whole[:, 1] + whole[:, 3])
    assert spectrum(four).condition == np.inf
    for three in ([0, 1, 2], [1, 2, 3]):
        assert spectrum(four[:, three]).certain > 0.05


def test_one_of_each_pair_leaves_columns_independent() -> None:
    X = np.random.default_rng(2).standard_normal((400, 5))
    whole = enumerate_patterns(X, 1)
    assert spectrum(dictionary_columns(X, whole)[0]).certain == 0
    half = dictionary_columns(X, whole.one_of_each_pair())[0]
    assert spectrum(half).certain > 0
    # No support of any size can then be worse than all columns together.
    for support in random_supports(6, half.shape[1], 20):
        assert spectrum(half[:, support]).alpha >= spectrum(half).alpha - 1e-12


def test_adversarial_supports_are_worse_than_random_ones() -> None:
    X = np.random.default_rng(3).standard_normal((300, 6))
    columns, _ = dictionary_columns(X, enumerate_patterns(X, 1))
    drawn = [spectrum(columns[:, support]) for support in random_supports(7, columns.shape[1], 30)]
    assert spectrum(columns[:, worst_support(columns, 7)]).alpha <= min(found.alpha for found in drawn) + 1e-9
    assert spectrum(columns[:, worst_support(columns, 12)]).certain == 0


def test_columns_are_gated_features_of_unit_norm() -> None:
    X = np.random.default_rng(4).standard_normal((30, 3))
    gates = np.array([X[:, 0] > 0, X[:, 1] > 0])
    columns, norms = dictionary_columns(X, pack(gates))
    assert np.allclose(columns[:, 4] * norms[4], X[:, 1] * gates[1])
    assert np.allclose(np.linalg.norm(columns, axis=0), 1)
    with pytest.raises(MemoryLimitError, match="memory_limit is 10"):
        dictionary_columns(X, pack(gates), memory_limit=10)
