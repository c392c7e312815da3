"""Wide students of deep recovery: networks of the shape asked for, but wider."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host
from thresher.linear.vector import SparseVector
from thresher.objective.curvature import Curvature
from thresher.objective.layout import Layout
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.recovery.deep_tuning import DeepTuning


def student_layout(layout: Layout, inputs: int, budget: int, tuning: DeepTuning) -> Layout:
    """Give a student room: layers several times as wide as allowed, as far as its weights may go."""
    most = max(tuning.neurons, int(tuning.neurons_each * budget))
    hidden = [
        min(most, max(tuning.neurons, math.ceil(tuning.wider * width))) for width in layout.widths[1:-1]
    ]
    while True:
        room = replace(layout, widths=(inputs, *hidden, layout.widths[-1]))
        if room.size <= tuning.weights or max(hidden) <= tuning.neurons:
            return room
        hidden = [max(tuning.neurons, int(0.9 * width)) for width in hidden]


def random_student(layout: Layout, random: np.random.Generator, added: bool, tuning: DeepTuning) -> Point:
    """Draw every weight such that layers keep the size of what passes through, and biases at zero.

    With `added`, a fused output adds all neurons up; else it subtracts every other one.
    """
    values, last = [], layout.layers - 1 - int(layout.fused)
    for block, (neurons, places) in enumerate(layout.shapes[: layout.layers]):
        inputs = layout.inputs[block]
        size = math.sqrt(2 / max(1, inputs)) * (tuning.tilt if block == last else 1 / tuning.tilt)
        if layout.fused and block == last:
            size /= math.sqrt(neurons)
        drawn = size * random.standard_normal((neurons, places))
        drawn[:, inputs:] = 0
        values.append(from_host(drawn).reshape(-1))
    if layout.direct:
        values.append(torch.zeros(math.prod(layout.shapes[-1]), dtype=torch.float64))
    return Point(
        SparseVector(torch.arange(layout.size), torch.cat(values), layout.size), _signs(layout, added)
    )


def widened(layout: Layout, point: Point, random: np.random.Generator, tuning: DeepTuning) -> Point:
    """Hold every weight again, those that were zero with a little noise."""
    every = point.at(torch.arange(layout.size))
    noise = tuning.noise * from_host(random.standard_normal(layout.size))
    values = every.w.values.double()
    return every.with_values(torch.where(values == 0, noise, values))


def usefulness(objective: Relu, point: Point) -> Tensor:  # (held,)
    """Say what the removal of each weight costs if the others stay (the optimal brain damage)."""
    return point.w.values.double().square() * Curvature(objective, objective.run(point)).diagonal.double()


def telling_inputs(objective: Relu, point: Point, least: float) -> Tensor:  # bool, (inputs,)
    """Say which inputs are read by weights that are worth more than `least` together."""
    worth = torch.zeros(objective.layout.widths[0], dtype=torch.float64)
    cost = usefulness(objective, point)
    for _, places, _, feature in objective.on_inputs(point.w.indices):
        worth.index_add_(0, feature, cost[places])
    return worth > least


def _signs(layout: Layout, added: bool) -> Tensor | None:
    if not layout.fused:
        return None
    signs = torch.ones(layout.widths[-2], dtype=torch.float64)
    if not added:
        signs[1::2] = -1
    return signs
