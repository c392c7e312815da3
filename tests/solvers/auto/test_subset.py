"""Some of the inputs and neurons: the same objective there, and the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dense import CASES, NetworkCase

from thresher.objective.relu import Point, Relu
from thresher.solvers.auto.subset import Subset, compact, subset_of
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
    few = subset_of(objective, 1, SubsetTuning(each=5.0, least=5))
    assert few.part.layout.widths == (5, 3, 1)
    assert subset_of(objective, 1, SubsetTuning(least=300)).part is objective
