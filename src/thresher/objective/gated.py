"""The gated ReLU operator ``A = [s_1 D_1 X | ... | s_m D_m X]``, never built."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from thresher.errors import MemoryLimitError, ParameterError
from thresher.linear.operator import Blocks, Operator, Slope
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.gates import Generators, SparseGenerators, follow
from thresher.objective.products import Features, Scratch, pages, pairs
from thresher.objective.restricted import Activations, GatedRestricted

MEMORY_LIMIT = 64 * 2**20


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
        self.rows, self.dtype = data.rows, data.dtype
        self.seen = Features(data.columns, bias, data.dtype)
        self.features, self.neurons = self.seen.count, generators.neurons
        if generators.features != self.features:
            raise ParameterError(
                f"the generators have {generators.features} features, but the data has {data.columns} columns"
                f"{' and a bias' if bias else ''}. Make generators of {self.features} features."
            )
        self.size = self.features * self.neurons
        self.signs = torch.ones(self.neurons, dtype=self.dtype) if signs is None else signs.to(self.dtype)
        self.negative = bool((self.signs < 0).any())
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

    def _with(self, data: Data, generators: Generators, signs: Tensor) -> GatedOperator:
        return GatedOperator(data, generators, bias=self.bias, signs=signs, memory_limit=self.memory_limit)

    def signed(self, neuron: Tensor, values: Tensor) -> Tensor:
        """Multiply values that belong to some neurons, along the first axis, with the neurons' signs."""
        if not self.negative:
            return values
        signs = self.signs[neuron].to(values.dtype)
        return values * signs.view(-1, *[1] * (values.ndim - 1))

    def activations(self, neurons: Tensor, scratch: Scratch) -> Activations:
        """Prepare ``X h_i`` for those of some neurons, ascending, that have a generator."""
        if isinstance(self.generators, SparseGenerators):
            entries = self.generators.entries
            chosen = torch.isin(entries.indices // self.features, neurons)
            flat, values = entries.indices[chosen], entries.values[chosen].to(self.dtype)
            neurons, neuron = torch.unique(flat // self.features, return_inverse=True)
            few = pairs(self.seen, neuron, flat % self.features, neurons.numel())
            held = few.weights(values)
            return Activations(neurons, lambda chunk, out: few.multiply(held, few.read(chunk, scratch), out))
        weights = scratch("generators", neurons.numel(), self.features).zero_()
        for rows, few in zip(weights.split(16), neurons.split(16), strict=True):
            used, columns = self.generators.pick(few, self.dtype)
            rows[:, slice(None) if used is None else used] = columns.T
        return Activations(neurons, lambda chunk, out: self.seen.multiply(weights, chunk, out))

    def chunks(self, width: int) -> Iterator[tuple[int, int, Tensor]]:
        """Read the rows a chunk at a time, so many that `width` numbers for each stay in cache."""
        return self.read(self.data.chunk_rows(width))

    def read(self, size: int) -> Iterator[tuple[int, int, Tensor]]:
        """Read the rows `size` at a time: (start, stop, tensor of shape (stop - start, columns)).

        A chunk is there until the next one is read.
        """
        memory = pages(min(size, self.rows), self.data.columns, dtype=self.dtype)
        for start in range(0, self.rows, size):
            stop = min(start + size, self.rows)
            yield start, stop, self.data.read(slice(start, stop), memory)

    def blocks(self) -> Iterator[Tensor]:
        """Go through the neurons in blocks."""
        for start in range(0, self.neurons, self.block):
            yield torch.arange(start, min(start + self.block, self.neurons))

    def forward(self, w: SparseVector) -> Tensor:
        """Compute ``sum_i s_i D_i X w_i`` over the neurons that have weights."""
        if not (self.fits_whole and self.generators.follows(w)):
            # Sparse generators are cheaper to multiply with once more than to hold gates for.
            sparse = isinstance(self.generators, SparseGenerators)
            return self.on_support(w.indices, cache=not sparse).forward(w.values.to(self.dtype))
        scratch = Scratch(self.dtype)
        activations = self.activations(torch.arange(self.neurons), scratch)
        read = self._reader(w, activations)
        output = torch.empty(self.rows, dtype=self.dtype)
        for first, last, chunk in self.chunks(activations.count):
            raw = activations.product(chunk, scratch("raw", activations.count, last - first))
            read(chunk, raw, output[first:last])
        return output

    def adjoint(self, residual: Tensor) -> Blocks:
        """Compute ``X' (gates * r)`` for one block of neurons after another."""
        scratch = Scratch(self.dtype)
        for neurons in self.blocks():
            activations = self.activations(neurons, scratch)
            out = pages(activations.count, self.features, dtype=self.dtype)
            for first, last, chunk in self.chunks(self.neurons):
                raw = activations.product(chunk, scratch("raw", activations.count, last - first))
                self.seen.accumulate(out, chunk, raw.gt_(0).mul_(residual[first:last]))
            block = self._spread(self._turned(out, activations), activations, neurons)
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
        for first, last, chunk in self.chunks(activations.count):
            raw = activations.product(chunk, scratch("raw", activations.count, last - first))
            read(chunk, raw, output[first:last])
            gated = raw.gt_(0).mul_(slope(output[first:last], first, last))
            self.seen.accumulate(out, chunk, gated)
        gradient = self._spread(self._turned(out, activations), activations, neurons)
        return output, iter([(0, gradient)])

    def _turned(self, out: Tensor, activations: Activations) -> Tensor:
        """Give the sums of neurons that are subtracted their sign, in place."""
        return out.mul_(self.signs[activations.neurons][:, None]) if self.negative else out

    def _spread(self, out: Tensor, activations: Activations, neurons: Tensor) -> Tensor:
        """Give every neuron of a block its place: those without a generator have no gradient."""
        if activations.count == neurons.numel():
            return out.view(-1)
        whole = pages(neurons.numel(), self.features, dtype=self.dtype)
        return whole.index_copy_(0, activations.neurons - neurons[0], out).view(-1)

    def _reader(self, w: SparseVector, activations: Activations) -> Reader:
        """Prepare the output of w on a chunk from its activations; may clip them, keeps their signs > 0."""
        neuron, feature = w.indices // self.features, w.indices % self.features
        if self.generators.follows(w):
            # What the neurons add up before their gates is there already: one product less.
            enters = torch.zeros(self.neurons, dtype=self.dtype)
            enters[neuron] = self.signs[neuron]
            enters = enters[activations.neurons]
            return lambda chunk, raw, out: torch.mv(raw.relu_().T, enters, out=out)
        gated = torch.isin(neuron, activations.neurons)
        neuron, feature = neuron[gated], feature[gated]
        live, place = torch.unique(neuron, return_inverse=True)
        chosen = pairs(self.seen, place, feature, live.numel())
        weights = chosen.weights(self.signed(neuron, w.values[gated].to(self.dtype)))
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
            for first, last, chunk in self.chunks(self.neurons):
                raw = activations.product(chunk, scratch("raw", activations.count, last - first))
                self.seen.accumulate(out, chunk.square(), raw.gt_(0))
            yield int(neurons[0]) * self.features, self._spread(out.sqrt_(), activations, neurons)


Reader = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(chunk, activations, out) -> out, of shape (rows,)."""
