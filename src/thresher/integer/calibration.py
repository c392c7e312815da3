"""What calibration rows tell: codes, what every sum was before, and which of its errors count.

An error of a sum counts where the neuron is on, and by how much it moves the answer: for classes an output
counts
``p (1 - p)``, since a class that is certain stays so, and what a neuron counts follows from what it feeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from thresher.integer.coding import InputCoding

if TYPE_CHECKING:
    from thresher.integer.quantise import Settings

# What a row counts where it could do nothing: a neuron that is off, a class that is certain.
FLOOR = 0.02

# Pull of a refit towards the weights as they were, as a share of the mean curvature.
PULL = 1e-3


class Whole(NamedTuple):
    """One neuron in whole numbers; its bias is a multiple of `bias_unit`."""

    places: np.ndarray
    weights: np.ndarray
    bias: int
    bias_unit: int


@dataclass(frozen=True, eq=False)
class Neuron:
    """One neuron to be rounded: its weights in steps of its inputs, the bias last, and their curvature."""

    places: np.ndarray
    weights: np.ndarray
    curvature: np.ndarray
    has_bias: bool

    @property
    def largest(self) -> float:
        """The largest weight, one that stands in for it where there is none."""
        own = np.abs(self.weights[: self.places.size])
        most = float(own.max(initial=0.0))
        return most if most > 0 else max(float(np.abs(self.weights).max(initial=0.0)) / 64, 1e-30)

    def steps(self, trial: np.ndarray, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
        """Return the steps of all weights for every step of the neuron; what may be any whole number."""
        steps = np.repeat(trial[:, None], self.weights.size, axis=1)
        free = np.zeros(self.weights.size, dtype=bool)
        if self.has_bias:
            steps[:, -1] *= bias_unit(self.weights[-1] / trial, settings.bias_bits)
            free[-1] = True
        return steps, free

    def whole(self, found: np.ndarray, step: float, settings: Settings) -> Whole:
        """Return the neuron in whole numbers."""
        if not self.has_bias:
            return Whole(self.places, found.astype(np.int64), 0, 1)
        unit = int(bias_unit(self.weights[-1:] / step, settings.bias_bits)[0])
        return Whole(self.places, found[:-1].astype(np.int64), int(found[-1]) * unit, unit)


def bias_unit(biases: np.ndarray, bits: int) -> np.ndarray:
    """Return the least power of two of which each bias is a multiple of `bits` bits, nearly."""
    needed = np.log2(np.maximum(np.abs(biases), 1.0) / (2.0 ** (bits - 1) - 1))
    return 2.0 ** np.maximum(np.ceil(needed), 0.0)


@dataclass(frozen=True, eq=False)
class LayerTarget:
    """A layer as it was, dense between what takes part, and on calibration rows what it did.

    Attributes
    ----------
    weights : ndarray of shape (inputs, neurons)
    bias : ndarray of shape (neurons,)
    signs_only : bool
    sums : ndarray of shape (n, neurons)
        Before the ReLU.
    counts : ndarray of shape (n, neurons)
        What an error of each sum counts.
    shares_scale : bool
        Whether outputs are compared with each other.
    """

    weights: np.ndarray
    bias: np.ndarray
    signs_only: bool
    sums: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    counts: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    shares_scale: bool = False

    @property
    def neurons(self) -> int:
        """How many numbers go out."""
        return int(self.bias.size)

    def neuron(self, number: int, activations: np.ndarray, worth: np.ndarray, *, refit: bool) -> Neuron:
        """Return one neuron in steps of what comes in; refitted, where asked, to what its sums were."""
        places = np.flatnonzero(self.weights[:, number])
        has_bias = bool(self.bias[number])
        weights = self.weights[places, number] * worth[places]
        moved = self.bias[number]
        rows = activations[:, places]
        if has_bias:
            rows = np.column_stack([rows, np.ones(len(rows))])
            weights = np.append(weights, moved)
        counted = rows.T * self.counts[:, number]
        curvature = counted @ rows
        if has_bias:
            # Codes may begin elsewhere than the values they stand for.
            weights[-1] += np.mean(self.sums[:, number] - rows @ weights)
        if refit:
            weights = refitted(curvature, counted @ (self.sums[:, number] - rows @ weights), weights)
        return Neuron(places, weights, curvature, has_bias)


def refitted(curvature: np.ndarray, pull: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weights moved to where they fit best, within reach of where they were."""
    if not weights.size:
        return weights
    ridge = PULL * np.diag(np.diag(curvature) + 1e-9 * max(np.trace(curvature), 1e-300))
    return weights + np.linalg.lstsq(curvature + ridge, pull, rcond=1e-12)[0]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Codes of the calibration rows, and every layer with what it did on them.

    Attributes
    ----------
    codes : ndarray of shape (n, inputs in use), float64
    coding : InputCoding
    targets : list of LayerTarget
    direct : ndarray of shape (inputs in use, outputs), or None
    link : str
    classifies : bool
    """

    codes: np.ndarray
    coding: InputCoding
    targets: list[LayerTarget]
    direct: np.ndarray | None
    link: str
    classifies: bool

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        coding: InputCoding,
        layers: list[LayerTarget],
        direct: np.ndarray | None,
        link: str,
        classifies: bool,
    ) -> Calibration:
        """Run the layers on rows of the inputs in use."""
        sums, inputs = [], values
        for layer in layers:
            sums.append(inputs @ layer.weights + layer.bias)
            inputs = np.maximum(sums[-1], 0.0)
        if direct is not None:
            sums[-1] = sums[-1] + values @ direct
        counts = [_counts_of_outputs(sums[-1], link)]
        for layer, own in zip(layers[:0:-1], sums[-2::-1], strict=True):
            felt = counts[0] @ (layer.weights.T**2)
            counts.insert(0, felt * np.where(own > 0, 1.0, FLOOR))
        targets = [
            LayerTarget(layer.weights, layer.bias, layer.signs_only, own, counted, classifies)
            for layer, own, counted in zip(layers, sums, counts, strict=True)
        ]
        return cls(coding.codes(values).astype(np.float64), coding, targets, direct, link, classifies)


def _counts_of_outputs(outputs: np.ndarray, link: str) -> np.ndarray:
    if link == "softmax":
        shares = softmax(outputs, axis=1)
    elif link == "logistic":
        shares = expit(outputs)
    else:
        return np.ones_like(outputs)
    return shares * (1.0 - shares) + FLOOR
