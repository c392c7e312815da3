"""Networks of any depth and number of outputs, as sparse training sees them: where weights can be, products
with those that are held, gradients of all the others in blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from thresher.objective.design import Design
from thresher.objective.losses import Loss

# A matrix is multiplied densely up to this size, or where it holds one number in so many.
DENSE_SIZE, DENSE_SHARE = 2**18, 16
# Numbers in the largest temporary array of a product over pairs.
PAIR_NUMBERS = 2**22


@dataclass(frozen=True)
class Layout:
    """The places of all weights of a network in one long vector.

    Matrices follow each other; within one, each neuron's inputs are together and its bias is the last.

    Attributes
    ----------
    widths : tuple of int
        Inputs, hidden layers, outputs.
    bias : bool
        Whether neurons have biases.
    fused : bool
        Whether the last hidden layer is summed with signs that are no weights; only a bias is left there.
    """

    widths: tuple[int, ...]
    bias: bool = True
    fused: bool = False

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Weights that each neuron of a layer can have, its bias not counted."""
        inner = self.widths[:-1]
        return (*inner[:-1], 0) if self.fused else inner

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The neurons of each layer, and the places that each of them has."""
        return tuple(
            (neurons, inputs + int(self.bias))
            for inputs, neurons in zip(self.inputs, self.widths[1:], strict=True)
        )

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each layer begins, and where the last one ends."""
        ends = [0]
        for neurons, places in self.shapes:
            ends.append(ends[-1] + neurons * places)
        return tuple(ends)

    @property
    def size(self) -> int:
        """All weights there could be."""
        return self.offsets[-1]

    @property
    def layers(self) -> int:
        """Matrices, the last of which may hold a bias only."""
        return len(self.shapes)

    def split(self, indices: Tensor) -> list[slice]:
        """Say which of some ascending positions belong to each layer."""
        cuts = torch.searchsorted(indices, torch.tensor(self.offsets)).tolist()
        return [slice(first, last) for first, last in pairwise(cuts)]

    def pairs(self, indices: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Give the neurons and features of positions that belong to one layer; a bias is the last feature."""
        places = self.shapes[layer][1]
        local = indices - self.offsets[layer]
        return local // places, local % places


class Part:
    """The weights that are held of one layer, ready to be multiplied with."""

    def __init__(self, layout: Layout, layer: int, indices: Tensor, factor: Tensor | None) -> None:
        self.inputs, self.neurons = layout.inputs[layer], layout.widths[layer + 1]
        neuron, feature = layout.pairs(indices, layer)
        inside = feature < self.inputs
        self.inside, self.outside = inside.nonzero().flatten(), (~inside).nonzero().flatten()
        self.biased = neuron[self.outside]
        self.neuron, feature = neuron[self.inside], feature[self.inside]
        self.factor = None if factor is None else factor[feature]
        used, place = torch.unique(feature, return_inverse=True)
        # Gathering most columns costs more than multiplying with all of them.
        self.used = used if 2 * used.numel() < self.inputs else None
        self.place = feature if self.used is None else place
        self.width = self.inputs if self.used is None else used.numel()
        size = self.width * self.neurons
        self.matrix: Tensor | None = None
        self.dense = size <= max(DENSE_SIZE, DENSE_SHARE * self.neuron.numel())
        if self.dense:
            self.flat = self.place * self.neurons + self.neuron
        else:
            counts = torch.bincount(self.neuron, minlength=self.neurons)
            self.starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])

    def place_of(self, place: Tensor) -> Tensor:
        """Give the inputs that some used columns stand for."""
        return place if self.used is None else self.used[place]

    def read(self, fed: Tensor) -> Tensor:  # (rows, width)
        """Take the columns that are used."""
        return fed[:, : self.width] if self.used is None else fed[:, self.used]

    def forward(self, values: Tensor, fed: Tensor) -> Tensor:  # (rows, neurons)
        """Multiply what the layer is fed with the weights and add the biases."""
        columns = self.read(fed)
        held = values[self.inside] if self.factor is None else values[self.inside] * self.factor
        if self.dense:
            self.matrix = self._dense(held)
            out = columns @ self.matrix
        else:
            with warnings.catch_warnings():
                # torch says once that its sparse matrices are young.
                warnings.simplefilter("ignore", UserWarning)
                self.matrix = torch.sparse_csr_tensor(
                    self.starts, self.place, held, (self.neurons, self.width), check_invariants=False
                )
            out = (self.matrix @ columns.T).T
        if self.outside.numel():
            out[:, self.biased] += values[self.outside]
        return out

    def _dense(self, held: Tensor) -> Tensor:
        """Write the weights into a matrix that is used again and again; its other entries stay zero."""
        if self.matrix is None:
            self.matrix = torch.zeros(self.width, self.neurons, dtype=held.dtype)
        self.matrix.view(-1)[self.flat] = held
        return self.matrix

    def gradient(self, fed: Tensor, delta: Tensor) -> Tensor:  # (held,)
        """Give the derivative at every weight held, given those with respect to the neurons' sums."""
        columns = self.read(fed)
        out = torch.empty(self.inside.numel() + self.outside.numel(), dtype=delta.dtype)
        if self.dense:
            inner = (columns.T @ delta).view(-1)[self.flat]
        else:
            inner = torch.empty(self.inside.numel(), dtype=delta.dtype)
            step = max(1, PAIR_NUMBERS // delta.shape[0])
            for first in range(0, inner.numel(), step):
                part = slice(first, first + step)
                inner[part] = (columns[:, self.place[part]] * delta[:, self.neuron[part]]).sum(0)
        out[self.inside] = inner if self.factor is None else inner * self.factor
        if self.outside.numel():
            out[self.outside] = delta.sum(0)[self.biased]
        return out

    def derivatives(self, fed: Tensor, delta: Tensor) -> Tensor:  # (rows, held)
        """Give the derivative at every weight held for each row by itself."""
        out = torch.empty(delta.shape[0], self.inside.numel() + self.outside.numel(), dtype=delta.dtype)
        inner = self.read(fed)[:, self.place] * delta[:, self.neuron]
        out[:, self.inside] = inner if self.factor is None else inner * self.factor
        out[:, self.outside] = delta[:, self.biased]
        return out

    def back(self, delta: Tensor) -> Tensor:  # (rows, inputs)
        """Give the derivative with respect to the activations that came in; `forward` comes first."""
        assert self.matrix is not None
        turned = self.matrix.T if self.dense else self.matrix.to_sparse_coo().T
        out = delta @ turned if self.dense else (turned @ delta.T).T
        if self.used is None:
            return out
        whole = torch.zeros(delta.shape[0], self.inputs, dtype=delta.dtype)
        whole[:, self.used] = out
        return whole


class Held:
    """The weights held at some moment, as a network that can be run forwards and backwards.

    Parameters
    ----------
    layout : Layout
    indices : int64 tensor, ascending
        Where weights are held.
    values : tensor
        What they are; may be changed in place.
    factor : tensor of shape (inputs,), optional
        What raw inputs are multiplied with.
    signs : tensor of shape (neurons,), optional
        How the last hidden layer of a fused network is summed.
    """

    def __init__(
        self,
        layout: Layout,
        indices: Tensor,
        values: Tensor,
        factor: Tensor | None = None,
        signs: Tensor | None = None,
    ) -> None:
        self.layout, self.indices, self.values = layout, indices, values
        self.signs = signs
        self.slices = layout.split(indices)
        self.parts = [
            Part(layout, layer, indices[part], factor if layer == 0 else None)
            for layer, part in enumerate(self.slices)
        ]

    def forward(self, X: Tensor) -> list[Tensor]:
        """Give what every layer is fed, (rows, its inputs), and the output last."""
        fed = [X]
        for layer, (part, piece) in enumerate(zip(self.parts, self.slices, strict=True)):
            summed = part.forward(self.values[piece], fed[-1])
            if self.signs is not None and layer == len(self.parts) - 1:
                summed += (fed[-1] @ self.signs)[:, None]
            fed.append(summed if layer == len(self.parts) - 1 else summed.relu_())
        return fed

    def gradient(self, fed: list[Tensor], slope: Tensor) -> Tensor:  # (held,)
        """Give the derivative at every weight held, from what `forward` gave and the slope of the loss."""
        out = torch.empty_like(self.values)
        for layer, delta in self.deltas(fed, slope):
            out[self.slices[layer]] = self.parts[layer].gradient(fed[layer], delta)
        return out

    def deltas(self, fed: list[Tensor], slope: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Give each layer, the last first, and the derivatives with respect to its neurons' sums."""
        delta = slope
        for layer in range(len(self.parts) - 1, -1, -1):
            yield layer, delta
            if layer:
                fused = self.signs is not None and layer == len(self.parts) - 1
                delta = delta * self.signs if fused else self.parts[layer].back(delta)  # type: ignore[operator]
                delta *= fed[layer] > 0

    def alive(self) -> Tensor:  # (held,), bool
        """Say which weights are on a way from an input (or a bias) to an output."""
        layout = self.layout
        placed = [layout.pairs(self.indices[piece], layer) for layer, piece in enumerate(self.slices)]
        awake = torch.ones(layout.widths[0], dtype=torch.bool)
        into = []
        for layer, (neuron, feature) in enumerate(placed):
            # A bias reads a constant, which is always awake.
            source = torch.cat([awake[: layout.inputs[layer]], torch.ones(1, dtype=torch.bool)])[feature]
            into.append(source)
            awake = torch.zeros(layout.widths[layer + 1], dtype=torch.bool)
            awake[neuron[source]] = True
        out: list[Tensor] = []
        wanted = torch.ones(layout.widths[-1], dtype=torch.bool)
        for layer in range(layout.layers - 1, -1, -1):
            neuron, feature = placed[layer]
            out.insert(0, wanted[neuron])
            if layer == layout.layers - 1 and layout.fused:
                wanted = torch.ones(layout.widths[-2], dtype=torch.bool)
                continue
            used = feature[wanted[neuron]]
            wanted = torch.zeros(layout.widths[layer], dtype=torch.bool)
            wanted[used[used < layout.inputs[layer]]] = True
        return torch.cat([one & two for one, two in zip(into, out, strict=True)])


@dataclass(frozen=True, eq=False)
class LayeredObjective:
    """A loss of a layered network on some data, plus an L2 penalty; the network itself is given each time.

    Attributes
    ----------
    design : Design
        The data; biases are the layout's business, not the design's.
    layout : Layout
    y : tensor of shape (rows, outputs)
        In any precision: a part is brought to that of the design when it is read.
    loss : Loss
    weight : tensor of shape (rows,), optional
        Sample weights.
    alpha : float
        L2 penalty.
    signs : tensor of shape (neurons,), optional
        How the last hidden layer of a fused network is summed.
    memory_limit : int
        Bytes that blocks of gradients may take.
    """

    design: Design
    layout: Layout
    y: Tensor
    loss: Loss
    weight: Tensor | None = None
    alpha: float = 0.0
    signs: Tensor | None = None
    memory_limit: int = 64 * 2**20

    @property
    def size(self) -> int:
        """All weights there could be."""
        return self.layout.size

    @property
    def total(self) -> float:
        """What all sample weights add up to."""
        return float(self.design.rows if self.weight is None else self.weight.double().sum())

    def hold(self, indices: Tensor, values: Tensor) -> Held:
        """Make a network of some weights."""
        return Held(self.layout, indices, values, self.design.factor, self.signs)

    def read(self, rows: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """Read some rows, unscaled, with their targets and weights."""
        places = torch.from_numpy(rows)
        dtype = self.design.dtype
        X = self.design.read(rows)
        return X, self.y[places].to(dtype), None if self.weight is None else self.weight[places].to(dtype)

    def slope(self, output: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Give the derivative of the mean loss over some rows with respect to the output."""
        slope = self.loss.slope(output, y)
        if weight is None:
            return slope.div_(len(y))
        return slope.mul_((weight / weight.sum().clamp(min=1e-30))[:, None])

    def value(self, held: Held) -> float:
        """Give the objective on all rows."""
        total = 0.5 * self.alpha * float(held.values.double().square().sum())
        for start, stop, chunk in self.design.chunks(max(self.layout.widths[1:])):
            weight = None if self.weight is None else self.weight[start:stop]
            output = held.forward(chunk)[-1]
            total += self.loss.value(output, self.y[start:stop].to(output.dtype), weight)
        return total

    def gradient_blocks(
        self, held: Held, rows: tuple[Tensor, Tensor, Tensor | None]
    ) -> Iterator[tuple[int, Tensor]]:
        """Give the derivative of the mean loss over some rows at *every* place, zero where a weight is held.

        Blocks are (position, derivatives), and no larger than the memory limit allows.
        """
        X, y, weight = rows
        fed = held.forward(X)
        for layer, delta in held.deltas(fed, self.slope(fed[-1], y, weight)):
            yield from self.blocks(layer, fed[layer], delta, held.indices[held.slices[layer]])

    def blocks(
        self, layer: int, fed: Tensor, delta: Tensor, occupied: Tensor
    ) -> Iterator[tuple[int, Tensor]]:
        """Give the derivatives of one layer from what it is fed and its neurons' deltas; 0 where occupied."""
        neurons, places = self.layout.shapes[layer]
        inputs, offset = self.layout.inputs[layer], self.layout.offsets[layer]
        occupied = occupied - offset
        number = delta.element_size()
        step = max(1, min(neurons, self.memory_limit // (8 * number * max(1, places))))
        for first in range(0, neurons, step):
            last = min(first + step, neurons)
            block = torch.empty(last - first, places, dtype=delta.dtype)
            if inputs:
                torch.mm(delta[:, first:last].T, fed[:, :inputs], out=block[:, :inputs])
                if layer == 0 and self.design.factor is not None:
                    block[:, :inputs].mul_(self.design.factor[:inputs])
            if self.layout.bias:
                block[:, -1] = delta[:, first:last].sum(0)
            flat = block.view(-1)
            here = occupied[(occupied >= first * places) & (occupied < last * places)]
            flat[here - first * places] = 0
            yield offset + first * places, flat


def erdos_renyi(layout: Layout, count: int) -> list[int]:
    """Share a number of weights among layers by the sum of their sides, none above its size.

    Small layers are then denser than large ones, so that every neuron has some weights on both sides.
    """
    sizes = [neurons * places for neurons, places in layout.shapes]
    shares = [neurons + places if neurons * places else 0 for neurons, places in layout.shapes]
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
