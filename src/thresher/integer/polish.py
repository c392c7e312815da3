"""Single steps of rounded weights that bring the answers on calibration rows nearer to what they were.

Layers were rounded one after the other, each for what its own sums were. Here the answer counts: for classes
the cross-entropy between the probabilities before and after, else the squared error. First and second
derivatives say which steps of the last two layers should help most; each is tried, and kept if it does help.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, log_softmax, softmax

from thresher.integer.network import IntegerLayer, IntegerNetwork
from thresher.integer.rounding import Grid

# Rounds, and steps that are tried in each.
ROUNDS, TRIALS = 12, 150

# Numbers of 64-bit floating point are exact up to here.
EXACT_BITS = 52


class Step(NamedTuple):
    """One weight or bias moved: of the hidden layer or of the outputs."""

    hidden: bool
    row: int  # -1 for a bias
    column: int
    change: float


def polished(
    network: IntegerNetwork, codes: np.ndarray, outputs: np.ndarray, link: str, grid: Grid
) -> IntegerNetwork:
    """Return a network whose answers are nearer to other ones.

    Parameters
    ----------
    network : IntegerNetwork
    codes : ndarray of shape (n, inputs in use)
        Calibration rows.
    outputs : ndarray of shape (n, outputs)
        What a network of floating point gave for them.
    link : str
    grid : Grid
        What weights can be.
    """
    if max(layer.bits for layer in network.ranges.layers) > EXACT_BITS:
        return network
    state = _State(network, codes, outputs, link, grid)
    for _ in range(ROUNDS):
        if not sum(state.tried(step) for step in state.promising()):
            break
    return state.network()


class _State:
    """Sums of the last two layers on calibration rows, and how far each row's answer is from what it was."""

    def __init__(
        self, network: IntegerNetwork, codes: np.ndarray, outputs: np.ndarray, link: str, grid: Grid
    ) -> None:
        self._network, self._link, self._grid = network, link, grid
        self._scale = network.output_scale
        self._wanted = answers_of(outputs, link)
        self._last = network.layers[-1]
        self._up = 2.0**network.hidden_shift
        self.weights = self._last.weights.toarray().astype(np.float64)
        self.bias = self._last.bias.astype(np.float64)
        values = codes.astype(np.float64)
        for layer in network.layers[:-2]:
            values = self._activations(values @ layer.weights.toarray() + layer.bias, layer.shift)
        self._inputs, self._hidden = values, None
        self._active = values
        if len(network.layers) > 1:
            layer = self._hidden = network.layers[-2]
            self.hidden_weights = layer.weights.toarray().astype(np.float64)
            self.hidden_bias = layer.bias.astype(np.float64)
            self._sums = values @ self.hidden_weights + self.hidden_bias
            self._active = self._activations(self._sums, layer.shift)
        self._outputs = self._active @ self.weights * self._up + self.bias
        if network.direct is not None:
            self._outputs += codes @ network.direct.toarray() * 2.0**network.direct_shift
        self._losses = self._loss(self._outputs, slice(None))

    def _activations(self, sums: np.ndarray, shift: np.ndarray | int) -> np.ndarray:
        return np.clip(np.floor(sums / 2.0**shift), 0, self._network.activation_limit)

    def _loss(self, outputs: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
        """Return how far answers are from what they were, for each row."""
        return _losses(outputs * self._scale, self._wanted[rows], self._link)

    def promising(self) -> list[Step]:
        """Return steps by what a quadratic model says they gain, the best first."""
        slope, curve = _derivatives(self._outputs * self._scale, self._wanted, self._link)
        slope, curve = slope * self._scale, curve * self._scale**2
        found = self._steps(
            False,
            self.bias,
            self.weights if not self._last.signs_only else np.zeros_like(self.weights),
            (slope.sum(axis=0), curve.sum(axis=0)),
            (self._active.T @ slope * self._up, self._active.T**2 @ curve * self._up**2),
        )
        if self._hidden is not None:
            below = self._network.activation_limit * 2.0**self._hidden.shift
            down = np.where((self._sums > 0) & (self._sums < below), self._up / 2.0**self._hidden.shift, 0.0)
            felt = slope @ self.weights.T * down
            curved = curve @ (self.weights**2).T * down**2
            found += self._steps(
                True,
                self.hidden_bias,
                self.hidden_weights,
                (felt.sum(axis=0), curved.sum(axis=0)),
                (self._inputs.T @ felt, self._inputs.T**2 @ curved),
            )
        found.sort(key=lambda pair: pair[0])
        return [step for gain, step in found[:TRIALS] if gain < 0]

    def _steps(
        self,
        hidden: bool,
        bias: np.ndarray,
        weights: np.ndarray,
        of_bias: tuple[np.ndarray, np.ndarray],
        of_weights: tuple[np.ndarray, np.ndarray],
    ) -> list[tuple[float, Step]]:
        """Return the steps of one layer that should help, with what they should gain."""
        found = []
        rows, columns = np.nonzero(weights)
        values = weights[rows, columns]
        slope, curve = (part[rows, columns] for part in of_weights)
        down, up = self._grid.neighbours(values)
        change = np.where(slope > 0, down, up) - values
        gain = slope * change + curve * change**2 / 2
        for place in np.flatnonzero(gain < 0).tolist():
            step = Step(hidden, int(rows[place]), int(columns[place]), float(change[place]))
            found.append((float(gain[place]), step))
        slope, curve = of_bias
        unit = _unit(bias)
        for place in np.flatnonzero((bias != 0) & (curve > 0)).tolist():
            moved = float(np.rint(-slope[place] / curve[place] / unit) * unit)
            gained = float(slope[place] * moved + curve[place] * moved**2 / 2)
            if moved and bias[place] + moved and gained < 0 and abs(moved) <= abs(bias).max():
                found.append((gained, Step(hidden, -1, place, moved)))
        return found

    def tried(self, step: Step) -> bool:
        """Take a step if it helps, and say whether it did."""
        if step.hidden:
            assert self._hidden is not None
            by = step.change if step.row < 0 else self._inputs[:, step.row] * step.change
            sums = self._sums[:, step.column] + by
            active = self._activations(sums, int(self._hidden.shift[step.column]))
            moved = active - self._active[:, step.column]
            rows = np.flatnonzero(moved)
            outputs = self._outputs[rows] + moved[rows, None] * (self.weights[step.column] * self._up)
        else:
            by = np.ones(len(self._outputs)) if step.row < 0 else self._active[:, step.row] * self._up
            rows = np.flatnonzero(by)
            outputs = self._outputs[rows]
            outputs[:, step.column] += by[rows] * step.change
        losses = self._loss(outputs, rows)
        if losses.sum() >= self._losses[rows].sum() * (1 - 1e-12):
            return False
        self._losses[rows], self._outputs[rows] = losses, outputs
        weights, bias = (self.hidden_weights, self.hidden_bias) if step.hidden else (self.weights, self.bias)
        if step.row < 0:
            bias[step.column] += step.change
        else:
            weights[step.row, step.column] += step.change
        if step.hidden:
            self._sums[:, step.column], self._active[:, step.column] = sums, active
        return True

    def network(self) -> IntegerNetwork:
        """Return the network as it is now."""
        layers = list(self._network.layers)
        layers[-1] = _rebuilt(layers[-1], self.weights, self.bias)
        if self._hidden is not None:
            layers[-2] = _rebuilt(layers[-2], self.hidden_weights, self.hidden_bias)
        return replace(self._network, layers=tuple(layers))


def _rebuilt(layer: IntegerLayer, weights: np.ndarray, bias: np.ndarray) -> IntegerLayer:
    whole = sparse.csc_array(weights.astype(np.int64))
    return IntegerLayer(whole, bias.astype(np.int64), layer.shift, layer.signs_only)


def _unit(bias: np.ndarray) -> float:
    """Return the power of two that all biases are multiples of."""
    joined = int(np.bitwise_or.reduce(bias.astype(np.int64), initial=0))
    return float(joined & -joined) if joined else 1.0


def loss_of(network: IntegerNetwork, codes: np.ndarray, outputs: np.ndarray, link: str) -> float:
    """Return how far the answers of a network are from those of other outputs, on average."""
    values = network.run(codes.astype(np.int64)) * network.output_scale
    return float(_losses(values, answers_of(outputs, link), link).mean())


def _losses(values: np.ndarray, wanted: np.ndarray, link: str) -> np.ndarray:
    """Return how far outputs are from answers, for each row."""
    if link == "softmax":
        return np.asarray(-(wanted * log_softmax(values, axis=1)).sum(axis=1))
    if link == "logistic":
        return np.asarray((np.logaddexp(0.0, values) - wanted * values).sum(axis=1))
    return np.asarray(np.square(values - wanted).sum(axis=1) / 2)


def answers_of(outputs: np.ndarray, link: str) -> np.ndarray:
    """Return probabilities of classes; outputs of a regression as they are, whatever their link."""
    if link == "softmax":
        return np.asarray(softmax(outputs, axis=1))
    return np.asarray(expit(outputs)) if link == "logistic" else outputs


def _derivatives(outputs: np.ndarray, wanted: np.ndarray, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and curvature of every row's loss in every output."""
    if link in ("softmax", "logistic"):
        shares = answers_of(outputs, link)
        return shares - wanted, shares * (1 - shares)
    return outputs - wanted, np.ones_like(outputs)
