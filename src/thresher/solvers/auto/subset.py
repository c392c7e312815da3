"""A feature subset to search on, where all features would be too many."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.linear.vector import SparseVector
from thresher.objective.relu import Point, Relu
from thresher.solvers.auto.tuning import SubsetTuning
from thresher.solvers.auto.wide import relevance


@dataclass(frozen=True, eq=False)
class Subset:
    """An objective on some of its inputs, and the way back.

    Attributes
    ----------
    whole, part : Relu
        The objective on all inputs, and on the chosen ones.
    features : int64 tensor, ascending
        The chosen inputs; None where it is all of them.
    """

    whole: Relu
    part: Relu
    features: Tensor | None

    def lift(self, point: Point) -> Point:
        """Give a point of the part its places in the whole."""
        if self.features is None:
            return point
        here, there, w = self.part.layout, self.whole.layout, point.w
        places = []
        for block, part in enumerate(here.split(w.indices)):
            neuron, feature = here.pairs(w.indices[part], block)
            if block in (0, here.layers):
                inside = feature < here.inputs[block]
                moved = self.features[feature.clamp(max=self.features.numel() - 1)]
                feature = torch.where(inside, moved, there.inputs[block])
            places.append(there.position(block, neuron, feature))
        return replace(point, w=SparseVector(torch.cat(places), w.values, there.size))


def subset_of(objective: Relu, budget: int, tuning: SubsetTuning) -> Subset:
    """Choose the inputs that tell most by themselves, as many as fit into the memory limit."""
    data, inputs = objective.data, objective.layout.widths[0]
    fitting = objective.memory_limit // (8 * min(data.rows, tuning.rows))
    most = max(tuning.least, min(int(tuning.each * budget), fitting))
    if inputs <= most:
        return Subset(objective, objective, None)
    features = largest(relevance(objective).float(), most)
    layout = replace(objective.layout, widths=(features.numel(), *objective.layout.widths[1:]))
    origins = None if objective.origins is None else objective.origins[features]
    part = replace(objective, data=data.only(features), layout=layout, origins=origins)
    return Subset(objective, part, features)
