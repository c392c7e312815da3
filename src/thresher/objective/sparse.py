"""Rows of a sparse matrix as inputs: products that cost what their nonzeros meet, and nothing is made dense.

A chunk of rows behaves as much like a dense tensor as the objective and the solvers ask of it: its length, a
few of its columns (dense, they are few), products with dense matrices from both sides, and its nonzeros taken
one by one. What the weights of a block make of it goes through a `Meeting`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from thresher.device import from_host, to_host


class SparseRows:
    """Some rows of a sparse matrix.

    Parameters
    ----------
    matrix : CSR array of shape (rows, columns)
        Of the precision that products are to have.
    """

    def __init__(self, matrix: scipy.sparse.csr_array) -> None:
        self.matrix = matrix
        self._met: list[tuple[Readers, Meeting]] = []

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    def __len__(self) -> int:
        return self.matrix.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """The precision of its numbers."""
        return torch.float64 if self.matrix.dtype == np.float64 else torch.float32

    def to(self, dtype: torch.dtype) -> SparseRows:
        """Give the same rows in another precision."""
        if dtype is self.dtype:
            return self
        return SparseRows(self.matrix.astype(np.float64 if dtype is torch.float64 else np.float32))

    def double(self) -> SparseRows:
        """Give the same rows in float64."""
        return self.to(torch.float64)

    def __getitem__(self, key: slice | tuple[slice, slice | Tensor]) -> SparseRows | Tensor:
        """Give some rows, or all rows of some columns, dense, or of all of them, as they are."""
        if isinstance(key, slice):
            return SparseRows(self.matrix[key])
        _, columns = key
        if isinstance(columns, slice):
            first, last, _ = columns.indices(self.shape[1])
            if (first, last) == (0, self.shape[1]):
                return self
            columns = torch.arange(first, last)
        chosen, order = columns.sort()
        entries = from_host(self.matrix.indices).long()
        place, found = places_among(chosen, entries)
        out = torch.zeros(len(self), chosen.numel(), dtype=self.dtype)
        values = from_host(self.matrix.data)[found]
        out[self.rows_of_entries[found], order[place[found]]] = values
        return out

    @property
    def rows_of_entries(self) -> Tensor:
        """The row of every nonzero."""
        counts = from_host(np.diff(self.matrix.indptr)).long()
        return torch.arange(len(self)).repeat_interleave(counts)

    def __matmul__(self, other: Tensor) -> Tensor:
        return from_host(np.asarray(self.matrix @ to_host(other)))

    @property
    def T(self) -> SparseRows:  # noqa: N802
        """The transposed matrix: its products with what has as many rows."""
        return SparseRows(self.matrix.T)

    def compacted(self, among: Callable[[np.ndarray], np.ndarray]) -> tuple[Tensor, SparseRows]:
        """Give the columns that hold something, ascending, and the rows of these alone.

        `among` may add columns that hold something elsewhere.
        """
        held = np.zeros(self.shape[1], dtype=bool)
        held[self.matrix.indices] = True
        present = among(np.flatnonzero(held))
        # A table of all columns is read faster than the nonzeros are sorted.
        table = np.zeros(self.shape[1], dtype=np.int32)
        table[present] = np.arange(len(present))
        parts = self.matrix.data, table[self.matrix.indices], self.matrix.indptr
        matrix = scipy.sparse.csr_array(parts, (len(self), len(present)))
        return from_host(present), SparseRows(matrix)

    def clamp(self, min: int | None = None, max: int | None = None) -> SparseRows:
        """Limit the nonzeros from one side, which must be zero."""
        return self.mapped(lambda values: np.clip(values, min, max))

    def square(self) -> SparseRows:
        """Square every number."""
        return self.mapped(np.square)

    def abs(self) -> SparseRows:
        """Take every number without its sign."""
        return self.mapped(np.abs)

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> SparseRows:
        """Apply a function that leaves zero at zero."""
        parts = function(self.matrix.data), self.matrix.indices, self.matrix.indptr
        return SparseRows(scipy.sparse.csr_array(parts, self.matrix.shape))

    def meeting(self, readers: Readers) -> Meeting:
        """Find what meets the weights of a block, or recall it: a pass asks for two blocks at most."""
        for known, found in self._met:
            if known is readers:
                return found
        self._met = [*self._met[-1:], (readers, Meeting(self, readers))]
        return self._met[-1][1]


class Readers:
    """The weights of a block, column by column: the same for all rows, until others are held.

    Parameters
    ----------
    feature : int64 tensor of shape (held,)
        The column that each weight reads.
    neuron : int64 tensor of shape (held,)
        The neuron that it belongs to.
    columns : int
        All there are.

    Attributes
    ----------
    order : int64 tensor of shape (held,)
        The weights in the order of their columns.
    neuron : int64 tensor of shape (held,)
        Their neurons, in that order.
    starts : int32 tensor of shape (columns + 1,)
        Where the weights of each column begin.
    """

    def __init__(self, feature: Tensor, neuron: Tensor, columns: int) -> None:
        self.order = feature.argsort(stable=True)
        self.neuron = neuron[self.order]
        self.starts = torch.zeros(columns + 1, dtype=torch.int32)
        torch.cumsum(torch.bincount(feature, minlength=columns), 0, dtype=torch.int32, out=self.starts[1:])


class Meeting:
    """Every pair of a nonzero and a weight that reads it.

    Parameters
    ----------
    rows : SparseRows
    readers : Readers

    Attributes
    ----------
    row, held : int64 tensors of shape (pairs,)
        The row of the nonzero, and which weight reads it.
    value : tensor of shape (pairs,)
        The nonzero.
    """

    def __init__(self, rows: SparseRows, readers: Readers) -> None:
        entries = from_host(rows.matrix.indices).long()
        first = readers.starts[entries].long()
        counts = readers.starts[entries + 1] - first
        entry = torch.arange(entries.numel()).repeat_interleave(counts)
        first += counts - counts.cumsum(0)
        place = first[entry] + torch.arange(entry.numel())
        self.held, self.neuron = readers.order[place], readers.neuron[place]
        self.row = rows.rows_of_entries[entry]
        self.value = from_host(rows.matrix.data)[entry]
        self.rows = len(rows)

    def forward(self, weights: Tensor, neurons: int) -> Tensor:  # (rows, neurons)
        """Add up what the weights make of their nonzeros, neuron by neuron."""
        out = weights.new_zeros(self.rows * neurons)
        out.index_add_(0, self.row * neurons + self.neuron, self.value * weights[self.held])
        return out.view(self.rows, neurons)

    def gradient(self, delta: Tensor, held: int) -> Tensor:  # (held,)
        """Give the derivative at every weight, from those with respect to the neurons' sums."""
        out = delta.new_zeros(held)
        places = self.row * delta.shape[1] + self.neuron
        return out.index_add_(0, self.held, self.value * delta.reshape(-1)[places])


def affine(fed: Tensor | SparseRows, matrix: Tensor, bias: Tensor, out: Tensor) -> Tensor:  # (rows, neurons)
    """Give ``fed @ matrix + bias``, in memory that is given."""
    if isinstance(fed, SparseRows):
        return out.copy_(fed @ matrix).add_(bias)
    return torch.addmm(bias, fed, matrix, out=out)


def add_outer(out: Tensor, numbers: Tensor, fed: Tensor | SparseRows) -> None:
    """Add ``numbers' fed`` to what is there, (neurons, columns); numbers are (rows, neurons)."""
    if isinstance(fed, SparseRows):
        out.add_((fed.T @ numbers).T)
    else:
        out.addmm_(numbers.T, fed)


def places_among(chosen: Tensor, units: Tensor) -> tuple[Tensor, Tensor]:
    """Give the places of units among ascending chosen ones, and whether they are among them."""
    if chosen.numel() == 0:
        return torch.zeros_like(units), torch.zeros_like(units, dtype=torch.bool)
    place = torch.searchsorted(chosen, units).clamp(max=chosen.numel() - 1)
    return place, chosen[place] == units
