"""Linear models with few weights, by an L1 penalty: what a network has to beat where rows are few and noisy.

The penalty shrinks as it selects, and that is what makes it hard to beat on noisy data: a search for the best
support of a given size fits the noise, the more so the more supports there are. Fits are by accelerated
proximal gradient steps (FISTA of Beck and Teboulle), for any loss and any number of outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.newton import Fit, measured
from thresher.solvers.auto.tuning import LinearTuning
from thresher.solvers.auto.wide import best_constant

# The step at the end of a path.
LAST = -1


@dataclass(frozen=True, eq=False)
class Model:
    """A linear model.

    Attributes
    ----------
    numbers : tensor of shape (inputs + 1, outputs)
        The weights, and the constants in the last row.
    penalty : float
        The L1 penalty it was found at.
    curvature : float
        What steps assume that go on from it.
    step : int
        Which step along a path led to it, `LAST` at its end: on other rows the same step leads to a penalty
        that is the same share of the strongest.
    """

    numbers: Tensor
    penalty: float
    curvature: float
    step: int = 0

    @property
    def weights(self) -> Tensor:  # (inputs, outputs)
        """Those of the inputs."""
        return self.numbers[:-1]

    @property
    def constant(self) -> Tensor:  # (outputs,)
        """What no input changes."""
        return self.numbers[-1]

    @property
    def nonzeros(self) -> int:
        """Weights that are not zero."""
        return int((self.weights != 0).sum())


# From a model's numbers to its mean loss, and the slopes of that with respect to them.
Sums = Callable[[Tensor], tuple[float, Tensor]]


def l1_path(objective: Relu, most: int, tuning: LinearTuning) -> Iterator[Model]:
    """Fit at penalties that fall in equal steps, while there are no more than `most` weights.

    Shorter steps lead from the last of these to as many weights as there may be.
    """
    model = _empty(objective, tuning)
    sums = _sums_of(objective, model)
    penalty = strongest = float(sums(model.numbers)[1][:-1].abs().max())
    fall, halvings, step = tuning.fall, tuning.halvings, 0
    while penalty * fall > tuning.least * strongest:
        trial = _fitted(objective, sums, penalty * fall, model, tuning)
        if trial.nonzeros <= most:
            step += 1
            model, penalty = replace(trial, step=step), penalty * fall
            if model.nonzeros and halvings == tuning.halvings:
                yield model
        elif halvings == 0:
            break
        else:
            fall, halvings = fall**0.5, halvings - 1
    if model.nonzeros:
        yield replace(model, step=LAST)


def l1_model(objective: Relu, step: int, most: int, tuning: LinearTuning) -> Model:
    """Fit at the penalty of a step along the path, or where that is too many weights at its end."""
    model = _empty(objective, tuning)
    for model in l1_path(objective, most, tuning):
        if model.step == step:
            break
    return model


def _fitted(objective: Relu, sums: Sums, penalty: float, model: Model, tuning: LinearTuning) -> Model:
    before = now = model.numbers
    momentum, curvature, value = 1.0, model.curvature, math.inf
    data = objective.data
    directions = None if objective.allowed is None else objective.allowed.inputs
    rises, falls = (None, None) if directions is None else (directions > 0, directions < 0)
    read = data.columns**2 if _has_moments(objective) else data.rows * data.row_numbers
    for _ in range(tuning.most_steps(read)):
        at, slope = sums(now)
        if not objective.layout.bias:
            slope[-1] = 0
        while True:
            numbers = now.sub(slope, alpha=1 / curvature)
            weights = numbers[:-1]
            weights.copy_(torch.nn.functional.softshrink(weights, penalty / curvature))
            if falls is not None:
                weights[falls] = weights[falls].clamp(max=0.0)
                weights[rises] = weights[rises].clamp(min=0.0)
            moved = numbers - now
            ahead, _ = sums(numbers)
            bound = float((moved * slope.add(moved, alpha=0.5 * curvature)).sum())
            if ahead <= at + bound + 1e-12 * abs(at):
                break
            curvature *= 2
        change = numbers - before
        following = 0.5 * (1 + (1 + 4 * momentum**2) ** 0.5)
        pull = (momentum - 1) / following
        last, value = value, ahead + penalty * float(weights.abs().sum())
        if value > last:
            # The momentum overshot: start it anew.
            pull, following = 0.0, 1.0
        before, now, momentum = numbers, numbers.add(change, alpha=pull), following
        if float(change.abs().max()) <= tuning.tolerance * (1e-3 + float(weights.abs().max())):
            break
    return Model(before, penalty, curvature)


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


def _empty(objective: Relu, tuning: LinearTuning) -> Model:
    inputs, outputs = objective.layout.widths[0], objective.layout.widths[-1]
    numbers = torch.zeros(inputs + 1, outputs, dtype=torch.float64)
    if objective.layout.bias:
        numbers[-1] = best_constant(objective)
    return Model(numbers, math.inf, tuning.curvature)


def _sums_of(objective: Relu, nothing: Model) -> Sums:
    """Give what measures a model: the mean loss, and its slopes with respect to weights and constants."""
    if _has_moments(objective):
        return _of_moments(objective, nothing.numbers)
    return lambda numbers: _of_rows(objective, numbers)


def _has_moments(objective: Relu) -> bool:
    return objective.loss.quadratic and objective.data.columns <= objective.data.rows


def _of_rows(objective: Relu, numbers: Tensor) -> tuple[float, Tensor]:
    used = (numbers[:-1] != 0).any(1).nonzero().flatten()
    weights, constant = (part.to(objective.data.dtype) for part in (numbers[used], numbers[-1]))

    def each(batch: Batch) -> tuple[Tensor, ...]:
        output = batch.X[:, used] @ weights + constant
        slope = objective.slope(output, batch)
        value = (objective.loss.value(output, batch.y) * batch.share).sum()
        return value, torch.cat([batch.X.T @ slope, slope.sum(0, keepdim=True)])

    value, slopes = objective.data.total(each)
    return float(value), slopes


def _of_moments(objective: Relu, origin: Tensor) -> Sums:
    """Read the rows once: of a second-order loss, sums of products are all there is to know."""
    start, slopes = _of_rows(objective, origin)

    def each(batch: Batch) -> tuple[Tensor, ...]:
        columns = torch.arange(objective.data.columns)
        X = torch.nn.functional.pad(batch.X[:, columns], (0, 1), value=1.0)
        return ((X * batch.share[:, None]).T @ X,)

    (products,) = objective.data.total(each, objective.data.columns)

    def sums(numbers: Tensor) -> tuple[float, Tensor]:
        moved = numbers - origin
        bent = products @ moved
        value = start + float((moved * slopes.add(bent, alpha=0.5)).sum())
        return value, bent.add_(slopes)

    return sums
