"""A layer while it is being rounded: whole numbers, and what one step of each is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from thresher.integer.calibration import Whole
from thresher.integer.network import IntegerLayer


@dataclass(frozen=True, eq=False)
class WholeLayer:
    """Weights and biases as whole numbers.

    Attributes
    ----------
    weights : ndarray of shape (inputs, neurons)
    bias : ndarray of shape (neurons,)
    shift : ndarray of shape (neurons,)
    step : ndarray of shape (neurons,)
        What one step of each sum is worth.
    signs_only : bool
    direct : ndarray of shape (columns, outputs), optional
    hidden_shift, direct_shift : int
    """

    weights: np.ndarray
    bias: np.ndarray
    shift: np.ndarray
    step: np.ndarray
    signs_only: bool = False
    direct: sparse.csc_array | None = None
    hidden_shift: int = 0
    direct_shift: int = 0

    @classmethod
    def of(cls, columns: list[Whole], inputs: int, shift: np.ndarray, step: np.ndarray) -> WholeLayer:
        """Make a hidden layer of the places, weights and bias of every neuron.

        A bias takes in half a step of the shift, so that shifting down rounds to the nearest.
        """
        weights = np.zeros((inputs, len(columns)), dtype=np.int64)
        bias = np.zeros(len(columns), dtype=np.int64)
        for number, neuron in enumerate(columns):
            weights[neuron.places, number] = neuron.weights
            half = (1 << int(shift[number])) >> 1
            bias[number] = neuron.bias + half // neuron.bias_unit * neuron.bias_unit if neuron.bias else 0
        return cls(weights, bias, shift, step)

    @property
    def worth(self) -> np.ndarray:
        """What one step of each activation is worth."""
        return self.step * 2.0**self.shift

    def activations(self, values: np.ndarray, largest: int) -> np.ndarray:
        """Return what the layer makes of whole numbers (n, inputs), in float64, which holds them exactly."""
        sums = (values @ self.weights.astype(np.float64) + self.bias) / 2.0**self.shift
        return np.clip(np.floor(sums), 0, largest)

    def integer(self) -> IntegerLayer:
        """Return the layer as an integer network holds it."""
        return IntegerLayer(sparse.csc_array(self.weights), self.bias, self.shift, self.signs_only)
