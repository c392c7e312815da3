"""The layers above the first one of a deep network, found anew once the first is known.

What the first hidden layer gives is the input of a network with one layer less. If that has a single hidden
layer and output, exact recovery in the absolute-value form finds it where training all layers together ends
near it: no neuron can be on the wrong side.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from thresher.device import to_host
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.relu import Relu
from thresher.objective.running import Point


def upper_objective(objective: Relu, point: Point, widths: tuple[int, ...]) -> Relu:
    """Give the objective of the layers above the first, on what the first one gives.

    Parameters
    ----------
    objective : Relu
        That of the whole network.
    point : Point
        Whose first layer is kept.
    widths : tuple of int
        Hidden layers above the first.
    """
    data, layout = objective.data, objective.layout
    running = objective.run(point)
    fed = torch.cat([running.forward(batch.X).fed[1] for batch in data.chunks(max(layout.widths[1:]))])
    given = Data(to_host(fed), data.targets, data.weight, None, data.dtype, data.memory_limit)
    room = Layout((layout.widths[1], *widths, layout.widths[-1]), layout.bias, layout.fused)
    return replace(objective, data=given, layout=room, origins=None)


def joined(layout: Layout, point: Point, upper: Layout, above: Point) -> tuple[Layout, Point]:
    """Put layers on the first layer of a network, in place of those that it had."""
    whole = Layout((layout.widths[0], *upper.widths), layout.bias, layout.fused, layout.direct)
    first = layout.split(point.w.indices)[0]
    places: list[Tensor] = [point.w.indices[first]]
    for number, part in enumerate(upper.split(above.w.indices)[: upper.layers]):
        neuron, feature = upper.pairs(above.w.indices[part], number)
        places.append(whole.position(number + 1, neuron, feature))
    values = torch.cat([point.w.values[first], above.w.values.to(point.w.values.dtype)])
    return whole, Point(SparseVector(torch.cat(places), values, whole.size), above.signs)
