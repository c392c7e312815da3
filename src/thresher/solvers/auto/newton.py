"""Fits on a support by damped Newton steps, and which weights cost least to remove: every way's end game.

Steps are Levenberg and Marquardt's on the equations of Gauss and Newton. Removal is backward elimination with
the rest refitted, the optimal brain surgeon of Hassibi and Stork. Everything is float64, so that a network
that explains its targets is found to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import torch
from torch import Tensor

from thresher.errors import DataError
from thresher.memory import give_back
from thresher.objective.allowed import without_zeros
from thresher.objective.relu import Relu
from thresher.objective.running import Point, Running
from thresher.solvers.auto.equations import equations, matrix_bytes
from thresher.solvers.auto.newton_tuning import NewtonTuning
from thresher.solvers.journal import State, journal


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
    """Drop what is on no path or not allowed, add the biases that raw units ask for, and measure."""
    point = _without_constants(objective, objective.permitted(point))
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
    bounds = objective.bounds(fit.point)
    least = min(tuning.helps, tuning.helps_rows / objective.data.amount)
    large = matrix_bytes(fit.nonzeros, tuning) > tuning.given_back * objective.memory_limit
    for _ in range(steps):
        if value == 0:
            break
        if large:
            give_back()
        better, lower, damping = _step(objective, running, value, damping, tuning, rough, bounds)
        if better is None:
            break
        helped = lower < (1 - least) * value
        running, value = better, lower
        if not helped:
            break
    if bounds is None:
        return Fit(running.point, value)
    # What ended at a bound is free for other weights.
    return measured(objective, without_zeros(running.point, bounds))


def _step(
    objective: Relu,
    running: Running,
    value: float,
    damping: float,
    tuning: NewtonTuning,
    rough: bool,
    bounds: tuple[Tensor, Tensor] | None,
) -> tuple[Running | None, float, float]:
    """Find a damping with which the objective falls, little where that served last time."""
    newton = equations(objective, running, tuning, rough)
    if not newton.finite:
        raise DataError(
            "training met numbers that are not finite, because the values of X or y are too large or too "
            "small to compute with. Scale them to the order of 1."
        )
    while damping <= tuning.most_damping:
        step = newton.solved(damping)
        if step is not None:
            if bounds is not None:
                step = newton.bounded(step, damping, running.values, *bounds)
            trial = running.at(running.values - step.to(running.values.dtype))
            lower = objective.value(trial)
            if lower < value:
                promised = 0.5 * float(step @ (newton.gradient + damping * newton.diagonal * step))
                kept = (value - lower) / max(promised, 1e-300)
                if kept > tuning.trusted:
                    damping = max(tuning.least_damping, damping * tuning.relaxed)
                elif kept <= tuning.doubted:
                    damping *= tuning.raised
                return trial, lower, damping
        damping *= tuning.again
    return None, value, tuning.damping


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
    at = equations(objective, objective.run(fit.point), tuning, rough=True)
    gone = at.cheapest(fit.point.w.values.double(), free, fit.nonzeros - count)
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
