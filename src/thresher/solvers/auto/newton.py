"""Fits on a support by damped Newton steps, and which weights cost least to remove: every way's end game.

Steps are Levenberg and Marquardt's on the equations of Gauss and Newton. Removal is backward elimination with
the rest refitted, the optimal brain surgeon of Hassibi and Stork. Everything is float64, so that a network
that explains its targets is found to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import torch
from torch import Tensor

from thresher.errors import DataError
from thresher.memory import give_back
from thresher.objective.relu import Relu
from thresher.objective.running import Point, Running
from thresher.solvers.auto.recovery_tuning import NewtonTuning
from thresher.solvers.journal import State, journal

# Removals after which the inverse is brought up to date.
DEFERRED = 64


@dataclass(frozen=True, eq=False)
class Fit:
    """A point and the objective there."""

    point: Point
    value: float

    @property
    def nonzeros(self) -> int:
        """How many weights are held."""
        return self.point.w.nonzeros


def measured(objective: Relu, point: Point) -> Fit:
    """Drop what is on no path, add the biases that raw units ask for, and measure."""
    point = _without_constants(objective, point)
    indices = objective.closed(point.w.indices[objective.alive(point.w.indices)])
    point = point.at(indices)
    return Fit(point, objective.value(point))


P = ParamSpec("P")


def recalled(work: Callable[P, Fit]) -> Callable[P, Fit]:
    """Let the journal answer for a fit that is done."""

    def save(fit: Fit) -> State:
        return {"w": fit.point.w, "signs": fit.point.signs, "value": fit.value}

    def load(state: State) -> Fit:
        return Fit(Point(state["w"], state["signs"]), state["value"])

    @wraps(work)
    def asked(*arguments: P.args, **named: P.kwargs) -> Fit:
        return journal().recall(work.__name__, lambda: work(*arguments, **named), save, load)

    return asked


@recalled
def refit(objective: Relu, fit: Fit, steps: int, tuning: NewtonTuning, rough: bool = True) -> Fit:
    """Take damped Newton steps on the support while they help."""
    if fit.nonzeros == 0:
        return fit
    running, value, damping = objective.run(fit.point), fit.value, tuning.damping
    least = min(tuning.helps, tuning.helps_rows / objective.data.amount)
    large = 8 * tuning.matrices * fit.nonzeros**2 > tuning.given_back * objective.memory_limit
    for _ in range(steps):
        if value == 0:
            break
        if large:
            give_back()
        better, lower, damping = _step(objective, running, value, damping, tuning, rough)
        if better is None:
            break
        helped = lower < (1 - least) * value
        running, value = better, lower
        if not helped:
            break
    return Fit(running.point, value)


def _step(
    objective: Relu, running: Running, value: float, damping: float, tuning: NewtonTuning, rough: bool
) -> tuple[Running | None, float, float]:
    """Find a damping with which the objective falls, little where that served last time."""
    H, g = objective.curvature(running, rough)
    if not math.isfinite(float(H.sum())):
        raise DataError(
            "training met numbers that are not finite, because the values of X or y are too large or too "
            "small to compute with. Scale them to the order of 1."
        )
    diagonal = H.diagonal().clone()
    floor = 1e-12 * float(diagonal.mean()) + 1e-300
    while damping <= tuning.most_damping:
        triangle, definite = _factored(H, damping * diagonal + floor)
        if definite:
            step = torch.cholesky_solve(g[:, None], triangle)[:, 0]
            trial = running.at(running.values - step.to(running.values.dtype))
            lower = objective.value(trial)
            if lower < value:
                promised = 0.5 * float(step @ (g + damping * diagonal * step))
                kept = (value - lower) / max(promised, 1e-300)
                if kept > tuning.trusted:
                    damping = max(tuning.least_damping, damping * tuning.relaxed)
                elif kept <= tuning.doubted:
                    damping *= tuning.raised
                return trial, lower, damping
        damping *= tuning.again
    return None, value, tuning.damping


def removal(
    H: Tensor,
    values: Tensor,
    free: Tensor,
    count: int,
    ridge: float,
    slack: float = 0.0,
    each: float = math.inf,
) -> Tensor:
    """Choose weights to remove, each the one whose removal costs least once the rest is refitted.

    Parameters
    ----------
    H : tensor of shape (k, k)
        The curvature.
    values : tensor of shape (k,)
        Where the objective is least.
    free : bool tensor of shape (k,)
        What may be removed.
    count : int
        How many to remove.
    ridge : float
        Added to the curvature, as a share of its mean diagonal.
    slack, each : float
        After those, more are removed while all removals together raise twice the objective by no more than
        `slack`, and no one of them by more than `each`.
    """
    inverse = inverse_of(H, ridge)
    # Nobody else may hold it: a matrix less while the others are changed.
    del H
    values, live, names = values.clone(), free.clone(), torch.arange(values.numel())
    # Every removal takes ``column column'`` off the inverse. That is written now and then: choosing needs
    # the diagonal, and one column at a time.
    diagonal, columns = inverse.diagonal().clone(), torch.empty(DEFERRED, values.numel(), dtype=inverse.dtype)
    removed: list[int] = []
    pending, spent = 0, 0.0
    while (len(removed) < count or slack > 0) and bool(live.any()):
        # Costs are compared in float32: what differs by rounding only is a tie, and goes to the lower place.
        cost = torch.where(live, values.square() / diagonal.clamp(min=1e-300), math.inf)
        least = int(cost.float().argmin())
        spent += float(cost[least])
        if len(removed) >= count and (spent > slack or float(cost[least]) > each):
            break
        before = columns[:pending]
        column = torch.addmv(inverse[least], before.T, before[:, least], alpha=-1)
        pivot = max(float(column[least]), 1e-300)
        values.sub_(column, alpha=float(values[least]) / pivot)
        columns[pending] = column.div_(math.sqrt(pivot))
        diagonal.addcmul_(column, column, value=-1)
        live[least], pending = False, pending + 1
        removed.append(int(names[least]))
        if pending == DEFERRED:
            kept = (live | ~free).nonzero().flatten()
            left = columns[:, kept]
            inverse = inverse[kept[:, None], kept].addmm_(left.T, left, alpha=-1)
            values, diagonal, names = values[kept], inverse.diagonal().clone(), names[kept]
            free, live, columns, pending = free[kept], live[kept], torch.empty_like(left), 0
    return torch.tensor(removed, dtype=torch.int64)


def solve(H: Tensor, g: Tensor, ridge: float) -> Tensor:
    """Give the whole Newton step, with a share `ridge` of its mean diagonal added to the curvature."""
    return torch.cholesky_solve(g[:, None], _factor(H, ridge))[:, 0]


def inverse_of(H: Tensor, ridge: float) -> Tensor:
    """Invert a curvature, with a share `ridge` of its mean diagonal added."""
    triangle = _factor(H, ridge)
    return torch.cholesky_inverse(triangle, out=triangle)


def _factor(H: Tensor, ridge: float) -> Tensor:
    """Factor a matrix, with as much added to its diagonal as that takes."""
    size = float(H.diagonal().mean())
    while True:
        triangle, definite = _factored(H, ridge * size + 1e-30)
        if definite:
            return triangle
        ridge *= 10


def _factored(H: Tensor, added: Tensor | float) -> tuple[Tensor, bool]:
    """Factor a symmetric matrix with something added to its diagonal; says whether that succeeded."""
    # Column by column, LAPACK needs no copy of its own.
    triangle, failed = H.clone().T, torch.zeros((), dtype=torch.int32)
    triangle.diagonal().add_(added)
    torch.linalg.cholesky_ex(triangle, out=(triangle, failed))
    return triangle, int(failed) == 0


@recalled
def shrink(objective: Relu, fit: Fit, budget: int, tuning: NewtonTuning) -> Fit:
    """Remove weights, a few at a time, down to the budget, and refit after each time."""
    while fit.nonzeros > budget:
        left = cut(objective, fit, max(budget, int((1 - tuning.removed) * fit.nonzeros)), tuning)
        if left.nonzeros == fit.nonzeros:
            break
        fit = refit(objective, left, tuning.between, tuning)
    return refit(objective, fit, tuning.last, tuning)


def cut(objective: Relu, fit: Fit, count: int, tuning: NewtonTuning) -> Fit:
    """Remove the weights beyond a number that cost least once the rest is refitted, which it is not here."""
    if fit.nonzeros <= count:
        return fit
    free = ~brought_along(objective, fit.point.w.indices)
    weights, ridge = fit.point.w.values.double(), tuning.ridge
    gone = removal(objective.curvature(fit.point, rough=True)[0], weights, free, fit.nonzeros - count, ridge)
    stays = torch.ones(fit.nonzeros, dtype=torch.bool)
    stays[gone] = False
    return measured(objective, fit.point.keep(stays)) if gone.numel() else fit


def brought_along(objective: Relu, indices: Tensor) -> Tensor:  # bool
    """Say which positions are biases that other weights bring along: they go when those go."""
    bias = objective.layout.is_bias(indices)
    return bias & torch.isin(indices, objective.closed(indices[~bias]))


def _without_constants(objective: Relu, point: Point) -> Point:
    """Let go of neurons that read no input: an output bias does what they do."""
    layout, w = objective.layout, point.w
    if not layout.bias:
        return point
    part = layout.split(w.indices)[0]
    neuron, feature = layout.pairs(w.indices[part], 0)
    inside = feature < layout.inputs[0]
    reads = torch.zeros(layout.widths[1], dtype=torch.bool)
    reads[neuron[inside]] = True
    kept = torch.ones(w.nonzeros, dtype=torch.bool)
    kept[part] = inside | reads[neuron]
    return point if bool(kept.all()) else point.keep(kept)
