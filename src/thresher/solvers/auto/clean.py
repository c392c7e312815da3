"""The last prune: whatever has no effect on any row goes, and what is linear on all rows is written so."""

from __future__ import annotations

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Batch
from thresher.objective.relu import Point, Relu
from thresher.solvers.auto.newton import Fit, brought_along, measured, refit, removal
from thresher.solvers.auto.tuning import CleanTuning, NewtonTuning


def cleaned(objective: Relu, fit: Fit, tuning: CleanTuning, newton: NewtonTuning) -> Fit:
    """Give a network that does the same on all rows, with fewer nonzeros where some do nothing."""
    for part in (_without_idle, _straightened, _merged):
        trial = measured(objective, part(objective, fit.point, tuning))
        if trial.nonzeros <= fit.nonzeros and trial.value <= _allowed(fit.value, tuning):
            fit = trial
    fit = _trimmed(objective, fit, tuning, newton)
    return through_zero(objective, fit, tuning)


def _allowed(value: float, tuning: CleanTuning) -> float:
    return value * (1 + tuning.share) + tuning.least


def _extremes(objective: Relu, point: Point) -> list[tuple[Tensor, Tensor]]:
    """Give the least and largest sum of every neuron over all rows, layer by layer."""
    running, found = objective.run(point), []

    def look(batch: Batch) -> tuple[Tensor, ...]:
        fed = batch.X
        for layer in range(objective.layout.layers - 1):
            summed = running.blocks[layer].forward(fed)
            found.append((layer, summed.min(0).values, summed.max(0).values))
            fed = summed.relu()
        return (batch.share.sum(),)

    objective.data.total(look, max(objective.layout.widths[1:]))
    extremes = []
    for layer in range(objective.layout.layers - 1):
        parts = [part for part in found if part[0] == layer]
        low = torch.stack([part[1] for part in parts]).min(0).values
        extremes.append((low, torch.stack([part[2] for part in parts]).max(0).values))
    return extremes


def _without_idle(objective: Relu, point: Point, tuning: CleanTuning) -> Point:
    """Let go of neurons that are on for no row."""
    layout, indices = objective.layout, point.w.indices
    kept = torch.ones(indices.numel(), dtype=torch.bool)
    parts = layout.split(indices)
    for layer, (_, high) in enumerate(_extremes(objective, point)):
        kept[parts[layer]] &= high[layout.pairs(indices[parts[layer]], layer)[0]] > 0
    return point.keep(kept)


def _straightened(objective: Relu, point: Point, tuning: CleanTuning) -> Point:
    """Write neurons that are on for all rows as direct connections, where that costs no more."""
    layout, w = objective.layout, point.w
    if not layout.direct or layout.layers != 2 or not layout.bias:
        return point
    ((low, _),) = _extremes(objective, point)
    parts = layout.split(w.indices)
    neuron, feature = layout.pairs(w.indices[parts[0]], 0)
    values = w.values[parts[0]]
    inside = feature < layout.inputs[0]
    counts = torch.bincount(neuron[inside], minlength=layout.widths[1])
    outer = _outer(objective, point)  # (hidden, outputs)
    read = (outer != 0).sum(1)
    always = (low > 0) & (counts > 0)
    if not layout.fused:
        always &= counts * read <= counts + read
    if not bool(always.any()):
        return point
    dense = torch.zeros(layout.widths[0] + 1, layout.widths[-1], dtype=values.dtype)
    chosen = always[neuron]
    dense.index_add_(0, feature[chosen], values[chosen, None] * outer[neuron[chosen]])
    kept = torch.ones(w.nonzeros, dtype=torch.bool)
    kept[parts[0]] = ~chosen
    if not layout.fused:
        kept[parts[1]] = ~always[layout.pairs(w.indices[parts[1]], 1)[1].clamp(max=layout.widths[1] - 1)] | (
            layout.pairs(w.indices[parts[1]], 1)[1] == layout.inputs[1]
        )
    at, output = dense[:-1].nonzero(as_tuple=True)
    added = layout.position(layout.layers, output, at)
    places = torch.cat([w.indices[kept], added, layout.output_biases])
    numbers = torch.cat([w.values[kept], dense[at, output], dense[-1]])
    indices, place = places.unique(return_inverse=True)
    summed = torch.zeros(indices.numel(), dtype=values.dtype).index_add_(0, place, numbers)
    held = summed != 0
    return Point(SparseVector(indices[held], summed[held], w.size), point.signs)


def _merged(objective: Relu, point: Point, tuning: CleanTuning) -> Point:
    """Add up neurons of one kink and one sign in a fused network: one neuron does what they do together."""
    layout, w = objective.layout, point.w
    if not layout.fused or layout.layers != 2:
        return point
    part = layout.split(w.indices)[0]
    neuron, feature = layout.pairs(w.indices[part], 0)
    live, row = neuron.unique(return_inverse=True)
    used, column = feature.unique(return_inverse=True)
    if live.numel() < 2 or live.numel() * used.numel() > 10**6:
        return point
    dense = torch.zeros(live.numel(), used.numel(), dtype=torch.float64)
    dense[row, column] = w.values[part].double()
    assert point.signs is not None
    unit = dense / dense.norm(dim=1, keepdim=True).clamp(min=1e-300)
    alike = (unit @ unit.T > 1 - tuning.collinear) & (point.signs[live][:, None] == point.signs[live])
    leader = alike.to(torch.int8).argmax(1)
    summed = torch.zeros_like(dense).index_add_(0, leader, dense)
    at, of = summed.nonzero(as_tuple=True)
    places = torch.cat([layout.position(0, live[at], used[of]), w.indices[part.stop :]])
    values = torch.cat([summed[at, of].to(w.values.dtype), w.values[part.stop :]])
    places, order = places.sort()
    return Point(SparseVector(places, values[order], w.size), point.signs)


def _outer(objective: Relu, point: Point) -> Tensor:  # (hidden, outputs)
    layout, w = objective.layout, point.w
    if point.signs is not None:
        return point.signs[:, None].to(w.values.dtype)
    part = layout.split(w.indices)[1]
    output, neuron = layout.pairs(w.indices[part], 1)
    dense = torch.zeros(layout.widths[1] + 1, layout.widths[-1], dtype=w.values.dtype)
    dense[neuron, output] = w.values[part]
    return dense[:-1]


def _trimmed(objective: Relu, fit: Fit, tuning: CleanTuning, newton: NewtonTuning) -> Fit:
    """Remove weights whose removal costs nothing, once the others are refitted."""
    for _ in range(tuning.rounds):
        free = ~brought_along(objective, fit.point.w.indices)
        if fit.nonzeros == 0 or fit.nonzeros > tuning.most or not bool(free.any()):
            break
        H, _ = objective.curvature(fit.point)
        slack = 2 * tuning.promised * (_allowed(fit.value, tuning) - fit.value)
        order = removal(H, fit.point.w.values.double(), free, 0, newton.ridge * 1e-3, slack)
        while order.numel():
            stays = torch.ones(fit.nonzeros, dtype=torch.bool)
            stays[order] = False
            trial = measured(objective, fit.point.keep(stays))
            trial = refit(objective, trial, tuning.steps, newton, rough=False)
            if trial.value <= _allowed(fit.value, tuning):
                break
            order = order[: order.numel() // 2]
        if order.numel() == 0:
            break
        fit = trial
    return fit


def through_zero(objective: Relu, fit: Fit, tuning: CleanTuning, accident: float = 0.0) -> Fit:
    """Set biases to what is zero in raw units, where that costs nothing.

    With `accident`, what it costs may be so many times the mean loss of one row, which is what a number that
    means nothing gains by fitting rounding.
    """
    free = fit.value * (1 + accident / objective.data.amount)
    places, zeros = objective.raw_biases(fit.point)
    w = fit.point.w
    for place, zero in zip(places.tolist(), zeros.tolist(), strict=True):
        values = w.values.clone()
        values[torch.searchsorted(w.indices, place)] = zero
        point = fit.point.with_values(values)
        value = objective.value(point)
        if value <= max(free, _allowed(fit.value, tuning)):
            fit = Fit(point, value)
            w = fit.point.w
    return fit


def raw_nonzeros(objective: Relu, point: Point) -> int:
    """Count the nonzeros that a network has in raw units, where some biases may be zero."""
    places, zeros = objective.raw_biases(point)
    return point.w.nonzeros - int((point.w.at(places) == zeros.to(point.w.values.dtype)).sum())
