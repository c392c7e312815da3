"""The gated operator restricted to a support, whose gates are held as bytes where they fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from thresher.linear.operator import Restricted, Slope
from thresher.objective.gates import SparseGenerators
from thresher.objective.products import Scratch, pairs

if TYPE_CHECKING:
    from thresher.objective.gated import GatedOperator

Product = Callable[[Tensor, Tensor], Tensor]
"""(chunk, out) -> out, of shape (neurons, rows)."""


@dataclass(frozen=True, eq=False)
class Activations:
    """``X h_i`` for some neurons."""

    neurons: Tensor  # ascending
    product: Product

    @property
    def count(self) -> int:
        """How many neurons."""
        return self.neurons.numel()


class GatedRestricted(Restricted):
    """The columns of a support: pairs of live neurons and used features."""

    def __init__(self, operator: GatedOperator, support: Tensor, cache: bool) -> None:
        self.operator, self.support = operator, support
        self.rows, self.size = operator.rows, support.numel()
        self.live, neuron = torch.unique(support // operator.features, return_inverse=True)
        self.pairs = pairs(operator.seen, neuron, support % operator.features, self.live.numel())
        self.scratch = Scratch(operator.dtype)
        # A gate is held as one byte once it is known; what does not fit is computed again every time. (Bytes
        # of type int8 become floats ten times as fast as those of type bool.)
        fits = cache and self.rows * self.live.numel() <= operator.memory_limit // 2
        self._held = torch.empty(self.live.numel(), self.rows, dtype=torch.int8) if fits else None
        self._known = 0
        self._sparse: Activations | None = None
        if isinstance(operator.generators, SparseGenerators):
            self._sparse = operator.activations(self.live, Scratch(operator.dtype))
        elif self._held is not None:
            self._draw_gates(self._held)

    def _drawn(self) -> Iterator[tuple[slice, Activations]]:
        """Draw dense generators for a block of live neurons after another."""
        for first in range(0, self.live.numel(), self.operator.block):
            part = slice(first, first + self.operator.block)
            yield part, self.operator.activations(self.live[part], self.scratch)

    def _draw_gates(self, gates: Tensor) -> None:
        """Compute all gates of dense generators, each of which is drawn only once."""
        for part, activations in self._drawn():
            for first, last, chunk in self._chunks():
                raw = self.scratch("gates", activations.count, last - first)
                gates[part, first:last] = activations.product(chunk, raw).gt_(0)
        self._known = self.rows

    def _chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        return self.operator.chunks(self.live.numel())

    def _signed(self, values: Tensor) -> Tensor:
        return self.operator.signed(self.support // self.operator.features, values)

    def _gates(self, first: int, last: int, chunk: Tensor) -> Tensor:  # (live, rows)
        """Give the gates of a chunk as numbers 0 and 1, in memory that may be written to."""
        gates = self.scratch("gates", self.live.numel(), last - first)
        if self._held is not None and last <= self._known:
            return gates.copy_(self._held[:, first:last])
        if self._sparse is None:
            for part, activations in self._drawn():
                activations.product(chunk, gates[part])
        elif self._sparse.count == self.live.numel():
            self._sparse.product(chunk, gates)
        else:
            raw = self._sparse.product(chunk, self.scratch("raw", self._sparse.count, last - first))
            gates.zero_().index_copy_(0, torch.searchsorted(self.live, self._sparse.neurons), raw)
        gates.gt_(0)
        if self._held is not None and first <= self._known:
            self._held[:, first:last] = gates
            self._known = last
        return gates

    def forward(self, values: Tensor) -> Tensor:
        """Compute A_S v: one product of the used features with the live neurons."""
        return self._pass(values, None)[0]

    def adjoint(self, residual: Tensor) -> Tensor:
        """Compute A_S' r from the product over used features and live neurons."""
        return self._pass(None, lambda output, first, last: residual[first:last])[1]

    def sweep(self, values: Tensor, slope: Slope) -> tuple[Tensor, Tensor]:
        """Compute A_S v and A_S' slope(A_S v) in one pass over the data."""
        return self._pass(values, slope)

    def _pass(self, values: Tensor | None, slope: Slope | None) -> tuple[Tensor, Tensor]:
        """Go through the data once: forward where there are values, back where there is a slope."""
        output = torch.zeros(self.rows, dtype=self.operator.dtype)
        if self.size == 0:
            return output, torch.zeros(0, dtype=self.operator.dtype)
        weights = None if values is None else self.pairs.weights(self._signed(values))
        total = self.pairs.zeros() if slope is not None else None
        for first, last, chunk in self._chunks():
            part, gates = self.pairs.read(chunk, self.scratch), self._gates(first, last, chunk)
            if weights is not None:
                product = self.pairs.multiply(weights, part, self.scratch("product", *gates.shape))
                torch.sum(product.mul_(gates), 0, out=output[first:last])
            if slope is not None and total is not None:
                self.pairs.add(total, part, gates.mul_(slope(output[first:last], first, last)))
        return output, output if total is None else self._signed(self.pairs.take(total))

    def work(self) -> float:
        """Estimate the multiplications in one forward and one adjoint: products, and passes over gates."""
        return self.rows * (self.pairs.work() + 30.0 * self.live.numel())

    def gram_work(self) -> float:
        """Estimate the multiplications in the Gram matrix, whose columns have to be put together first."""
        return self.rows * self.size * (self.size + 80.0)

    def row_chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        """Write A_S out a chunk of rows at a time."""
        operator, used = self.operator, self.pairs.used
        size = max(64, min(operator.data.chunk_rows(1), 2 * 2**20 // max(1, self.size)))
        for first, last, chunk in operator.read(size):
            part = operator.seen.transposed(chunk, used, self.scratch("part", used.numel(), last - first))
            opened = self.scratch("opened", self.size, last - first)
            gates = torch.index_select(self._gates(first, last, chunk), 0, self.pairs.neuron, out=opened)
            columns = torch.index_select(part, 0, self.pairs.place).mul_(gates)
            yield first, last, self._signed(columns).T
