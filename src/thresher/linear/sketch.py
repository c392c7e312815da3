"""The count sketch: noisy sums for a vector far too long to hold, in a few short rows of counters.

Every position of the vector is hashed to one counter in each row and to a sign. Adding to a position adds,
with that sign, to its counters; the estimate is the median over the rows of what the counters say. Collisions
have random signs, so each row's estimate is unbiased, and in a row of width w it misses by more than
``sqrt(3 / w) ||x||`` with probability below 1/3 (Chebyshev's inequality on a variance of at most
``||x||^2 / w``); the median of several rows fails much more rarely.

Reference: Charikar, Chen and Farach-Colton, Finding frequent items in data streams, 2002.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from thresher.errors import ParameterError

ROWS = 4
MASK = 2**63 - 1


class Hashed(NamedTuple):
    """Where some positions are in the table, read row by row as one line, and their signs there."""

    cells: Tensor  # (rows, positions)
    signs: Tensor  # (rows, positions)


class CountSketch:
    """Counters that estimate any entry of a long vector.

    Parameters
    ----------
    size : int
        Length of the vector.
    width : int
        Counters in each row.
    rows : int
        Independent rows, of which the median is taken.
    seed : int
        Seed of the hashes, which depend on nothing else: not on the order in which entries arrive.
    dtype : torch.dtype
        Precision of the counters.

    Examples
    --------
    >>> sketch = CountSketch(size=10**9, width=64, seed=0)
    >>> sketch.add(torch.tensor([5, 123_456_789]), torch.tensor([1.0, -2.0]))
    >>> sketch.estimate(torch.tensor([123_456_789, 5])).tolist()
    [-2.0, 1.0]
    """

    def __init__(
        self, size: int, width: int, rows: int = ROWS, seed: int = 0, dtype: torch.dtype = torch.float32
    ) -> None:
        if min(size, width, rows) < 1:
            raise ParameterError(
                f"size={size}, width={width}, rows={rows}, but a sketch needs at least 1 of each."
            )
        self.size, self.width, self.rows = size, width, rows
        self.table = torch.zeros(rows, width, dtype=dtype)
        draws = torch.randint(1, MASK, (rows, 2), generator=torch.Generator().manual_seed(seed), device="cpu")
        self._salts = draws.tolist()

    @classmethod
    def for_budget(cls, budget: int, size: int, seed: int = 0) -> CountSketch:
        """Make the paper's sketch: ``4 s log(n / s)`` counters, but at least s in each of the four rows."""
        width = math.floor(budget * max(1.0, math.log(size / budget)))
        return cls(size, width, ROWS, seed)

    @property
    def numbers(self) -> int:
        """Counters held."""
        return self.table.numel()

    def add(self, indices: Tensor, values: Tensor) -> None:
        """Add values at some positions."""
        cells, signs = self.hashed(indices)
        signed = signs * values.to(self.table.dtype)
        self.table.view(-1).index_add_(0, cells.view(-1), signed.view(-1))

    def estimate(self, indices: Tensor) -> Tensor:
        """Estimate the sums at some positions: the median over the rows, between the middle two if even."""
        cells, signs = self.hashed(indices)
        ordered = (self.table.view(-1)[cells] * signs).sort(0).values
        return (ordered[(self.rows - 1) // 2] + ordered[self.rows // 2]) / 2

    def hashed(self, indices: Tensor) -> Hashed:
        """Hash some positions: where they are in the table, and their signs."""
        found = [self._hash(indices, row) for row in range(self.rows)]
        cells = torch.stack([place + row * self.width for row, (place, _) in enumerate(found)])
        return Hashed(cells, torch.stack([sign for _, sign in found]))

    def _hash(self, indices: Tensor, row: int) -> tuple[Tensor, Tensor]:
        """Mix the bits of the positions; the low bits choose the counter and the top bit the sign."""
        first, second = self._salts[row]
        bits = indices + first
        # Two rounds of shift and multiply, in the wrapping arithmetic of 64 bits.
        for factor in (0x2545F4914F6CDD1D, second | 1):
            bits = (bits ^ (bits >> 31)) * factor
        bits = bits ^ (bits >> 29)
        sign = 1 - 2 * ((bits >> 62) & 1)
        return (bits & (2**61 - 1)) % self.width, sign.to(self.table.dtype)
