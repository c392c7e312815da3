"""The gated ReLU operator ``A = [D_1 X | ... | D_m X]``, never built."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from thresher.errors import MemoryLimitError
from thresher.gates import Generators, block_of, follow
from thresher.operators.base import Blocks, Operator, Restricted
from thresher.operators.design import Design, Linear
from thresher.vector import SparseVector

MEMORY_LIMIT = 64 * 2**20


class GatedOperator(Operator):
    """Equation 2 of the paper: block i of the operator is ``D_i X`` with ``D_i = diag(X h_i > 0)``.

    The weight of feature j in neuron i has the flat position ``i * features + j``. All products are matrix
    products over chunks of rows; the gates of a chunk exist only while it is in cache.

    Parameters
    ----------
    design : Design
        The data.
    generators : Generators
        The vectors h_i.
    memory_limit : int
        Bytes that working arrays may take.
    followed : SparseVector, optional
        The weights that the generators are taken from. Applying the operator to these very weights is one
        product less, because ``X h_i`` is then also the neuron's output before its gate.
    signs : tensor of shape (neurons,), optional
        With `followed`: the sign with which each neuron enters the output.
    """

    def __init__(
        self,
        design: Design,
        generators: Generators,
        memory_limit: int = MEMORY_LIMIT,
        followed: SparseVector | None = None,
        signs: Tensor | None = None,
    ) -> None:
        self.design, self.generators = design, generators
        self.rows, self.dtype = design.rows, design.dtype
        self.features, self.neurons = design.features, generators.neurons
        self.size = self.features * self.neurons
        self.memory_limit = memory_limit
        self.followed, self.signs = followed, signs
        number = torch.finfo(self.dtype).bits // 8
        each = number * (self.features + 3 * design.chunk_rows(self.neurons))
        if each > memory_limit:
            raise MemoryLimitError(
                f"memory_limit={memory_limit:,} bytes, but one neuron with {self.features:,} inputs needs "
                f"{each:,} bytes of working memory. Raise memory_limit."
            )
        # Besides the block itself there are its generators, once drawn and once scaled, and a chunk's gates.
        self.block = max(1, min(self.neurons, memory_limit // 6 // each))
        self.fits_whole = number * self.size <= memory_limit // 2

    def following(self, w: SparseVector, signs: Tensor, fallback: Generators | None = None) -> GatedOperator:
        """Give the operator whose gates follow the weights w."""
        generators = follow(w, signs, self.features, fallback)  # type: ignore[arg-type]
        return GatedOperator(self.design, generators, self.memory_limit, followed=w, signs=signs)

    def on_rows(self, design: Design) -> GatedOperator:
        """Give the operator with the same gates' generators on other rows."""
        return GatedOperator(design, self.generators, self.memory_limit, self.followed, self.signs)

    def activations(self, start: int, stop: int) -> Linear:
        """Prepare ``X h_i`` for neurons `start` to `stop`."""
        return self.design.linear(*self.generators.columns(start, stop, self.dtype))

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Go through the neurons in blocks."""
        for start in range(0, self.neurons, self.block):
            yield start, min(start + self.block, self.neurons)

    def forward(self, w: SparseVector) -> Tensor:
        """Compute ``sum_i D_i X w_i`` over the neurons that have weights."""
        return self.on_support(w.indices, cache=False).forward(w.values.to(self.dtype))

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute ``X' (gates * r)`` for one block of neurons after another."""
        for start, stop in self.blocks():
            activations = self.activations(start, stop)
            out = torch.zeros(stop - start, self.features, dtype=self.dtype)
            for first, last, chunk in self.design.chunks(self.neurons):
                rows = _gates_(activations(chunk)).mul_(residual[first:last, None])
                self.design.accumulate(out, chunk, rows)
            yield start * self.features, self.design.rescale(out).view(-1)

    def sweep(self, w: SparseVector, slope: Callable[[Tensor, int, int], Tensor]) -> tuple[Tensor, Blocks]:
        """Compute the output and the gradient in one pass where the whole gradient fits into memory."""
        if not self.fits_whole:
            return super().sweep(w, slope)
        activations = self.activations(0, self.neurons)
        read = self._reader(w)
        output = torch.empty(self.rows, dtype=self.dtype)
        out = torch.zeros(self.neurons, self.features, dtype=self.dtype)
        for first, last, chunk in self.design.chunks(self.neurons):
            raw = activations(chunk)
            output[first:last] = read(chunk, raw)
            rows = _gates_(raw).mul_(slope(output[first:last], first, last)[:, None])
            self.design.accumulate(out, chunk, rows)
        return output, iter([(0, self.design.rescale(out).view(-1))])

    def _reader(self, w: SparseVector) -> Callable[[Tensor, Tensor], Tensor]:
        """Prepare the output of w on a chunk from its activations; may clip them, keeps their signs > 0."""
        live = torch.unique(w.indices // self.features)
        if w is self.followed and self.signs is not None:
            enters = torch.zeros(self.neurons, dtype=self.dtype)
            enters[live] = self.signs[live].to(self.dtype)
            return lambda chunk, raw: raw.clamp_(min=0) @ enters
        products = self.design.linear(*_dense_block(w, live, self.features, self.dtype))
        return lambda chunk, raw: products(chunk).mul_(raw[:, live] > 0).sum(1)

    def on_support(self, support: Tensor, cache: bool = True) -> GatedRestricted:
        """Restrict to some weights; their gates are held where they fit into memory."""
        return GatedRestricted(self, support, cache)

    def column_norms(self) -> Blocks:
        """Give the norm of every column ``D_i X_j``."""
        for start, stop in self.blocks():
            activations = self.activations(start, stop)
            out = torch.zeros(stop - start, self.features, dtype=self.dtype)
            for _, _, chunk in self.design.chunks(self.neurons):
                self.design.accumulate(out, chunk.square(), _gates_(activations(chunk)))
            yield start * self.features, self.design.rescale(self.design.rescale(out)).sqrt_().view(-1)


class GatedRestricted(Restricted):
    """The columns of a support: live neurons times used features, of which only the support counts."""

    def __init__(self, operator: GatedOperator, support: Tensor, cache: bool) -> None:
        self.operator, self.design = operator, operator.design
        self.rows, self.size = operator.rows, support.numel()
        neuron, feature = support // operator.features, support % operator.features
        self.live, self.neuron = torch.unique(neuron, return_inverse=True)
        self.used, self.feature = torch.unique(feature, return_inverse=True)
        self._prepared: list[tuple[int, int, Linear]] | None = None
        # A gate is held as one byte; what does not fit is computed again when it is needed.
        fits = self.rows * self.live.numel() <= operator.memory_limit // 2
        self.gates = self._all_gates() if cache and fits else None

    def _activations(self) -> Iterator[tuple[int, int, Linear]]:
        """Prepare the activations of live neurons, a block of them at a time."""
        for start in range(0, self.live.numel(), self.operator.block):
            part = self.live[start : start + self.operator.block]
            linear = self.design.linear(*self.operator.generators.pick(part, self.operator.dtype))
            yield start, start + part.numel(), linear

    def _all_gates(self) -> Tensor:  # (rows, live), bool
        gates = torch.empty(self.rows, self.live.numel(), dtype=torch.bool)
        for start, stop, activations in self._activations():
            for first, last, chunk in self._chunks():
                gates[first:last, start:stop] = activations(chunk) > 0
        return gates

    def _chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        return self.design.chunks(self.live.numel())

    def _gates_of(self, first: int, last: int, chunk: Tensor) -> Tensor:
        if self.gates is not None:
            return self.gates[first:last]
        if self._prepared is None:
            self._prepared = list(self._activations())
        return torch.cat([activations(chunk) > 0 for _, _, activations in self._prepared], 1)

    def forward(self, values: Tensor) -> Tensor:
        """Compute A_S v: one product of the used features with the live neurons."""
        output = torch.zeros(self.rows, dtype=self.operator.dtype)
        if self.size == 0:
            return output
        weights = torch.zeros(self.used.numel(), self.live.numel(), dtype=self.operator.dtype)
        weights[self.feature, self.neuron] = values
        products = self.design.linear(self.used, weights)
        for first, last, chunk in self._chunks():
            gated = products(chunk).mul_(self._gates_of(first, last, chunk))
            torch.sum(gated, 1, out=output[first:last])
        return output

    def adjoint(self, residual: Tensor) -> Tensor:
        """Compute A_S' r from the product over used features and live neurons."""
        if self.size == 0:
            return torch.zeros(0, dtype=self.operator.dtype)
        out = torch.zeros(self.live.numel(), self.used.numel(), dtype=self.operator.dtype)
        everything = self.used.numel() == self.operator.features
        for first, last, chunk in self._chunks():
            rows = self._gates_of(first, last, chunk) * residual[first:last, None]
            if everything:
                self.design.accumulate(out, chunk, rows)
            else:
                out.addmm_(rows.T, self.design.gather(chunk, self.used))
        if everything:
            self.design.rescale(out)
        return out[self.neuron, self.feature]

    def work(self) -> float:
        """Estimate the multiplications in one forward and one adjoint: products, and passes over gates."""
        return 2.0 * self.rows * self.live.numel() * (self.used.numel() + 32)

    def row_chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        """Write A_S out a chunk of rows at a time."""
        size = max(64, min(self.design.chunk_rows(1), 4 * 2**20 // max(1, self.size)))
        for first in range(0, self.rows, size):
            last = min(first + size, self.rows)
            chunk = self.design.chunk(first, last)
            columns = self.design.gather(chunk, self.used)[:, self.feature]
            yield first, last, columns.mul_(self._gates_of(first, last, chunk)[:, self.neuron])


def _gates_(raw: Tensor) -> Tensor:
    """Turn activations into gates 0 and 1, in place."""
    return raw.clamp_(min=0).sign_()


def _dense_block(w: SparseVector, live: Tensor, features: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Write the columns of the live neurons as a dense block over the features they use."""
    compact = torch.searchsorted(live, w.indices // features) * features + w.indices % features
    return block_of(
        SparseVector(compact, w.values, live.numel() * features), features, 0, live.numel(), dtype
    )
