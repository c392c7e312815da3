"""Gates: the same in any block, complete where enumerated, those of the weights where they follow."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import dense_generators, given_generators, normal

from thresher.errors import ParameterError
from thresher.linear.vector import SparseVector
from thresher.objective.gates import (
    DenseRandom,
    Generators,
    SparseGenerators,
    follow,
    one_sparse,
    sparse_random,
    two_sparse,
)

repeatable = settings(derandomize=True, deadline=None, max_examples=120, database=None)

Pattern = tuple[bool, ...]


def patterns(X: np.ndarray, generators: Generators) -> list[Pattern]:
    """Give the gate of every generator as a tuple."""
    return [tuple(gate) for gate in (X @ dense_generators(generators).numpy() > 0).T]


def by_turning(X: np.ndarray, pair: tuple[int, int], angles: int = 20_000) -> set[Pattern]:
    """Find the gates of 2-sparse generators by trying very many of them, away from the axes."""
    turn = (np.arange(angles) + 0.37) * (2 * np.pi / angles)
    gates = X[:, list(pair)] @ np.stack([np.cos(turn), np.sin(turn)]) > 0
    return {tuple(gate) for gate in np.unique(gates.T, axis=0)}


def columns_in_blocks(generators: Generators, width: int, dtype: torch.dtype) -> torch.Tensor:
    blocks = []
    for start in range(0, generators.neurons, width):
        stop = min(start + width, generators.neurons)
        used, values = generators.columns(start, stop, dtype)
        assert values.dtype == dtype
        block = torch.zeros(generators.features, stop - start, dtype=dtype)
        block[slice(None) if used is None else used] = values
        blocks.append(block)
    return torch.cat(blocks, dim=1)


@pytest.mark.parametrize(
    "generators",
    [DenseRandom(6, 11, seed=3), sparse_random(6, 11, 2, seed=3), one_sparse(5), two_sparse(normal(4, 3))],
    ids=["dense random", "sparse random", "1-sparse", "2-sparse"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_neuron_has_the_same_generator_in_any_block(generators: Generators, dtype: torch.dtype) -> None:
    expected = dense_generators(generators).to(dtype)
    for width in (1, 3, generators.neurons):
        assert torch.equal(columns_in_blocks(generators, width, dtype), expected)


def test_dense_random_generators_are_standard_normal_and_their_seed_decides_them() -> None:
    drawn = dense_generators(DenseRandom(100, 60, seed=1))
    assert abs(float(drawn.mean())) < 0.05
    assert abs(float(drawn.std()) - 1) < 0.05
    assert drawn.unique(dim=1).shape == drawn.shape, "no two neurons alike"
    assert torch.equal(dense_generators(DenseRandom(100, 60, seed=1)), drawn)
    assert not torch.isin(dense_generators(DenseRandom(100, 60, seed=2)), drawn).any()


def test_more_neurons_leave_the_first_ones_as_they_are() -> None:
    assert torch.equal(dense_generators(DenseRandom(9, 20))[:, :5], dense_generators(DenseRandom(9, 5)))
    few, many = sparse_random(9, 5, 3), sparse_random(9, 20, 3)
    assert torch.equal(dense_generators(many)[:, :5], dense_generators(few))


def test_drawing_leaves_the_global_random_state_alone() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    dense_generators(DenseRandom(5, 5))
    sparse_random(5, 5, 2)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])


@pytest.mark.parametrize("nonzeros", [1, 3, 8, 20])
def test_sparse_random_generators_have_the_asked_number_of_entries(nonzeros: int) -> None:
    generators = sparse_random(8, 30, nonzeros, seed=1)
    assert (dense_generators(generators) != 0).sum(0).tolist() == [min(nonzeros, 8)] * 30
    indices = generators.entries.indices
    assert bool((indices.diff() > 0).all()), "positions ascend"
    assert (generators.features, generators.neurons, generators.entries.size) == (8, 30, 240)


@pytest.mark.parametrize("features", [1, 2, 7])
def test_one_sparse_has_both_directions_of_every_feature(features: int) -> None:
    generators = one_sparse(features)
    assert generators.neurons == 2 * features
    columns = {tuple(column) for column in dense_generators(generators).T.tolist()}
    both = torch.cat([torch.eye(features), -torch.eye(features)])
    assert columns == {tuple(column) for column in both.double().tolist()}


@pytest.mark.parametrize("seed", range(4))
def test_two_sparse_has_every_gate_once(seed: int) -> None:
    X = normal(9, 4, seed=seed)
    for pair in combinations(range(4), 2):
        found = patterns(X, two_sparse(X, [pair]))
        assert len(found) == 2 * len(X), "rows in general position: one gate for each of 2n arcs"
        assert len(set(found)) == len(found)
        assert set(found) >= by_turning(X, pair)
        # Both are complete, except that turning may step over an arc narrower than its step.
        assert len(set(found) - by_turning(X, pair)) <= 1


def test_two_sparse_takes_all_pairs_by_default() -> None:
    X = normal(5, 4, seed=1)
    pairs = list(combinations(range(4), 2))
    everything = two_sparse(X)
    apart = [pattern for pair in pairs for pattern in patterns(X, two_sparse(X, [pair]))]
    assert patterns(X, everything) == apart
    assert ((dense_generators(everything) != 0).sum(0) <= 2).all()
    assert bool((everything.entries.indices.diff() > 0).all()), "positions ascend"


def test_a_pair_may_be_given_either_way_round() -> None:
    X = normal(8, 3, seed=2)
    assert set(patterns(X, two_sparse(X, [(2, 0)]))) == set(patterns(X, two_sparse(X, [(0, 2)])))


small_integers = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12)


@repeatable
@given(small_integers)
def test_two_sparse_on_rows_in_any_position(rows: list[tuple[int, int]]) -> None:
    # Rows of zeros, equal, collinear and opposite rows; directions so few leave arcs wide enough to hit.
    X = np.array(rows, dtype=np.float64)
    found = patterns(X, two_sparse(X)) if X.any() else []
    assert len(found) <= 2 * len(X)
    assert len(set(found)) == len(found), "distinct gates within each pair"
    assert set(found) == (by_turning(X, (0, 1), angles=2_000) if X.any() else set())


@pytest.mark.parametrize("seed", range(3))
def test_rows_on_one_line_add_no_gates(seed: int) -> None:
    X = normal(12, 2, seed=seed)
    found = patterns(np.vstack([X, -X, 2 * X]), two_sparse(np.vstack([X, -X, 2 * X])))
    assert len(found) == len(set(found)) == 2 * len(X)


@pytest.mark.parametrize("pair", [(1, 1), (0, 3), (-1, 0)])
def test_a_pair_that_is_none_is_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ParameterError, match=r"pair .* two different features of 0 to 2"):
        two_sparse(normal(4, 3), [pair])


def test_a_block_uses_no_more_features_than_its_neurons_do() -> None:
    entries = SparseVector(torch.tensor([1, 7, 9, 13]), torch.tensor([1.0, 2.0, 3.0, 4.0]), 16)
    generators = SparseGenerators(entries, features=4, neurons=4)
    used, block = generators.columns(start=1, stop=3, dtype=torch.float64)
    assert used is not None
    assert used.tolist() == [1, 3]
    assert block.tolist() == [[0.0, 3.0], [2.0, 0.0]]
    used, block = generators.columns(start=0, stop=0, dtype=torch.float64)
    assert used is not None
    assert (used.numel(), block.shape) == (0, (0, 0))


def weights_of(*neurons: list[float]) -> SparseVector:
    return SparseVector.from_dense(torch.tensor(neurons, dtype=torch.float64).reshape(-1))


def test_following_takes_the_weights() -> None:
    w = weights_of([1.0, 0.0, -2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0])
    generators = follow(w, features=3)
    assert dense_generators(generators).T.tolist() == [[1, 0, -2], [0, 3, 0], [0, 0, 0]]
    assert (generators.features, generators.neurons) == (3, 3)


def test_only_neurons_without_weights_fall_back() -> None:
    w = weights_of([0.0, 0.0], [0.0, 3.0], [0.0, 0.0], [1.0, 0.0])
    spare = given_generators([[5.0, 6.0, 0.0, 7.0], [0.0, 8.0, 9.0, 0.0]])
    generators = follow(w, 2, spare)
    assert dense_generators(generators).T.tolist() == [[5, 0], [0, 3], [0, 9], [1, 0]]
    assert bool((generators.entries.indices.diff() > 0).all()), "positions ascend"


def test_all_neurons_fall_back_where_there_is_no_weight() -> None:
    spare = one_sparse(3)
    generators = follow(SparseVector.zeros(18), 3, spare)
    assert torch.equal(dense_generators(generators), dense_generators(spare))


def test_following_changes_neither_the_weights_nor_the_fallback() -> None:
    w, spare = weights_of([0.0, 0.0], [0.0, 3.0]), SparseGenerators(weights_of([1.0, 2.0], [3.0, 4.0]), 2, 2)
    follow(w, 2, spare).entries.values.fill_(9)
    assert w.values.tolist() == [3.0]
    assert spare.entries.values.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_generators_know_which_weights_they_follow() -> None:
    w = weights_of([1.0, 0.0], [0.0, 3.0], [0.0, 0.0])
    spare = given_generators([[5.0, 6.0, 7.0], [0.0, 8.0, 9.0]])
    for generators in (follow(w, 2), follow(w, 2, spare)):
        assert generators.follows(w)
        assert generators.follows(w.with_values(w.values.clone())), "equal weights, not the same ones"
        assert generators.follows(weights_of([1.0, 0.0], [0.0, 0.0], [0.0, 0.0])), "one of its neurons"
        others = ([1.0, 0.0], [0.0, 3.5], [0.0, 0.0]), ([1.0, 2.0], [0.0, 3.0], [0.0, 0.0])
        assert not any(generators.follows(weights_of(*other)) for other in others)
        assert not generators.follows(SparseVector.zeros(6))
    assert not follow(weights_of([1.0, 2.0], [0.0, 3.0]), 2).follows(weights_of([1.0, 0.0], [0.0, 3.0]))
    assert not DenseRandom(2, 3).follows(w)
