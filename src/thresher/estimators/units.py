"""Between what solvers see, ``(x - origin) / scale`` and targets likewise, and raw units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch

from thresher.device import from_host, to_host
from thresher.errors import DataError
from thresher.linear.vector import SparseVector
from thresher.network import Layer, Network
from thresher.network.layer import Weights, rows_of
from thresher.objective.columns import Columns
from thresher.objective.layout import Layout
from thresher.objective.running import Point

# A raw bias below this share of the numbers that it is the difference of is zero but for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Units:
    """How inputs and targets are seen.

    Attributes
    ----------
    columns : Columns, optional
        Origin and scale of every input; None leaves inputs as they are.
    middle, spread : arrays of shape (targets,)
        What targets have subtracted, and are divided by.
    centred : bool
        Whether targets were centred, so that output biases undo it.
    """

    columns: Columns | None
    middle: np.ndarray
    spread: np.ndarray
    centred: bool


def to_layers(point: Point, layout: Layout, units: Units) -> tuple[tuple[Layer, ...], Weights | None]:
    """Turn a point into layers that take raw inputs and give raw outputs, and the direct connections."""
    parts = [_matrix(point, layout, block) for block in range(layout.blocks)]
    last = layout.layers - 1
    outputs = layout.widths[-1]
    spread, middle = (np.resize(part, outputs) for part in (units.spread, units.middle))
    weights, bias = [part[0] for part in parts], [part[1] for part in parts]
    if units.columns is not None:
        for block in (0, last + 1) if layout.direct else (0,):
            weights[block] = scipy.sparse.csc_array(weights[block].multiply(1 / units.columns.scale[:, None]))
        bias[0] = _less(bias[0], weights[0], units.columns.origin)
    if layout.fused:
        # A ReLU passes a factor on, so a fused output finds its unit one layer earlier.
        weights[last - 1], bias[last - 1] = weights[last - 1] * spread[0], bias[last - 1] * spread[0]
    else:
        weights[last] = scipy.sparse.csc_array(weights[last].multiply(spread[None, :]))
    if units.centred:
        bias[last] = _rounded(bias[last] * spread, -middle)
    else:
        bias[last] = bias[last] * spread
    direct = None
    if layout.direct:
        direct = scipy.sparse.csc_array(weights[last + 1].multiply(spread[None, :]))
        if units.columns is not None:
            bias[last] = _less(bias[last], direct, units.columns.origin)
    _refuse_infinite([*weights, *bias, *([direct] if direct is not None else [])])
    layers = [Layer(weights[layer], bias[layer]) for layer in range(last)]
    if layout.fused:
        assert point.signs is not None
        output = Layer(to_host(point.signs.double())[:, None], bias[last], signs_only=True)
    else:
        output = Layer(weights[last], bias[last])
    return (*layers, output), None if direct is None or direct.nnz == 0 else direct


def among(
    layers: tuple[Layer, ...], direct: Weights | None, columns: np.ndarray, inputs: int
) -> tuple[tuple[Layer, ...], Weights | None]:
    """Give inputs that were numbered anew the numbers they have among all."""

    def placed(weights: Weights) -> scipy.sparse.coo_array:
        entries = weights.tocoo()
        parts = entries.data, (columns[entries.row], entries.col)
        return scipy.sparse.coo_array(parts, shape=(inputs, weights.shape[1]))

    first = Layer(placed(layers[0].weights), layers[0].bias)
    return (first, *layers[1:]), None if direct is None else placed(direct)


def only_reading(network: Network, columns: np.ndarray) -> Network:
    """Give the network whose inputs are some columns, ascending, all that it reads among them."""
    layers = (Layer(rows_of(network.layers[0].weights, columns), network.layers[0].bias), *network.layers[1:])
    direct = None if network.direct is None else rows_of(network.direct, columns)
    return Network(layers, network.classes, network.link, direct=direct)


def _matrix(point: Point, layout: Layout, block: int) -> tuple[scipy.sparse.csc_array, np.ndarray]:
    part = layout.split(point.w.indices)[block]
    neuron, feature = (to_host(one) for one in layout.pairs(point.w.indices[part], block))
    values = to_host(point.w.values[part].double())
    inputs, neurons = layout.inputs[block], layout.shapes[block][0]
    inside = feature < inputs
    bias = np.zeros(neurons)
    bias[neuron[~inside]] = values[~inside]
    pairs = (feature[inside], neuron[inside])
    return scipy.sparse.csc_array((values[inside], pairs), shape=(max(1, inputs), neurons)), bias


def _less(bias: np.ndarray, weights: scipy.sparse.csc_array, origin: np.ndarray) -> np.ndarray:
    """Subtract what the origins of inputs add to a neuron."""
    return _rounded(bias, np.asarray(weights.T @ origin), np.asarray(abs(weights).T @ np.abs(origin)))


def _rounded(bias: np.ndarray, moved: np.ndarray, size: np.ndarray | None = None) -> np.ndarray:
    """Subtract numbers; what is left by rounding alone is zero."""
    size = np.abs(bias) + (np.abs(moved) if size is None else size)
    raw = bias - moved
    return np.where((np.abs(raw) <= ROUNDING * size) & (moved != 0), 0.0, raw)


def _refuse_infinite(parts: list[Any]) -> None:
    for part in parts:
        if not np.isfinite(part.data if scipy.sparse.issparse(part) else part).all():
            raise DataError(
                "training ended in weights that are not finite, because the values of X or y are too large "
                "or too small to compute with. Scale them to the order of 1."
            )


def from_network(network: Network, layout: Layout, units: Units, dtype: torch.dtype) -> Point:
    """Turn a fitted network back into a point: the inverse of `to_layers`."""
    last, columns = layout.layers - 1, units.columns
    outputs = layout.widths[-1]
    spread, middle = (np.resize(part, outputs) for part in (units.spread, units.middle))
    direct = network.direct if layout.direct else None
    places, values = [], []
    for block, layer in enumerate(network.layers):
        weights = scipy.sparse.coo_array(layer.weights.astype(np.float64))
        bias = layer.bias.astype(np.float64)
        if block == 0 and columns is not None:
            bias = bias + np.asarray(layer.weights.T @ columns.origin)
        if block == last:
            bias = bias - (middle if units.centred else 0)
            if direct is not None and columns is not None:
                bias = bias + np.asarray(direct.T @ columns.origin)
        # A fused output has its unit in the layer before.
        unit = spread[0] if layout.fused and block == last - 1 else 1.0
        bias = bias / (spread if block == last else unit)
        held = np.flatnonzero(bias) if layout.bias else np.zeros(0, dtype=np.int64)
        places.append(layout.biases(block, from_host(held)))
        values.append(bias[held])
        if layout.fused and block == last:
            continue
        feature, neuron, numbers = weights.row.astype(np.int64), weights.col.astype(np.int64), weights.data
        numbers = numbers / (spread[neuron] if block == last else unit)
        if block == 0 and columns is not None:
            numbers = numbers * columns.scale[feature]
        places.append(layout.position(block, from_host(neuron), from_host(feature)))
        values.append(numbers)
    if direct is not None:
        part = scipy.sparse.coo_array(direct.astype(np.float64))
        feature, neuron = part.row.astype(np.int64), part.col.astype(np.int64)
        scale = 1.0 if columns is None else columns.scale[feature]
        places.append(layout.position(last + 1, from_host(neuron), from_host(feature)))
        values.append(part.data * scale / spread[neuron])
    indices, order = torch.cat(places).sort()
    numbers_of = from_host(np.concatenate(values))[order].to(dtype)
    signs = None
    if layout.fused:
        column = network.layers[-1].weights.toarray()[:, 0]
        signs = from_host(np.where(column == 0, 1.0, column)).to(dtype)
    return Point(SparseVector(indices, numbers_of, layout.size), signs)
