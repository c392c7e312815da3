"""What people have at hand as operators: arrays, SciPy's sparse arrays and its linear operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.errors import DataError, ParameterError
from thresher.linear.matrix import ByColumns, MatrixOperator
from thresher.linear.operator import Blocks, Operator
from thresher.linear.vector import SparseVector

# What an operator of one's own must have.
PARTS = ("forward", "adjoint", "on_support")
# Numbers in the columns that are written out at a time: 16 MB in float64.
BLOCK = 2**21


def as_operator(matrix: Any) -> Operator:
    """Make an operator of a matrix, or give back what is one.

    Parameters
    ----------
    matrix : array, tensor, SciPy sparse array or matrix, LinearOperator, or Operator
        Of shape (rows, columns), of real numbers; float32 is computed with in float32, all else in float64.

    Examples
    --------
    >>> as_operator([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]).forward(SparseVector.zeros(2)).shape
    torch.Size([3])
    """
    if all(hasattr(matrix, part) for part in PARTS):
        operator: Operator = matrix
        return operator
    if isinstance(matrix, LinearOperator):
        _refuse_type(matrix.dtype)
        return MatrixFree(matrix)
    if scipy.sparse.issparse(matrix):
        _refuse_type(matrix.dtype)
        return SparseMatrix(matrix)
    try:
        array = to_host(matrix) if isinstance(matrix, Tensor) else np.asarray(matrix)
    except (TypeError, ValueError) as error:
        raise _refusal(matrix) from error
    _refuse_type(array.dtype)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise _refusal(matrix)
    array = array.astype(_precision(array.dtype))
    _refuse_strange(array)
    return MatrixOperator(from_host(array))


class SparseMatrix(ByColumns):
    """A sparse matrix that exists, kept sparse.

    Parameters
    ----------
    matrix : SciPy sparse array or matrix of shape (rows, size)
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = scipy.sparse.csc_array(matrix).astype(_precision(matrix.dtype))
        _refuse_strange(self.matrix.data)
        self.rows, self.size = self.matrix.shape
        self.dtype = torch.float32 if self.matrix.dtype == np.float32 else torch.float64
        self.block = max(1, BLOCK // max(1, self.rows))

    def columns(self, which: slice | Tensor) -> Tensor:
        """Write out some columns."""
        chosen = which if isinstance(which, slice) else to_host(which)
        return from_host(self.matrix[:, chosen].toarray())

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute A' r in blocks of columns, which stay sparse."""
        given = to_host(residual)
        for start in range(0, self.size, self.block):
            yield start, from_host(self.matrix[:, start : start + self.block].T @ given)

    def take(self, rows: np.ndarray) -> SparseMatrix:
        """Restrict to some rows."""
        return SparseMatrix(scipy.sparse.csr_array(self.matrix)[rows])


class MatrixFree(ByColumns):
    """A linear operator of SciPy's: columns are what it makes of unit vectors.

    Parameters
    ----------
    operator : LinearOperator of shape (rows, size)
        With `rmatvec`.
    """

    def __init__(self, operator: LinearOperator) -> None:
        self.operator = operator
        self.rows, self.size = operator.shape
        self.dtype = torch.float32 if operator.dtype == np.float32 else torch.float64
        self.block = max(1, BLOCK // max(1, self.rows, self.size))

    def columns(self, which: slice | Tensor) -> Tensor:
        """Apply the operator to unit vectors, a block of them at a time."""
        chosen = np.arange(self.size)[which] if isinstance(which, slice) else to_host(which)
        found = np.empty((self.rows, len(chosen)))
        for start in range(0, len(chosen), self.block):
            part = chosen[start : start + self.block]
            units = np.zeros((self.size, len(part)))
            units[part, np.arange(len(part))] = 1.0
            found[:, start : start + len(part)] = self.operator.matmat(units)
        return from_host(found).to(self.dtype)

    def forward(self, w: SparseVector) -> Tensor:
        """Compute A w."""
        dense = to_host(w.to_dense()).astype(np.float64)
        return from_host(np.asarray(self.operator.matvec(dense), dtype=np.float64)).to(self.dtype)

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute A' r, given out in blocks."""
        given = to_host(residual).astype(np.float64)
        try:
            found = self.operator.rmatvec(given)
        except NotImplementedError as error:
            raise ParameterError(
                f"{type(self.operator).__name__} has no rmatvec, but a gradient is what the transpose makes "
                "of the residual. Give LinearOperator(..., rmatvec=...)."
            ) from error
        every = from_host(np.asarray(found, dtype=np.float64)).to(self.dtype)
        for start in range(0, self.size, self.block):
            yield start, every[start : start + self.block]


def _precision(dtype: Any) -> type:
    return np.float32 if dtype == np.float32 else np.float64


def _refuse_type(dtype: Any) -> None:
    if dtype is not None and np.dtype(dtype).kind == "c":
        raise DataError("the operator is complex, but weights are real. Stack its real and imaginary parts.")


def _refuse_strange(numbers: np.ndarray) -> None:
    if not np.isfinite(numbers).all():
        raise DataError("the matrix holds NaN or infinity. Remove or replace those entries.")


def _refusal(matrix: Any) -> ParameterError:
    return ParameterError(
        f"operator={type(matrix).__name__}(...), but it must be a matrix (of two dimensions, from NumPy, "
        "SciPy or torch), a SciPy LinearOperator, or an Operator with forward, adjoint and on_support."
    )
