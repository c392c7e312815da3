"""Moves in the absolute-value form: refit, merge neurons, admit weights, remove them one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.solvers.auto import equations, newton
from thresher.solvers.auto.recovery.absolute import AbsoluteForm, counted
from thresher.solvers.auto.recovery.tuning import RecoverTuning


def refit(
    objective: Relu, form: AbsoluteForm, steps: int, tuning: RecoverTuning, every_fold: bool = False
) -> tuple[AbsoluteForm, float]:
    """Take Newton steps on the support while they help; with `every_fold`, folds that are zero may grow."""
    objective, point = form.held(objective, every_fold=every_fold)
    fit = newton.refit(objective, newton.Fit(point, objective.value(point)), steps, tuning.newton)
    return form.read(objective.layout, fit.point), fit.value


def eliminate(objective: Relu, form: AbsoluteForm, budget: int, tuning: RecoverTuning) -> AbsoluteForm:
    """Remove weights down to the budget, and more while the error hardly rises."""
    whole = objective
    objective, point = form.held(objective)
    H, g = objective.curvature(point, rough=True)
    value = objective.value(point)
    w = point.w
    free = counted(objective.layout, w.indices)
    count = int(free.sum()) - budget
    free &= ~newton.brought_along(objective, w.indices)
    least = w.values.double() - equations.solve(H, g, tuning.newton.ridge)
    # Where all that is left is noise, a useless weight gains about the mean error of one row.
    limits = tuning.slack * 2 * value, tuning.no_accident * 2 * value / objective.data.rows
    removed = equations.removal(H, least, free, count, tuning.newton.ridge, *limits)
    refitted = point.with_values(least.to(w.values.dtype))
    return form.read(objective.layout, refitted.without(removed)).folded(whole)


def shrink(
    objective: Relu, form: AbsoluteForm, budget: int, tuning: RecoverTuning
) -> tuple[AbsoluteForm, float]:
    """Refit a form that holds too much, eliminate down to the budget, half way first, and refit."""
    form, value = refit(objective, form, tuning.steps, tuning, every_fold=True)
    targets = [budget]
    if form.nonzeros > tuning.halfway * budget:
        targets.insert(0, math.isqrt(form.nonzeros * budget))
    for target in targets:
        form, value = refit(objective, eliminate(objective, form, target, tuning), tuning.steps, tuning)
    return form, value


def merge(
    objective: Relu, form: AbsoluteForm, batch: Batch, tolerance: float, tuning: RecoverTuning
) -> AbsoluteForm:
    """Sum neurons that the data can hardly tell apart, the closest first.

    Angles only propose pairs; the rows decide.

    Parameters
    ----------
    objective : Relu
    form : AbsoluteForm
    batch : Batch
        Rows on which to compare.
    tolerance : float
        The mean squared error that all merges together may add.
    tuning : RecoverTuning
    """
    share = (batch.share / batch.share.sum()).to(form.weights.dtype)
    for _ in range(tuning.merge_rounds):
        form = form.folded(objective)
        first, second, sides = _near(form, tuning.merge_cosine)
        if first.numel() == 0:
            break
        errors = _merge_errors(_sums(objective, form, batch), first, second, sides, share)
        weights, taken = form.weights.clone(), set[int]()
        for pair in torch.argsort(errors, stable=True).tolist():
            if float(errors[pair]) > tolerance:
                break
            one, two = int(first[pair]), int(second[pair])
            if one not in taken and two not in taken:
                tolerance -= float(errors[pair])
                taken |= {one, two}
                weights[one] += sides[pair] * weights[two]
                weights[two] = 0
        form = replace(form, weights=weights)
        if not taken:
            break
    return form.folded(objective)


def _near(form: AbsoluteForm, cosine: float) -> tuple[Tensor, Tensor, Tensor]:
    """Find pairs of neurons of one sign on nearly one line, and whether their directions agree."""
    unit = form.weights / form.weights.norm(dim=1, keepdim=True)
    same = form.signs[:, None] == form.signs[None]
    found = torch.triu(unit @ unit.T, 1) * same
    first, second = (found.abs() > cosine).nonzero(as_tuple=True)
    return first, second, found[first, second].sign()


def _sums(objective: Relu, form: AbsoluteForm, batch: Batch) -> Tensor:  # (rows, neurons)
    """Give what neurons sum up to before the absolute value is taken."""
    objective, point = form.held(objective)
    run = objective.run(point).forward(batch.X.to(point.w.values.dtype))
    return run.fed[1] * run.slopes[0]


def _merge_errors(sums: Tensor, first: Tensor, second: Tensor, sides: Tensor, share: Tensor) -> Tensor:
    """Give the mean squared change of the output for each pair, if it were merged."""
    errors, at_once = torch.empty(first.numel(), dtype=sums.dtype), 256
    for start in range(0, first.numel(), at_once):
        part = slice(start, start + at_once)
        one, two = sums[:, first[part]], sums[:, second[part]]
        change = one.abs() + two.abs() - (one + sides[part] * two).abs()
        errors[part] = share @ change.square_()
    return errors


def grow(objective: Relu, form: AbsoluteForm, count: int) -> AbsoluteForm:
    """Admit the weights with the largest gradient, also beside the one weight of a fold."""
    inputs, axes = form.inputs, (form.folds != 0).nonzero().flatten()
    tilted = torch.zeros(axes.numel(), form.weights.shape[1], dtype=form.weights.dtype)
    tilted[torch.arange(axes.numel()), axes] = form.folds[axes].abs()
    wide = replace(
        form,
        weights=torch.cat([form.weights, tilted]),
        signs=torch.cat([form.signs, form.folds[axes].sign()]),
        folds=torch.zeros_like(form.folds),
    )
    gradient, size = _slopes(objective, wide)
    gradient[wide.weights != 0] = 0
    chosen = largest(gradient.abs().view(-1).float(), count)
    weights = wide.weights.clone()
    weights.view(-1)[chosen] = -(gradient / size.clamp(min=torch.finfo(size.dtype).tiny)).view(-1)[chosen]
    bias = weights[form.neurons :, inputs:] != 0
    alone = ((weights[form.neurons :, :inputs] != 0).sum(1) == 1) & ~bias.any(1)
    kept = torch.cat([torch.ones(form.neurons, dtype=torch.bool), ~alone])
    folds = torch.zeros_like(form.folds)
    folds[axes[alone]] = form.folds[axes[alone]]
    return replace(form, weights=weights[kept], signs=wide.signs[kept], folds=folds)


def _slopes(objective: Relu, form: AbsoluteForm) -> tuple[Tensor, Tensor]:  # both (neurons, inputs [+ 1])
    """Give the derivative at every weight of every neuron, and its curvature by itself."""
    objective, point = form.held(objective)
    running, inputs, bias = objective.run(point), form.inputs, objective.layout.bias

    def each(batch: Batch) -> tuple[Tensor, ...]:
        run = running.forward(batch.X)
        X = batch.X[:, :inputs]
        X = torch.cat([X, torch.ones(len(X), 1, dtype=X.dtype)], 1) if bias else X
        deltas = {block: delta for block, _, delta in running.deltas(run, objective.slope(run.output, batch))}
        return deltas[0].T @ X, batch.share @ X.square()

    gradient, size = objective.data.total(each, objective.layout.widths[1])
    return gradient.to(form.weights.dtype), size.to(form.weights.dtype).expand(form.neurons, -1)
