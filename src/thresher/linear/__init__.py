"""Sparse vectors, their budget, and linear maps that are never built."""

from thresher.linear.gaussian import GaussianOperator
from thresher.linear.matrix import DenseColumns, MatrixOperator, UnitColumns
from thresher.linear.operator import Blocks, Operator, Restricted
from thresher.linear.vector import SparseVector

__all__ = [
    "Blocks",
    "DenseColumns",
    "GaussianOperator",
    "MatrixOperator",
    "Operator",
    "Restricted",
    "SparseVector",
    "UnitColumns",
]
