"""Raw units: to layers and back, a point is the same, and the layers take raw rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dense import random_point

from thresher.errors import DataError
from thresher.estimators.units import Units, from_network, to_layers
from thresher.linear.vector import SparseVector
from thresher.network import Network
from thresher.objective.columns import Columns
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point, Running

INPUTS = 4
LAYOUTS = {
    "fused": Layout((INPUTS, 3, 1), fused=True),
    "fused, direct": Layout((INPUTS, 3, 1), fused=True, direct=True),
    "fused, no bias": Layout((INPUTS, 3, 1), bias=False, fused=True, direct=True),
    "deep": Layout((INPUTS, 5, 3, 1), fused=True, direct=True),
    "two outputs": Layout((INPUTS, 3, 2), direct=True),
    "deep, two outputs": Layout((INPUTS, 5, 3, 2)),
}
COLUMNS = Columns(np.array([0.0, 1985.0, 273.15, -4.0]), np.array([0.5, 20.0, 1e-3, 3.0]))
STILL = Columns(np.zeros(INPUTS), COLUMNS.scale)
any_layout = pytest.mark.parametrize("name", LAYOUTS)
any_units = pytest.mark.parametrize("kind", ["raw", "scaled", "moved"])


def units_of(kind: str, layout: Layout) -> Units:
    """Give coordinates; without biases nothing can be moved."""
    outputs = layout.widths[-1]
    middle, spread = np.array([100.0, -3.0])[:outputs], np.array([7.0, 0.01])[:outputs]
    if kind == "raw":
        return Units(None, np.zeros(outputs), np.ones(outputs), False)
    if kind == "scaled" or not layout.bias:
        return Units(STILL, np.zeros(outputs), spread, False)
    return Units(COLUMNS, middle, spread, True)


def held_point(layout: Layout, units: Units, seed: int) -> Point:
    """Draw a point that holds every bias that raw units bring along."""
    origins = middle = None
    if units.centred:
        assert units.columns is not None
        origins = torch.from_numpy(units.columns.origin / units.columns.scale)
        middle = torch.from_numpy(units.middle / units.spread)
    data = Data(np.zeros((1, INPUTS)), torch.zeros(1, layout.widths[-1]), dtype=torch.float64)
    objective = Relu(data, layout, SquaredError(), 0.0, origins, middle)
    point = random_point(layout, 0.6, seed)
    return point.at(objective.closed(point.w.indices))


def network_of(point: Point, layout: Layout, units: Units) -> Network:
    layers, direct = to_layers(point, layout, units)
    return Network(layers, direct=direct)


@any_layout
@any_units
@pytest.mark.parametrize("seed", range(3))
def test_there_and_back_is_the_same_point(name: str, kind: str, seed: int) -> None:
    layout = LAYOUTS[name]
    units = units_of(kind, layout)
    point = held_point(layout, units, seed)
    back = from_network(network_of(point, layout, units), layout, units, torch.float64)
    whole, again = point.w.to_dense(), back.w.to_dense()
    torch.testing.assert_close(again, whole, rtol=1e-9, atol=1e-9)
    if layout.fused:
        assert torch.equal(back.signs, point.signs)


@any_layout
@any_units
def test_the_network_does_in_raw_units_what_the_point_does_in_its_own(name: str, kind: str) -> None:
    layout = LAYOUTS[name]
    units = units_of(kind, layout)
    point = held_point(layout, units, 5)
    seen = torch.from_numpy(np.random.default_rng(2).standard_normal((30, INPUTS)))
    raw = seen.numpy() if units.columns is None else seen.numpy() * units.columns.scale + units.columns.origin
    output = Running(layout, point).forward(seen).output.numpy() * units.spread + units.middle
    np.testing.assert_allclose(network_of(point, layout, units).forward(raw), output, rtol=1e-6, atol=1e-8)


@any_layout
@any_units
def test_no_more_nonzeros_in_raw_units_than_a_point_holds(name: str, kind: str) -> None:
    layout = LAYOUTS[name]
    units = units_of(kind, layout)
    for seed in range(3):
        point = held_point(layout, units, seed)
        assert network_of(point, layout, units).nonzeros <= point.w.nonzeros


def test_a_bias_that_is_zero_but_for_rounding_is_zero() -> None:
    layout = Layout((INPUTS, 1, 1), fused=True)
    units = Units(COLUMNS, np.array([100.0]), np.array([7.0]), True)
    weight = 0.3
    at_zero = weight * COLUMNS.origin[1] / COLUMNS.scale[1]
    indices = torch.tensor([1, INPUTS, INPUTS + 1])
    values = torch.tensor([weight, at_zero * (1 + 1e-15), -100 / 7], dtype=torch.float64)
    layers, _ = to_layers(Point(SparseVector(indices, values, layout.size), torch.ones(1)), layout, units)
    assert layers[0].bias.tolist() == [0.0]
    assert layers[1].bias.tolist() == [0.0]


def test_a_weight_that_overflows_in_raw_units_is_refused() -> None:
    layout = Layout((1, 1, 1), bias=False, fused=True)
    units = Units(Columns(np.zeros(1), np.array([1e-300])), np.zeros(1), np.array([1e300]), False)
    point = Point(SparseVector(torch.tensor([0]), torch.ones(1).double(), 1), torch.ones(1).double())
    with pytest.raises(DataError, match="not finite"), np.errstate(over="ignore"):
        to_layers(point, layout, units)
