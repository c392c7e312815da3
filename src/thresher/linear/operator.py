"""What every operator offers: linear maps that are never built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host
from thresher.errors import ParameterError
from thresher.linear.vector import SparseVector

# The largest Gram matrix worth holding: 32 MB in float64.
GRAM_LIMIT = 2000

Blocks = Iterator[tuple[int, Tensor]]
"""Parts of a long vector as they become ready: where each starts, and its entries."""

Slope = Callable[[Tensor, int, int], Tensor]
"""(output of rows start to stop, start, stop) -> what the adjoint is applied to, on those rows."""


class Operator(ABC):
    """A linear map from a long vector to n numbers, known by what it does.

    A new operator supplies the four abstract methods; everything else follows from them. Two methods are for
    those that can do more: `take` for minibatches, `following` for gates.

    Attributes
    ----------
    rows, size : int
        What comes out, and what goes in.
    dtype : torch.dtype
        Precision of all arithmetic.
    signs : tensor of shape (neurons,), optional
        The sign with which each neuron enters the output, where columns belong to neurons.
    """

    rows: int
    size: int
    dtype: torch.dtype
    signs: Tensor | None = None

    @abstractmethod
    def forward(self, w: SparseVector) -> Tensor:  # (rows,)
        """Compute A w."""

    @abstractmethod
    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute A' r, in blocks of at most what the memory limit allows."""

    @abstractmethod
    def on_support(self, support: Tensor) -> Restricted:
        """Restrict the operator to some of its columns, in ascending order."""

    @abstractmethod
    def column_norms(self) -> Blocks:
        """Give the Euclidean norm of every column, in blocks."""

    def sweep(self, w: SparseVector, slope: Slope) -> tuple[Tensor, Blocks]:
        """Compute A w and then A' slope(A w), which some operators do in one pass over the data.

        Parameters
        ----------
        w : SparseVector
        slope : callable (output, start, stop) -> tensor
            Turns the output on rows `start` to `stop` into what the adjoint is applied to.
        """
        output = self.forward(w)
        return output, self.adjoint(slope(output, 0, self.rows))

    def take(self, rows: np.ndarray) -> Operator:
        """Restrict the operator to some of its rows, in the given order, where it can be."""
        raise ParameterError(
            f"{type(self).__name__} has no method `take` that restricts it to some of its rows, as "
            "minibatches need: use batch_size=None."
        )

    def pick(self, numbers: Tensor, rows: np.ndarray) -> Tensor:
        """Give the entries of some rows of a vector that has one for each."""
        return numbers[from_host(rows)]

    def total(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Complete sums over the rows that are here, where others are elsewhere."""
        return parts

    def following(self, w: SparseVector, signs: Tensor | None = None, fallback: Any = None) -> Operator:
        """Give the operator whose gates are those of the weights w, where it has gates."""
        raise ParameterError(
            f"{type(self).__name__} has no gates that could follow the weights: use update_gates_every=None, "
            "or a GatedOperator."
        )

    def as_matrix(self) -> Tensor:  # (rows, size)
        """Write the operator out, column by column. Meant for tests: it needs rows x size numbers."""
        one = torch.ones(1, dtype=self.dtype)
        columns = [self.forward(SparseVector(torch.tensor([j]), one, self.size)) for j in range(self.size)]
        return torch.stack(columns, dim=1)


class Restricted(ABC):
    """An operator restricted to a support: a (rows, s) matrix that is never built whole."""

    rows: int
    size: int

    @abstractmethod
    def forward(self, values: Tensor) -> Tensor:  # (rows,)
        """Compute A_S v."""

    @abstractmethod
    def adjoint(self, residual: Tensor) -> Tensor:  # (s,)
        """Compute A_S' r."""

    def sweep(self, values: Tensor, slope: Slope) -> tuple[Tensor, Tensor]:
        """Compute A_S v and then A_S' slope(A_S v), which some operators do in one pass over the data."""
        output = self.forward(values)
        return output, self.adjoint(slope(output, 0, self.rows))

    @abstractmethod
    def row_chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        """Write A_S out a chunk of rows at a time: (start, stop, tensor of shape (stop - start, s))."""

    def total(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Complete sums over the rows that are here, where others are elsewhere."""
        return parts

    def work(self) -> float:
        """Estimate the multiplications in one forward and one adjoint."""
        return 2.0 * self.rows * self.size

    def gram_work(self) -> float:
        """Estimate the multiplications in the Gram matrix."""
        return self.rows * self.size * (self.size + 16.0)

    def gram(self, weight: Tensor | None = None) -> Tensor:  # (s, s)
        """Compute A_S' diag(weight) A_S, summed in float64."""
        total = torch.zeros(self.size, self.size, dtype=torch.float64)
        for start, stop, part in self.row_chunks():
            right = part if weight is None else part * weight[start:stop, None]
            total += part.T @ right
        return self.total(total)[0]

    def normal(self, times: int, weight: Tensor | None = None) -> Callable[[Tensor], Tensor]:
        """Prepare ``v -> A_S' diag(weight) A_S v`` for being applied some times, the cheaper way.

        Either the Gram matrix is computed once and every application is free, or every application is a
        forward and an adjoint.
        """
        if self.gram_work() < times * self.work() and self.size <= GRAM_LIMIT:
            gram = self.gram(weight)
            return lambda v: (gram @ v.double()).to(v.dtype)

        def slope(output: Tensor, start: int, stop: int) -> Tensor:
            return output if weight is None else output * weight[start:stop]

        return lambda v: self.sweep(v, slope)[1]
