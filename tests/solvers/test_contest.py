"""The contest for the budget's places: neuron by neuron, among what is held and the block alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import normal

from thresher.linear.sketch import CountSketch
from thresher.linear.vector import SparseVector
from thresher.objective.layout import Layout
from thresher.solvers import contest as contest_module
from thresher.solvers.contest import ByNeuron, Contest

LAYOUTS = {bias: Layout((3, 4, 2), bias=bias) for bias in (False, True)}


def exact(size: int) -> CountSketch:
    """Make a sketch so wide that its estimates are the sums themselves."""
    return CountSketch(size, 2**12, 4, seed=1)


def nothing(size: int) -> SparseVector:
    return SparseVector.zeros(size, torch.float64)


@pytest.mark.parametrize("bias", [False, True])
def test_places_come_neuron_by_neuron(bias: bool) -> None:
    layout = LAYOUTS[bias]
    # Every weight tells which it is: its layer, its neuron, and what it reads.
    named = {
        layout.offsets[layer] + neuron * layout.shapes[layer][1] + feature: (layer, neuron, feature)
        for layer in (0, 1)
        for neuron in range(layout.shapes[layer][0])
        for feature in range(layout.shapes[layer][1])
    }
    values = torch.arange(layout.size, dtype=torch.float64)
    numbered = ByNeuron(layout).of(SparseVector(torch.arange(layout.size), values, layout.size))
    expected = []
    for hidden in range(4):
        expected += [(0, hidden, feature) for feature in range(3 + bias)]
        expected += [(1, output, hidden) for output in range(2)]
    expected += [(1, output, 4) for output in range(2 * bias)]
    assert [named[int(value)] for value in numbered.values] == expected
    assert numbered.indices.tolist() == list(range(layout.size))


@pytest.mark.parametrize("bias", [False, True])
def test_numbering_and_back_changes_nothing(bias: bool) -> None:
    layout = LAYOUTS[bias]
    rng = np.random.default_rng(0)
    for _ in range(10):
        dense = rng.standard_normal(layout.size) * (rng.random(layout.size) < 0.4)
        w = SparseVector.from_dense(torch.from_numpy(dense))
        order = ByNeuron(layout)
        again = order.back(order.of(w))
        assert torch.equal(again.indices, w.indices)
        assert torch.equal(again.values, w.values)


def test_the_largest_of_the_block_and_of_what_is_held_stay() -> None:
    held = SparseVector(torch.tensor([0, 9]), torch.tensor([7.0, 8.0]).double(), 10)
    sketch = exact(10)
    sketch.add(held.indices, torch.tensor([3.0, 1.0]))
    contest = Contest(held, sketch, 3)
    # Values say nothing about who wins.
    contest.block(4, torch.tensor([100.0, 0.25, 0.5]).double(), torch.tensor([0.5, -4.0, 2.0]).double())
    assert contest.held().indices.tolist() == [0, 5, 6]
    assert contest.held().values.tolist() == [7.0, 0.25, 0.5]


def test_who_loses_in_its_own_block_is_gone_although_it_is_larger_than_later_ones() -> None:
    contest = Contest(nothing(6), exact(6), 1)
    contest.block(0, torch.ones(3).double(), torch.tensor([1.0, 5.0, 4.0]).double())
    # The place that won is taken back by a step of its own block in the opposite direction.
    contest.block(0, torch.tensor([0.0, 2.0, 0.0]).double(), torch.tensor([0.0, -4.9, 0.0]).double())
    contest.block(3, torch.ones(3).double(), torch.tensor([0.2, 0.3, 0.1]).double())
    assert contest.held().indices.tolist() == [4]


def test_what_was_held_of_a_block_gives_way_to_what_comes() -> None:
    held = SparseVector(torch.tensor([1, 2, 5]), torch.tensor([1.0, 2.0, 3.0]).double(), 6)
    contest = Contest(held, exact(6), 6)
    contest.block(1, torch.tensor([0.0, -2.0]).double(), torch.tensor([1.0, 1.0]).double())
    assert contest.held().indices.tolist() == [2, 5]
    assert contest.held().values.tolist() == [-2.0, 3.0]


def test_equal_estimates_leave_the_lower_place() -> None:
    contest = Contest(nothing(8), exact(8), 2)
    for first in (4, 0):
        contest.block(first, torch.ones(4).double(), torch.tensor([1.0, -1.0, 1.0, 1.0]).double())
    assert contest.held().indices.tolist() == [0, 1]


@pytest.mark.parametrize("budget", [1, 3, 10, 40])
@pytest.mark.parametrize("piece", [3, 5, 16])
def test_long_blocks_in_pieces_leave_the_same(
    budget: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, steps = (torch.from_numpy(normal(8, 7, seed=seed)) for seed in (1, 2))
    values[:, 2] = 0
    found = []
    for size in (2**16, piece):
        monkeypatch.setattr(contest_module, "PIECE", size)
        # A narrow sketch, whose counters are shared.
        contest = Contest(nothing(56), CountSketch(56, 9, 4, seed=0), budget)
        contest.neurons(0, values, steps, 5)
        found.append((contest.held(), contest.sketch.table))
    (whole, table), (pieces, other) = found
    assert whole.nonzeros == min(budget, 48)
    assert torch.equal(whole.indices, pieces.indices)
    assert torch.equal(whole.values, pieces.values)
    torch.testing.assert_close(table, other)


def test_a_block_without_a_step_takes_part_with_what_it_holds() -> None:
    held = SparseVector(torch.tensor([7]), torch.ones(1).double(), 12)
    sketch = exact(12)
    sketch.add(held.indices, 3 * torch.ones(1))
    contest = Contest(held, sketch, 2)
    # An earlier block is ahead until the steps of the next one are counted.
    values, steps = torch.zeros(2, 6).double(), torch.zeros(2, 6).double()
    values[0, :2], steps[0, :2], values[1, 1] = 5.0, 4.0, 1.0
    contest.neurons(0, values, steps, 4)
    assert contest.held().indices.tolist() == [0, 1]
    sketch.add(held.indices, torch.ones(1))
    sketch.add(held.indices, torch.ones(1))
    contest.neurons(0, values, torch.zeros(2, 6).double(), 4)
    assert contest.held().indices.tolist() == [0, 7]
