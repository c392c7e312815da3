"""Between which numbers every sum of an integer network lies, proved from the ranges of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from thresher.errors import ParameterError

if TYPE_CHECKING:
    from thresher.integer.network import IntegerNetwork

# Sums are computed in signed numbers of this many bits.
WIDEST = 64


class LayerRange(NamedTuple):
    """What the sums of a layer can be, in whatever order they are added up.

    Attributes
    ----------
    low, high : ndarray of shape (neurons,), of Python's whole numbers
        Between these each whole sum lies.
    bits : int
        Bits of a signed number that holds every sum and every part of one.
    activation : ndarray of shape (neurons,)
        The largest that each neuron can be afterwards; the larger side of the outputs in the last layer.
    saturates : bool
        Whether some neuron can exceed the largest activation and is kept to it.
    """

    low: np.ndarray
    high: np.ndarray
    bits: int
    activation: np.ndarray
    saturates: bool


class Ranges(NamedTuple):
    """The ranges of all layers, from the inputs to the outputs."""

    layers: tuple[LayerRange, ...]


def proved(network: IntegerNetwork) -> Ranges:
    """Return the ranges of all sums, for any codes whatever.

    Raises
    ------
    ParameterError
        When a sum could exceed 64 bits.
    """
    columns = network.used.size
    code_low, code_high = (np.full(columns, end, dtype=object) for end in network.coding.range)
    low, high = code_low, code_high
    found = []
    for number, layer in enumerate(network.layers):
        last = number == len(network.layers) - 1
        below, above = _products(layer.weights, low, high)
        if last:
            below, above = (side * 2**network.hidden_shift for side in (below, above))
            if network.direct is not None:
                more = _products(network.direct, code_low, code_high)
                below, above = (
                    side + part * 2**network.direct_shift
                    for side, part in zip((below, above), more, strict=True)
                )
        bias = np.array(layer.bias.tolist(), dtype=object)
        # Any part of a sum lies between all that can pull it down and all that can push it up.
        part_low, part_high = below + np.minimum(bias, 0), above + np.maximum(bias, 0)
        bits = signed_bits(min(part_low, default=0), max(part_high, default=0))
        if bits > WIDEST:
            raise ParameterError(
                f"sums of layer {number} need {bits} bits, and {WIDEST} is the most: use fewer bits for "
                "weights, activations or inputs."
            )
        whole_low, whole_high = below + bias, above + bias
        shifted = np.array(
            [max(0, int(top)) >> int(by) for top, by in zip(whole_high, layer.shift, strict=True)],
            dtype=object,
        )
        saturates = not last and bool((shifted > network.activation_limit).any())
        activation = np.minimum(shifted, network.activation_limit)
        found.append(LayerRange(whole_low, whole_high, bits, whole_high if last else activation, saturates))
        low, high = np.zeros(layer.neurons, dtype=object), activation
    return Ranges(tuple(found))


def signed_bits(low: int, high: int) -> int:
    """Count the bits of a signed number that holds both.

    Examples
    --------
    >>> signed_bits(-128, 127), signed_bits(0, 128), signed_bits(0, 0)
    (8, 9, 1)
    """
    return 1 + max(int(high).bit_length(), (-int(low) - 1).bit_length() if low < 0 else 0)


def _products(weights: sparse.csc_array, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of what each weighted input can be at least (and at most), zero included."""
    below, above = np.zeros(weights.shape[1], dtype=object), np.zeros(weights.shape[1], dtype=object)
    entries = weights.tocoo()
    for row, column, weight in zip(
        entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True
    ):
        ends = (weight * int(low[row]), weight * int(high[row]))
        below[column] += min(*ends, 0)
        above[column] += max(*ends, 0)
    return below, above
