"""Fits on a support by damped Newton steps, and which weights cost least to remove: the end game of every way.

Steps are Levenberg and Marquardt's on the equations of Gauss and Newton. Removal is backward elimination with
the rest refitted, the optimal brain surgeon of Hassibi and Stork. Everything is float64, so that a network
that explains its targets is found to the last digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.objective.relu import Point, Relu


@dataclass(frozen=True)
class NewtonTuning:
    damping: float = 1e-3
    least_damping: float = 1e-9
    most_damping: float = 1e6
    helps: float = 1e-3
    removed: float = 0.15


@dataclass(frozen=True, eq=False)
class Fit:
    """A point and the objective there."""

    point: Point
    value: float

    @property
    def nonzeros(self) -> int:
        return self.point.w.nonzeros


def measured(objective: Relu, point: Point) -> Fit:
    """Drop what is on no path, add the biases that must be, and measure."""
    w = point.w
    indices = objective.closed(w.indices[objective.alive(w.indices)])
    point = point.at(indices)
    return Fit(point, objective.value(point))


def refit(objective: Relu, fit: Fit, steps: int, tuning: NewtonTuning = NewtonTuning()) -> Fit:
    """Take damped Newton steps on the support while they help."""
    damping = tuning.damping
    for _ in range(steps):
        if fit.nonzeros == 0 or fit.value == 0:
            break
        H, g = objective.curvature(fit.point)
        better, damping = _step(objective, fit, H, g, damping, tuning)
        if better is None:
            break
        helped = better.value < (1 - tuning.helps) * fit.value
        fit = better
        if not helped:
            break
    return fit


def _step(
    objective: Relu, fit: Fit, H: Tensor, g: Tensor, damping: float, tuning: NewtonTuning
) -> tuple[Fit | None, float]:
    """Find a damping with which the objective falls, little where that served last time."""
    w, diagonal = fit.point.w, H.diagonal().clone()
    floor = 1e-12 * float(diagonal.mean()) + 1e-300
    while damping <= tuning.most_damping:
        damped = H.clone()
        damped.diagonal().add_(damping * diagonal + floor)
        triangle, failed = torch.linalg.cholesky_ex(damped)
        if int(failed) == 0:
            values = w.values - torch.cholesky_solve(g[:, None], triangle)[:, 0]
            point = fit.point.with_values(values)
            value = objective.value(point)
            if value < fit.value:
                return Fit(point, value), max(tuning.least_damping, damping / 10)
        damping *= 10
    return None, tuning.damping


def removal(H: Tensor, values: Tensor, free: Tensor, count: int, limit: float = math.inf) -> Tensor:
    """Choose weights to remove, each the one whose removal costs least once the rest is refitted."""
    damped = H.clone()
    damped.diagonal().add_(1e-6 * float(H.diagonal().mean()) + 1e-30)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    values, live, names = values.clone(), free.clone(), torch.arange(values.numel())
    removed: list[int] = []
    for _ in range(count):
        if not bool(live.any()):
            break
        cost = torch.where(live, values.square() / inverse.diagonal().clamp(min=1e-30), math.inf)
        least = int(cost.float().argmin())
        if float(cost[least]) > limit:
            break
        column = inverse[:, least] / inverse[least, least]
        values = values - column * values[least]
        inverse.addr_(column, inverse[least].clone(), alpha=-1)
        values[least], inverse[least, least], live[least] = 0, 1, False
        removed.append(int(names[least]))
        if len(removed) % 64 == 0:
            kept = live | ~free
            inverse, values, names = inverse[kept][:, kept].contiguous(), values[kept], names[kept]
            free, live = free[kept], live[kept]
    return torch.tensor(removed, dtype=torch.int64)


def forced(objective: Relu, indices: Tensor) -> Tensor:
    """Say which positions are biases that others bring along: they go when those go."""
    layout = objective.layout
    bias = layout.is_bias(indices)
    must = objective.closed(indices[~bias])
    return bias & torch.isin(indices, must)


def shrink(objective: Relu, fit: Fit, budget: int, steps: int = 3, last: int = 20, tuning: NewtonTuning = NewtonTuning()) -> Fit:
    """Remove weights, a few at a time, down to the budget, refitting in between."""
    while fit.nonzeros > budget:
        H, _ = objective.curvature(fit.point)
        free = ~forced(objective, fit.point.w.indices)
        excess = fit.nonzeros - max(budget, int((1 - tuning.removed) * fit.nonzeros))
        gone = removal(H, fit.point.w.values.double(), free, max(1, excess))
        stays = torch.ones(fit.nonzeros, dtype=torch.bool)
        stays[gone] = False
        fit = refit(objective, cleaned(objective, fit.point.keep(stays)), steps)
    return refit(objective, fit, last)


def cleaned(objective: Relu, point: Point) -> Fit:
    """Drop neurons that are left without inputs: their constant goes to the output bias."""
    return measured(objective, without_constant_neurons(objective, point))


def without_constant_neurons(objective: Relu, point: Point) -> Point:
    layout, w = objective.layout, point.w
    if not layout.bias:
        return point
    parts = layout.split(w.indices)
    neuron, feature = layout.pairs(w.indices[parts[0]], 0)
    inside = feature < layout.inputs[0]
    fed = torch.zeros(layout.shapes[0][0], dtype=torch.bool)
    fed[neuron[inside]] = True
    lone = ~inside & ~fed[neuron]
    if not bool(lone.any()):
        return point
    kept = torch.ones(w.nonzeros, dtype=torch.bool)
    kept[parts[0].start : parts[0].stop] = ~lone
    return point.keep(kept)
