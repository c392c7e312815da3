"""Weights trained on with rounding in the loop, towards the answers of the network that they came from.

Every weight and bias has a number between the whole ones. Answers are those of the rounded network; their
slope passes through rounding as if it were not there, and through a neuron where its sum is near enough to
what it can say (straight-through estimation). No weight is added: the support is that of the network before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from thresher.integer.calibration import Calibration, bias_unit
from thresher.integer.network import IntegerLayer, IntegerNetwork
from thresher.integer.polish import answers_of, loss_of
from thresher.integer.rounding import Grid

# Rows of a step, and how far a step goes as a share of the largest weight; it falls to zero over the last
# seven tenths of the passes.
BATCH, RATE, FALL = 250, 0.01, 0.7

# Adam's means of slopes and of their squares: the latter forget soon, as slopes jump where weights do.
MEMORY, MEMORY_OF_SQUARES = 0.9, 0.99

# A sum as far outside of what a neuron can say, in steps of that, still has a slope.
REACH = 0.5

# Logarithm of the scale of outputs that are compared with each other: a step.
SCALE_STEP = 0.003


@dataclass(eq=False)
class _Part:
    """Weights or biases of a layer, and what Adam keeps of their slopes."""

    values: np.ndarray
    held: np.ndarray
    rate: np.ndarray
    largest: np.ndarray
    rounding: Callable[[np.ndarray], np.ndarray]
    mean: np.ndarray = field(init=False)
    square: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros_like(self.values), np.zeros_like(self.values)

    def rounded(self) -> np.ndarray:
        """Return the whole numbers, zeros where nothing is held."""
        return (self.rounding(self.values) * self.held).astype(np.float32)

    def move(self, slope: np.ndarray, step: int, share: float) -> None:
        """Take a step of Adam."""
        slope = slope * self.held
        self.mean += (1 - MEMORY) * (slope - self.mean)
        self.square += (1 - MEMORY_OF_SQUARES) * (slope**2 - self.square)
        size = np.sqrt(self.square / (1 - MEMORY_OF_SQUARES**step)) + 1e-12
        self.values -= (share * self.rate) * (self.mean / (1 - MEMORY**step)) / size
        np.clip(self.values, -self.largest, self.largest, out=self.values)


def trained(
    network: IntegerNetwork, calibration: Calibration, grid: Grid, bias_bits: int, passes: int
) -> IntegerNetwork:
    """Return a network whose answers on calibration rows are nearer to those before rounding.

    Parameters
    ----------
    network : IntegerNetwork
        Neurons and inputs as in the calibration, none left out.
    calibration : Calibration
        Also tells which weights there are, those that rounded to nothing included.
    grid : Grid
        What weights can be.
    bias_bits : int
        Bits of a bias.
    passes : int
        Passes over the calibration rows.
    """
    codes = calibration.codes.astype(np.float32)
    outputs = calibration.targets[-1].sums
    state = _State(network, calibration, grid, bias_bits)
    wanted = answers_of(outputs, calibration.link)
    draws, rows = np.random.default_rng(0), len(codes)
    batch = min(BATCH, rows)
    steps = passes * (rows // batch)
    step = 0
    for _ in range(passes):
        order = draws.permutation(rows)
        for start in range(0, rows - batch + 1, batch):
            step += 1
            some = order[start : start + batch]
            state.step(codes[some], wanted[some], step, min(1.0, (1 - step / steps) / FALL))
    found = state.network()
    before, after = (loss_of(one, calibration.codes, outputs, calibration.link) for one in (network, found))
    return found if after < before else network


class _State:
    """A network while it is trained."""

    def __init__(self, network: IntegerNetwork, calibration: Calibration, grid: Grid, bias_bits: int) -> None:
        self._network, self._link = network, calibration.link
        self._limit = float(network.activation_limit)
        self._scale = network.output_scale.astype(np.float32)
        self._up, self._direct_up = 2.0**network.hidden_shift, 2.0**network.direct_shift
        self.weights, self.biases = [], []
        for layer, target in zip(network.layers, calibration.targets, strict=True):
            fixed = layer.signs_only
            held = np.zeros_like(target.weights) if fixed else target.weights != 0
            self.weights.append(_weights(layer.weights.toarray(), held, grid))
            last = layer is network.layers[-1]
            width = target.sums.std() / network.output_scale if last else 2.0**layer.shift
            self.biases.append(_biases(layer.bias, target.bias != 0, width, bias_bits))
        self._signs = network.layers[-1].weights.toarray().astype(np.float32)
        self.direct = None
        if calibration.direct is not None:
            held = calibration.direct != 0
            own = np.zeros(held.shape) if network.direct is None else network.direct.toarray()
            self.direct = _weights(own, held, grid)

    def step(self, codes: np.ndarray, wanted: np.ndarray, step: int, share: float) -> None:
        """Run some rows and move every weight."""
        weights = [part.rounded() for part in self.weights]
        if self._network.layers[-1].signs_only:
            weights[-1] = self._signs
        values, sums = [codes], []
        for number, layer in enumerate(self._network.layers[:-1]):
            sums.append((values[-1] @ weights[number] + self.biases[number].rounded()) / self._down(layer))
            values.append(np.clip(np.floor(sums[-1]), 0, self._limit))
        outputs = values[-1] @ weights[-1] * np.float32(self._up) + self.biases[-1].rounded()
        if self.direct is not None:
            outputs += codes @ self.direct.rounded() * np.float32(self._direct_up)
        slope = (answers_of(outputs * self._scale, self._link) - wanted).astype(np.float32)
        if self._link in ("softmax", "logistic"):
            grows = float((slope * outputs).sum())
            self._scale = self._scale * np.float32(np.exp(-SCALE_STEP * share * np.sign(grows)))
        slope *= self._scale
        if self.direct is not None:
            self.direct.move(codes.T @ slope * self._direct_up, step, share)
        self.biases[-1].move(slope.sum(axis=0), step, share)
        slope = slope * np.float32(self._up)
        for number in range(len(weights) - 1, -1, -1):
            moved = values[number].T @ slope
            below = slope @ weights[number].T
            self.weights[number].move(moved, step, share)
            if number == 0:
                break
            own = sums[number - 1]
            near = (own > -REACH) & (own < self._limit + 1 + REACH)
            slope = below * near / self._down(self._network.layers[number - 1])
            self.biases[number - 1].move(slope.sum(axis=0), step, share)

    def network(self) -> IntegerNetwork:
        """Return the network as it is now."""
        layers = []
        for layer, weights, bias in zip(self._network.layers, self.weights, self.biases, strict=True):
            whole = (
                layer.weights if layer.signs_only else sparse.csc_array(weights.rounded().astype(np.int64))
            )
            layers.append(IntegerLayer(whole, bias.rounded().astype(np.int64), layer.shift, layer.signs_only))
        direct = None if self.direct is None else sparse.csc_array(self.direct.rounded().astype(np.int64))
        scale = self._scale.astype(np.float64)
        return replace(self._network, layers=tuple(layers), direct=direct, output_scale=scale)

    @staticmethod
    def _down(layer: IntegerLayer) -> np.ndarray:
        return (2.0**layer.shift).astype(np.float32)


def _weights(whole: np.ndarray, held: np.ndarray, grid: Grid) -> _Part:
    largest = np.float32(grid.largest)
    values, mask = whole.astype(np.float32), held.astype(np.float32)
    return _Part(values, mask, RATE * largest, largest, grid.nearest)


def _biases(whole: np.ndarray, held: np.ndarray, width: np.ndarray, bits: int) -> _Part:
    """Return biases as multiples of what their bits allow; they move by shares of what neurons see."""
    unit = bias_unit(whole.astype(np.float64), bits).astype(np.float32)
    largest = unit * np.float32(2.0 ** (bits - 1) - 1)
    size = np.maximum(width, 1.0).astype(np.float32)
    values, mask = whole.astype(np.float32), held.astype(np.float32)
    return _Part(values, mask, RATE * size, largest, lambda numbers: np.rint(numbers / unit) * unit)
