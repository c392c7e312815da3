"""The budget is exact: s entries, ties by index, the same from a stream, at every step of a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from thresher.errors import BudgetError
from thresher.linear.budget import (
    StreamingTop,
    check_budget,
    constant,
    keep_largest,
)
from thresher.linear.vector import SparseVector

repeatable = settings(derandomize=True, deadline=None, max_examples=150, database=None)

# Few distinct values, so that ties and zeros are the rule.
entries = st.lists(st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 1e-30, -1e30]), max_size=40)
precisions = st.sampled_from([torch.float32, torch.float64])


def by_sorting(values: list[float], budget: int) -> list[int]:
    """Say which positions stay, from the definition: largest first, then lowest index, never a zero."""
    ranked = sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))
    return sorted(i for i in ranked[:budget] if values[i] != 0)


@repeatable
@given(entries, st.integers(0, 45), precisions)
def test_keep_largest_keeps_exactly_the_largest(values: list[float], budget: int, dtype: torch.dtype) -> None:
    vector = torch.tensor(values, dtype=dtype)
    kept = keep_largest(vector, budget)
    assert kept.indices.tolist() == by_sorting(values, budget)
    assert torch.equal(kept.values, vector[kept.indices])
    assert kept.values.dtype == dtype
    assert kept.size == len(values)
    assert kept.nonzeros == min(budget, int((vector != 0).sum()))


def test_a_sparse_vector_is_thresholded_like_a_dense_one() -> None:
    dense = torch.tensor([0.0, 2.0, -2.0, 0.0, 2.0, 1.0])
    for budget in range(7):
        kept = keep_largest(SparseVector.from_dense(dense), budget)
        assert torch.equal(kept.to_dense(), keep_largest(dense, budget).to_dense())


def test_zeros_that_a_sparse_vector_holds_are_not_kept() -> None:
    held = SparseVector(torch.tensor([1, 3, 4]), torch.tensor([0.0, 5.0, -0.0]), 6)
    assert keep_largest(held, 2).indices.tolist() == [3]
    assert keep_largest(held, 9).indices.tolist() == [3]


def test_ties_go_to_the_lower_index_even_among_many() -> None:
    equal = torch.ones(10_000)
    assert torch.equal(keep_largest(equal, 137).indices, torch.arange(137))
    equal[9_999] = -2
    assert keep_largest(equal, 137).indices.tolist() == [*range(136), 9_999]


def test_the_same_answer_every_time() -> None:
    vector = torch.from_numpy(np.random.default_rng(0).integers(-3, 4, 5_000).astype(np.float32))
    first = keep_largest(vector, 999)
    for _ in range(3):
        again = keep_largest(vector, 999)
        assert torch.equal(again.indices, first.indices)
        assert torch.equal(again.values, first.values)


@repeatable
@given(entries, st.integers(0, 45), st.integers(1, 12), st.randoms(use_true_random=False), precisions)
def test_a_stream_of_blocks_gives_the_same_answer(
    values: list[float], budget: int, width: int, random: Any, dtype: torch.dtype
) -> None:
    vector = torch.tensor(values, dtype=dtype)
    blocks = [(start, vector[start : start + width]) for start in range(0, len(values), width)]
    random.shuffle(blocks)
    top = StreamingTop(budget, len(values))
    for start, block in blocks:
        top.offer(start, block)
    streamed, at_once = top.result(), keep_largest(vector, budget)
    assert torch.equal(streamed.indices, at_once.indices)
    assert streamed.values.tolist() == at_once.values.tolist()
    assert streamed.size == at_once.size


@repeatable
@given(entries, st.integers(0, 12), st.randoms(use_true_random=False))
def test_a_stream_in_any_order_gives_the_same_answer(values: list[float], budget: int, random: Any) -> None:
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = torch.tensor([values[place] for place in order], dtype=torch.float64)
    top = StreamingTop(budget, len(values))
    top.offer_at(lambda places: torch.tensor(order, dtype=torch.int64)[places], shuffled)
    expected = keep_largest(torch.tensor(values, dtype=torch.float64), budget)
    assert top.result().indices.tolist() == expected.indices.tolist()


@repeatable
@given(entries, st.integers(1, 10), st.data())
def test_a_stream_may_be_asked_at_any_time(values: list[float], budget: int, data: st.DataObject) -> None:
    vector, top = torch.tensor(values), StreamingTop(budget, len(values))
    cut = data.draw(st.integers(0, len(values)))
    top.offer(0, vector[:cut])
    assert top.result().indices.tolist() == by_sorting(values[:cut], budget)
    top.offer(cut, vector[cut:])
    assert top.result().indices.tolist() == by_sorting(values, budget)


def held(top: StreamingTop) -> tuple[int, int]:
    """Count the numbers and the tensors that a stream holds, whatever it calls them."""
    tensors = [part for value in vars(top).values() for part in _tensors(value)]
    # A view keeps the whole block alive that it was cut from.
    return sum(tensor.untyped_storage().nbytes() // tensor.itemsize for tensor in tensors), len(tensors)


def _tensors(value: object) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [part for item in value for part in _tensors(item)] if isinstance(value, list | tuple) else []


@pytest.mark.parametrize("rising", [False, True], ids=["largest first", "largest last"])
@pytest.mark.parametrize("width", [1, 7, 300])
def test_a_stream_holds_a_few_times_the_budget_whatever_its_length(width: int, rising: bool) -> None:
    budget, size = 5, 6_000
    vector = torch.arange(1.0, size + 1) if rising else torch.arange(float(size), 0, -1)
    top = StreamingTop(budget, size)
    for start in range(0, size, width):
        top.offer(start, vector[start : start + width])
        numbers, tensors = held(top)
        assert numbers <= 6 * budget, "indices and values of three times the budget at most"
        assert tensors <= 6 * budget, "blocks with no candidate must leave nothing behind"
    assert top.result().nonzeros == budget


def test_offering_leaves_the_block_alone() -> None:
    block = torch.tensor([1.0, -3.0, 2.0])
    top = StreamingTop(2, 3)
    top.offer(0, block)
    block.zero_()
    assert top.result().values.tolist() == [-3.0, 2.0]


@pytest.mark.parametrize("budget", [1, 7, np.int64(7), np.uint8(7)])
def test_whole_numbers_are_budgets(budget: Any) -> None:
    checked = check_budget(budget, size=10)
    assert checked == int(budget)
    assert type(checked) is int


def test_a_budget_beyond_the_network_is_all_of_it() -> None:
    assert check_budget(10**12, size=10) == 10


@pytest.mark.parametrize(
    "budget",
    [
        0,
        -3,
        2.5,
        7.0,
        np.float64(7),
        True,
        np.True_,
        "7",
        None,
        [7],
        np.array([7]),
        float("nan"),
        float("inf"),
        1j,
    ],
    ids=repr,
)
def test_anything_else_is_refused(budget: Any) -> None:
    with pytest.raises(BudgetError) as caught:
        check_budget(budget, size=7940)
    message = str(caught.value)
    assert f"budget={budget!r}" in message, "what came"
    assert "whole number of 1 or more" in message, "what is allowed"
    assert "7,940" in message
    assert isinstance(caught.value, ValueError)


def test_a_constant_budget_is_constant() -> None:
    assert {constant(9)(step) for step in range(50)} == {9}


@repeatable
@given(entries, st.lists(st.integers(0, 50), max_size=20))
def test_a_sparse_vector_reads_like_the_dense_one(values: list[float], places: list[int]) -> None:
    dense = torch.tensor(values, dtype=torch.float64)
    vector = SparseVector.from_dense(dense)
    asked = torch.tensor([place for place in places if place < len(values)], dtype=torch.int64)
    assert vector.at(asked).tolist() == (dense[asked] + 0.0).tolist()
    assert torch.equal(vector.to_dense(), dense + 0.0)
    assert vector.nonzeros == int((dense != 0).sum())
    assert vector.same_support(vector.with_values(-vector.values))
    assert vector.to(torch.float32).values.dtype == torch.float32


def test_vectors_with_other_positions_have_another_support() -> None:
    one, other = torch.tensor([0.0, 1.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])
    assert not SparseVector.from_dense(one).same_support(SparseVector.from_dense(other))
    assert not SparseVector.from_dense(one).same_support(SparseVector.zeros(3))
    assert SparseVector.zeros(3).same_support(SparseVector.from_dense(torch.zeros(3)))


def test_the_rounding_of_sums_does_not_choose_among_entries_that_are_equal():
    """Doubles that agree in the digits of single precision go by position, in memory and in a stream."""
    random = np.random.default_rng(0)
    entries = torch.from_numpy(random.choice([1.0, 2.0, 3.0], 200)).double()
    for seed in range(5):
        noise = torch.from_numpy(np.random.default_rng(seed).standard_normal(200)) * 1e-12
        rounded = entries * (1 + noise)
        # No multiple of a single number's last digit lies within the noise.
        rounded *= 1 + 2.0**-25
        kept = keep_largest(rounded, 50).indices
        assert kept.equal(keep_largest(entries, 50).indices)
        top = StreamingTop(50, 200)
        for start in random.permutation(20) * 10:
            top.offer(int(start), rounded[start : start + 10])
        assert top.result().indices.equal(kept)
