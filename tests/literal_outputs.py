"""The paper's appendix A for several outputs, written as literally as possible.

This is the oracle that the fast solver is compared with, so it is NumPy, slow on purpose and shares no code
with the package: all weights are dense matrices, the places held are a set, and the sketch is a table that is
told where each place is in it.

Symbols: ``X`` (rows, features), ``W`` (features, neurons) and ``V`` (neurons, outputs) the weights, ``D_i``
the 0/1 gates of neuron i, ``R`` (rows, outputs) the slope of the mean loss at the output. A place is numbered
neuron by neuron: for each the features, then the outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Lend = Callable[[int, int], Array]
"""A neuron and a count of numbers -> numbers uniform in -1 to 1."""


@dataclass
class LiteralSketch:
    """A count sketch: each of four rows has a counter and a sign for every place."""

    cells: Array  # (4, places), counters from 0
    signs: Array  # (4, places)
    table: Array  # (4, width)

    def add(self, place: int, value: float) -> None:
        for row in range(4):
            sign = self.signs[row, place]
            self.table[row, self.cells[row, place]] += sign * np.asarray(value, self.table.dtype)

    def estimate(self, place: int) -> float:
        """Give the median of the four rows: the middle of the two between the others."""
        read = [self.table[row, self.cells[row, place]] * self.signs[row, place] for row in range(4)]
        return float(np.sum(np.sort(np.array(read, self.table.dtype))[1:3]) / 2)


@dataclass
class LiteralOutputs:
    """The state of a literal run: the weights held, the vectors h_i, the sketch.

    Attributes
    ----------
    W, V : arrays
        What is held; zero elsewhere.
    generators : array of shape (features, neurons)
        The vectors h_i of the gates ``X h_i > 0``, random at first.
    sketch : LiteralSketch
    budget : int
    step_size : float
    lend : callable
        Draws what a neuron is lent.
    softmax : bool
        Whether the loss is the cross-entropy, else half the squared error.
    """

    W: Array
    V: Array
    generators: Array
    sketch: LiteralSketch
    budget: int
    step_size: float
    lend: Lend
    softmax: bool = False
    lent: list[tuple[str, int]] = field(default_factory=list)

    def step(self, X: Array, Y: Array, weight: Array, lends: bool) -> None:
        """Take one step on some rows, which count as much as their weights."""
        (features, neurons), outputs = self.W.shape, self.V.shape[1]
        gates = (X @ self.generators > 0).astype(X.dtype)
        output = sum(np.outer(gates[:, i] * (X @ self.W[:, i]), self.V[i]) for i in range(neurons))
        R = self.slope(output, Y) * (weight / weight.sum())[:, None]
        before_W, before_V = self.W.copy(), self.V.copy()
        held = {place: value for place, value in enumerate(self.flat()) if value != 0}
        for i in range(neurons):
            w, v = before_W[:, i], before_V[i]
            if lends and not (before_W[:, i] > 0).any():
                w = self.lend(i, features) / np.sqrt(features * neurons)
                self.lent.append(("W", i))
            if lends and not (before_V[i] > 0).any():
                v = self.lend(i, outputs) / np.sqrt(neurons * outputs)
                self.lent.append(("V", i))
            DX = gates[:, i : i + 1] * X
            first = i * (features + outputs)
            self.compete(held, first, w, -self.step_size * (DX.T @ (R @ v)))
            self.compete(held, first + features, v, -self.step_size * (R.T @ (DX @ w)))
        self.hold(held)

    def slope(self, output: Array, Y: Array) -> Array:
        if self.softmax:
            raised = np.exp(output - output.max(1, keepdims=True))
            output = raised / raised.sum(1, keepdims=True)
        return np.asarray(output - Y)

    def compete(self, held: dict[int, float], first: int, block: Array, steps: Array) -> None:
        """Let a block compete with the weights held: by their estimates now, ties to the lower place."""
        for offset, step in enumerate(steps):
            self.sketch.add(first + offset, step)
        for offset, value in enumerate(block + steps):
            held.pop(first + offset, None)
            if value != 0:
                held[first + offset] = value
        ranked = sorted(held, key=lambda place: (-abs(self.sketch.estimate(place)), place))
        for place in ranked[self.budget :]:
            del held[place]

    def follow(self) -> None:
        """Let the gates follow the weights held."""
        self.generators = self.W.copy()

    def flat(self) -> Array:
        """Line the weights up by their places."""
        return np.concatenate([self.W.T, self.V], axis=1).ravel()

    def hold(self, held: dict[int, float]) -> None:
        flat = np.zeros(self.W.size + self.V.size, self.W.dtype)
        flat[list(held)] = list(held.values())
        both = flat.reshape(self.V.shape[0], -1)
        self.W, self.V = both[:, : self.W.shape[0]].T.copy(), both[:, self.W.shape[0] :].copy()
