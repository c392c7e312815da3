"""Patterns: enumerated ones are all there are, counts keep to their bounds, nothing too large is begun."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from thresher.errors import DataError, MemoryLimitError, ParameterError
from thresher.objective.gates import two_sparse
from thresher.theory.counting import cover_count, dense_bound, paper_bound, sparse_count
from thresher.theory.enumeration import enumerate_patterns
from thresher.theory.patterns import Patterns, joined, pack, patterns_of
from thresher.theory.sampling import covered, draws_needed, sample_generators, sample_patterns


def whole_numbers(rows: int, columns: int, largest: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Small whole numbers: many ties, opposite and repeated rows, where an enumeration can go wrong."""
    return arrays(np.int64, (rows, columns), elements=st.integers(-largest, largest))


def brute_force(X: np.ndarray, nonzeros: int) -> set[bytes]:
    """Ask a linear program, for every support and every sign of every row, whether a generator exists.

    Rows that are zero on the support cannot be on a side; their gate is closed. So are those of 1-sparse
    generators on rows that are zero there.
    """
    found = set()
    for size in range(1, min(nonzeros, X.shape[1]) + 1):
        for support in combinations(range(X.shape[1]), size):
            part = X[:, support].astype(float)
            some = np.flatnonzero((part != 0).any(axis=1))
            for signs in product((-1.0, 1.0), repeat=len(some)):
                sides = np.array(signs)[:, None] * part[some]
                if (
                    not len(some)
                    or linprog(
                        np.zeros(size), A_ub=-sides, b_ub=-np.ones(len(some)), bounds=(None, None)
                    ).status
                    == 0
                ):
                    gate = np.zeros(len(X), dtype=bool)
                    gate[some] = np.array(signs) > 0
                    found.add(np.packbits(gate).tobytes())
    return found


def keys(patterns: Patterns) -> set[bytes]:
    return {row.tobytes() for row in patterns.bits}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 4).flatmap(lambda n: whole_numbers(n, 3)), st.sampled_from([1, 2]))
def test_one_and_two_nonzeros_equal_brute_force(X: np.ndarray, nonzeros: int) -> None:
    found = enumerate_patterns(X, nonzeros)
    assert keys(found) == brute_force(X, nonzeros)
    assert found.count == len(keys(found)) <= X.shape[1] + sparse_count(len(X), 3, nonzeros)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(1, 5).flatmap(lambda n: whole_numbers(n, 3)))
def test_three_nonzeros_equal_brute_force(X: np.ndarray) -> None:
    assert keys(enumerate_patterns(X, 3)) == brute_force(X, 3)


@pytest.mark.parametrize(("n", "d", "nonzeros"), [(7, 4, 1), (9, 4, 2), (6, 4, 3), (8, 3, 3)])
def test_rows_in_general_position_reach_the_exact_count_of_one_support(n: int, d: int, nonzeros: int) -> None:
    X = np.random.default_rng(n).standard_normal((n, d))
    for support in combinations(range(d), nonzeros):
        assert enumerate_patterns(X[:, support], nonzeros).count == cover_count(n, nonzeros)
    assert enumerate_patterns(X, nonzeros).count <= sparse_count(n, d, nonzeros)


def test_counts_never_exceed_the_papers_bound_where_that_is_one() -> None:
    for nonzeros, least in ((1, 1), (2, 2), (3, 4)):
        for n in range(least, 60):
            assert sparse_count(n, 6, nonzeros) <= paper_bound(n, 6, nonzeros)
    # The closed form is no bound for three nonzeros on three rows.
    assert enumerate_patterns(np.eye(3), 3).count == 8 > paper_bound(3, 3, 3)
    assert cover_count(30, 4) <= dense_bound(30, 4)


def test_generators_make_the_patterns_they_stand_for() -> None:
    X = np.random.default_rng(3).standard_normal((9, 4))
    for nonzeros in (1, 2, 3):
        found = enumerate_patterns(X, nonzeros)
        assert found.generators is not None
        assert (np.count_nonzero(found.generators, axis=1) <= nonzeros).all()
        assert np.array_equal(patterns_of(X, found.generators).bits, found.bits)


def test_pairs_are_those_of_the_gates_module() -> None:
    X = np.random.default_rng(4).standard_normal((20, 4))
    generators = two_sparse(X)
    _, block = generators.columns(0, generators.neurons, torch.float64)
    assert keys(patterns_of(X, block.numpy().T)) == keys(enumerate_patterns(X, 2))


def test_permuting_rows_permutes_patterns() -> None:
    X = np.random.default_rng(5).standard_normal((12, 3))
    order = np.random.default_rng(6).permutation(12)
    moved = pack(enumerate_patterns(X, 2).gates()[:, order])
    assert keys(moved) == keys(enumerate_patterns(X[order], 2))


def test_every_sampled_pattern_is_an_enumerated_one() -> None:
    X = np.random.default_rng(7).standard_normal((15, 5))
    every, some = enumerate_patterns(X, 2), sample_patterns(X, draws=500, smallest=1, largest=2, seed=1)
    assert keys(some) <= keys(every)
    assert covered(every, some) == 1.0
    assert 0 < covered(some, every) < 1


def test_draws_have_the_sizes_asked_for_and_supports_are_uniform() -> None:
    drawn = sample_generators(5, 4000, 1, 2, seed=0) != 0
    sizes = drawn.sum(axis=1)
    assert set(sizes) == {1, 2}
    # 5 supports of one feature, 10 of two.
    assert abs((sizes == 2).mean() - 10 / 15) < 0.03
    assert draws_needed(1000, 2) < draws_needed(1000, 3) < draws_needed(1000, 3, constant=0.5)


def test_the_papers_number_of_draws_does_not_cover() -> None:
    """In a plane of n rows a pattern has a chance near 1/n, so T, which grows like log(n)^2, falls short."""
    hits = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, planted = rng.standard_normal((2000, 2)), rng.standard_normal((1, 2))
        drawn = sample_patterns(X, draws_needed(2000, 2, tolerance=0.05), 2, 2, seed)
        hits.append(covered(drawn, patterns_of(X, planted)))
    assert np.mean(hits) < 0.8


def test_complements_and_halves() -> None:
    X = np.random.default_rng(8).standard_normal((11, 3))
    both = enumerate_patterns(X, 2)
    assert keys(both.opposite()) == keys(both)
    half = both.one_of_each_pair()
    assert 2 * half.count == both.count
    assert keys(joined(half, half.opposite())) == keys(both)
    assert half.generators is not None and np.array_equal(patterns_of(X, half.generators).bits, half.bits)


def test_bits_and_gates_say_the_same() -> None:
    gates = np.random.default_rng(9).random((5, 13)) > 0.5
    packed = pack(gates)
    assert np.array_equal(packed.gates(), gates)
    assert np.array_equal(packed.active(), gates.sum(axis=1))
    assert np.array_equal(np.concatenate([part for _, part in packed.chunks(26)]), gates)


def test_too_many_patterns_are_refused_with_the_number_and_the_bytes() -> None:
    X = np.zeros((1000, 300))
    with pytest.raises(
        MemoryLimitError, match=r"89,700,000 patterns .* bytes, but memory_limit is 1,073,741,824"
    ):
        enumerate_patterns(X, 2)
    with pytest.raises(MemoryLimitError, match="1,000,000,000 patterns"):
        sample_patterns(X, 10**9, 1, 2)


def test_bad_input_is_explained() -> None:
    with pytest.raises(ParameterError, match="1, 2 or 3"):
        enumerate_patterns(np.eye(3), 4)
    with pytest.raises(DataError, match="NaN"):
        enumerate_patterns([[np.nan, 1.0]], 1)
    with pytest.raises(DataError, match="shape"):
        enumerate_patterns([1.0, 2.0], 1)
    with pytest.raises(ParameterError, match=r"need \(count, 2\)"):
        Patterns(np.zeros((3, 1), dtype=np.uint8), 9)
    with pytest.raises(ParameterError, match="smallest <= largest"):
        sample_generators(4, 3, 3, 2)
