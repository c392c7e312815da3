"""What each input does to the outputs: shape functions where inputs stand alone, else partial dependence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.explain.naming import Named, named_inputs
from thresher.explain.parts import Neuron, Parts, parts_of, rows_read
from thresher.network.metadata import spread_of
from thresher.network.structure import Structure

# Rows that effects are averaged over, evenly spread ones where there are more; fewer for deep networks, which
# are computed anew for each of them.
MOST_ROWS, MOST_DEEP_ROWS = 2000, 200
# Values of an input, besides the thresholds in between.
POINTS = 64


@dataclass(frozen=True, eq=False)
class Effect:
    """How the outputs, before any link, move with one input.

    Attributes
    ----------
    column : int
        The number of the input.
    name : str
    unit : str
    grid : array of shape (points,)
        Values of the input.
    values : array of shape (points, outputs)
        What the input adds there, less the mean over rows (over the grid where there are none).
    kinks : tuple of float
        Thresholds of neurons that read this input alone, within the grid.
    alone : bool
        Whether this is the network's own function of the input, whatever the others are; else it is the mean
        over rows (partial dependence).
    size : float
        The standard deviation of what it adds, over rows (over the grid where there are none).
    low, high : array of shape (points, outputs)
        Between which four of five rows are, where inputs depend on each other; `values` where they do not.
    binary : bool
        Whether the input is 0 or 1.
    """

    column: int
    name: str
    unit: str
    grid: np.ndarray
    values: np.ndarray
    kinks: tuple[float, ...]
    alone: bool
    size: float
    low: np.ndarray
    high: np.ndarray
    binary: bool = False

    def plain(self) -> dict[str, Any]:
        """Give all of it as plain values, fit for JSON."""
        lists = {name: getattr(self, name).tolist() for name in ("grid", "values", "low", "high")}
        return {**vars(self), **lists, "kinks": list(self.kinks)}


def effects(network: Structure, X: Any = None) -> list[Effect]:
    """Give the effect of every input that is read, the largest first.

    Parameters
    ----------
    network : Network
    X : array-like or sparse array of shape (n, inputs), optional
        Rows that tell where inputs lie, and that partial dependence is the mean over. Without them, inputs
        that depend on others cannot be shown, and the others are shown around their thresholds.

    Examples
    --------
    >>> from thresher import Network
    >>> found = effects(Network.fused([[1.0]], [-2.0], [1]), [[0.0], [4.0]])[0]
    >>> found.kinks, found.alone, found.grid[[0, -1]], found.values[[0, -1], 0]
    ((2.0,), True, array([0., 4.]), array([-1.,  1.]))
    """
    parts = parts_of(network)
    if X is None and parts.interacting:
        raise ParameterError(
            "inputs of this network depend on each other, so their effects are means over rows: give X."
        )
    rows = None if X is None else rows_read(network, X, MOST_ROWS if parts.deep is None else MOST_DEEP_ROWS)
    spread = spread_of(network.details, network.inputs)
    scale = np.ones(len(parts.read)) if spread is None else spread[parts.read]
    named = named_inputs(network)
    found = [
        _effect(parts, place, named[place], rows, float(scale[place])) for place in range(len(parts.read))
    ]
    return sorted(found, key=lambda effect: -effect.size)


def _effect(parts: Parts, place: int, name: Named, rows: np.ndarray | None, scale: float) -> Effect:
    moved = parts.reading(place)
    kinks = _kinks(moved.neurons)
    column = None if rows is None else rows[:, place]
    binary = name.value is not None or (column is not None and bool(np.isin(column, (0.0, 1.0)).all()))
    grid = np.array([0.0, 1.0]) if binary else _grid(column, kinks, scale)
    inside = tuple(kink for kink in kinks if grid[0] < kink < grid[-1]) if not binary else ()
    alone = place not in parts.interacting
    if alone:
        curve = _shape(moved, place, grid)
        at_rows = curve if column is None else _shape(moved, place, column)
        values, low, high = curve - at_rows.mean(axis=0), None, None
        size = float(np.sqrt(at_rows.var(axis=0).sum()))
    else:
        assert rows is not None and column is not None
        values, low, high = _dependence(moved, place, grid, rows)
        at_rows = np.column_stack([np.interp(column, grid, each) for each in values.T])
        values, low, high = (each - at_rows.mean(axis=0) for each in (values, low, high))
        size = float(np.sqrt(at_rows.var(axis=0).sum()))
    where = (int(parts.read[place]), name.plain, name.unit)
    low, high = values if low is None else low, values if high is None else high
    return Effect(*where, grid, values, inside, alone, size, low, high, binary)


def _kinks(neurons: tuple[Neuron, ...]) -> list[float]:
    alone = [neuron for neuron in neurons if len(neuron.places) == 1 and neuron.weights[0] != 0]
    return sorted({float(-neuron.bias / neuron.weights[0]) + 0.0 for neuron in alone})


def _grid(column: np.ndarray | None, kinks: list[float], scale: float) -> np.ndarray:
    """Give values of an input from its least to its largest, thresholds between them included."""
    if column is None:
        middle = (min(kinks), max(kinks)) if kinks else (0.0, 0.0)
        step = 2 * scale or 1.0
        low, high = middle[0] - step, middle[1] + step
    else:
        low, high = float(column.min()), float(column.max())
        if low == high:
            low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    inside = [kink for kink in kinks if low < kink < high]
    return np.unique(np.concatenate([np.linspace(low, high, POINTS), inside]))


def _shape(moved: Parts, place: int, at: np.ndarray) -> np.ndarray:  # (points, outputs)
    """Give an input's own function: no part that reads it reads another."""
    X = np.zeros((len(at), len(moved.read)))
    X[:, place] = at
    return moved.values(X)


def _dependence(
    moved: Parts, place: int, grid: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give mean, tenth and ninetieth percentile over rows of what the input changes, from each row's mean."""
    mixed, curves = rows.copy(), np.empty((len(grid), len(rows), len(moved.constant)))
    for number, value in enumerate(grid):
        mixed[:, place] = value
        curves[number] = moved.values(mixed)
    mean = curves.mean(axis=1)
    # Where a row's curve begins is the business of the other inputs.
    around = curves - curves.mean(axis=0, keepdims=True)
    low, high = np.quantile(around, (0.1, 0.9), axis=1)
    shift = mean.mean(axis=0)
    return mean, low + shift, high + shift
