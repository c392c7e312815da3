"""The data as a matrix: read in chunks of rows, scaled by column, with a constant column for biases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

# Numbers in one chunk of intermediate results: 2 MB in float32, which stays near the processor.
CHUNK_NUMBERS = 2**19

# Bytes up to which chosen rows are copied: 16 MB.
COPY_LIMIT = 2**24

# The reciprocal of a scale below this overflows in float32.
LEAST_SCALE = 1e-35


class Design:
    """The rows of X, seen as the matrix ``[X / scale | 1]`` without ever writing that matrix.

    Scaling is applied to the (small) weights that multiply X rather than to X, and the constant column exists
    only as an extra row of the weights, so X is read as it is: a float array, a memory map, a SciPy sparse
    matrix or integers, converted one chunk of rows at a time.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The data, never changed and never copied whole.
    scale : array of shape (d,), optional
        Column scales; a column is divided by its scale.
    bias : bool
        Whether to add a constant column as the last feature.
    dtype : torch.dtype
        Precision of all arithmetic.
    order : int array, optional
        The rows of X to see, in their order; all by default.
    """

    def __init__(
        self,
        X: Any,
        scale: np.ndarray | None = None,
        bias: bool = False,
        dtype: torch.dtype = torch.float32,
        order: np.ndarray | None = None,
    ) -> None:
        self.X = X.tocsr() if scipy.sparse.issparse(X) else X
        self.order = order
        self.columns = X.shape[1]
        self.rows = X.shape[0] if order is None else len(order)
        self.bias, self.dtype = bias, dtype
        self.features = self.columns + int(bias)
        self.scale = scale
        self.factor: Tensor | None = None
        if scale is not None:
            factor = np.ones(self.features)
            factor[: self.columns] = 1.0 / scale
            self.factor = torch.from_numpy(factor).to(dtype)

    def with_dtype(self, dtype: torch.dtype) -> Design:
        """See the same data in another precision."""
        return Design(self.X, self.scale, self.bias, dtype, self.order)

    def take(self, rows: np.ndarray) -> Design:
        """See some rows, in the given order: copied where they are few, else looked up when read."""
        order = rows if self.order is None else self.order[rows]
        size = getattr(self.X, "dtype", np.dtype(np.float64)).itemsize * self.columns * len(order)
        if size <= COPY_LIMIT:
            return Design(self.X[order], self.scale, self.bias, self.dtype)
        return Design(self.X, self.scale, self.bias, self.dtype, order)

    def chunk(self, start: int, stop: int) -> Tensor:  # (stop - start, columns)
        """Read some rows in the design's precision, unscaled and without the constant column."""
        return self._numbers(self.X[start:stop] if self.order is None else self.X[self.order[start:stop]])

    def read(self, rows: np.ndarray) -> Tensor:  # (len(rows), columns)
        """Read rows by their numbers, in the given order, as `chunk` does."""
        return self._numbers(self.X[rows if self.order is None else self.order[rows]])

    def _numbers(self, part: Any) -> Tensor:
        if scipy.sparse.issparse(part):
            part = part.toarray()
        if isinstance(part, np.ndarray):
            part = np.asarray(part)
            if not part.flags.writeable or any(step < 0 for step in part.strides):
                # torch warns of read-only memory; a private copy of one chunk is cheap.
                part = part.copy()
            if part.dtype.kind not in "fiub" or part.dtype.itemsize > 8 or not part.dtype.isnative:
                part = part.astype(np.float64)
            part = torch.from_numpy(part)
        return part.to(self.dtype)

    def chunks(self, width: int) -> Iterator[tuple[int, int, Tensor]]:
        """Read all rows in chunks, sized so that a (rows, width) result stays in cache."""
        size = self.chunk_rows(width)
        for start in range(0, self.rows, size):
            stop = min(start + size, self.rows)
            yield start, stop, self.chunk(start, stop)

    def chunk_rows(self, width: int) -> int:
        """Give the rows of a chunk whose product with `width` columns stays in cache."""
        return max(64, min(8192, CHUNK_NUMBERS // max(1, self.columns, min(width, 1024))))

    def multiply(self, weights: Tensor, chunk: Tensor, out: Tensor) -> Tensor:  # (k, rows)
        """Compute ``weights [chunk | 1]'`` into `out`, for rescaled weights of shape (k, features)."""
        torch.mm(weights[:, : self.columns], chunk.T, out=out)
        return out.add_(weights[:, self.columns :]) if self.bias else out

    def accumulate(self, out: Tensor, chunk: Tensor, rows: Tensor) -> None:
        """Add ``rows [chunk | 1]`` to `out`, for rows (k, chunk's rows), in raw units: see `rescale`."""
        out[:, : self.columns].addmm_(rows, chunk)
        if self.bias:
            out[:, -1] += rows.sum(1)

    def rescale(self, out: Tensor) -> Tensor:
        """Turn weights of scaled columns, (k, features), into those of raw ones, in place; sums likewise."""
        return out if self.factor is None else out.mul_(self.factor)

    def transposed(self, chunk: Tensor, features: Tensor, out: Tensor) -> Tensor:  # (len(features), rows)
        """Take some columns of a chunk, ascending and unscaled, into the rows of `out`."""
        inside = features.numel() - int(
            self.bias and features.numel() > 0 and int(features[-1]) == self.columns
        )
        torch.index_select(chunk.T, 0, features[:inside], out=out[:inside])
        out[inside:] = 1
        return out

    def gather(self, chunk: Tensor, features: Tensor) -> Tensor:  # (rows, len(features))
        """Take some columns of a chunk as the operator sees them: scaled; the last may be the constant."""
        inside = features < self.columns
        if bool(inside.all()):
            out = chunk[:, features]
        else:
            out = torch.ones(chunk.shape[0], features.numel(), dtype=self.dtype)
            out[:, inside] = chunk[:, features[inside]]
        return out if self.factor is None else out.mul_(self.factor[features])


def column_scale(X: Any, weight: np.ndarray | None = None, rare: float = 0.0) -> np.ndarray:
    """Give the root mean square of every column, 1 for a column of zeros or of what float32 takes for it.

    There is no centring: sparse data stays sparse, and no uncounted bias is needed to undo it. With `rare`, a
    column is scaled to that power of the share of rows in which it is not zero: scaling a column of a few
    nonzeros to size one would make them enormous. A common factor then makes the columns' mean square one.
    """
    rows, columns = X.shape
    total, present = np.zeros(columns), np.zeros(columns)
    share = np.full(rows, 1.0 / rows) if weight is None else weight / weight.sum()
    step = max(64, CHUNK_NUMBERS // max(1, columns))
    for start in range(0, rows, step):
        part = X[start : start + step]
        if scipy.sparse.issparse(part):
            part = part.toarray()
        present += share[start : start + step] @ (part != 0)
        total += share[start : start + step] @ np.square(np.asarray(part, dtype=np.float64))
    scale = np.sqrt(total)
    scale[~(scale > LEAST_SCALE)] = 1.0
    if not rare or not (present > 0).any():
        return scale
    size = np.where(present > 0, present, 1.0) ** rare
    return scale * np.sqrt(np.mean(size[present > 0] ** 2)) / size
