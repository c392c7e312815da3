"""The absolute-value form of a network: neurons ``|w.x|``, which cannot be on the wrong side.

``f(x) = c + q.x + p.|x| + sum_i v_i |w_i.x + b_i|`` with signs v_i. Since ``relu(z) = (z + |z|) / 2`` it says
all that a ReLU network says, but a neuron is only a line through the data. Which side of it is active is left
to the linear part, so being on the wrong side, the commonest trap of ReLU training, does not exist. The
*folds* p are neurons of one weight, one for each input.

To the rest of the solver the form is a `Relu` objective with ``absolute=True`` and direct connections, on
rows ``[x, |x|]``: q and p are the direct weights, and neurons read the first half of the columns only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.relu import Relu
from thresher.objective.running import Point


class AbsoluteData(Data):
    """Rows with the absolute values of their inputs as further columns, made when they are read.

    Parameters
    ----------
    data : Data
        Rows of d inputs; these have 2d columns.
    """

    stays_sparse = False

    def __init__(self, data: Data) -> None:
        settings = (data.dtype, data.memory_limit, data.ranks)
        super().__init__(data.X, data.targets, data.weight, data.seen, *settings)
        self.columns, self._of = 2 * data.columns, data

    def to(self, dtype: torch.dtype) -> Data:
        """Give the same data in another precision."""
        return AbsoluteData(self._of.to(dtype))

    def take(self, rows: np.ndarray, features: Tensor | None = None) -> Data:
        """Give the data of some rows, and of some of the inputs with their absolute values."""
        return AbsoluteData(self._of.take(rows, features))

    def read(self, rows: np.ndarray | slice, out: Tensor | None = None) -> Tensor:  # (rows, 2 inputs)
        """Read the inputs of some rows, and their absolute values."""
        X = self._of.read(rows)
        return torch.cat([X, X.abs()], 1)


def absolute_objective(objective: Relu, folding: Tensor | None = None) -> Relu:
    """Turn the objective of a ReLU network into that of the absolute-value form, without neurons yet.

    The constant belongs to the linear part, which is free: where biases are allowed it is always held.
    `folding` says which inputs have values of both signs, where that is known.
    """
    inputs, bias = objective.layout.widths[0], objective.layout.bias
    return replace(
        objective,
        data=AbsoluteData(objective.data),
        layout=Layout((2 * inputs, 0, 1), bias, fused=True, direct=True),
        origins=None if objective.origins is None else objective.origins.repeat(2),
        middle=torch.zeros(1, dtype=torch.float64) if bias else None,
        absolute=True,
        folding=folding,
    )


def counted(layout: Layout, indices: Tensor) -> Tensor:  # bool
    """Say which positions count against the budget: all but the linear part and the constant."""
    return (indices < layout.offsets[1]) | (indices >= layout.offsets[2] + layout.widths[0] // 2)


@dataclass(frozen=True, eq=False)
class AbsoluteForm:
    """A network in the absolute-value form, as arrays that may hold zeros.

    Attributes
    ----------
    weights : tensor of shape (neurons, inputs), or (neurons, inputs + 1) with the biases last
    signs : tensor of shape (neurons,)
    linear, folds : tensors of shape (inputs,)
        q and p. An input whose origin is not zero in raw units has no fold: its kink costs a bias.
    constant : tensor of shape (1,), or (0,) where there are no biases
    """

    weights: Tensor
    signs: Tensor
    linear: Tensor
    folds: Tensor
    constant: Tensor

    @classmethod
    def of(cls, objective: Relu, weights: Tensor, signs: Tensor) -> AbsoluteForm:
        """Make a form of neurons alone."""
        nothing = weights.new_zeros(objective.layout.widths[0] // 2)
        return cls(weights, signs, nothing, nothing, weights.new_zeros(int(objective.layout.bias)))

    @property
    def neurons(self) -> int:
        """Neurons held."""
        return self.weights.shape[0]

    @property
    def inputs(self) -> int:
        """Inputs."""
        return self.linear.numel()

    @property
    def nonzeros(self) -> int:
        """Weights that count against the budget, the folds among them."""
        return int((self.weights != 0).sum()) + int((self.folds != 0).sum())

    def to(self, dtype: torch.dtype) -> AbsoluteForm:
        """Give the same form in another precision."""
        parts = (self.weights, self.signs, self.linear, self.folds, self.constant)
        return AbsoluteForm(*(part.to(dtype) for part in parts))

    def held(
        self, objective: Relu, every_weight: bool = False, every_fold: bool = False
    ) -> tuple[Relu, Point]:
        """Give the objective with room for these neurons, and the form as a point of it.

        The point holds what is not zero, the linear part and the constant; with `every_weight` also the
        weights, and with `every_fold` the folds, that are zero.
        """
        inputs, bias = self.inputs, objective.layout.bias
        layout = replace(objective.layout, widths=(2 * inputs, self.neurons, 1))
        objective = replace(objective, layout=layout)
        folds = foldable(objective) & (every_fold or every_weight or (self.folds != 0))
        chosen = torch.ones_like(self.weights, dtype=torch.bool) if every_weight else self.weights != 0
        neuron, feature = chosen.nonzero(as_tuple=True)
        # A neuron's bias comes after the places for all columns.
        feature = torch.where(feature < inputs, feature, 2 * inputs)
        indices = torch.cat(
            [
                layout.position(0, neuron, feature),
                layout.output_biases,
                torch.arange(inputs) + layout.offsets[2],
                folds.nonzero().flatten() + (layout.offsets[2] + inputs),
            ]
        )
        values = torch.cat([self.weights[chosen], self.constant, self.linear, self.folds[folds]])
        point = Point(SparseVector(indices, values, layout.size), self.signs)
        closed = objective.closed(indices) if bias and not every_weight else indices
        return objective, point if closed.numel() == indices.numel() else point.at(closed)

    def read(self, layout: Layout, point: Point) -> AbsoluteForm:
        """Give the form that a point of its layout stands for."""
        inputs, split = self.inputs, layout.split(point.w.indices)
        indices, values = point.w.indices, point.w.values.to(self.linear.dtype)
        weights = torch.zeros_like(self.weights)
        neuron, feature = layout.pairs(indices[split[0]], 0)
        weights[neuron, feature.clamp(max=inputs)] = values[split[0]]
        direct = torch.zeros(2 * inputs, dtype=values.dtype)
        direct[layout.pairs(indices[split[2]], 2)[1]] = values[split[2]]
        return replace(
            self, weights=weights, linear=direct[:inputs], folds=direct[inputs:], constant=values[split[1]]
        )

    def folded(self, objective: Relu) -> AbsoluteForm:
        """Drop empty neurons, and turn those of one weight without a bias into folds."""
        inner, bias = self.weights[:, : self.inputs], self.weights[:, self.inputs :]
        used = (inner != 0).sum(1)
        lone = (used == 1) & ~(bias != 0).any(1) & ((inner != 0) & foldable(objective)).any(1)
        empty = used == 0
        folds = self.folds + self.signs[lone] @ inner[lone].abs()
        constant = self.constant + self.signs[empty] @ bias[empty].abs()
        stays = ~lone & ~empty
        return AbsoluteForm(self.weights[stays], self.signs[stays], self.linear, folds, constant)

    def prune(self, objective: Relu, budget: int) -> AbsoluteForm:
        """Keep the largest weights, folds among them."""
        magnitude = torch.cat([self.weights.reshape(-1), self.folds]).abs()
        if budget >= int((magnitude > 0).sum()):
            return self.folded(objective)
        kept = torch.zeros_like(magnitude)
        kept[largest(magnitude.float(), budget)] = 1
        weights = self.weights * kept[: self.weights.numel()].view(self.weights.shape)
        return replace(self, weights=weights, folds=self.folds * kept[self.weights.numel() :]).folded(
            objective
        )


def foldable(objective: Relu) -> Tensor:  # (inputs,), bool
    """Say which inputs may have folds: those whose origin is zero in raw units, with values of both signs."""
    inputs, moved, folding = objective.layout.widths[0] // 2, objective.moved, objective.folding
    out = torch.ones(inputs, dtype=torch.bool) if moved is None else ~moved[:inputs]
    return out if folding is None else out & folding
