"""Rows to be summed over: inputs as solvers see them, targets, and what each row counts.

Solvers know rows through this class alone. Rows that live elsewhere (on disk) are another class with the same
methods. Where rows are split over machines, `ranks` completes what is summed over those that are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from thresher.data.rows import OnDisk, is_sparse
from thresher.device import from_host, to_host
from thresher.objective.columns import Columns, canonical
from thresher.objective.pages import CHUNK_NUMBERS, pages, zeros
from thresher.objective.picked import Picked, as_tensor, picked
from thresher.objective.ranks import Alone
from thresher.objective.sparse import SparseRows

# Precisions of inputs, as NumPy calls them.
NUMPY = {torch.float32: np.float32, torch.float64: np.float64}
# The fewest and the most rows of a chunk, since products over fewer rows are slow; and the fewest where data
# is very wide, since a chunk is converted in memory that nobody counts.
LEAST_ROWS, MOST_ROWS, LEAST_WIDE_ROWS = 256, 8192, 64
# Bytes that copies of rounded data may take in any case: small data gives the same bits for any limit.
ROUNDED_BYTES = 2**24
# Parts of the rows that a search holds at the same time, folds for each way among them.
COPIES = 16
# An origin that is more scales away from zero than this is subtracted in float64.
FAR = 100.0


class Batch(NamedTuple):
    """Some rows: inputs (rows, columns), targets (rows, targets), and what each counts, (rows,).

    Inputs may be `SparseRows`, which pass for a tensor where blocks and sums over columns are all that is
    asked of them.
    """

    X: Tensor
    y: Tensor
    share: Tensor


class Data:
    """Rows: an array, a memory map, integers, a sparse matrix or rows on disk, read a chunk at a time.

    Parameters
    ----------
    X : array, sparse matrix or OnDisk of shape (n, d)
        Never changed.
    y : tensor of shape (n, targets), optional
        Nothing by default, which is what an operator needs.
    weight : tensor of shape (n,), optional
        Sample weights; one for each row by default.
    columns : Columns, optional
        How raw columns become inputs; by default they are taken as they are.
    dtype : torch.dtype
        Precision of inputs and targets.
    memory_limit : int
        Bytes that a copy of the inputs may take. Without one, rows are converted whenever they are read.
    ranks : Alone, optional
        Who has the rows: `X`, `y` and `weight` are those of this rank. Numbers of rows count through all
        ranks, `take` brings rows here from wherever they are, and a batch is what this rank has of some rows.
    """

    # Whether batches of a sparse matrix stay sparse; not where another class makes other inputs of them.
    stays_sparse: ClassVar[bool] = True

    def __init__(
        self,
        X: Any,
        y: Tensor | None = None,
        weight: Tensor | None = None,
        columns: Columns | None = None,
        dtype: torch.dtype = torch.float32,
        memory_limit: int = 64 * 2**20,
        ranks: Alone | None = None,
    ) -> None:
        self.X = canonical(X) if scipy.sparse.issparse(X) else X
        self.held, self.columns = X.shape
        self.ranks = ranks or Alone()
        self.rows = self.ranks.rows(self.held)
        # The numbers written down in a sparse matrix.
        self._written = self.ranks.added(self.X.nnz) if scipy.sparse.issparse(X) else 0
        y = torch.zeros(self.held, 0) if y is None else y
        self.targets = y.to(dtype) if y.is_floating_point() else y
        self.weight = weight
        self.amount = float(self.rows if weight is None else self.ranks.sum(weight.double().sum())[0])
        # One number stands for all of them.
        even = torch.full((1,), 1.0 / max(1, self.rows), dtype=dtype).expand(self.held)
        self.share = even if weight is None else (weight.double() / self.amount).to(dtype)
        self.seen, self.dtype, self.memory_limit = columns, dtype, memory_limit
        self.origin = self.factor = self._factor = None
        if columns is not None:
            # Sparse rows are scaled on the host, all others on the device.
            self._factor = (1.0 / columns.scale).astype(NUMPY[dtype])
            self.factor = from_host(self._factor)
            if columns.origin.any():
                self.origin = from_host(columns.origin)
        # Far from its origin a column has too few digits in float32 for the difference.
        far = columns is not None and bool((np.abs(columns.origin) > FAR * columns.scale).any())
        self.near = not far or dtype is torch.float64
        self._copy: Tensor | None = None

    def take(self, rows: np.ndarray, features: Tensor | None = None) -> Data:
        """Give the data of some rows, wherever they are, and of all columns or some.

        Of a large copy that is here already they are picked when they are read.
        """
        weight = None if self.weight is None else self.pick(self.weight, rows)
        targets = self.pick(self.targets, rows)
        if self._copy is not None and features is None and self._large(len(rows)):
            return Data(Picked(self._copy, from_host(rows)), targets, weight, None, self.dtype, 0)
        if not self.sparse:
            X = self.ranks.pick(lambda own: self._gathered(own, features), rows)
            return Data(X, targets, weight, None, self.dtype, self.memory_limit)
        X, seen = self.ranks.pick(self.X.__getitem__, rows), self.seen
        if features is not None:
            places = to_host(features)
            X, seen = X[:, places], None if seen is None else seen.only(places)
        return Data(X, targets, weight, seen, self.dtype, self.memory_limit)

    def _large(self, rows: int) -> bool:
        """Whether several copies of so many rows, all of which are here, would exceed the memory limit."""
        here = self.held == self.rows
        return here and COPIES * rows * self.columns * self.dtype.itemsize > self.memory_limit

    def _gathered(self, rows: np.ndarray, features: Tensor | None) -> Tensor:  # (rows, columns)
        """Read some rows a chunk at a time: at once, those that have to be converted would be there twice."""
        width, size = self.columns if features is None else features.numel(), self.chunk_rows(1)
        found = pages(len(rows), width, dtype=self.dtype)
        for start in range(0, len(rows), size):
            part = self.read(rows[start : start + size])
            found[start : start + size] = part if features is None else part[:, features]
        return found

    def pick(self, part: Tensor, rows: np.ndarray) -> Tensor:
        """Give the entries of some rows, wherever they are, of a tensor that has one for each."""
        return self.ranks.pick(lambda own: part[from_host(own)], rows)

    def every(self, part: Tensor) -> Tensor:
        """Give a tensor that has an entry for each row that is here, for all rows."""
        return self.ranks.every(part)

    def gathered(self) -> Data:
        """Give all rows here, wherever they are."""
        if self.held == self.rows:
            return self
        weight = None if self.weight is None else self.every(self.weight)
        X, y = self.ranks.stacked(self.X), self.every(self.targets)
        return Data(X, y, weight, self.seen, self.dtype, self.memory_limit)

    def only(self, features: Tensor) -> Data:
        """Give the data of some columns, as inputs that need no more conversion."""
        numbers = self.ranks.most(self.held) * features.numel() * self.dtype.itemsize
        if isinstance(self.X, OnDisk) and numbers > self.memory_limit:
            places = to_host(features)
            seen = None if self.seen is None else self.seen.only(places)
            few = self.X.only(places)
            return Data(few, self.targets, self.weight, seen, self.dtype, self.memory_limit, self.ranks)
        X, start, passing = pages(self.held, features.numel(), dtype=self.dtype), 0, copy(self)
        # No copy of all columns is kept for reading them once.
        passing.memory_limit = 0
        for batch in passing.chunks(1):
            X[start : start + len(batch.X)] = batch.X[:, features]
            start += len(batch.X)
        return Data(X, self.targets, self.weight, None, self.dtype, self.memory_limit, self.ranks)

    def to(self, dtype: torch.dtype) -> Data:
        """Give the same data in another precision."""
        if dtype is self.dtype:
            return self
        return Data(self.X, self.targets, self.weight, self.seen, dtype, self.memory_limit, self.ranks)

    def with_targets(self, targets: Tensor) -> Data:
        """Give the same rows with other targets, and the copy of their inputs where there is one."""
        other = copy(self)
        other.targets = targets
        return other

    def moved(self, shift: Tensor, factor: Tensor) -> Data:  # (columns,), (columns,)
        """Give the same rows with inputs ``(x - shift) * factor``, without a copy."""
        origin, scale = (np.zeros(self.columns), np.ones(self.columns))
        if self.seen is not None:
            origin, scale = self.seen.origin, self.seen.scale
        columns = Columns(origin + scale * to_host(shift), scale / to_host(factor), True)
        return Data(self.X, self.targets, self.weight, columns, self.dtype, self.memory_limit, self.ranks)

    def rounded(self, unit: float) -> Data:
        """Give the same data with inputs and targets as multiples of a unit, where copies are small.

        Columns that were shifted far differ by rounding once they are shifted back; rounded, they are the
        same bits, and so is everything that is computed from them.
        """
        allowed = max(self.memory_limit, ROUNDED_BYTES)
        small = 4 * self.ranks.most(self.held) * self.columns * self.dtype.itemsize <= allowed
        if not small or not self.targets.is_floating_point():
            return self
        X, y = (
            part.clone().div_(unit).round_().mul_(unit)
            for part in (self.read(slice(0, self.held)), self.targets)
        )
        return Data(X, y, self.weight, None, self.dtype, self.memory_limit, self.ranks)

    def batch(self, rows: np.ndarray | slice, out: Tensor | None = None) -> Batch:
        """Read some rows, into memory that is given or not; see `read`."""
        if isinstance(rows, slice):
            return Batch(self.inputs(rows, out), self.targets[rows], self.share[rows])
        return self._here(self.ranks.own(rows))

    def _here(self, rows: np.ndarray) -> Batch:
        """Read some rows by their places on this rank."""
        places = from_host(rows)
        # Without sample weights all shares are the same, and any of them will do.
        share = self.share[: len(rows)] if self.weight is None else self.share.index_select(0, places)
        return Batch(self.inputs(rows), self.targets.index_select(0, places), share)

    def shuffled(self, size: int, random: np.random.Generator, first: int = 0) -> Iterator[Batch]:
        """Read all rows in a random order, `size` at a time; what is left over at the end is left out.

        The `first` batches are passed over.
        """
        if size >= self.rows:
            yield from () if first else (self.batch(slice(0, self.rows)),)
        elif self._far_off:
            order, each = self.X.order(_own(random)), self._part(size)
            for step in range(first, self.rows // size):
                yield self._here(order[step * each : (step + 1) * each])
        else:
            order = random.permutation(self.rows)
            for step in range(first, self.rows // size):
                yield self.batch(order[step * size : (step + 1) * size])

    def order(self, random: np.random.Generator) -> np.ndarray:  # (rows,)
        """Draw an order to read all rows in, one that is quick to read where all of them are here."""
        quick = self._far_off and self.held == self.rows
        return self.X.order(random) if quick else random.permutation(self.rows)

    def some(self, count: int, random: np.random.Generator) -> Batch:
        """Read some rows, drawn at random, in their order."""
        if count >= self.rows:
            return self.batch(slice(0, self.rows))
        if self._far_off:
            return self._here(self.X.some(self._part(count), _own(random)))
        return self.batch(np.sort(random.choice(self.rows, count, replace=False)))

    def _part(self, count: int) -> int:
        """Give this rank's part of a number of rows."""
        return count * self.held // self.rows

    @property
    def _far_off(self) -> bool:
        """Whether rows are on disk, where reading them one by one would be slow."""
        return isinstance(self.X, OnDisk) and not self._fits()

    def chunks(self, width: int) -> Iterator[Batch]:
        """Read all rows in their order, so many at a time that `width` numbers for each stay in cache.

        A chunk holds until the next is read, which may be converted into the same memory. Chunks end at
        multiples of their size among the rows of all ranks, so that a sum is made of the same parts however
        many ranks there are: all but the few that two ranks share are the same bits.
        """
        size = self.chunk_rows(width)
        out = None if self.sparse or self._fits() else pages(size, self.columns, dtype=self.dtype)
        edges = range(-(self.ranks.first % size), self.held, size)
        for start in edges:
            yield self.batch(slice(max(start, 0), min(start + size, self.held)), out)

    def total(self, each: Callable[[Batch], tuple[Tensor, ...]], width: int = 1) -> tuple[Tensor, ...]:
        """Add up what a function gives for the rows of one chunk after another, in float64."""
        sums: tuple[Tensor, ...] | None = None
        for batch in self.chunks(width):
            parts = each(batch)
            if sums is None:
                sums = tuple(zeros(*part.shape, dtype=torch.float64).copy_(part) for part in parts)
            else:
                for one, two in zip(sums, parts, strict=True):
                    one.add_(two)
        assert sums is not None
        return self.ranks.sum(*sums)

    def chunk_rows(self, width: int) -> int:
        """Give the rows of a chunk for which the inputs and `width` numbers each stay in cache."""
        for_results = max(LEAST_ROWS, CHUNK_NUMBERS // max(1, min(width, 4096)))
        for_inputs = max(LEAST_WIDE_ROWS, CHUNK_NUMBERS // self.row_numbers)
        return min(MOST_ROWS, for_results, for_inputs)

    @property
    def sparse(self) -> bool:
        """Whether batches are sparse: the rows are, and a dense copy would exceed the memory limit."""
        return self.stays_sparse and is_sparse(self.X) and not self._fits()

    @property
    def row_numbers(self) -> int:
        """The numbers that a row of a batch holds, in the mean."""
        return max(1, -(-self._written // max(1, self.rows)) if self.sparse else self.columns)

    def inputs(self, rows: np.ndarray | slice, out: Tensor | None = None) -> Tensor:
        """Read the inputs of some rows, sparse where they stay so and else dense; see `read`."""
        if not self.sparse:
            return self.read(rows, out)
        part = self.X[rows]
        values = part.data.astype(NUMPY[self.dtype])
        if self._factor is not None:
            values *= self._factor[part.indices]
        found = SparseRows(scipy.sparse.csr_array((values, part.indices, part.indptr), part.shape))
        return cast(Tensor, found)

    def read(self, rows: np.ndarray | slice, out: Tensor | None = None) -> Tensor:  # (rows, columns)
        """Read the inputs of some rows, dense.

        `out` is memory for as many rows or more, into which they are converted where they have to be. Whoever
        reads many chunks of wide data gives the same again: from fresh ones the heap would grow.
        """
        if self._copy is None and self._fits():
            self._copy = self._converted(self.X[:], None)
        if self._copy is not None:
            if isinstance(rows, slice):
                return self._copy[rows]
            return self._copy.index_select(0, from_host(rows))
        return self._converted(picked(self.X, rows), out)

    def _fits(self) -> bool:
        return self.ranks.most(self.held) * self.columns * self.dtype.itemsize <= self.memory_limit

    def _converted(self, part: Any, out: Tensor | None) -> Tensor:
        X = as_tensor(part)
        if self.factor is None and X.dtype is self.dtype:
            return X
        if self.origin is not None and not self.near:
            X = X.double() - self.origin
        out = torch.empty(X.shape, dtype=self.dtype) if out is None else out[: len(X)]
        out.copy_(X)
        if self.origin is not None and self.near:
            out.sub_(self.origin.to(self.dtype))
        return out if self.factor is None else out.mul_(self.factor)


def _own(random: np.random.Generator) -> np.random.Generator:
    """Draw a generator, so that ranks that draw differently from it go on with the same numbers."""
    return np.random.default_rng(random.integers(2**32, size=4))
