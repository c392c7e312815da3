"""An integer network as one stream of bits: gaps between weights by Rice codes, weights at the bits they
need.

The weights of a layer are taken neuron by neuron; every neuron has a place for its bias, the first, and one
for each input. Before each entry stands the number of places left out since the last one: as many ones as
2^k goes into it, a zero, and k bits for the rest. The entry follows: a bias or a weight. A last gap leads to
the end of the layer. Where neurons have different shifts, each neuron ends with its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from thresher.integer import IntegerNetwork
from thresher.integer.ranges import signed_bits


class BitWriter:
    """Bits one after the other, the highest of each number first.

    Examples
    --------
    >>> writer = BitWriter()
    >>> writer.number(5, 3)
    >>> writer.gap(6, 2)
    >>> writer.content().hex()
    'b4'
    """

    def __init__(self) -> None:
        self._bits: list[int] = []

    def number(self, value: int, bits: int) -> None:
        """Append a number of 0 or more."""
        self._bits += [value >> place & 1 for place in range(bits - 1, -1, -1)]

    def gap(self, value: int, rice: int) -> None:
        """Append a gap by its Rice code."""
        self._bits += [1] * (value >> rice) + [0]
        self.number(value & ((1 << rice) - 1), rice)

    def content(self) -> bytes:
        """Return the bits as bytes, zeros at the end."""
        return np.packbits(np.array(self._bits, dtype=np.uint8)).tobytes()


@dataclass(frozen=True)
class Section:
    """One layer, or the direct connections, of a stream: what a reader must know.

    Attributes
    ----------
    inputs, neurons : int
    has_bias : bool
        Whether the first place of each neuron is that of its bias.
    rice : int
        Bits of a gap's rest.
    largest : int
        Weights are coded from minus this to this, without zero; as powers of two, this is the largest of
        them.
    powers : bool
    weight_bits : int
    bias_bits, bias_shift : int
        Biases are signed numbers of so many bits, shifted up.
    shift : int
        The least shift of a neuron.
    shift_bits : int
        Bits of what a neuron's shift exceeds that by; 0 where all are equal.
    farthest : int
        The largest place that a reader reaches, counted from the start of a neuron.
    """

    inputs: int
    neurons: int
    has_bias: bool
    rice: int
    largest: int
    powers: bool
    weight_bits: int
    bias_bits: int
    bias_shift: int
    shift: int
    shift_bits: int
    farthest: int

    @property
    def width(self) -> int:
        """Places of a neuron."""
        return self.inputs + self.has_bias


def bit_tables(network: IntegerNetwork, all_inputs: bool) -> tuple[bytes, list[Section], Section | None]:
    """Return the stream of a network, its layers, and direct connections, which come before the last.

    Parameters
    ----------
    network : IntegerNetwork
    all_inputs : bool
        Whether the first layer and direct connections count all columns rather than those in use.
    """
    writer = BitWriter()
    index = network.used if all_inputs else np.arange(network.used.size)
    columns = network.columns if all_inputs else network.used.size
    sections: list[Section] = []
    direct = None
    for number, layer in enumerate(network.layers):
        if number == len(network.layers) - 1 and network.direct is not None:
            nothing = np.zeros(network.outputs, dtype=np.int64)
            direct = _section(writer, network.direct, index, columns, nothing, nothing, network)
        first = number == 0
        inputs = columns if first else layer.inputs
        places = index if first else np.arange(layer.inputs)
        sections.append(_section(writer, layer.weights, places, inputs, layer.bias, layer.shift, network))
    return writer.content(), sections, direct


def _section(
    writer: BitWriter,
    weights: sparse.csc_array,
    index: np.ndarray,
    inputs: int,
    bias: np.ndarray,
    shift: np.ndarray,
    network: IntegerNetwork,
) -> Section:
    """Append one layer."""
    has_bias = bool(bias.any())
    places, values = _entries(weights, index, inputs, bias)
    gaps = np.diff(np.concatenate([[-1], places, [bias.size * (inputs + has_bias)]])) - 1
    rice = min(range(16), key=lambda k: int((gaps >> k).sum()) + k * gaps.size)
    powers = network.weight_kind == "pow2" and bool((np.bitwise_count(np.abs(weights.data)) == 1).all())
    largest = int(np.abs(weights.data).max(initial=1))
    weight_bits = 1 + (largest.bit_length() - 1).bit_length() if powers else (2 * largest - 1).bit_length()
    bias_shift = _common_shift(bias)
    bias_bits = signed_bits(int(bias.min()) >> bias_shift, int(bias.max()) >> bias_shift) if has_bias else 0
    least = int(shift.min())
    shift_bits = int(shift.max() - least).bit_length()
    farthest = place = 0
    entries = iter(zip(places.tolist(), values, strict=True))
    entry = next(entries, None)
    gap = iter(gaps.tolist())
    step = next(gap)
    writer.gap(step, rice)
    place = farthest = step
    width = inputs + has_bias
    for neuron in range(bias.size):
        while place < width:
            assert entry is not None
            value = entry[1]
            if has_bias and place == 0:
                writer.number((value >> bias_shift) + (1 << bias_bits - 1), bias_bits)
            elif powers:
                writer.number((value < 0) << weight_bits - 1 | abs(value).bit_length() - 1, weight_bits)
            else:
                writer.number(value + largest - (value > 0), weight_bits)
            entry = next(entries, None)
            step = next(gap)
            writer.gap(step, rice)
            place += 1 + step
            farthest = max(farthest, place)
        place -= width
        writer.number(int(shift[neuron]) - least, shift_bits)
    return Section(
        inputs,
        int(bias.size),
        has_bias,
        rice,
        largest,
        powers,
        weight_bits,
        bias_bits,
        bias_shift,
        least,
        shift_bits,
        farthest,
    )


def _entries(
    weights: sparse.csc_array, index: np.ndarray, inputs: int, bias: np.ndarray
) -> tuple[np.ndarray, list[int]]:
    """Return the places of weights and biases in one row of all neurons, ascending, and their values."""
    has_bias = bool(bias.any())
    width = inputs + has_bias
    found = weights.tocoo()
    places = found.col.astype(np.int64) * width + index[found.row] + has_bias
    biased = np.flatnonzero(bias)
    places = np.concatenate([places, biased * width])
    values = np.concatenate([found.data, bias[biased]])
    order = np.argsort(places)
    return places[order], values[order].tolist()


def _common_shift(values: np.ndarray) -> int:
    """Return the power of two that all values are multiples of."""
    joined = int(np.bitwise_or.reduce(values, initial=0))
    return (joined & -joined).bit_length() - 1 if joined else 0
