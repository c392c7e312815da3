"""A vector that holds its nonzeros and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class SparseVector:
    """Sorted positions and their values; every other entry is zero.

    Attributes
    ----------
    indices : int64 tensor of shape (nonzeros,)
        Positions, strictly ascending.
    values : tensor of shape (nonzeros,)
        Entries at those positions.
    size : int
        Length of the whole vector.

    Examples
    --------
    >>> v = SparseVector.from_dense(torch.tensor([0.0, 3.0, 0.0, -1.0]))
    >>> v.indices.tolist(), v.values.tolist(), v.size
    ([1, 3], [3.0, -1.0], 4)
    """

    indices: Tensor
    values: Tensor
    size: int

    @classmethod
    def zeros(cls, size: int, dtype: torch.dtype = torch.float32) -> SparseVector:
        """Make the zero vector."""
        return cls(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=dtype), size)

    @classmethod
    def from_dense(cls, dense: Tensor) -> SparseVector:
        """Take the nonzeros of a dense vector."""
        indices = dense.nonzero().flatten()
        return cls(indices, dense[indices], dense.numel())

    @property
    def nonzeros(self) -> int:
        """How many entries are held."""
        return self.indices.numel()

    def to_dense(self) -> Tensor:
        """Write the vector out in full: `size` numbers."""
        dense = torch.zeros(self.size, dtype=self.values.dtype)
        dense[self.indices] = self.values
        return dense

    def at(self, indices: Tensor) -> Tensor:
        """Read the entries at the given positions, zero where nothing is held."""
        if self.nonzeros == 0:
            return torch.zeros(indices.shape, dtype=self.values.dtype)
        place = torch.searchsorted(self.indices, indices).clamp_(max=self.nonzeros - 1)
        return torch.where(self.indices[place] == indices, self.values[place], 0)

    def with_values(self, values: Tensor) -> SparseVector:
        """Give the same positions other values."""
        return SparseVector(self.indices, values, self.size)

    def to(self, dtype: torch.dtype) -> SparseVector:
        """Give the same vector in another precision."""
        return self.with_values(self.values.to(dtype))

    def same_support(self, other: SparseVector) -> bool:
        """Say whether two vectors hold the same positions."""
        return torch.equal(self.indices, other.indices)
