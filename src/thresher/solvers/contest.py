"""Who holds the budget's places where weights come a block at a time: what is held, and the block.

The paper's method for several outputs ranks no weight against all others. Its blocks come neuron by neuron:
the weights that a neuron reads inputs by, then those that outputs read it by. After each block the weights
held and those of the block compete for the places, by what a count sketch estimates at that moment.

That makes thousands of small decisions for a step, each of which waits for the one before: they are taken by
the processor, in NumPy, wherever the blocks were computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.linear.sketch import CountSketch
from thresher.linear.vector import SparseVector
from thresher.objective.layout import Layout

Array = NDArray[Any]

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
        What ranks them. It receives every step, and has them once the contest is over.
    budget : int
        How many places there are.
    """

    def __init__(self, w: SparseVector, sketch: CountSketch, budget: int) -> None:
        self.sketch, self.budget, self.size = sketch, budget, w.size
        # On the host this is the memory of the sketch.
        self.counters = to_host(sketch.table).reshape(-1)
        self.places, self.values = to_host(w.indices), to_host(w.values)
        self.hashed = self._hash(self.places)

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
        (count, each), stored, taken = values.shape, to_host(values), to_host(steps)
        parts = slice(0, reads), slice(reads, each)
        # A block that holds nothing and takes no step, as that of a neuron that is never on, changes nothing.
        stirs = [((stored[:, part] != 0) | (taken[:, part] != 0)).any(1) for part in parts]
        together = max(1, PIECE // each)
        for start in range(0, count, together):
            rows, at = range(start, min(start + together, count)), first + start * each
            hashed = self._hash(np.arange(at, at + len(rows) * each)) if each <= PIECE else None
            for row in rows:
                for part, stirred in zip(parts, stirs, strict=True):
                    if stirred[row]:
                        begin = (row - start) * each + part.start
                        here = slice(begin, begin + part.stop - part.start)
                        among = None if hashed is None else hashed.at(here)
                        self._meet(at + begin, stored[row, part], taken[row, part], among)

    def block(self, first: int, values: Tensor, steps: Tensor) -> None:
        """Let one block compete: its first place, what is stored if it wins, what the sketch receives."""
        self._meet(first, to_host(values), to_host(steps), None)

    def held(self) -> SparseVector:
        """End the contest, and give what is held."""
        self.sketch.table.copy_(from_host(self.counters).view(self.sketch.table.shape))
        return SparseVector(from_host(self.places), from_host(self.values), self.size)

    def _meet(self, first: int, values: Array, steps: Array, hashed: _Hashed | None) -> None:
        # What overflows is found by whoever looks at the weights and the sketch.
        with np.errstate(over="ignore", invalid="ignore"):
            new, hashed = self._entering(first, values, steps, hashed)
            low, high = np.searchsorted(self.places, (first, first + len(values)))
            # What was held of the block gives way to what comes.
            places = np.concatenate([self.places[:low], new + first, self.places[high:]])
            values = np.concatenate([self.values[:low], values[new], self.values[high:]])
            hashed = self.hashed.around(low, hashed, high)
            if len(places) > self.budget:
                kept = _largest(self._estimates(hashed), self.budget)
                places, values, hashed = places[kept], values[kept], hashed.at(kept)
        self.places, self.values, self.hashed = places, values, hashed

    def _entering(
        self, first: int, values: Array, steps: Array, hashed: _Hashed | None
    ) -> tuple[Array, _Hashed]:
        """Give the sketch the steps, and say which places of a block may win: of a long one the best few."""
        pieces = [slice(start, start + PIECE) for start in range(0, len(values), PIECE)]
        places = np.arange(first, first + len(values))
        if hashed is None and len(pieces) == 1:
            hashed = self._hash(places)
        if hashed is not None:
            self._add(hashed, steps)
            new = np.flatnonzero(values)
            return new, hashed.at(new)
        for piece in pieces:
            self._add(self._hash(places[piece]), steps[piece])
        best = []
        for piece in pieces:
            new = np.flatnonzero(values[piece]) + piece.start
            best.append(new[_largest(self._estimates(self._hash(places[new])), self.budget)])
        new = np.concatenate(best)
        return new, self._hash(places[new])

    def _hash(self, places: Array) -> _Hashed:
        return _Hashed(*map(to_host, self.sketch.hashed(from_host(places))))

    def _add(self, hashed: _Hashed, steps: Array) -> None:
        np.add.at(self.counters, hashed.cells, hashed.signs * steps.astype(self.counters.dtype, copy=False))

    def _estimates(self, hashed: _Hashed) -> Array:
        """Estimate sums without their signs: of four rows, two pairs tell the two in the middle."""
        one, two, three, four = self.counters[hashed.cells] * hashed.signs
        low = np.maximum(np.minimum(one, two), np.minimum(three, four))
        high = np.minimum(np.maximum(one, two), np.maximum(three, four))
        return np.abs((low + high) / 2)


class _Hashed(NamedTuple):
    """Where some places are among the counters, and their signs there."""

    cells: Array  # (4, places)
    signs: Array  # (4, places)

    def at(self, chosen: slice | Array) -> _Hashed:
        """Give some of the places."""
        return _Hashed(self.cells[:, chosen], self.signs[:, chosen])

    def around(self, low: int, middle: _Hashed, high: int) -> _Hashed:
        """Put others in the place of those from `low` to `high`."""
        both = zip(self, middle, strict=True)
        return _Hashed(*(np.concatenate([own[:, :low], new, own[:, high:]], 1) for own, new in both))


def _largest(magnitude: Array, budget: int) -> Array:
    """Give the ascending positions of the `budget` largest entries, ties by position."""
    if len(magnitude) <= budget:
        return np.arange(len(magnitude))
    threshold = np.partition(magnitude, -budget)[-budget]
    kept = magnitude > threshold
    kept[np.flatnonzero(magnitude == threshold)[: budget - np.count_nonzero(kept)]] = True
    return np.flatnonzero(kept)
