"""Operators made from columns at hand: of a matrix that exists, or of another operator, with norm 1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host
from thresher.linear.operator import Blocks, Operator, Restricted
from thresher.linear.vector import SparseVector


class ByColumns(Operator):
    """An operator whose columns can be had, some at a time."""

    block: int
    """Columns of a block."""

    @abstractmethod
    def columns(self, which: slice | Tensor) -> Tensor:  # (rows, columns)
        """Give some columns."""

    def forward(self, w: SparseVector) -> Tensor:
        """Compute A w from the columns that w uses."""
        output = torch.zeros(self.rows, dtype=self.dtype)
        for start in range(0, w.nonzeros, self.block):
            part = slice(start, start + self.block)
            output += self.columns(w.indices[part]) @ w.values[part].to(self.dtype)
        return output

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute A' r in blocks of columns."""
        for start in range(0, self.size, self.block):
            yield start, self.columns(slice(start, start + self.block)).T @ residual

    def on_support(self, support: Tensor) -> Restricted:
        """Hold the columns of a support."""
        return DenseColumns(self.columns(support))

    def column_norms(self) -> Blocks:
        """Give the norm of every column."""
        for start in range(0, self.size, self.block):
            yield start, self.columns(slice(start, start + self.block)).norm(dim=0)


class MatrixOperator(ByColumns):
    """A matrix that exists, for a user's own sensing matrix and as the truth in tests.

    Parameters
    ----------
    matrix : tensor of shape (rows, size)
    block : int, optional
        Columns in a block of the adjoint; all at once by default.
    """

    def __init__(self, matrix: Tensor, block: int | None = None) -> None:
        self.matrix = matrix
        self.rows, self.size = matrix.shape
        self.dtype = matrix.dtype
        self.block = block or max(1, self.size)

    def columns(self, which: slice | Tensor) -> Tensor:
        """Take some columns of the matrix."""
        return self.matrix[:, which]

    def take(self, rows: np.ndarray) -> MatrixOperator:
        """Restrict to some rows."""
        return MatrixOperator(self.matrix[from_host(rows)], self.block)

    def as_matrix(self) -> Tensor:
        """Give the matrix itself."""
        return self.matrix


class DenseColumns(Restricted):
    """The columns of a support, held in memory: what the simplest operators give for `on_support`.

    Parameters
    ----------
    columns : tensor of shape (rows, s)
    """

    def __init__(self, columns: Tensor) -> None:
        self.columns = columns
        self.rows, self.size = columns.shape

    def forward(self, values: Tensor) -> Tensor:
        """Compute A_S v."""
        return self.columns @ values

    def adjoint(self, residual: Tensor) -> Tensor:
        """Compute A_S' r."""
        return self.columns.T @ residual

    def row_chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        """Give all rows at once."""
        yield 0, self.rows, self.columns


class UnitColumns(Operator):
    """Another operator with every column divided by its norm, as lemma 1 and theorem 1 assume.

    Columns that are all zero stay zero. `unscale` turns a solution back into the other operator's units.
    """

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.rows, self.size, self.dtype = operator.rows, operator.size, operator.dtype
        norms = torch.cat([block for _, block in operator.column_norms()])
        self.inverse = torch.where(norms > 0, 1 / norms, 0)

    def forward(self, w: SparseVector) -> Tensor:
        """Compute A N^-1 w."""
        return self.operator.forward(self.unscale(w))

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute N^-1 A' r."""
        for start, block in self.operator.adjoint(residual):
            yield start, block * self.inverse[start : start + block.numel()]

    def on_support(self, support: Tensor) -> Restricted:
        """Restrict to some columns."""
        return _Scaled(self.operator.on_support(support), self.inverse[support])

    def column_norms(self) -> Blocks:
        """Give 1 for every column that is not zero."""
        yield 0, (self.inverse > 0).to(self.dtype)

    def unscale(self, w: SparseVector) -> SparseVector:
        """Give the vector that does under the other operator what w does under this one."""
        return w.with_values(w.values * self.inverse[w.indices].to(w.values.dtype))


@dataclass
class _Scaled(Restricted):
    """Restricted columns times one factor each."""

    inner: Restricted
    factor: Tensor  # (s,)

    def __post_init__(self) -> None:
        self.rows, self.size = self.inner.rows, self.inner.size

    def forward(self, values: Tensor) -> Tensor:
        return self.inner.forward(values * self.factor)

    def adjoint(self, residual: Tensor) -> Tensor:
        return self.inner.adjoint(residual) * self.factor

    def row_chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        for start, stop, part in self.inner.row_chunks():
            yield start, stop, part * self.factor
