"""Where the weights of a network can be: one long vector of places, block after block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """The places of all weights of a network in one long vector.

    A block for every layer, and one for direct connections from inputs to outputs. Within a block each
    neuron's inputs are together and its bias is the last.

    Attributes
    ----------
    widths : tuple of int
        Inputs, hidden layers, outputs.
    bias : bool
        Whether neurons have biases.
    fused : bool
        Whether the last hidden layer is summed with signs that are no weights, so that only a bias is left in
        the last layer. So are networks of one output.
    direct : bool
        Whether inputs may be connected to outputs directly.
    """

    widths: tuple[int, ...]
    bias: bool = True
    fused: bool = False
    direct: bool = False

    @property
    def layers(self) -> int:
        """Layers, the last of which may hold a bias only."""
        return len(self.widths) - 1

    @property
    def blocks(self) -> int:
        """Layers, and the direct connections where there are any."""
        return self.layers + int(self.direct)

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Weights that each neuron of a block can have, its bias not counted."""
        inner = self.widths[:-1]
        chained = (*inner[:-1], 0) if self.fused else inner
        return (*chained, self.widths[0]) if self.direct else chained

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The neurons of each block, and the places that each of them has."""
        neurons = self.widths[1:] + self.widths[-1:] * int(self.direct)
        biases = (int(self.bias),) * self.layers + (0,) * int(self.direct)
        return tuple(
            (count, inputs + bias) for count, inputs, bias in zip(neurons, self.inputs, biases, strict=True)
        )

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each block begins, and where the last one ends."""
        ends = [0]
        for neurons, places in self.shapes:
            ends.append(ends[-1] + neurons * places)
        return tuple(ends)

    @property
    def size(self) -> int:
        """All weights there could be."""
        return self.offsets[-1]

    def split(self, indices: Tensor) -> list[slice]:
        """Say which of some ascending positions belong to each block."""
        cuts = torch.searchsorted(indices, torch.tensor(self.offsets)).tolist()
        return [slice(first, last) for first, last in pairwise(cuts)]

    def pairs(self, indices: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Give the neurons and features of positions that belong to one block; a bias is the last feature."""
        places = max(1, self.shapes[block][1])
        local = indices - self.offsets[block]
        return local // places, local % places

    def position(self, block: int, neuron: Tensor, feature: Tensor) -> Tensor:
        """Give the positions of some neurons' weights for some features."""
        return self.offsets[block] + neuron * self.shapes[block][1] + feature

    def biases(self, block: int, neuron: Tensor) -> Tensor:
        """Give the positions of some neurons' biases."""
        return self.position(block, neuron, torch.full_like(neuron, self.inputs[block]))

    @cached_property
    def output_biases(self) -> Tensor:
        """The positions of the outputs' biases."""
        return self.biases(self.layers - 1, torch.arange(self.widths[-1] if self.bias else 0))

    def is_bias(self, indices: Tensor) -> Tensor:  # bool
        """Say which positions are biases."""
        out = torch.zeros(indices.numel(), dtype=torch.bool)
        if self.bias:
            for block, part in enumerate(self.split(indices)[: self.layers]):
                out[part] = self.pairs(indices[part], block)[1] == self.inputs[block]
        return out


def spread_evenly(layout: Layout, count: int) -> list[int]:
    """Share a number of weights among layers by the sum of their sides, none above its size.

    Small layers are then denser than large ones, so that every neuron has some weights on both sides (the
    Erdos-Renyi initialisation of sparse evolutionary training). Direct connections get none.
    """
    shapes = layout.shapes[: layout.layers]
    sizes = [neurons * places for neurons, places in shapes]
    shares = [neurons + places if neurons * places else 0 for neurons, places in shapes]
    given, open_layers = [0] * len(sizes), set(range(len(sizes)))
    left = min(count, sum(sizes))
    while left > 0 and open_layers:
        whole = sum(shares[layer] for layer in open_layers)
        wish = {layer: given[layer] + math.floor(left * shares[layer] / whole) for layer in open_layers}
        full = {layer for layer in open_layers if wish[layer] >= sizes[layer]}
        for layer in full or open_layers:
            given[layer] = min(sizes[layer], wish[layer])
        left = min(count, sum(sizes)) - sum(given)
        if not full:
            break
        open_layers -= full
    for layer in sorted(open_layers, key=lambda layer: -sizes[layer]):
        extra = min(left, sizes[layer] - given[layer])
        given[layer], left = given[layer] + extra, left - extra
    return given
