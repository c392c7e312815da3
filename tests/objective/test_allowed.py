"""What a network may hold: signs that follow from places, inputs of a neuron, steps that stop at bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from thresher.linear.vector import SparseVector
from thresher.objective.allowed import ANY, NOTHING, Allowed, forbidden, without_zeros
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.equations import Factored
from thresher.solvers.auto.newton import measured, refit
from thresher.solvers.auto.newton_tuning import NewtonTuning
from thresher.solvers.auto.subset import Subset

RISES = torch.tensor([1, 0, -1], dtype=torch.int8)


def full(layout: Layout, seed: int = 0) -> Point:
    """Hold every place."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.randn(layout.size, generator=draw, dtype=torch.float64)
    signs = None
    if layout.fused:
        signs = torch.ones(layout.widths[-2], dtype=torch.float64)
        signs[1::2] = -1
    return Point(SparseVector(torch.arange(layout.size), values, layout.size), signs)


LAYOUTS = [
    Layout((3, 4, 1), fused=True, direct=True),
    Layout((3, 6, 5, 1), fused=True, direct=True),
    Layout((3, 6, 5, 4, 1), bias=False, fused=True),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.widths))
def test_what_is_permitted_moves_the_right_way(layout: Layout) -> None:
    allowed = Allowed.of(layout, RISES, fan_in=2)
    assert allowed is not None
    for seed in range(5):
        point = allowed.permitted(layout, full(layout, seed))
        assert allowed.permitted(layout, point) is point
        assert point.w.nonzeros
        relu = Relu(Data(np.zeros((1, 3)), torch.zeros(1, 1)), layout, SquaredError())
        X = 3 * torch.randn(500, 3, dtype=torch.float64)
        before = relu.run(point).forward(X).output
        for column, sign in ((0, 1), (2, -1)):
            moved = X.clone()
            moved[:, column] += torch.rand(500, dtype=torch.float64) * 5
            assert ((relu.run(point).forward(moved).output - before) * sign >= 0).all()
        for block in range(layout.layers - 1):
            part = layout.split(point.w.indices)[block]
            neuron, feature = layout.pairs(point.w.indices[part], block)
            assert neuron[feature < layout.inputs[block]].bincount().max() <= 2


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.widths))
def test_weights_that_are_turned_all_stay_but_where_there_may_be_none(layout: Layout) -> None:
    allowed = Allowed.of(layout, RISES, None)
    assert allowed is not None
    point = full(layout)
    turned = allowed.turned(layout, point)
    signs = allowed.held(layout, point.w.indices, point.signs)
    assert turned.w.values.count_nonzero() == int((signs != NOTHING).sum())
    assert bool((signs == ANY).any())
    low, high = allowed.bounds(layout, turned) or (torch.zeros(0), torch.zeros(0))
    assert ((turned.w.values >= low) & (turned.w.values <= high)).all()


def test_nothing_is_asked_where_nothing_has_a_direction() -> None:
    layout = LAYOUTS[0]
    assert Allowed.of(layout, torch.zeros(3, dtype=torch.int8), None) is None
    only_few = Allowed.of(layout, torch.zeros(3, dtype=torch.int8), 2)
    assert only_few is not None
    assert only_few.bounds(layout, full(layout)) is None


def test_the_largest_weights_of_a_neuron_stay() -> None:
    layout = Layout((3, 2, 1), fused=True)
    point = full(layout).with_values(torch.tensor([1.0, -3.0, 2.0, 9.0, 0.5, 0.1, -0.2, 9.0, 1.0]).double())
    held = Allowed(fan_in=1).permitted(layout, point).w
    assert held.values.tolist() == [-3.0, 9.0, 0.5, 9.0, 1.0]
    room = Allowed(fan_in=2).room(layout, 0, held.indices)
    assert room is not None
    assert room.tolist() == [True, True]


def test_where_a_weight_may_not_begin() -> None:
    signs = torch.tensor([ANY, 1, 1, -1, NOTHING])
    assert forbidden(signs, torch.tensor([-1.0, 1, -1, 1, 1])).tolist() == [False, False, True, True, True]


def test_directions_follow_units_into_a_part() -> None:
    layout = Layout((3, 6, 5, 1), fused=True, direct=True)
    objective = Relu(Data(np.zeros((4, 3)), torch.zeros(4, 1)), layout, SquaredError())
    whole = Allowed.of(layout, RISES, None)
    part = Subset.of(
        Relu(objective.data, layout, SquaredError(), allowed=whole),
        (torch.tensor([0, 2]), torch.tensor([1, 3, 4]), None, None),
    )
    point = full(part.part.layout)
    small = part.lift(part.part.permitted(point))
    assert whole is not None
    assert torch.equal(small.w.indices, whole.permitted(layout, part.lift(point)).w.indices)


def lines(seed: int, bound: bool) -> tuple[Relu, Point]:
    """Give least squares of correlated columns, by direct connections alone."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(60, 5)) + draw.normal(size=(60, 1))
    y = X @ draw.normal(size=5) + draw.normal(size=60)
    layout = Layout((5, 1, 1), fused=True, direct=True)
    allowed = Allowed.of(layout, torch.ones(5, dtype=torch.int8), None) if bound else None
    data = Data(X, torch.from_numpy(y[:, None]), dtype=torch.float64)
    places = layout.position(2, torch.zeros(5, dtype=torch.int64), torch.arange(5))
    point = Point(
        SparseVector(places, torch.ones(5, dtype=torch.float64), layout.size), torch.ones(1).double()
    )
    return Relu(data, layout, SquaredError(), allowed=allowed), point


@pytest.mark.parametrize("seed", range(5))
def test_a_refit_within_bounds_is_that_of_non_negative_least_squares(seed: int) -> None:
    objective, point = lines(seed, bound=True)
    fit = refit(objective, measured(objective, point), 50, NewtonTuning(), rough=False)
    batch = objective.data.batch(slice(0, 60))
    best, _ = nnls(batch.X.numpy(), batch.y[:, 0].numpy())
    assert fit.nonzeros == np.count_nonzero(best)
    assert fit.point.w.values.tolist() == pytest.approx(best[best > 0].tolist(), rel=1e-4)


def test_a_step_that_stays_within_its_bounds_is_left_alone() -> None:
    objective, point = lines(0, bound=False)
    newton = Factored(objective, objective.run(point), NewtonTuning(), rough=False)
    step = newton.solved(1e-6)
    assert step is not None
    wide = torch.full((5,), torch.inf).double()
    bounded = newton.bounded(step.clone(), 1e-6, point.w.values, -wide, wide)
    assert torch.allclose(bounded, step)


def test_weights_at_a_bound_are_let_go_of_and_others_stay() -> None:
    layout = LAYOUTS[0]
    point = full(layout).with_values(torch.zeros(layout.size).double())
    allowed = Allowed.of(layout, RISES, None)
    assert allowed is not None
    bounds = allowed.bounds(layout, point)
    assert bounds is not None
    left = without_zeros(point, bounds).w.indices
    assert (allowed.held(layout, left, point.signs) == ANY).all()
    assert left.numel() == int((allowed.held(layout, point.w.indices, point.signs) == ANY).sum())
