"""Products with the weights that are held of one block: forwards, backwards, derivatives row by row."""

from __future__ import annotations

import warnings
from copy import copy

import torch
from torch import Tensor

from thresher.objective.layout import Layout
from thresher.objective.sparse import SparseRows

# What a block is fed: a row for each row of data.
Fed = Tensor | SparseRows

# ``delta * (seen > 0)`` in one go; a mask by itself takes several times as long.
threshold_backward = torch.ops.aten.threshold_backward
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
    indices : int64 tensor of shape (held,), ascending
        The positions that are held.
    values : tensor of shape (held,)
        The weights there. Products follow when they are changed in place.
    """

    def __init__(self, layout: Layout, number: int, indices: Tensor, values: Tensor) -> None:
        self.inputs, self.neurons = layout.inputs[number], layout.shapes[number][0]
        self.held, self.values = indices.numel(), values
        neuron, feature = layout.pairs(indices, number)
        inside = feature < self.inputs
        self.inside, self.outside = inside.nonzero().flatten(), (~inside).nonzero().flatten()
        self.neuron, self.feature = neuron[self.inside], feature[self.inside]
        self.biased = neuron[self.outside]
        # All columns after these are without weights.
        self.last = int(self.feature.max()) + 1 if self.feature.numel() else 0
        self.used: Tensor | None = None
        self.place, self.width = self.feature, self.last
        # Gathering most columns costs more than multiplying with all of them up to the last that is used.
        if self._few_columns():
            self.used, self.place = torch.unique(self.feature, return_inverse=True)
            self.width = self.used.numel()
        # Weights of a neuron, where all hold equally many, in a grid of a row for each neuron.
        self.each = self.held // max(1, self.neurons) - int(self.outside.numel() > 0)
        self.full, self.own = self._in_a_grid(neuron, feature)
        most = max(DENSE_SIZE, DENSE_SHARE * self.neuron.numel())
        self.dense = self.full or self.width * self.neurons <= most
        self.matrix: Tensor | None = None
        if self.full or self.own:
            self._view(values)
        elif self.dense:
            self.flat = self.place * self.neurons + self.neuron
        else:
            counts = torch.bincount(self.neuron, minlength=self.neurons)
            self.starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])

    def _few_columns(self) -> bool:
        """Say whether most of the columns up to the last are without weights."""
        if 2 * self.feature.numel() < self.last:
            return True
        used = torch.zeros(self.last, dtype=torch.bool)
        used[self.feature] = True
        return 2 * int(used.sum()) < self.last

    def at(self, values: Tensor) -> Block:
        """Give the block of other values at the same positions."""
        other = copy(self)
        other.values, other.matrix = values, None
        if other.full or other.own:
            other._view(values)
        return other

    def _view(self, values: Tensor) -> None:
        """Take a view of the values for their matrix: nothing has to be written."""
        self.grid = values.view(self.neurons, -1)
        self.matrix = self.grid[:, : self.each].T

    def _in_a_grid(self, neuron: Tensor, feature: Tensor) -> tuple[bool, bool]:
        """Say whether every neuron holds all of the first weights, or the next few that nobody else holds.

        All or none of the neurons hold their biases.
        """
        places = self.each + int(self.outside.numel() > 0)
        if self.used is not None or self.held != self.neurons * places or self.held == 0:
            return False, False
        grid = feature.view(self.neurons, places)
        inside, bias = grid[:, : self.each], grid[:, self.each :]
        rows = torch.arange(self.neurons)
        if not bool(
            (neuron.view(self.neurons, places) == rows[:, None]).all() and (bias == self.inputs).all()
        ):
            return False, False
        first = torch.arange(self.each)
        full = bool((inside == first).all())
        return full, not full and bool((inside == self.each * rows[:, None] + first).all())

    def read(self, fed: Fed) -> Tensor:  # (rows, width)
        """Take the columns that are used, dense."""
        if isinstance(fed, Tensor):
            return fed[:, : self.width] if self.used is None else fed.index_select(1, self.used)
        columns = fed[:, torch.arange(self.width) if self.used is None else self.used]
        assert isinstance(columns, Tensor)
        return columns

    def forward(self, fed: Fed) -> Tensor:  # (rows, neurons)
        """Multiply what the block is fed with the weights and add the biases."""
        biased, sparse = self.outside.numel() > 0, isinstance(fed, SparseRows)
        if self.full and biased and not sparse:
            bias = self.grid[:, -1].clone()
            if self.width == 0:
                return bias.expand(len(fed), -1).clone()
            assert self.matrix is not None
            return torch.addmm(bias, self.read(fed), self.matrix)
        if self.own and not sparse:
            out = (self._parts(fed) * self.grid[:, : self.each]).sum(2)
            return out.add_(self.grid[:, -1]) if biased else out
        if isinstance(fed, SparseRows):
            out = fed.meeting(self.feature, self.neuron).forward(self._weights(), self.neurons)
        elif self.width == 0:
            out = self.values.new_zeros(len(fed), self.neurons)
        elif self.dense:
            out = self.read(fed) @ self._dense()
        else:
            out = (self._sparse() @ self.read(fed).T).T
        if biased:
            out.index_add_(1, self.biased, self.values.index_select(0, self.outside).expand(len(fed), -1))
        return out

    def _parts(self, fed: Fed) -> Tensor:  # (rows, neurons, each)
        """Give every neuron what it reads, where none reads what another does."""
        return self.read(fed).reshape(len(fed), self.neurons, self.each)

    def _dense(self) -> Tensor:
        """Write the weights into a matrix that is used again and again; its other entries stay zero."""
        if self.full and self.matrix is not None:
            return self.matrix
        if self.matrix is None:
            self.matrix = torch.zeros(self.width, self.neurons, dtype=self.values.dtype)
        self.matrix.view(-1).scatter_(0, self.flat, self._weights())
        return self.matrix

    def _sparse(self) -> Tensor:
        with warnings.catch_warnings():
            # torch says once that its sparse matrices are young.
            warnings.simplefilter("ignore", UserWarning)
            self.matrix = torch.sparse_csr_tensor(
                self.starts, self.place, self._weights(), (self.neurons, self.width), check_invariants=False
            )
        return self.matrix

    def _weights(self) -> Tensor:
        """Give the values that are no biases."""
        return self.values.index_select(0, self.inside) if self.outside.numel() else self.values

    def gradient(self, fed: Fed, delta: Tensor, out: Tensor) -> None:
        """Write the derivative at every weight held, given those with respect to the neurons' sums."""
        biased, sparse = self.outside.numel() > 0, isinstance(fed, SparseRows)
        if (self.full or self.own) and not sparse:
            grid = out.view(self.neurons, -1)
            if self.own:
                torch.sum(self._parts(fed) * delta[:, :, None], 0, out=grid[:, : self.each])
            elif self.width:
                # Few rows of many columns are multiplied faster than many of few.
                grid[:, : self.width] = (self.read(fed).T @ delta).T
            if biased:
                grid[:, -1] = delta.sum(0)
            return
        if self.width:
            inner = self._inner(fed, delta)
            if biased:
                out.scatter_(0, self.inside, inner)
            else:
                out.copy_(inner)
        if biased:
            out.scatter_(0, self.outside, delta.sum(0).index_select(0, self.biased))

    def _inner(self, fed: Fed, delta: Tensor) -> Tensor:
        """Give the derivative at every weight that is no bias."""
        if isinstance(fed, SparseRows):
            return fed.meeting(self.feature, self.neuron).gradient(delta, self.inside.numel())
        columns = self.read(fed)
        if self.dense:
            return (columns.T @ delta).view(-1).index_select(0, self.flat)
        inner = torch.empty(self.inside.numel(), dtype=delta.dtype)
        step = max(1, PAIR_NUMBERS // delta.shape[0])
        for first in range(0, inner.numel(), step):
            part = slice(first, first + step)
            inner[part] = (columns[:, self.place[part]] * delta[:, self.neuron[part]]).sum(0)
        return inner

    def derivatives(self, fed: Tensor, delta: Tensor, out: Tensor) -> None:
        """Write the derivative at every weight held for each row by itself, (held, rows).

        `fed`, what the block reads, and `delta` come transposed, (width, rows) and (neurons, rows): rows of
        memory are copied faster than columns.
        """
        if self.outside.numel() == 0:
            torch.index_select(fed, 0, self.place, out=out)
            out.mul_(delta.index_select(0, self.neuron))
            return
        if self.width:
            inner = fed.index_select(0, self.place).mul_(delta.index_select(0, self.neuron))
            out.index_copy_(0, self.inside, inner)
        out.index_copy_(0, self.outside, delta.index_select(0, self.biased))

    def back(self, delta: Tensor) -> Tensor:  # (rows, inputs)
        """Give the derivative with respect to what came in; `forward` comes first."""
        if self.width == 0:
            return delta.new_zeros(delta.shape[0], self.inputs)
        assert self.matrix is not None
        if self.own:
            out = (delta[:, :, None] * self.grid[:, : self.each]).view(len(delta), -1)
        else:
            turned = self.matrix.T if self.dense else self.matrix.to_sparse_coo().T
            out = delta @ turned if self.dense else (turned @ delta.T).T
        if self.width == self.inputs:
            return out
        whole = torch.zeros(delta.shape[0], self.inputs, dtype=delta.dtype)
        whole[:, slice(0, self.width) if self.used is None else self.used] = out
        return whole
