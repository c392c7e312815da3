"""A Gaussian sensing matrix generated column by column: plain compressed sensing, the sanity check."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from thresher.linear.matrix import DenseColumns
from thresher.linear.operator import Blocks, Operator, Restricted
from thresher.linear.vector import SparseVector


class GaussianOperator(Operator):
    """A matrix with independent N(0, 1/rows) entries of which no more than a block exists at a time.

    Parameters
    ----------
    rows, size : int
        Shape of the matrix.
    seed : int
        The same seed gives the same matrix, whatever the block.
    block : int
        Columns generated at once.
    dtype : torch.dtype
        Precision of all arithmetic.
    """

    def __init__(
        self, rows: int, size: int, seed: int = 0, block: int = 256, dtype: torch.dtype = torch.float32
    ) -> None:
        self.rows, self.size, self.seed, self.block, self.dtype = rows, size, seed, block, dtype

    def columns(self, indices: range | list[int]) -> Tensor:  # (rows, len(indices))
        """Generate some columns."""
        block = np.empty((len(indices), self.rows))
        for row, column in enumerate(indices):
            np.random.Generator(np.random.Philox(key=[self.seed, column])).standard_normal(out=block[row])
        return (torch.from_numpy(block).T / self.rows**0.5).to(self.dtype)

    def forward(self, w: SparseVector) -> Tensor:
        """Compute A w from the columns that w uses."""
        output = torch.zeros(self.rows, dtype=self.dtype)
        for start in range(0, w.nonzeros, self.block):
            part = slice(start, start + self.block)
            output += self.columns(w.indices[part].tolist()) @ w.values[part].to(self.dtype)
        return output

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute A' r in blocks of columns."""
        for start in range(0, self.size, self.block):
            yield start, self.columns(range(start, min(start + self.block, self.size))).T @ residual

    def on_support(self, support: Tensor) -> Restricted:
        """Generate the columns of a support once and hold them."""
        return DenseColumns(self.columns(support.tolist()))

    def column_norms(self) -> Blocks:
        """Give the norm of every column."""
        for start in range(0, self.size, self.block):
            yield start, self.columns(range(start, min(start + self.block, self.size))).norm(dim=0)
