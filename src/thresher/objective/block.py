"""Products with the weights that are held of one block: forwards, backwards, derivatives row by row."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from thresher.objective.layout import Layout

# A matrix is multiplied densely up to this size, or where it holds one number in so many.
DENSE_SIZE, DENSE_SHARE = 2**18, 16
# Numbers in the largest temporary array of a product over pairs.
PAIR_NUMBERS = 2**22


class Block:
    """The weights that are held of one block, ready to be multiplied with.

    Parameters
    ----------
    layout : Layout
    number : int
        Which block.
    indices : int64 tensor, ascending
        The positions that are held.
    """

    def __init__(self, layout: Layout, number: int, indices: Tensor) -> None:
        self.inputs, self.neurons = layout.inputs[number], layout.shapes[number][0]
        neuron, feature = layout.pairs(indices, number)
        inside = feature < self.inputs
        self.held = indices.numel()
        self.inside, self.outside = inside.nonzero().flatten(), (~inside).nonzero().flatten()
        self.biased = neuron[self.outside]
        self.neuron, self.feature = neuron[self.inside], feature[self.inside]
        used, place = torch.unique(self.feature, return_inverse=True)
        # Gathering most columns costs more than multiplying with all of them.
        self.used = used if 2 * used.numel() < self.inputs else None
        self.place = self.feature if self.used is None else place
        self.width = self.inputs if self.used is None else used.numel()
        self.dense = self.width * self.neurons <= max(DENSE_SIZE, DENSE_SHARE * self.neuron.numel())
        self.matrix: Tensor | None = None
        if self.dense:
            self.flat = self.place * self.neurons + self.neuron
        else:
            counts = torch.bincount(self.neuron, minlength=self.neurons)
            self.starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])

    def read(self, fed: Tensor) -> Tensor:  # (rows, width)
        """Take the columns that are used."""
        return fed[:, : self.width] if self.used is None else fed[:, self.used]

    def forward(self, values: Tensor, fed: Tensor) -> Tensor:  # (rows, neurons)
        """Multiply what the block is fed with the weights and add the biases."""
        columns, held = self.read(fed), values[self.inside]
        if self.dense:
            self.matrix = self._dense(held)
            out = columns @ self.matrix
        else:
            with warnings.catch_warnings():
                # torch says once that its sparse matrices are young.
                warnings.simplefilter("ignore", UserWarning)
                self.matrix = torch.sparse_csr_tensor(
                    self.starts, self.place, held, (self.neurons, self.width), check_invariants=False
                )
            out = (self.matrix @ columns.T).T
        if self.outside.numel():
            out[:, self.biased] += values[self.outside]
        return out

    def _dense(self, held: Tensor) -> Tensor:
        """Write the weights into a matrix that is used again and again; its other entries stay zero."""
        if self.matrix is None:
            self.matrix = torch.zeros(self.width, self.neurons, dtype=held.dtype)
        self.matrix.view(-1)[self.flat] = held
        return self.matrix

    def gradient(self, fed: Tensor, delta: Tensor) -> Tensor:  # (held,)
        """Give the derivative at every weight held, given those with respect to the neurons' sums."""
        columns = self.read(fed)
        out = torch.empty(self.held, dtype=delta.dtype)
        if self.dense:
            inner = (columns.T @ delta).view(-1)[self.flat]
        else:
            inner = torch.empty(self.inside.numel(), dtype=delta.dtype)
            step = max(1, PAIR_NUMBERS // delta.shape[0])
            for first in range(0, inner.numel(), step):
                part = slice(first, first + step)
                inner[part] = (columns[:, self.place[part]] * delta[:, self.neuron[part]]).sum(0)
        out[self.inside] = inner
        if self.outside.numel():
            out[self.outside] = delta.sum(0)[self.biased]
        return out

    def derivatives(self, fed: Tensor, delta: Tensor) -> Tensor:  # (held, rows)
        """Give the derivative at every weight held for each row by itself.

        `fed` and `delta` come transposed, (width, rows) and (neurons, rows): rows of memory are copied faster
        than columns.
        """
        out = torch.empty(self.held, delta.shape[1], dtype=delta.dtype)
        out[self.inside] = fed.index_select(0, self.feature).mul_(delta.index_select(0, self.neuron))
        out[self.outside] = delta.index_select(0, self.biased)
        return out

    def back(self, delta: Tensor) -> Tensor:  # (rows, inputs)
        """Give the derivative with respect to what came in; `forward` comes first."""
        assert self.matrix is not None
        turned = self.matrix.T if self.dense else self.matrix.to_sparse_coo().T
        out = delta @ turned if self.dense else (turned @ delta.T).T
        if self.used is None:
            return out
        whole = torch.zeros(delta.shape[0], self.inputs, dtype=delta.dtype)
        whole[:, self.used] = out
        return whole
