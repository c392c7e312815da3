"""Sides of the neurons that a fused output adds up, in a network with several hidden layers.

``relu(z) = z + relu(-z)``, so a neuron of the last hidden layer may be on the wrong side, as long as others
that are on for all rows make up for the linear part: what feeds that layer is never below zero, and neurons
without a weight below zero are such a part. It costs weights that were not planted, and no removal of one
weight after the other leads to the other side. Choosing all sides anew does.
"""

from __future__ import annotations

import torch

from thresher.objective.layout import Layout
from thresher.objective.running import Point
from thresher.solvers.auto.recovery.deep_merge import held, written_out
from thresher.solvers.auto.recovery.sides import sides_of
from thresher.solvers.auto.recovery.tuning import SidesTuning


def with_sides(layout: Layout, point: Point, tolerance: float, tuning: SidesTuning) -> Point:
    """Choose the sides of the last hidden layer's neurons such that the linear part costs least.

    Parameters
    ----------
    layout : Layout
        Of several hidden layers and a fused output.
    point : Point
    tolerance : float
        What is left of the linear part up to this is taken for zero, where the layer below has weights of
        length 1.
    tuning : SidesTuning

    Returns
    -------
    Point
        The same network where nothing is gained.
    """
    if not layout.fused or layout.layers < 3 or point.signs is None:
        return point
    number, signs = layout.layers - 2, point.signs.double().clone()
    blocks = written_out(layout, point)
    size = torch.ones(blocks[number].shape[1], dtype=torch.float64)
    below = blocks[number - 1].norm(dim=1)
    size[: len(below)] = torch.where(below > 0, below, 1.0)
    inner = blocks[number] * size
    used = (inner > 0).any(1)
    straight = used & (inner >= 0).all(1)
    bent = used & ~straight
    pulls = (0.5 * signs[bent, None] * inner[bent]).T
    line = signs[straight] @ inner[straight] + pulls.sum(1)
    side, rest, _ = sides_of(pulls, line, torch.zeros_like(line), tolerance, tuning)
    rest = torch.where(rest.abs() > tolerance, rest, 0.0)
    turned = torch.zeros_like(inner)
    turned[bent] = side[:, None] * inner[bent]
    free = (~bent).nonzero().flatten().tolist()
    for sign, part in ((1.0, rest.clamp(min=0)), (-1.0, rest.neg().clamp(min=0))):
        if bool((part > 0).any()):
            if not free:
                return point
            place = free.pop(0)
            turned[place], signs[place] = part, sign
    blocks[number] = turned / size
    trial = held(layout, blocks, signs)
    return trial if trial.w.nonzeros < point.w.nonzeros else point
