"""Inputs about their means, so that a search takes the same course wherever columns have their zero.

A column whose mean cannot be told from zero keeps its zero, which lets exact recovery find neurons without
biases. The same column, shifted, is seen about its mean, and other places make other networks. A search that
starts from nothing therefore moves those that kept their zero to their means as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.columns import COMMON
from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Point

# A bias below this share of the numbers that it is the difference of is zero but for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Centred:
    """An objective whose inputs are ``(x - shift) * factor`` of those of another, and the way back.

    Attributes
    ----------
    part : Relu
    shift, factor : tensors of shape (inputs,), or None
        None where the inputs are as they were.
    """

    part: Relu
    shift: Tensor | None = None
    factor: Tensor | None = None

    def lift(self, point: Point) -> Point:
        """Give a network the weights and biases that do the same on inputs as they were."""
        if self.shift is None or self.factor is None:
            return point
        layout = self.part.layout
        w = point.at(self.part.closed(point.w.indices)).w
        values = w.values.double().clone()
        moved, size = torch.zeros_like(values), values.abs()
        for biases, place, neuron, feature in self.part.on_inputs(w.indices):
            values[place] *= self.factor[feature]
            term = values[place] * self.shift[feature]
            shifted = term != 0
            held = torch.searchsorted(w.indices, layout.biases(biases, neuron[shifted]))
            moved.index_add_(0, held, term[shifted])
            size.index_add_(0, held, term[shifted].abs())
        kept = (moved == 0) | ((values - moved).abs() > ROUNDING * size)
        left = (values - moved)[kept].to(w.values.dtype)
        return replace(point, w=SparseVector(w.indices[kept], left, w.size))


def centred(objective: Relu) -> Centred:
    """Move inputs that kept their zero to their means; those that are zero on many rows stay."""
    data, origins = objective.data, objective.origins
    if origins is None or not objective.layout.bias:
        return Centred(objective)

    def each(batch: Batch) -> tuple[Tensor, ...]:
        X, share = batch.X.double(), batch.share.double()
        return share @ X, share @ X.square(), share @ (X == 0).double()

    mean, square, zero = data.total(each)
    spread = square - mean.square()
    moves = (origins == 0) & (mean != 0) & (zero < COMMON) & (spread > 1e-12 * square)
    if not bool(moves.any()):
        return Centred(objective)
    shift = torch.where(moves, mean, 0.0)
    # The scale is the root mean square about the origin, as that of columns which were moved before.
    factor = torch.where(moves, (square / spread.clamp(min=1e-300)).sqrt(), 1.0)
    moved = replace(objective, data=data.moved(shift, factor), origins=(origins + shift) * factor)
    return Centred(moved, shift, factor)
