"""The gated operator restricted to a support, whose gates are held as bytes where they fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from thresher.linear.operator import Restricted, Slope
from thresher.objective.gates import SparseGenerators

if TYPE_CHECKING:
    from thresher.objective.gated import GatedOperator, Product


class Scratch:
    """Memory that is used again for every chunk: fresh memory costs more than the arithmetic done in it."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._held: dict[str, Tensor] = {}

    def __call__(self, name: str, rows: int, neurons: int) -> Tensor:  # (rows, neurons)
        """Give the memory of that name, with whatever is in it; the rows of one neuron are together."""
        if name not in self._held or self._held[name].numel() < rows * neurons:
            self._held[name] = torch.empty(rows * neurons, dtype=self.dtype)
        return self._held[name][: rows * neurons].view(neurons, rows).T


class GatedRestricted(Restricted):
    """The columns of a support: pairs of live neurons and used features."""

    def __init__(self, operator: GatedOperator, support: Tensor) -> None:
        self.operator, self.rows, self.size = operator, operator.rows, support.numel()
        nothing = torch.zeros(self.size, dtype=operator.dtype)
        self.live, self.block = operator.products(support, nothing)
        self.signs = operator.signs[self.live]
        self.signs_of_weights = operator.signs[support // operator.features]
        # The gates of a chunk are held as bytes once they are known; what does not fit is computed again
        # every time. (Bytes of type int8 become floats ten times as fast as those of type bool.)
        self._fits = operator.held * self.live.numel() <= operator.memory_limit // 2
        self._held: list[Tensor] = []
        self.scratch = Scratch(operator.dtype)
        self._sparse: tuple[Tensor, Product] | None = None
        if isinstance(operator.generators, SparseGenerators):
            self._sparse = operator.activations(self.live, self.scratch)
        elif self._fits:
            self._held = self._drawn_gates()

    def _chunks(self) -> Iterator[tuple[int, int, int, Tensor]]:
        """Read the rows in chunks, which are numbered."""
        # The columns in use of a chunk are dense, whatever the rows are.
        chunks = self.operator.chunks(self.operator.data.chunk_rows(max(self.live.numel(), self.block.width)))
        return ((number, *chunk) for number, chunk in enumerate(chunks))

    def _activations(self) -> Iterator[tuple[Tensor, Product]]:
        """Give ``X h_i`` for some live neurons after others; dense generators are drawn anew."""
        if self._sparse is not None:
            yield self._sparse
            return
        for neurons in self.live.split(self.operator.block):
            yield self.operator.activations(neurons, self.scratch)

    def _drawn_gates(self) -> list[Tensor]:
        """Compute all gates of dense generators, each of which is drawn only once."""
        held: list[list[Tensor]] = []
        for neurons, product in self._activations():
            held.append([])
            for *_, chunk in self._chunks():
                raw = product(chunk, self.scratch("raw", len(chunk), neurons.numel()))
                held[-1].append((raw.T > 0).to(torch.int8))
        return [torch.cat(parts).T for parts in zip(*held, strict=True)]

    def _gates(self, number: int, chunk: Tensor) -> Tensor:  # (rows, live)
        """Give the gates of a chunk as numbers 0 and 1, in memory that may be written to."""
        gates = self.scratch("gates", len(chunk), self.live.numel())
        if number < len(self._held):
            return gates.copy_(self._held[number])
        if self._sparse is not None and self._sparse[0].numel() == self.live.numel():
            gates = self._sparse[1](chunk, gates).gt_(0)
        else:
            gates.zero_()
            for neurons, product in self._activations():
                raw = product(chunk, self.scratch("raw", len(chunk), neurons.numel()))
                gates.T.index_copy_(0, torch.searchsorted(self.live, neurons), raw.gt_(0).T)
        if self._fits and number == len(self._held):
            self._held.append(gates.T.to(torch.int8).T)
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
        output = torch.zeros(self.operator.held, dtype=self.operator.dtype)
        total = torch.zeros(self.size, dtype=self.operator.dtype)
        if self.size == 0:
            return output, total
        block, part = self.block.after_reading(), torch.empty_like(total)
        if values is not None:
            block = block.at(values)
        for number, first, last, chunk in self._chunks():
            columns, gates = self.block.read(chunk), self._gates(number, chunk)
            if values is not None:
                product = block.forward(columns, self.scratch("product", *gates.shape))
                torch.mv(product.mul_(gates), self.signs, out=output[first:last])
            if slope is not None:
                delta = gates.mul_(slope(output[first:last], first, last)[:, None])
                block.gradient(columns, delta, part)
                total += part
        if slope is not None:
            (total,) = self.total(total)
        return output, total.mul_(self.signs_of_weights)

    def total(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Complete sums over the rows that are here."""
        return self.operator.total(*parts)

    def work(self) -> float:
        """Estimate the multiplications in one forward and one adjoint, for each neuron's gates among them.

        Reading a number costs some sixty multiplications of a dense product, a pair by itself some ten.
        """
        block, neurons = self.block, self.live.numel()
        pairs = 2.0 * block.width * neurons if block.dense else 10.0 * self.size
        return self.rows * (60.0 * block.width + pairs + 30.0 * neurons)

    def gram_work(self) -> float:
        """Estimate the multiplications in the Gram matrix, whose columns have to be put together first."""
        return self.rows * self.size * (self.size + 80.0)

    def row_chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        """Write A_S out a chunk of rows at a time."""
        size = max(64, 2 * 2**20 // max(1, self.size))
        for number, first, _, chunk in self._chunks():
            gates = self._gates(number, chunk).mul_(self.signs)
            for start in range(0, len(chunk), size):
                part = self.block.read(chunk[start : start + size]).T.contiguous()
                columns = torch.empty(self.size, part.shape[1], dtype=self.operator.dtype)
                self.block.derivatives(part, gates[start : start + size].T.contiguous(), columns)
                yield first + start, first + start + part.shape[1], columns.T
