"""Products over chosen pairs of neuron and feature, chunk by chunk: dense or sparse, whichever is faster.

All results have one row for each neuron and one column for each row of the data, so that a neuron's numbers
are together in memory.
"""

from __future__ import annotations

import math
import mmap
import warnings
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from thresher.objective.design import Design

# A dense product does a multiplication some eight times as fast as one that goes through nonzeros.
DENSE_SHARE = 1 / 8


class Scratch:
    """Memory that is used again for every chunk: fresh memory costs more than the arithmetic done in it."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._held: dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        """Give the memory of that name, in some shape, with whatever is in it."""
        numbers = math.prod(shape)
        if name not in self._held or self._held[name].numel() < numbers:
            self._held[name] = torch.empty(numbers, dtype=self.dtype)
        return self._held[name][:numbers].view(shape)


def pages(*shape: int, dtype: torch.dtype) -> Tensor:
    """Make a tensor of zeros in memory of its own, which goes back to the system as soon as it is let go.

    Memory from the heap may stay: once something small has settled in a large gap, the next large tensor no
    longer fits, and the heap grows.
    """
    numbers = math.prod(shape)
    if numbers == 0:
        return torch.zeros(shape, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, numbers * dtype.itemsize), dtype=dtype).view(shape)


class Pairs(ABC):
    """Some pairs of neuron and feature, in ascending order: where there are weights."""

    def __init__(self, design: Design, neuron: Tensor, feature: Tensor, neurons: int) -> None:
        self.design, self.neuron, self.feature, self.neurons = design, neuron, feature, neurons
        self.used, self.place = torch.unique(feature, return_inverse=True)

    @abstractmethod
    def read(self, chunk: Tensor, scratch: Scratch) -> Tensor:
        """Take what is needed of a chunk; the other methods call it `part`."""

    @abstractmethod
    def weights(self, values: Tensor) -> Tensor:
        """Put values at the pairs."""

    @abstractmethod
    def multiply(self, weights: Tensor, part: Tensor, out: Tensor) -> Tensor:  # (neurons, rows)
        """Compute the product of the weights with every row, into `out`."""

    @abstractmethod
    def zeros(self) -> Tensor:
        """Start a sum over chunks."""

    @abstractmethod
    def add(self, total: Tensor, part: Tensor, rows: Tensor) -> None:
        """Add, at every pair, the inner product of a neuron's numbers, (neurons, rows), with the feature."""

    @abstractmethod
    def take(self, total: Tensor) -> Tensor:  # (pairs,)
        """Read the sum at the pairs."""

    @abstractmethod
    def work(self) -> float:
        """Estimate the cost of `read`, `multiply` and `add` for one row, in dense multiplications."""


def pairs(design: Design, neuron: Tensor, feature: Tensor, neurons: int) -> Pairs:
    """Choose how to go about some pairs: through all neurons and features, or pair by pair."""
    held = SparsePairs(design, neuron, feature, neurons)
    full = neuron.numel() >= DENSE_SHARE * neurons * held.used.numel()
    return DensePairs(design, neuron, feature, neurons) if full else held


class DensePairs(Pairs):
    """Products of all neurons with all used features, of which the pairs are a good part."""

    def __init__(self, design: Design, neuron: Tensor, feature: Tensor, neurons: int) -> None:
        super().__init__(design, neuron, feature, neurons)
        # Gathering most columns costs more than multiplying all of them.
        self.whole = 2 * self.used.numel() > design.features
        if self.whole:
            self.used, self.place = torch.arange(design.features), feature

    def read(self, chunk: Tensor, scratch: Scratch) -> Tensor:
        """Take the used columns, (rows, used)."""
        return chunk if self.whole else self.design.gather(chunk, self.used)

    def weights(self, values: Tensor) -> Tensor:  # (neurons, used)
        """Put values into a dense matrix."""
        weights = torch.zeros(self.neurons, self.used.numel(), dtype=values.dtype)
        weights[self.neuron, self.place] = values
        return self.design.rescale(weights) if self.whole else weights

    def multiply(self, weights: Tensor, part: Tensor, out: Tensor) -> Tensor:
        """Compute one matrix product."""
        return self.design.multiply(weights, part, out) if self.whole else torch.mm(weights, part.T, out=out)

    def zeros(self) -> Tensor:  # (neurons, used)
        """Start a dense sum."""
        return torch.zeros(self.neurons, self.used.numel(), dtype=self.design.dtype)

    def add(self, total: Tensor, part: Tensor, rows: Tensor) -> None:
        """Add one matrix product."""
        if self.whole:
            self.design.accumulate(total, part, rows)
        else:
            total.addmm_(rows, part)

    def work(self) -> float:
        """Count the products; reading a number costs some sixty of their multiplications."""
        return self.used.numel() * (60.0 + 2.0 * self.neurons)

    def take(self, total: Tensor) -> Tensor:
        """Pick the pairs."""
        return (self.design.rescale(total) if self.whole else total)[self.neuron, self.place]


class SparsePairs(Pairs):
    """Products pair by pair, for pairs that are few among all neurons and used features."""

    def read(self, chunk: Tensor, scratch: Scratch) -> Tensor:  # (used, rows)
        """Take the used columns, each contiguous."""
        return self.design.transposed(chunk, self.used, scratch("part", self.used.numel(), chunk.shape[0]))

    def weights(self, values: Tensor) -> Tensor:  # (neurons, used), sparse
        """Put values into a sparse matrix."""
        return torch.sparse_coo_tensor(
            torch.stack([self.neuron, self.place]),
            self._scaled(values),
            (self.neurons, self.used.numel()),
            is_coalesced=True,
            check_invariants=False,
        )

    def multiply(self, weights: Tensor, part: Tensor, out: Tensor) -> Tensor:
        """Add up the features of each neuron."""
        return torch.mm(weights, part, out=out)

    def zeros(self) -> Tensor:  # (neurons, used), sparse
        """Start a sum that exists at the pairs only."""
        starts = torch.searchsorted(self.neuron, torch.arange(self.neurons + 1))
        with warnings.catch_warnings():
            # torch warns once that this layout is young; the one operation used here is tested.
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(
                starts,
                self.place,
                torch.zeros(self.place.numel(), dtype=self.design.dtype),
                (self.neurons, self.used.numel()),
                check_invariants=False,
            )

    def add(self, total: Tensor, part: Tensor, rows: Tensor) -> None:
        """Compute the inner products of the pairs alone."""
        torch.sparse.sampled_addmm(total, rows, part.T, out=total)

    def work(self) -> float:
        """Count the pairs; each costs some ten multiplications of a dense product."""
        return 60.0 * self.used.numel() + 10.0 * self.neuron.numel()

    def take(self, total: Tensor) -> Tensor:
        """Read the values of the sum."""
        return self._scaled(total.values())

    def _scaled(self, values: Tensor) -> Tensor:
        factor = self.design.factor
        return values if factor is None else values * factor[self.feature]
