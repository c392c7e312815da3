"""Linear models with few weights, by an L1 penalty: what a network has to beat where rows are few and noisy.

The penalty shrinks as it selects, and that is what makes it hard to beat on noisy data: a search for the best
support of a given size fits the noise, the more so the more supports there are. Fits are by accelerated
proximal gradient steps (FISTA of Beck and Teboulle), for any loss and any number of outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Batch
from thresher.objective.relu import Point, Relu
from thresher.solvers.auto.newton import Fit, measured
from thresher.solvers.auto.tuning import LinearTuning


@dataclass(frozen=True, eq=False)
class Model:
    """A linear model: weights (inputs, outputs), constants (outputs,), and the L1 penalty it was found at."""

    weights: Tensor
    constant: Tensor
    penalty: float

    @property
    def nonzeros(self) -> int:
        """Weights that are not zero."""
        return int((self.weights != 0).sum())


# From a model to its mean loss, and the slopes of that with respect to weights and constants.
Sums = Callable[[Model], tuple[float, Tensor, Tensor]]


def l1_path(objective: Relu, most: int, tuning: LinearTuning) -> Iterator[Model]:
    """Fit at falling penalties, while there are no more than `most` weights; the last steps are shorter."""
    sums, model = _sums_of(objective), _empty(objective)
    penalty = strongest = float(sums(model)[1].abs().max())
    fall, halvings = tuning.fall, tuning.halvings
    while penalty * fall > tuning.least * strongest:
        trial = _fitted(objective, sums, penalty * fall, model, tuning)
        if trial.nonzeros > most:
            if halvings == 0:
                return
            fall, halvings = fall**0.5, halvings - 1
            continue
        model, penalty = trial, penalty * fall
        if model.nonzeros:
            yield model


def l1_fit(objective: Relu, penalty: float, start: Model | None, tuning: LinearTuning) -> Model:
    """Fit at one penalty, from another model or from nothing."""
    model = _empty(objective) if start is None else start
    return _fitted(objective, _sums_of(objective), penalty, model, tuning)


def _fitted(objective: Relu, sums: Sums, penalty: float, model: Model, tuning: LinearTuning) -> Model:
    now, momentum, curvature = model, 1.0, tuning.curvature
    value = math.inf
    for _ in range(tuning.steps):
        at, slope, constant_slope = sums(now)
        while True:
            step = 1 / curvature
            weights = torch.nn.functional.softshrink(now.weights - step * slope, step * penalty)
            constant = now.constant - step * constant_slope * float(objective.layout.bias)
            trial = Model(weights, constant, penalty)
            moved = trial.weights - now.weights, trial.constant - now.constant
            ahead = sums(trial)[0]
            linear = float((slope * moved[0]).sum() + (constant_slope * moved[1]).sum())
            square = float(moved[0].square().sum() + moved[1].square().sum())
            if ahead <= at + linear + 0.5 * curvature * square + 1e-12 * abs(at):
                break
            curvature *= 2
        change = float(
            (trial.weights - model.weights).abs().max() + (trial.constant - model.constant).abs().max()
        )
        following = 0.5 * (1 + (1 + 4 * momentum**2) ** 0.5)
        pull = (momentum - 1) / following
        if ahead + penalty * float(weights.abs().sum()) > value:
            # The momentum overshot: start it anew.
            pull, following = 0.0, 1.0
        value = ahead + penalty * float(weights.abs().sum())
        now = Model(
            trial.weights + pull * (trial.weights - model.weights),
            trial.constant + pull * (trial.constant - model.constant),
            penalty,
        )
        model, momentum = trial, following
        if change <= tuning.tolerance * (1e-3 + float(weights.abs().max())):
            break
    return model


def as_fit(objective: Relu, model: Model) -> Fit:
    """Write a linear model as direct connections and output biases."""
    layout = objective.layout
    feature, output = (model.weights != 0).nonzero(as_tuple=True)
    places = layout.position(layout.layers, output, feature)
    indices = torch.cat([layout.output_biases, places])
    constant = model.constant[: layout.output_biases.numel()]
    values = torch.cat([constant, model.weights[feature, output]])
    indices, order = indices.sort()
    values = values[order]
    kept = (values != 0) | torch.isin(indices, layout.output_biases)
    w = SparseVector(indices[kept], values[kept], layout.size)
    signs = torch.ones(layout.widths[-2], dtype=torch.float64) if layout.fused else None
    return measured(objective, Point(w, signs))


def _empty(objective: Relu) -> Model:
    inputs, outputs = objective.layout.widths[0], objective.layout.widths[-1]
    constant = torch.zeros(outputs, dtype=torch.float64)
    if objective.layout.bias and not objective.centred:
        constant = objective.loss.constant(objective.data.targets, objective.data.share)
        constant = torch.nn.functional.pad(constant, (0, outputs - constant.numel()))
    return Model(torch.zeros(inputs, outputs, dtype=torch.float64), constant, float("inf"))


def _sums_of(objective: Relu) -> Sums:
    """Give what measures a model: the mean loss, and its slopes with respect to weights and constants."""
    data = objective.data
    if objective.loss.quadratic and data.columns <= data.rows:
        return _of_moments(objective)
    return lambda model: _of_rows(objective, model)


def _of_rows(objective: Relu, model: Model) -> tuple[float, Tensor, Tensor]:
    dtype = objective.data.dtype
    used = (model.weights != 0).any(1).nonzero().flatten()
    weights, constant = model.weights[used].to(dtype), model.constant.to(dtype)

    def each(batch: Batch) -> tuple[Tensor, ...]:
        output = batch.X[:, used] @ weights + constant
        slope = objective.slope(output, batch)
        value = (objective.loss.value(output, batch.y) * batch.share).sum()
        return value, batch.X.T @ slope, slope.sum(0)

    value, slopes, constants = objective.data.total(each)
    return float(value), slopes, constants


def _of_moments(objective: Relu) -> Sums:
    """Read the rows once: of a second-order loss, sums of products are all there is to know."""
    nothing = _empty(objective)
    start, slope, constant_slope = _of_rows(objective, nothing)
    origin = torch.cat([nothing.weights, nothing.constant[None]])
    slopes = torch.cat([slope, constant_slope[None]])

    def each(batch: Batch) -> tuple[Tensor, ...]:
        X = torch.nn.functional.pad(batch.X, (0, 1), value=1.0)
        return ((X * batch.share[:, None]).T @ X,)

    (products,) = objective.data.total(each, objective.data.columns)

    def sums(model: Model) -> tuple[float, Tensor, Tensor]:
        moved = torch.cat([model.weights, model.constant[None]]).sub_(origin)
        bent = products @ moved
        value = start + float((moved * (slopes + 0.5 * bent)).sum())
        bent += slopes
        return value, bent[:-1], bent[-1]

    return sums
