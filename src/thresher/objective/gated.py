"""The gated ReLU operator ``A = [D_1 X | ... | D_m X]``, never built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from thresher.errors import MemoryLimitError
from thresher.linear.operator import Blocks, Operator, Restricted, Slope
from thresher.linear.vector import SparseVector
from thresher.objective.design import Design
from thresher.objective.gates import Generators, SparseGenerators, follow
from thresher.objective.products import Scratch, pages, pairs

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
        # Besides the block itself there are its generators and a chunk's gates.
        self.block = max(1, min(self.neurons, memory_limit // 6 // each))
        self.fits_whole = number * self.size <= memory_limit // 2

    def following(self, w: SparseVector, signs: Tensor, fallback: Generators | None = None) -> GatedOperator:
        """Give the operator whose gates follow the weights w."""
        generators = follow(w, signs, self.features, fallback)  # type: ignore[arg-type]
        return GatedOperator(self.design, generators, self.memory_limit, followed=w, signs=signs)

    def on_rows(self, design: Design) -> GatedOperator:
        """Give the operator with the same gates' generators on other rows."""
        return GatedOperator(design, self.generators, self.memory_limit, self.followed, self.signs)

    def activations(self, neurons: Tensor, scratch: Scratch) -> Activations:
        """Prepare ``X h_i`` for those of some neurons, ascending, that have a generator."""
        if isinstance(self.generators, SparseGenerators):
            entries = self.generators.entries
            chosen = torch.isin(entries.indices // self.features, neurons)
            flat, values = entries.indices[chosen], entries.values[chosen].to(self.dtype)
            neurons, neuron = torch.unique(flat // self.features, return_inverse=True)
            few = pairs(self.design, neuron, flat % self.features, neurons.numel())
            held = few.weights(values)
            return Activations(neurons, lambda chunk, out: few.multiply(held, few.read(chunk, scratch), out))
        weights = scratch("generators", neurons.numel(), self.features).zero_()
        for rows, few in zip(weights.split(16), neurons.split(16), strict=True):
            used, columns = self.generators.pick(few, self.dtype)
            rows[:, slice(None) if used is None else used] = columns.T
        self.design.rescale(weights)
        return Activations(neurons, lambda chunk, out: self.design.multiply(weights, chunk, out))

    def blocks(self) -> Iterator[Tensor]:
        """Go through the neurons in blocks."""
        for start in range(0, self.neurons, self.block):
            yield torch.arange(start, min(start + self.block, self.neurons))

    def forward(self, w: SparseVector) -> Tensor:
        """Compute ``sum_i D_i X w_i`` over the neurons that have weights."""
        if w is not self.followed or not self.fits_whole:
            # Sparse generators are cheaper to multiply with once more than to hold gates for.
            sparse = isinstance(self.generators, SparseGenerators)
            return self.on_support(w.indices, cache=not sparse).forward(w.values.to(self.dtype))
        scratch = Scratch(self.dtype)
        activations = self.activations(torch.arange(self.neurons), scratch)
        read = self._reader(w, activations)
        output = torch.empty(self.rows, dtype=self.dtype)
        for first, last, chunk in self.design.chunks(activations.count):
            raw = activations.product(chunk, scratch("raw", activations.count, last - first))
            read(chunk, raw, output[first:last])
        return output

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute ``X' (gates * r)`` for one block of neurons after another."""
        scratch = Scratch(self.dtype)
        for neurons in self.blocks():
            activations = self.activations(neurons, scratch)
            out = pages(activations.count, self.features, dtype=self.dtype)
            for first, last, chunk in self.design.chunks(self.neurons):
                raw = activations.product(chunk, scratch("raw", activations.count, last - first))
                self.design.accumulate(out, chunk, raw.gt_(0).mul_(residual[first:last]))
            block = self._spread(self.design.rescale(out), activations, neurons)
            del out
            yield int(neurons[0]) * self.features, block
            del block

    def sweep(self, w: SparseVector, slope: Slope) -> tuple[Tensor, Blocks]:
        """Compute the output and the gradient in one pass where the whole gradient fits into memory."""
        if not self.fits_whole:
            return super().sweep(w, slope)
        scratch, neurons = Scratch(self.dtype), torch.arange(self.neurons)
        activations = self.activations(neurons, scratch)
        read = self._reader(w, activations)
        output = torch.empty(self.rows, dtype=self.dtype)
        out = torch.zeros(activations.count, self.features, dtype=self.dtype)
        for first, last, chunk in self.design.chunks(activations.count):
            raw = activations.product(chunk, scratch("raw", activations.count, last - first))
            read(chunk, raw, output[first:last])
            gated = raw.gt_(0).mul_(slope(output[first:last], first, last))
            self.design.accumulate(out, chunk, gated)
        gradient = self._spread(self.design.rescale(out), activations, neurons)
        return output, iter([(0, gradient)])

    def _spread(self, out: Tensor, activations: Activations, neurons: Tensor) -> Tensor:
        """Give every neuron of a block its place: those without a generator have no gradient."""
        if activations.count == neurons.numel():
            return out.view(-1)
        whole = pages(neurons.numel(), self.features, dtype=self.dtype)
        return whole.index_copy_(0, activations.neurons - neurons[0], out).view(-1)

    def _reader(self, w: SparseVector, activations: Activations) -> Reader:
        """Prepare the output of w on a chunk from its activations; may clip them, keeps their signs > 0."""
        neuron, feature = w.indices // self.features, w.indices % self.features
        if w is self.followed and self.signs is not None:
            enters = torch.zeros(self.neurons, dtype=self.dtype)
            enters[neuron] = self.signs[neuron].to(self.dtype)
            enters = enters[activations.neurons]
            return lambda chunk, raw, out: torch.mv(raw.relu_().T, enters, out=out)
        gated = torch.isin(neuron, activations.neurons)
        live, place = torch.unique(neuron[gated], return_inverse=True)
        chosen = pairs(self.design, place, feature[gated], live.numel())
        weights = chosen.weights(w.values[gated].to(self.dtype))
        rows = torch.searchsorted(activations.neurons, live)
        scratch = Scratch(self.dtype)

        def read(chunk: Tensor, raw: Tensor, out: Tensor) -> Tensor:
            shape = live.numel(), chunk.shape[0]
            product = chosen.multiply(weights, chosen.read(chunk, scratch), scratch("product", *shape))
            gates = torch.index_select(raw, 0, rows, out=scratch("gates", *shape)).gt_(0)
            return torch.sum(product.mul_(gates), 0, out=out)

        return read

    def on_support(self, support: Tensor, cache: bool = True) -> GatedRestricted:
        """Restrict to some weights; their gates are held where they fit into memory."""
        return GatedRestricted(self, support, cache)

    def column_norms(self) -> Blocks:
        """Give the norm of every column ``D_i X_j``."""
        scratch = Scratch(self.dtype)
        for neurons in self.blocks():
            activations = self.activations(neurons, scratch)
            out = torch.zeros(activations.count, self.features, dtype=self.dtype)
            for first, last, chunk in self.design.chunks(self.neurons):
                raw = activations.product(chunk, scratch("raw", activations.count, last - first))
                self.design.accumulate(out, chunk.square(), raw.gt_(0))
            norms = self.design.rescale(self.design.rescale(out)).sqrt_()
            yield int(neurons[0]) * self.features, self._spread(norms, activations, neurons)


Product = Callable[[Tensor, Tensor], Tensor]
"""(chunk, out) -> out, of shape (neurons, rows)."""

Reader = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(chunk, activations, out) -> out, of shape (rows,)."""


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
        self.operator, self.design = operator, operator.design
        self.rows, self.size = operator.rows, support.numel()
        self.live, neuron = torch.unique(support // operator.features, return_inverse=True)
        self.pairs = pairs(self.design, neuron, support % operator.features, self.live.numel())
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
        return self.design.chunks(self.live.numel())

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
        weights = None if values is None else self.pairs.weights(values)
        total = self.pairs.zeros() if slope is not None else None
        for first, last, chunk in self._chunks():
            part, gates = self.pairs.read(chunk, self.scratch), self._gates(first, last, chunk)
            if weights is not None:
                product = self.pairs.multiply(weights, part, self.scratch("product", *gates.shape))
                torch.sum(product.mul_(gates), 0, out=output[first:last])
            if slope is not None and total is not None:
                self.pairs.add(total, part, gates.mul_(slope(output[first:last], first, last)))
        return output, output if total is None else self.pairs.take(total)

    def work(self) -> float:
        """Estimate the multiplications in one forward and one adjoint: products, and passes over gates."""
        return self.rows * (self.pairs.work() + 30.0 * self.live.numel())

    def gram_work(self) -> float:
        """Estimate the multiplications in the Gram matrix, whose columns have to be put together first."""
        return self.rows * self.size * (self.size + 80.0)

    def row_chunks(self) -> Iterator[tuple[int, int, Tensor]]:
        """Write A_S out a chunk of rows at a time."""
        size = max(64, min(self.design.chunk_rows(1), 2 * 2**20 // max(1, self.size)))
        used, place, neuron = self.pairs.used, self.pairs.place, self.pairs.neuron
        for first in range(0, self.rows, size):
            last = min(first + size, self.rows)
            chunk = self.design.chunk(first, last)
            part = self.design.transposed(chunk, used, self.scratch("part", used.numel(), last - first))
            gates = torch.index_select(
                self._gates(first, last, chunk),
                0,
                neuron,
                out=self.scratch("opened", self.size, last - first),
            )
            columns = torch.index_select(part, 0, place).mul_(gates)
            yield first, last, self._scaled(columns).T

    def _scaled(self, columns: Tensor) -> Tensor:
        factor = self.design.factor
        return columns if factor is None else columns.mul_(factor[self.pairs.feature][:, None])
