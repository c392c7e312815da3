"""The last prune: whatever has no effect on any row goes, and what is linear on all rows is written so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.equations import removal
from thresher.solvers.auto.newton import Fit, brought_along, measured, refit
from thresher.solvers.auto.newton_tuning import CleanTuning, NewtonTuning
from thresher.solvers.auto.subset import compactly

# A sum that is this much smaller than what was added up is zero but for rounding.
ROUNDING = 1e-9
# Columns whose squared cosine differs from 1 by less than this are multiples of one another.
COPY = 1e-10
# Numbers of a matrix of all neurons that are compared with one another.
MOST_NUMBERS = 10**6


def cleaned(
    objective: Relu, fit: Fit, tuning: CleanTuning, newton: NewtonTuning, *, refits: bool = True
) -> Fit:
    """Give a network that does the same on all rows, with fewer nonzeros where some do nothing.

    Without `refits`, only what needs no refit goes: what a penalty holds back stays held back.
    """
    return compactly(objective, fit, lambda part, fit: _cleaned(part, fit, tuning, newton, refits))


def _cleaned(objective: Relu, fit: Fit, tuning: CleanTuning, newton: NewtonTuning, refits: bool) -> Fit:
    fused = objective.layout.fused and objective.layout.layers == 2
    fit = _without_copies(objective, fit, tuning)
    for part in (without_idle, _straightened):
        trial = measured(objective, part(objective, fit.point))
        if trial.nonzeros <= fit.nonzeros and trial.value <= _allowed(objective, fit, trial, tuning):
            fit = trial
    fit = _with_sides(objective, fit, tuning) if fused else fit
    if not refits:
        return fit
    smaller = _smallest(objective, fit, tuning, newton)
    if fused and smaller is not fit:
        smaller = _with_sides(objective, smaller, tuning)
    # Noisy targets may be fitted better by chance, and then origins would decide how many nonzeros there are.
    return through_zero(objective, smaller, tuning) if smaller.value <= tuning.exact else smaller


def _without_copies(objective: Relu, fit: Fit, tuning: CleanTuning) -> Fit:
    """Read one column where others are multiples of it: a penalty alone would share a weight among them."""
    layout, data, w = objective.layout, objective.data, fit.point.w
    if data.sparse or data.columns < 2 or data.columns**2 > MOST_NUMBERS:
        return fit

    def each(batch: Batch) -> tuple[Tensor, ...]:
        return ((batch.X * batch.share[:, None]).T @ batch.X,)

    (products,) = data.total(each, data.columns)
    size = products.diagonal().clamp(min=1e-300)
    alike = products.square() > (1 - COPY) * size[:, None] * size
    alike.fill_diagonal_(True)
    leader = alike.to(torch.int8).argmax(1)
    if torch.equal(leader, torch.arange(data.columns)):
        return fit
    ratio = products.gather(1, leader[:, None])[:, 0] / size[leader]
    indices, values = w.indices.clone(), w.values.clone()
    blocks = (0, layout.layers) if layout.direct else (0,)
    for block in blocks:
        part = layout.split(w.indices)[block]
        neuron, feature = layout.pairs(w.indices[part], block)
        inside = feature < layout.inputs[block]
        column = feature.clamp(max=data.columns - 1)
        values[part] *= torch.where(inside, ratio[column], 1.0).to(values.dtype)
        indices[part] = layout.position(block, neuron, torch.where(inside, leader[column], feature))
    places, place = indices.unique(return_inverse=True)
    summed = torch.zeros(places.numel(), dtype=values.dtype).index_add_(0, place, values)
    trial = measured(objective, replace(fit.point, w=SparseVector(places, summed, w.size)))
    bare = replace(objective, alpha=0.0)
    before = bare.value(fit.point)
    same = bare.value(trial.point) <= before * (1 + tuning.share) + tuning.least
    return trial if same and trial.nonzeros <= fit.nonzeros else fit


def _with_sides(objective: Relu, fit: Fit, tuning: CleanTuning) -> Fit:
    trial = measured(objective, _turned(objective, fit.point))
    return trial if trial.value <= _allowed(objective, fit, trial, tuning) else fit


def _allowed(objective: Relu, fit: Fit, trial: Fit, tuning: CleanTuning) -> float:
    """Give the objective that a network may have which is to take the place of another."""
    share = tuning.share
    if fit.value <= tuning.exact:
        # What is left is rounding, which weights that mean nothing fit as well.
        share += tuning.accident * max(0, fit.nonzeros - trial.nonzeros) / objective.data.amount
    return fit.value * (1 + share) + tuning.least


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
        high = torch.stack([part[2] for part in parts]).max(0).values
        ranks = objective.data.ranks
        extremes.append((ranks.highest(low.neg()).neg(), ranks.highest(high)))
    return extremes


def without_idle(objective: Relu, point: Point) -> Point:
    """Let go of neurons that are on for no row."""
    layout, indices = objective.layout, point.w.indices
    kept = torch.ones(indices.numel(), dtype=torch.bool)
    parts = layout.split(indices)
    for layer, (_, high) in enumerate(_extremes(objective, point)):
        kept[parts[layer]] &= high[layout.pairs(indices[parts[layer]], layer)[0]] > 0
    return point.keep(kept)


def _straightened(objective: Relu, point: Point) -> Point:
    """Write neurons that are on for all rows as direct connections, where that costs no more."""
    layout, w = objective.layout, point.w
    if not layout.direct or layout.layers != 2:
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
    constants = dense[-1, : layout.output_biases.numel()]
    numbers = torch.cat([w.values[kept], dense[at, output], constants])
    indices, place = places.unique(return_inverse=True)
    summed = torch.zeros(indices.numel(), dtype=values.dtype).index_add_(0, place, numbers)
    held = summed != 0
    return Point(SparseVector(indices[held], summed[held], w.size), point.signs)


class _Kinks:
    """The neurons of a fused network with one hidden layer, written out to be rewritten."""

    def __init__(self, objective: Relu, point: Point) -> None:
        self.layout, self.point, w = objective.layout, point, point.w
        self.part = self.layout.split(w.indices)[0]
        neuron, feature = self.layout.pairs(w.indices[self.part], 0)
        self.live, row = neuron.unique(return_inverse=True)
        self.used, column = feature.unique(return_inverse=True)
        self.dense = torch.zeros(self.live.numel(), self.used.numel(), dtype=torch.float64)
        self.dense[row, column] = w.values[self.part].double()
        assert point.signs is not None
        self.signs = point.signs[self.live].double()

    @property
    def turns(self) -> bool:
        """Whether ``relu(z)`` may become ``z + relu(-z)``, with z in the direct connections."""
        return self.layout.direct

    @property
    def direct(self) -> Tensor:  # (used,)
        """The direct connections of the features that neurons use."""
        inside = self.used < self.layout.inputs[0]
        places = self.layout.position(self.layout.layers, torch.zeros_like(self.used), self.used)
        return self.point.w.at(torch.where(inside, places, 0)).double() * inside

    def turned(self, chosen: Tensor) -> Point:
        """Turn some neurons round."""
        line = self.signs[chosen] @ self.dense[chosen]
        return self.rewritten(torch.where(chosen[:, None], -self.dense, self.dense), self.signs, line)

    def rewritten(self, dense: Tensor, signs: Tensor, line: Tensor) -> Point:
        """Give the network of other neurons, with a linear part more."""
        layout, w, used = self.layout, self.point.w, self.used
        at, of = dense.nonzero(as_tuple=True)
        places = [layout.position(0, self.live[at], used[of]), w.indices[self.part.stop :]]
        values = [dense[at, of], w.values[self.part.stop :].double()]
        if bool((line != 0).any()):
            inside = used < layout.inputs[0]
            places += [layout.position(layout.layers, torch.zeros_like(used[inside]), used[inside])]
            values += [line[inside]]
            if layout.bias:
                places += [layout.output_biases]
                values += [line[~inside].sum()[None]]
        indices, place = torch.cat(places).unique(return_inverse=True)
        total = torch.zeros(indices.numel(), dtype=torch.float64).index_add_(0, place, torch.cat(values))
        most = torch.zeros_like(total).index_add_(0, place, torch.cat(values).abs())
        # What cancels but for rounding is gone.
        kept = total.abs() > ROUNDING * most
        whole = self.point.signs.clone()  # type: ignore[union-attr]
        whole[self.live] = signs.to(whole.dtype)
        return Point(SparseVector(indices[kept], total[kept].to(w.values.dtype), w.size), whole)


def _merged(objective: Relu, point: Point, near: float) -> Point:
    """Add up neurons of one kink: one neuron does what they do together, or none."""
    kinks = _Kinks(objective, point)
    dense, signs = kinks.dense, kinks.signs
    if len(dense) < 2 or dense.numel() > MOST_NUMBERS:
        return point
    unit = dense / dense.norm(dim=1, keepdim=True).clamp(min=1e-300)
    cosine = unit @ unit.T
    alike = cosine > 1 - near
    if kinks.turns:
        alike |= cosine < near - 1
    leader = alike.to(torch.int8).argmax(1)
    if torch.equal(leader, torch.arange(len(dense))):
        return point
    side = cosine[torch.arange(len(dense)), leader].sign()
    summed = torch.zeros_like(dense).index_add_(0, leader, (signs * side)[:, None] * dense)
    size = torch.zeros_like(signs).index_add_(0, leader, dense.norm(dim=1))
    along = (summed * unit).sum(1)
    summed *= (along.sign() * (along.abs() > near * size))[:, None]
    # What turned round leaves a linear part.
    line = ((side < 0) * signs) @ dense
    return kinks.rewritten(summed, torch.where(along < 0, -1.0, 1.0), line)


def _turned(objective: Relu, point: Point) -> Point:
    """Turn neurons round whose linear part then cancels the direct connections there are."""
    kinks = _Kinks(objective, point)
    if not kinks.turns or kinks.live.numel() == 0:
        return point
    # Several at once where least squares say which, then one by one.
    inside = kinks.used < objective.layout.inputs[0]
    pull = (kinks.signs[:, None] * kinks.dense).T[inside]
    shares = torch.linalg.lstsq(pull, -kinks.direct[inside, None], driver="gelsd").solution[:, 0]
    trial = kinks.turned(shares > 0.5)
    best = trial if trial.w.nonzeros < point.w.nonzeros else point
    for number in range(kinks.live.numel()):
        kinks = _Kinks(objective, best)
        if number < kinks.live.numel():
            trial = kinks.turned(torch.arange(kinks.live.numel()) == number)
            best = trial if trial.w.nonzeros < best.w.nonzeros else best
    return best


def _outer(objective: Relu, point: Point) -> Tensor:  # (hidden, outputs)
    layout, w = objective.layout, point.w
    if point.signs is not None:
        return point.signs[:, None].to(w.values.dtype)
    part = layout.split(w.indices)[1]
    output, neuron = layout.pairs(w.indices[part], 1)
    dense = torch.zeros(layout.widths[1] + 1, layout.widths[-1], dtype=w.values.dtype)
    dense[neuron, output] = w.values[part]
    return dense[:-1]


def _smallest(objective: Relu, fit: Fit, tuning: CleanTuning, newton: NewtonTuning) -> Fit:
    """Merge neurons and remove weights as long as the others, refitted, do the same.

    Most trials fail, so where there are many rows some of them decide, and all of them have the last word:
    on each network that was found where the fit is exact, else on the smallest alone.
    """
    if fit.nonzeros == 0 or fit.nonzeros > tuning.most:
        return fit
    few = some_rows(objective, max(tuning.rows, tuning.rows_each * fit.nonzeros))
    if few is objective:
        return [fit, *_smaller(objective, fit, tuning, newton)][-1]
    found = list(_smaller(few, _refitted(few, fit.point, tuning, newton), tuning, newton))
    for one in reversed(found if fit.value <= tuning.exact else found[-1:]):
        trial = _refitted(objective, one.point, tuning, newton)
        if trial.value <= _allowed(objective, fit, trial, tuning):
            return trial
    return fit


def _smaller(objective: Relu, fit: Fit, tuning: CleanTuning, newton: NewtonTuning) -> Iterator[Fit]:
    """Give smaller and smaller networks that do the same."""
    fused = objective.layout.fused and objective.layout.layers == 2
    for near in tuning.collinear if fused else ():
        # Neurons of nearly one kink are one where the rows cannot tell them apart.
        point = _merged(objective, fit.point, near)
        if point is fit.point:
            continue
        trial = _refitted(objective, point, tuning, newton)
        if trial.value <= _allowed(objective, fit, trial, tuning):
            # A linear part that a merge leaves may be worth its weights once others go.
            if trial.nonzeros >= fit.nonzeros:
                trial = [trial, *_removals(objective, trial, tuning, newton)][-1]
            if trial.nonzeros < fit.nonzeros:
                fit = trial
                yield fit
    yield from _removals(objective, fit, tuning, newton)


def _removals(objective: Relu, fit: Fit, tuning: CleanTuning, newton: NewtonTuning) -> Iterator[Fit]:
    """Remove weights, round after round, whose removal costs nothing."""
    most = fit.nonzeros
    for _ in range(tuning.rounds):
        free = ~brought_along(objective, fit.point.w.indices)
        if not bool(free.any()):
            return
        H, _ = objective.curvature(fit.point)
        slack = 2 * tuning.promised * (fit.value * tuning.share + tuning.least)
        if fit.value <= tuning.exact:
            # Nothing is lost by trying: what is exact before is exact afterwards, or else it stays.
            slack = tuning.bold
        order = removal(H, fit.point.w.values.double(), free, 0, newton.ridge * tuning.ridge, slack)[:most]
        trial = fit
        while order.numel():
            stays = torch.ones(fit.nonzeros, dtype=torch.bool)
            stays[order] = False
            trial = _refitted(objective, fit.point.keep(stays), tuning, newton)
            if trial.value <= _allowed(objective, fit, trial, tuning):
                break
            order = order[: order.numel() // 2]
        if order.numel() == 0:
            return
        # Twice as many were too many.
        fit, most = trial, order.numel()
        yield fit


def _refitted(objective: Relu, point: Point, tuning: CleanTuning, newton: NewtonTuning) -> Fit:
    return refit(objective, measured(objective, point), tuning.steps, newton, rough=False)


def some_rows(objective: Relu, rows: int) -> Relu:
    """Give the objective on some rows, evenly spaced, or on all of them."""
    data = objective.data
    if rows >= data.rows:
        return objective
    return objective.on(data.take(np.linspace(0, data.rows - 1, rows).astype(np.int64)))


def through_zero(objective: Relu, fit: Fit, tuning: CleanTuning, accident: float = 0.0) -> Fit:
    """Set biases to what is zero in raw units, where that costs nothing.

    With `accident`, what it costs may be so many times the mean loss of one row, which is what a number that
    means nothing gains by fitting rounding.
    """
    free = fit.value * (1 + max(tuning.share, accident / objective.data.amount)) + tuning.least
    places, zeros = objective.raw_biases(fit.point)
    w = fit.point.w
    for place, zero in zip(places.tolist(), zeros.tolist(), strict=True):
        values = w.values.clone()
        values[torch.searchsorted(w.indices, place)] = zero
        point = fit.point.with_values(values)
        value = objective.value(point)
        if value <= free:
            fit = Fit(point, value)
            w = fit.point.w
    return fit


def raw_nonzeros(objective: Relu, point: Point) -> int:
    """Count the nonzeros that a network has in raw units, where some biases may be zero."""
    places, zeros = objective.raw_biases(point)
    return point.w.nonzeros - int((point.w.at(places) == zeros.to(point.w.values.dtype)).sum())
