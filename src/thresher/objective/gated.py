"""The gated ReLU operator ``A = [s_1 D_1 X | ... | s_m D_m X]``, never built."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from thresher.errors import MemoryLimitError, ParameterError
from thresher.linear.operator import Blocks, Operator, Slope
from thresher.linear.vector import SparseVector
from thresher.objective.block import Block
from thresher.objective.data import Data
from thresher.objective.gates import Generators, SparseGenerators, follow
from thresher.objective.layout import Layout
from thresher.objective.pages import pages
from thresher.objective.restricted import GatedRestricted, Scratch
from thresher.objective.sparse import add_outer, affine

MEMORY_LIMIT = 64 * 2**20

Product = Callable[[Tensor, Tensor], Tensor]
"""(rows, columns), memory -> what some neurons make of them, (rows, neurons)."""


class GatedOperator(Operator):
    """Equation 2 of the paper: block i of the operator is ``D_i X`` with ``D_i = diag(X h_i > 0)``.

    With signs s_i it is ``s_i D_i X``, so that where ``h_i = w_i`` the operator gives the output of the
    network that has the weights w, ``sum_i s_i relu(X w_i)``. The weight of feature j in neuron i has the
    flat position ``i * features + j``. All products are matrix products over chunks of rows; the gates of a
    chunk exist only while it is in cache.

    Parameters
    ----------
    data : Data
        The rows; their targets are not looked at.
    generators : Generators
        The vectors h_i.
    bias : bool
        Whether a constant column follows those of the data, as the last feature.
    signs : tensor of shape (neurons,), optional
        The signs s_i; all positive by default.
    memory_limit : int
        Bytes that working arrays may take.
    """

    signs: Tensor

    def __init__(
        self,
        data: Data,
        generators: Generators,
        *,
        bias: bool = False,
        signs: Tensor | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self.data, self.generators, self.bias = data, generators, bias
        self.rows, self.held, self.dtype = data.rows, data.held, data.dtype
        self.features, self.neurons = data.columns + int(bias), generators.neurons
        if generators.features != self.features:
            raise ParameterError(
                f"the generators have {generators.features} features, but the data has {data.columns} columns"
                f"{' and a bias' if bias else ''}. Make generators of {self.features} features."
            )
        self.size = self.features * self.neurons
        self.signs = torch.ones(self.neurons, dtype=self.dtype) if signs is None else signs.to(self.dtype)
        self.memory_limit = memory_limit
        number = self.dtype.itemsize
        each = number * (self.features + 3 * data.chunk_rows(self.neurons))
        if each > memory_limit:
            raise MemoryLimitError(
                f"memory_limit={memory_limit:,} bytes, but one neuron with {self.features:,} inputs needs "
                f"{each:,} bytes of working memory. Raise memory_limit."
            )
        # Besides the block itself there are its generators and a chunk's gates.
        self.block = max(1, min(self.neurons, memory_limit // 6 // each))
        self.fits_whole = number * self.size <= memory_limit // 2

    def following(
        self, w: SparseVector, signs: Tensor | None = None, fallback: SparseGenerators | None = None
    ) -> GatedOperator:
        """Give the operator whose gates are those of w: applied to w, it gives the output of a ReLU network.

        Parameters
        ----------
        w : SparseVector
            The weights of the network.
        signs : tensor of shape (neurons,), optional
            The signs of its neurons; by default those of this operator.
        fallback : SparseGenerators, optional
            Gates for the neurons that have no weights.
        """
        return self._with(
            self.data, follow(w, self.features, fallback), self.signs if signs is None else signs
        )

    def take(self, rows: np.ndarray) -> GatedOperator:
        """Give the operator of the same generators on some rows."""
        return self._with(self.data.take(rows), self.generators, self.signs)

    def pick(self, numbers: Tensor, rows: np.ndarray) -> Tensor:
        """Give the entries of some rows, wherever they are."""
        return self.data.pick(numbers, rows)

    def total(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Complete sums over the rows that are here."""
        return self.data.ranks.sum(*parts)

    def _with(self, data: Data, generators: Generators, signs: Tensor) -> GatedOperator:
        return GatedOperator(data, generators, bias=self.bias, signs=signs, memory_limit=self.memory_limit)

    def products(self, places: Tensor, values: Tensor) -> tuple[Tensor, Block]:
        """Give the neurons of weights at ascending places, and the products with these weights."""
        live, neuron = torch.unique(places // self.features, return_inverse=True)
        layout = Layout((self.data.columns, live.numel(), 1), self.bias, fused=True)
        return live, Block(layout, 0, neuron * self.features + places % self.features, values, small=0)

    def activations(self, neurons: Tensor, scratch: Scratch) -> tuple[Tensor, Product]:
        """Give those of some neurons, ascending, that have a generator, and their ``X h_i``.

        Dense generators are drawn into scratch memory: they are there until others are.
        """
        if isinstance(self.generators, SparseGenerators):
            entries = self.generators.entries
            chosen = torch.isin(entries.indices // self.features, neurons)
            live, block = self.products(entries.indices[chosen], entries.values[chosen].to(self.dtype))
            return live, block.forward
        drawn = scratch("generators", self.features, neurons.numel()).zero_()
        for part, few in zip(drawn.split(16, 1), neurons.split(16), strict=True):
            used, columns = self.generators.pick(few, self.dtype)
            part[slice(None) if used is None else used] = columns
        inner, bias = drawn[: self.data.columns], drawn[self.data.columns :].sum(0)
        return neurons, lambda chunk, out: affine(chunk, inner, bias, out)

    def chunks(self, size: int) -> Iterator[tuple[int, int, Tensor]]:
        """Read the rows `size` at a time: (start, stop, inputs of shape (stop - start, columns)).

        A chunk is there until the next one is read; it is sparse where the data stays so.
        """
        sparse = self.data.sparse
        memory = None if sparse else pages(min(size, self.held), self.data.columns, dtype=self.dtype)
        for start in range(0, self.held, size):
            stop = min(start + size, self.held)
            yield start, stop, self.data.inputs(slice(start, stop), memory)

    def blocks(self) -> Iterator[Tensor]:
        """Go through the neurons in blocks."""
        for start in range(0, self.neurons, self.block):
            yield torch.arange(start, min(start + self.block, self.neurons))

    def forward(self, w: SparseVector) -> Tensor:
        """Compute ``sum_i s_i D_i X w_i`` over the neurons that have weights."""
        return self.on_support(w.indices).forward(w.values.to(self.dtype))

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute ``X' (gates * r)`` for one block of neurons after another."""
        size, scratch = self.data.chunk_rows(self.neurons), Scratch(self.dtype)
        for neurons in self.blocks():
            gated, product = self.activations(neurons, scratch)
            out = pages(gated.numel(), self.features, dtype=self.dtype)
            for first, last, chunk in self.chunks(size):
                raw = product(chunk, scratch("raw", len(chunk), gated.numel()))
                self._add(out, chunk, raw.gt_(0).mul_(residual[first:last, None]))
            (out,) = self.total(out.mul_(self.signs[gated, None]))
            block = self._spread(out, gated, neurons)
            del out
            yield int(neurons[0]) * self.features, block
            del block

    def sweep(self, w: SparseVector, slope: Slope) -> tuple[Tensor, Blocks]:
        """Compute the output and the gradient in one pass where the whole gradient fits into memory."""
        if not self.fits_whole:
            return super().sweep(w, slope)
        neurons, scratch = torch.arange(self.neurons), Scratch(self.dtype)
        gated, product = self.activations(neurons, scratch)
        read = self._reader(w, gated)
        output = torch.empty(self.held, dtype=self.dtype)
        out = torch.zeros(gated.numel(), self.features, dtype=self.dtype)
        for first, last, chunk in self.chunks(self.data.chunk_rows(gated.numel())):
            raw = product(chunk, scratch("raw", len(chunk), gated.numel()))
            output[first:last] = read(chunk, raw)
            self._add(out, chunk, raw.gt_(0).mul_(slope(output[first:last], first, last)[:, None]))
        (out,) = self.total(out.mul_(self.signs[gated, None]))
        return output, iter([(0, self._spread(out, gated, neurons))])

    def _add(self, out: Tensor, chunk: Tensor, numbers: Tensor) -> None:
        """Add ``numbers' [chunk | 1]`` to `out`, (neurons, features); numbers are (rows, neurons)."""
        add_outer(out[:, : self.data.columns], numbers, chunk)
        if self.bias:
            out[:, -1] += numbers.sum(0)

    def _spread(self, out: Tensor, gated: Tensor, neurons: Tensor) -> Tensor:
        """Give every neuron of a block its place: those without a generator have no gradient."""
        if gated.numel() == neurons.numel():
            return out.view(-1)
        whole = pages(neurons.numel(), self.features, dtype=self.dtype)
        return whole.index_copy_(0, gated - neurons[0], out).view(-1)

    def _reader(self, w: SparseVector, gated: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Prepare the output of w on a chunk from its activations; may clip them, keeps their signs > 0."""
        neuron = w.indices // self.features
        if self.generators.follows(w):
            # What the neurons add up before their gates is there already: one product less.
            enters = torch.zeros(self.neurons, dtype=self.dtype)
            enters[neuron] = self.signs[neuron]
            enters = enters[gated]
            return lambda chunk, raw: torch.mv(raw.relu_(), enters)
        chosen = torch.isin(neuron, gated)
        live, block = self.products(w.indices[chosen], w.values[chosen].to(self.dtype))
        place, signs, scratch = torch.searchsorted(gated, live), self.signs[live], Scratch(self.dtype)

        def read(chunk: Tensor, raw: Tensor) -> Tensor:
            product = block.forward(chunk, scratch("product", len(chunk), live.numel()))
            gates = torch.index_select(raw.T, 0, place, out=scratch("gates", *product.shape).T).T
            return torch.mv(product.mul_(gates.gt_(0)), signs)

        return read

    def on_support(self, support: Tensor) -> GatedRestricted:
        """Restrict to some weights; their gates are held where they fit into memory."""
        return GatedRestricted(self, support)

    def column_norms(self) -> Blocks:
        """Give the norm of every column ``D_i X_j``."""
        scratch = Scratch(self.dtype)
        for neurons in self.blocks():
            gated, product = self.activations(neurons, scratch)
            out = torch.zeros(gated.numel(), self.features, dtype=self.dtype)
            for _, _, chunk in self.chunks(self.data.chunk_rows(self.neurons)):
                raw = product(chunk, scratch("raw", len(chunk), gated.numel()))
                self._add(out, chunk.square(), raw.gt_(0))
            (out,) = self.total(out)
            yield int(neurons[0]) * self.features, self._spread(out.sqrt_(), gated, neurons)
