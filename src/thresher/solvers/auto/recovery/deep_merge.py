"""Neurons of deep networks that do the same are made one: those whose weights are multiples of each other."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.layout import Layout
from thresher.objective.running import Point


def merged(layout: Layout, point: Point, near: float) -> Point:
    """Let one neuron stand for those whose directions have a cosine of ``1 - near`` or more.

    ``relu(a z) = a relu(z)``, so what one neuron of such a group feeds is added to what another feeds. What a
    fused output sums up is one neuron whose sign is that of the sum.
    """
    blocks, signs = written_out(layout, point), None if point.signs is None else point.signs.double()
    for number in range(layout.layers - 1):
        inner = blocks[number]
        leader = _leaders(inner, near)
        follows = leader != torch.arange(len(inner))
        if not bool(follows.any()):
            continue
        if signs is not None and number == layout.layers - 2:
            blocks[number], signs = _summed(inner, leader, signs)
            continue
        size, outer, inputs = inner.norm(dim=1), blocks[number + 1], layout.inputs[number + 1]
        share = size / size[leader].clamp(min=1e-300)
        fed = torch.zeros_like(outer[:, :inputs]).index_add_(1, leader, outer[:, :inputs] * share)
        outer[:, :inputs] = fed * ~follows
        inner[follows] = 0
    return held(layout, blocks, signs)


def written_out(layout: Layout, point: Point) -> list[Tensor]:  # each (neurons, places)
    """Write the weights of every block into a matrix."""
    dense = torch.zeros(layout.size, dtype=torch.float64)
    dense[point.w.indices] = point.w.values.double()
    places = zip(pairwise(layout.offsets), layout.shapes, strict=True)
    return [dense[first:last].view(shape) for (first, last), shape in places]


def held(layout: Layout, blocks: list[Tensor], signs: Tensor | None) -> Point:
    """Hold what is not zero in such matrices."""
    dense = torch.cat([block.reshape(-1) for block in blocks])
    held = dense.nonzero().flatten()
    return Point(SparseVector(held, dense[held], layout.size), signs)


def _leaders(inner: Tensor, near: float) -> Tensor:  # (neurons,)
    """Name for each neuron the largest one of its direction, itself where there is none."""
    size = inner.norm(dim=1)
    unit = inner / size.clamp(min=1e-300)[:, None]
    alike = (unit @ unit.T > 1 - near) & (size > 0) & (size > 0)[:, None]
    leader = torch.arange(len(inner))
    free = size > 0
    for one in size.argsort(descending=True, stable=True).tolist():
        if free[one]:
            group = alike[one] & free
            leader[group] = one
            free &= ~group
            free[one] = False
    return leader


def _summed(inner: Tensor, leader: Tensor, signs: Tensor) -> tuple[Tensor, Tensor]:
    """Add up the neurons of each group as the output does."""
    total = torch.zeros_like(inner).index_add_(0, leader, inner * signs[:, None])
    side = torch.where((total * inner).sum(1) < 0, -1.0, 1.0).to(signs)
    return total * side[:, None], side
