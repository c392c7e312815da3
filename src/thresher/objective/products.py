"""Products over chosen pairs of neuron and feature, chunk by chunk: dense or sparse, whichever is faster.

All results have one row for each neuron and one column for each row of the data, so that a neuron's numbers
are together in memory.
"""

from __future__ import annotations

import math
import mmap
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

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


@dataclass(frozen=True)
class Features:
    """The columns of a chunk of rows, and with a bias one more that is constant and never written.

    Attributes
    ----------
    columns : int
    bias : bool
        Whether a constant is the last feature.
    dtype : torch.dtype
    """

    columns: int
    bias: bool
    dtype: torch.dtype

    @property
    def count(self) -> int:
        """How many features."""
        return self.columns + int(self.bias)

    def multiply(self, weights: Tensor, chunk: Tensor, out: Tensor) -> Tensor:  # (k, rows)
        """Compute ``weights [chunk | 1]'`` into `out`, for weights of shape (k, features)."""
        torch.mm(weights[:, : self.columns], chunk.T, out=out)
        return out.add_(weights[:, self.columns :]) if self.bias else out

    def accumulate(self, out: Tensor, chunk: Tensor, rows: Tensor) -> None:
        """Add ``rows [chunk | 1]`` to `out`, (k, features), for rows of shape (k, chunk's rows)."""
        out[:, : self.columns].addmm_(rows, chunk)
        if self.bias:
            out[:, -1] += rows.sum(1)

    def transposed(self, chunk: Tensor, features: Tensor, out: Tensor) -> Tensor:  # (len(features), rows)
        """Take some columns of a chunk, ascending, into the rows of `out`."""
        constant = self.bias and features.numel() > 0 and int(features[-1]) == self.columns
        inside = features.numel() - int(constant)
        torch.index_select(chunk.T, 0, features[:inside], out=out[:inside])
        out[inside:] = 1
        return out

    def gather(self, chunk: Tensor, features: Tensor) -> Tensor:  # (rows, len(features))
        """Take some columns of a chunk; the last may be the constant."""
        inside = features < self.columns
        if bool(inside.all()):
            return chunk[:, features]
        out = torch.ones(chunk.shape[0], features.numel(), dtype=self.dtype)
        out[:, inside] = chunk[:, features[inside]]
        return out


class Pairs(ABC):
    """Some pairs of neuron and feature, in ascending order: where there are weights."""

    def __init__(self, features: Features, neuron: Tensor, feature: Tensor, neurons: int) -> None:
        self.features, self.neuron, self.neurons = features, neuron, neurons
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


def pairs(features: Features, neuron: Tensor, feature: Tensor, neurons: int) -> Pairs:
    """Choose how to go about some pairs: through all neurons and features, or pair by pair."""
    held = SparsePairs(features, neuron, feature, neurons)
    full = neuron.numel() >= DENSE_SHARE * neurons * held.used.numel()
    return DensePairs(features, neuron, feature, neurons) if full else held


class DensePairs(Pairs):
    """Products of all neurons with all used features, of which the pairs are a good part."""

    def __init__(self, features: Features, neuron: Tensor, feature: Tensor, neurons: int) -> None:
        super().__init__(features, neuron, feature, neurons)
        # Gathering most columns costs more than multiplying all of them.
        self.whole = 2 * self.used.numel() > features.count
        if self.whole:
            self.used, self.place = torch.arange(features.count), feature

    def read(self, chunk: Tensor, scratch: Scratch) -> Tensor:
        """Take the used columns, (rows, used)."""
        return chunk if self.whole else self.features.gather(chunk, self.used)

    def weights(self, values: Tensor) -> Tensor:  # (neurons, used)
        """Put values into a dense matrix."""
        weights = torch.zeros(self.neurons, self.used.numel(), dtype=values.dtype)
        weights[self.neuron, self.place] = values
        return weights

    def multiply(self, weights: Tensor, part: Tensor, out: Tensor) -> Tensor:
        """Compute one matrix product."""
        return (
            self.features.multiply(weights, part, out) if self.whole else torch.mm(weights, part.T, out=out)
        )

    def zeros(self) -> Tensor:  # (neurons, used)
        """Start a dense sum."""
        return torch.zeros(self.neurons, self.used.numel(), dtype=self.features.dtype)

    def add(self, total: Tensor, part: Tensor, rows: Tensor) -> None:
        """Add one matrix product."""
        if self.whole:
            self.features.accumulate(total, part, rows)
        else:
            total.addmm_(rows, part)

    def work(self) -> float:
        """Count the products; reading a number costs some sixty of their multiplications."""
        return self.used.numel() * (60.0 + 2.0 * self.neurons)

    def take(self, total: Tensor) -> Tensor:
        """Pick the pairs."""
        return total[self.neuron, self.place]


class SparsePairs(Pairs):
    """Products pair by pair, for pairs that are few among all neurons and used features."""

    def read(self, chunk: Tensor, scratch: Scratch) -> Tensor:  # (used, rows)
        """Take the used columns, each contiguous."""
        return self.features.transposed(chunk, self.used, scratch("part", self.used.numel(), chunk.shape[0]))

    def weights(self, values: Tensor) -> Tensor:  # (neurons, used), sparse
        """Put values into a sparse matrix."""
        return torch.sparse_coo_tensor(
            torch.stack([self.neuron, self.place]),
            values,
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
                torch.zeros(self.place.numel(), dtype=self.features.dtype),
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
        return total.values()
