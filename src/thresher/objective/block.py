"""Products with the weights that are held of one block: forwards, backwards, derivatives row by row."""

from __future__ import annotations

import warnings
from copy import copy
from functools import cached_property

import torch
from torch import Tensor

from thresher.objective.layout import Layout
from thresher.objective.sparse import Readers, SparseRows

# What a block is fed: a row for each row of data.
Fed = Tensor | SparseRows

# ``delta * (seen > 0)`` in one go, into memory that is given; a mask by itself takes several times as long.
threshold_backward = torch.ops.aten.threshold_backward.grad_input
# A matrix is multiplied densely up to this size, since minibatches of few rows are; and where it holds one
# number in so many: a dense product does a multiplication some eight times as fast as one through nonzeros.
DENSE_SIZE, DENSE_SHARE = 2**18, 8


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
    small : int
        The size up to which a matrix is multiplied densely, however few weights it holds.
    """

    def __init__(
        self, layout: Layout, number: int, indices: Tensor, values: Tensor, small: int = DENSE_SIZE
    ) -> None:
        self.inputs, self.neurons = layout.inputs[number], layout.shapes[number][0]
        self.held, self.values = indices.numel(), values
        neuron, feature = layout.pairs(indices, number)
        inside = feature < self.inputs
        self.inside, self.outside = inside.nonzero().flatten(), (~inside).nonzero().flatten()
        self.neuron, self.feature = neuron[self.inside], feature[self.inside]
        self.biased = neuron[self.outside]
        used, place = torch.unique(self.feature, return_inverse=True)
        # All columns after these are without weights.
        last = int(used[-1]) + 1 if used.numel() else 0
        self.dense = used.numel() * self.neurons <= max(small, DENSE_SHARE * self.neuron.numel())
        self.used: Tensor | None = used
        self.place, self.width = place, used.numel()
        if self.dense and 2 * used.numel() >= last:
            # Gathering most columns costs more than multiplying with all of them up to the last.
            self.used, self.place, self.width = None, self.feature, last
        # Weights of a neuron, where all hold equally many, in a grid of a row for each neuron.
        self.each = self.held // max(1, self.neurons) - int(self.outside.numel() > 0)
        self.full, self.own = self._in_a_grid(neuron, feature)
        self.dense |= self.full
        self.matrix: Tensor | None = None
        if self.full or self.own:
            self._view(values)
        elif self.dense:
            self.flat = self.place * self.neurons + self.neuron
        else:
            self.flat = torch.stack([self.neuron, self.place])
            self.pattern = self._pattern()

    @cached_property
    def readers(self) -> Readers:
        """Which weights read each column, for sparse rows."""
        return Readers(self.feature, self.neuron, self.inputs)

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
        if isinstance(fed, Tensor) and self.used is None:
            return fed[:, : self.width]
        if isinstance(fed, Tensor) and self.used is not None:
            # Products through nonzeros go along columns, which are together in memory this way.
            return fed.index_select(1, self.used) if self.dense else fed.T.index_select(0, self.used).T
        columns = fed[:, torch.arange(self.width) if self.used is None else self.used]
        assert isinstance(columns, Tensor)
        return columns

    def after_reading(self) -> Block:
        """Give the same block fed with what `read` gives, so that several products read once."""
        other = copy(self)
        other.used, other.inputs = None, self.width
        return other

    def forward(self, fed: Fed, out: Tensor | None = None, biased: bool = True) -> Tensor:  # (rows, neurons)
        """Multiply what the block is fed with the weights and add the biases; `out` is memory to use."""
        biased, sparse = biased and self.outside.numel() > 0, isinstance(fed, SparseRows)
        if self.full and biased and not sparse:
            bias = self.grid[:, -1].clone()
            if self.width == 0:
                return bias.expand(len(fed), -1).clone()
            assert self.matrix is not None
            return torch.addmm(bias, self.read(fed), self.matrix, out=out)
        if self.own and not sparse:
            out = (self._parts(fed) * self.grid[:, : self.each]).sum(2)
            return out.add_(self.grid[:, -1]) if biased else out
        if isinstance(fed, SparseRows):
            out = fed.meeting(self.readers).forward(self._weights(), self.neurons)
        elif self.width == 0:
            out = self.values.new_zeros(len(fed), self.neurons)
        elif self.dense:
            out = torch.mm(self.read(fed), self._dense(), out=out)
        else:
            out = torch.mm(self._sparse(), self.read(fed).T, out=None if out is None else out.T).T
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
        shape = self.neurons, self.width
        self.matrix = torch.sparse_coo_tensor(
            self.flat, self._weights(), shape, is_coalesced=True, check_invariants=False
        )
        return self.matrix

    def _pattern(self) -> Tensor:
        """Give a sparse matrix of zeros, which says where derivatives are wanted."""
        starts = torch.searchsorted(self.neuron, torch.arange(self.neurons + 1))
        zeros, shape = torch.zeros(self.place.numel(), dtype=self.values.dtype), (self.neurons, self.width)
        with warnings.catch_warnings():
            # torch says once that this layout is young; the one operation that needs it is tested.
            warnings.simplefilter("ignore", UserWarning)
            return torch.sparse_csr_tensor(starts, self.place, zeros, shape, check_invariants=False)

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
            return fed.meeting(self.readers).gradient(delta, self.inside.numel())
        columns = self.read(fed)
        if self.dense:
            return (columns.T @ delta).view(-1).index_select(0, self.flat)
        return torch.sparse.sampled_addmm(self.pattern, delta.T, columns).values()

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
            out = delta @ self.matrix.T if self.dense else (self.matrix.T @ delta.T).T
        if self.width == self.inputs:
            return out
        whole = torch.zeros(delta.shape[0], self.inputs, dtype=delta.dtype)
        whole[:, slice(0, self.width) if self.used is None else self.used] = out
        return whole
