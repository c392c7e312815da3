"""A few cosines, found again from samples of their sum: thresholding under an operator of one's own.

python examples/own_operator.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from thresher import iht
from thresher.linear import DenseColumns, Operator, SparseVector

BLOCK = 500


class Cosines(Operator):
    """Samples of ``sum_k w_k cos(pi k t)``: a matrix of which only the columns in use ever exist."""

    def __init__(self, times: Tensor, size: int) -> None:
        self.times, self.rows, self.size, self.dtype = times, len(times), size, times.dtype

    def columns(self, frequencies: Tensor) -> Tensor:  # (rows, len(frequencies))
        """Write some columns out."""
        return torch.cos(torch.pi * self.times[:, None] * frequencies)

    def forward(self, w: SparseVector) -> Tensor:  # (rows,)
        """Compute A w."""
        return self.columns(w.indices) @ w.values

    def adjoint(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Compute A' r, a block of frequencies at a time."""
        for block in torch.arange(self.size).split(BLOCK):
            yield int(block[0]), self.columns(block).T @ residual

    def on_support(self, support: Tensor) -> DenseColumns:
        """Restrict to some frequencies."""
        return DenseColumns(self.columns(support))

    def column_norms(self) -> Iterator[tuple[int, Tensor]]:
        """Give the norm of every column."""
        for block in torch.arange(self.size).split(BLOCK):
            yield int(block[0]), self.columns(block).norm(dim=0)


if __name__ == "__main__":
    places, values = [17, 230, 771, 1404, 1999], [1.0, -2.0, 0.5, 1.5, -1.0]
    truth = SparseVector(torch.tensor(places), torch.tensor(values).double(), 2000)
    A = Cosines(torch.from_numpy(np.random.default_rng(0).random(200)), truth.size)
    found = iht(A, A.forward(truth), budget=5)
    print(f"{A.rows} samples, {A.size:,} frequencies; found {found.w.indices.tolist()}")
    print(f"largest error of an amplitude: {float((found.w.to_dense() - truth.to_dense()).abs().max()):.0e}")
    print(found.status)
