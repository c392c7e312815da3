"""Some of the inputs and neurons: the same objective there, and the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dense import CASES, NetworkCase

from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.subset import Subset, compact, packed, subset_of
from thresher.solvers.auto.tuning import SubsetTuning

cases = pytest.mark.parametrize("case", CASES, ids=str)
alone = pytest.mark.parametrize("part", [0.1, 0.3, 1.0])


def thinned(case: NetworkCase, share: float) -> tuple[Relu, Point]:
    """Give an objective with a penalty, and a network that holds some of its weights."""
    objective, point = case.objective(alpha=0.1), case.point(seed=2)
    kept = torch.rand(point.w.nonzeros, generator=torch.Generator().manual_seed(1)) < share
    return objective, point.keep(kept)


@cases
@alone
def test_a_compact_objective_computes_the_same(case: NetworkCase, part: float) -> None:
    objective, point = thinned(case, part)
    subset = compact(objective, point)
    small = subset.drop(point)
    assert torch.equal(small.w.values, point.w.values)
    assert subset.part.value(small) == pytest.approx(objective.value(point), rel=1e-12)
    for one, two in zip(subset.part.curvature(small), objective.curvature(point), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


@cases
@alone
def test_what_is_lifted_is_where_it_was(case: NetworkCase, part: float) -> None:
    objective, point = thinned(case, part)
    subset = compact(objective, point)
    lifted = subset.lift(subset.drop(point))
    assert torch.equal(lifted.w.indices, point.w.indices)
    assert torch.equal(lifted.w.values, point.w.values)
    assert lifted.w.size == point.w.size
    assert objective.value(lifted) == pytest.approx(objective.value(point), rel=1e-12)


@cases
def test_a_compact_objective_has_no_unit_that_is_not_used(case: NetworkCase) -> None:
    objective, point = thinned(case, 0.2)
    layout = compact(objective, point).part.layout
    assert all(width <= point.w.nonzeros for width in layout.widths[1:-1])
    assert layout.widths[0] <= point.w.nonzeros
    assert layout.widths[-1] == case.widths[-1]


def test_inputs_stay_where_a_copy_of_them_is_too_large() -> None:
    objective, point = thinned(CASES[-1], 0.5)
    assert compact(objective, point).part.layout.widths[0] < 300
    tight = compact(replace(objective, memory_limit=8), point)
    assert tight.part.layout.widths[0] == 300
    assert tight.part.data is objective.data


def test_weights_of_other_inputs_and_neurons_are_lost() -> None:
    case = NetworkCase((4, 3, 1), fused=True, direct=True, density=1.0)
    objective, point = case.objective(), case.point()
    subset = Subset.of(objective, (torch.tensor([1, 3]), torch.tensor([0, 2]), None))
    lifted = subset.lift(subset.drop(point))
    layout = objective.layout
    neuron, feature = layout.pairs(lifted.w.indices[layout.split(lifted.w.indices)[0]], 0)
    assert set(neuron.tolist()) == {0, 2}
    assert set(feature.tolist()) == {1, 3, 4}
    assert torch.equal(lifted.w.values, point.w.at(lifted.w.indices))
    assert lifted.signs is not None and point.signs is not None
    assert torch.equal(lifted.signs[[0, 2]], point.signs[[0, 2]])


def test_a_feature_subset_is_for_wide_data_alone() -> None:
    objective = CASES[-1].objective()
    few = subset_of(objective, 1, False, SubsetTuning(each=5.0, least=5))
    assert few.part.layout.widths == (5, 3, 1)
    assert subset_of(objective, 1, False, SubsetTuning(least=300)).part is objective


def test_small_problems_look_at_no_more_neurons_than_a_budget_can_use() -> None:
    objective = CASES[-1].objective()
    few = SubsetTuning(least=300, neurons=1, neurons_each=2.0)
    assert subset_of(objective, 1, True, few).part.layout.widths == (300, 2, 1)
    assert subset_of(objective, 1, False, few).part is objective


@pytest.mark.parametrize("case", [case for case in CASES if len(case.widths) == 3], ids=str)
def test_neurons_in_use_are_numbered_first_and_the_network_stays_what_it_is(case: NetworkCase) -> None:
    objective, point = thinned(case, 0.3)
    layout, moved = objective.layout, packed(objective.layout, point)
    assert objective.value(moved) == pytest.approx(objective.value(point), rel=1e-12)
    used = layout.pairs(moved.w.indices[layout.split(moved.w.indices)[0]], 0)[0].unique()
    assert used.tolist() == list(range(used.numel()))


@cases
def test_a_part_of_a_part_has_one_way_back(case: NetworkCase) -> None:
    objective, point = thinned(case, 0.5)
    outer = compact(objective, point)
    fewer = outer.drop(point).keep(torch.arange(point.w.nonzeros // 2))
    inner = compact(outer.part, fewer)
    both = outer.then(inner)
    expected, lifted = outer.lift(fewer), both.lift(inner.drop(fewer))
    assert torch.equal(lifted.w.indices, expected.w.indices)
    assert torch.equal(lifted.w.values, expected.w.values)
    assert torch.equal(both.drop(expected).w.indices, inner.drop(fewer).w.indices)
