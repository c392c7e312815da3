"""A Gaussian sensing matrix generated column by column: plain compressed sensing, the sanity check."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host
from thresher.linear.matrix import ByColumns


class GaussianOperator(ByColumns):
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

    def columns(self, which: slice | Tensor) -> Tensor:
        """Generate some columns."""
        indices = range(self.size)[which] if isinstance(which, slice) else which.tolist()
        block = np.empty((len(indices), self.rows))
        for row, column in enumerate(indices):
            np.random.Generator(np.random.Philox(key=[self.seed, column])).standard_normal(out=block[row])
        return (from_host(block).T / self.rows**0.5).to(self.dtype)
