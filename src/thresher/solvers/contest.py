"""Who holds the budget's places where weights come a block at a time: what is held, and the block.

The paper's method for several outputs ranks no weight against all others. Its blocks come neuron by neuron:
the weights that a neuron reads inputs by, then those that outputs read it by. After each block the weights
held and those of the block compete for the places, by what a count sketch estimates at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.linear.sketch import CountSketch, Hashed
from thresher.linear.vector import SparseVector
from thresher.objective.layout import Layout

# Places that are hashed at once, which takes some hundred bytes for each.
PIECE = 2**16


@dataclass(frozen=True)
class ByNeuron:
    """The places of a network with one hidden layer, numbered neuron by neuron.

    For each hidden neuron come the places of what it reads, its bias the last, then those of the outputs that
    read it. The biases of the outputs are the last of all.

    Attributes
    ----------
    layout : Layout
    """

    layout: Layout

    @property
    def reads(self) -> int:
        """Places of what a hidden neuron reads."""
        return self.layout.shapes[0][1]

    @property
    def each(self) -> int:
        """Places of a hidden neuron."""
        return self.reads + self.layout.widths[-1]

    @property
    def end(self) -> int:
        """Where the places of the hidden neurons end."""
        return self.layout.widths[1] * self.each

    def of(self, w: SparseVector) -> SparseVector:
        """Give the same weights by these numbers."""
        inner, outer = self.layout.split(w.indices)
        neuron, feature = self.layout.pairs(w.indices[inner], 0)
        output, source = self.layout.pairs(w.indices[outer], 1)
        # A bias of an output is where a neuron after the last one would begin.
        out = torch.where(
            source < self.layout.widths[1], source * self.each + self.reads + output, self.end + output
        )
        return _sorted(torch.cat([neuron * self.each + feature, out]), w)

    def back(self, w: SparseVector) -> SparseVector:
        """Give weights by the numbers of the layout."""
        neuron, part = w.indices // self.each, w.indices % self.each
        # The biases of outputs come where another neuron's own places would: they are read as its outputs.
        output = torch.where(w.indices < self.end, part - self.reads, w.indices - self.end)
        inner = (w.indices < self.end) & (part < self.reads)
        indices = torch.where(
            inner, self.layout.position(0, neuron, part), self.layout.position(1, output, neuron)
        )
        return _sorted(indices, w)


def _sorted(indices: Tensor, w: SparseVector) -> SparseVector:
    order = indices.argsort()
    return SparseVector(indices[order], w.values[order], w.size)


class Contest:
    """The places held while the blocks of one step come.

    Parameters
    ----------
    w : SparseVector
        What is held before, by ascending numbers.
    sketch : CountSketch
        What ranks them. It receives every step.
    budget : int
        How many places there are.
    """

    def __init__(self, w: SparseVector, sketch: CountSketch, budget: int) -> None:
        self.places, self.values, self.size = w.indices, w.values, w.size
        self.sketch, self.budget = sketch, budget
        self.hashed = sketch.hashed(w.indices)

    def neurons(self, first: int, values: Tensor, steps: Tensor, reads: int) -> None:
        """Let neurons compete one after the other: the block of what each reads, then that of its outputs.

        Parameters
        ----------
        first : int
            The number of the first neuron's first place.
        values : tensor of shape (neurons, places of each)
            What is stored for a place that wins. A zero is no weight and takes no part.
        steps : tensor of shape (neurons, places of each)
            What the sketch receives.
        reads : int
            How many places of each are of what it reads.
        """
        count, each = values.shape
        parts = slice(0, reads), slice(reads, each)
        # A block that holds nothing and takes no step, as that of a neuron that is never on, changes nothing.
        stirs = [((values[:, part] != 0) | (steps[:, part] != 0)).any(1).tolist() for part in parts]
        together = max(1, PIECE // each)
        for start in range(0, count, together):
            rows, at = slice(start, start + together), first + start * each
            places = torch.arange(at, at + values[rows].numel())
            hashed = self.sketch.hashed(places) if each <= PIECE else None
            for row, (value, step) in enumerate(zip(values[rows], steps[rows], strict=True)):
                for part, stirred in zip(parts, stirs, strict=True):
                    if stirred[start + row]:
                        here = slice(row * each + part.start, row * each + part.stop)
                        among = None if hashed is None else hashed.at(here)
                        self.block(at + here.start, value[part], step[part], among)

    def block(self, first: int, values: Tensor, steps: Tensor, hashed: Hashed | None = None) -> None:
        """Let a block compete: its first place, what is stored, what the sketch receives, hashed places."""
        new, places = self._entering(first, values, steps, hashed)
        # What was held of the block gives way to what comes.
        ends = torch.tensor([first, first + values.numel()])
        low, high = torch.searchsorted(self.places, ends).tolist()
        self.places = torch.cat([self.places[:low], new + first, self.places[high:]])
        self.values = torch.cat([self.values[:low], values[new], self.values[high:]])
        parts = self.hashed.at(slice(0, low)), places, self.hashed.at(slice(high, None))
        self.hashed = Hashed(*(torch.cat(part, 1) for part in zip(*parts, strict=True)))
        if self.places.numel() > self.budget:
            kept = largest(self.sketch.estimate_at(self.hashed).abs(), self.budget)
            self.places, self.values, self.hashed = self.places[kept], self.values[kept], self.hashed.at(kept)

    def _entering(
        self, first: int, values: Tensor, steps: Tensor, hashed: Hashed | None
    ) -> tuple[Tensor, Hashed]:
        """Give the sketch the steps, and say which places of a block may win: of a long one the best few."""
        count = values.numel()
        if hashed is None and count <= PIECE:
            hashed = self.sketch.hashed(torch.arange(first, first + count))
        if hashed is not None:
            self.sketch.add_at(hashed, steps)
            new = values.nonzero().flatten()
            return new, hashed.at(new)
        pieces = [slice(start, min(start + PIECE, count)) for start in range(0, count, PIECE)]
        for piece in pieces:
            self.sketch.add(torch.arange(first + piece.start, first + piece.stop), steps[piece])
        best = []
        for piece in pieces:
            new = values[piece].nonzero().flatten() + piece.start
            best.append(new[largest(self.sketch.estimate(new + first).abs(), self.budget)])
        new = torch.cat(best)
        return new, self.sketch.hashed(new + first)

    def held(self) -> SparseVector:
        """Give what is held now."""
        return SparseVector(self.places, self.values, self.size)
