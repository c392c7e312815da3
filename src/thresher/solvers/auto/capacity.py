"""How many weights rows bear that are few for the budget: members of the committee are pruned to find out.

A search with a weight for every few rows chooses weights that fit their noise, and no look at the same rows
afterwards can tell. Members that are blind to a fold are pruned on the others, to one size after the other,
and the fold says from which size on that does harm. Only then is the student searched for, at that size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.device import to_host
from thresher.objective.relu import Relu
from thresher.solvers.auto.committee import Committee
from thresher.solvers.auto.committee_tuning import CapacityTuning
from thresher.solvers.auto.newton import Fit, cut, measured, refit, shrink
from thresher.solvers.auto.student import taught
from thresher.solvers.auto.subset import Subset, compact
from thresher.solvers.auto.tuning import Tuning


@dataclass(frozen=True, eq=False)
class _Blind:
    """A network in pruning, among the inputs and neurons that it uses, and rows that it has not seen."""

    subset: Subset
    fit: Fit
    held: Relu

    def shrunk(self, size: int, tuning: Tuning) -> _Blind:
        return replace(self, fit=shrink(self.subset.part, self.fit, size, tuning.newton))

    @property
    def losses(self) -> Tensor:  # (rows held out,)
        return self.held.row_values(self.subset.lift(self.fit.point)).double()


def borne(
    objective: Relu,
    committee: Committee,
    folds: int,
    budget: int,
    share: float,
    tuning: Tuning,
) -> int:
    """Give the largest size within the budget that rows held out do not speak against.

    Parameters
    ----------
    objective : Relu
        With targets as they came, under the student's penalty.
    committee : Committee
    folds : int
        How many are held out, one after the other.
    budget : int
    share : float
        How far targets are moved to what the committee says.
    tuning : Tuning
    """
    few = max(tuning.capacity.few, int(tuning.capacity.crowded * objective.data.amount))
    if budget <= few:
        return budget
    blind = [_begun(objective, committee, fold, budget, share, tuning) for fold in range(folds)]
    shares = torch.cat([one.held.data.share.double() for one in blind]) / folds
    amount = sum(one.held.data.amount for one in blind)
    path = list[tuple[int, Tensor]]()
    for size in _sizes(budget, few, tuning.capacity.step):
        blind = [one.shrunk(size, tuning) for one in blind]
        path.append((size, torch.cat([one.losses for one in blind])))
    best = min((losses for _, losses in path), key=lambda losses: float(losses @ shares))
    return next(size for size, losses in path if _as_good(losses - best, shares, amount, tuning.capacity))


def _sizes(most: int, least: int, step: float) -> Iterator[int]:
    """Give sizes from the most to the least, each that share of the one before."""
    size = most
    while size > least:
        yield size
        size = int(step * size)
    yield max(1, least)


def _as_good(more: Tensor, shares: Tensor, amount: float, tuning: CapacityTuning) -> bool:
    """Say whether rows lose no more than chance explains."""
    mean = float(more @ shares)
    return mean <= tuning.errors * (float((more - mean).square() @ shares) / amount) ** 0.5


def _begun(
    objective: Relu, committee: Committee, fold: int, budget: int, share: float, tuning: Tuning
) -> _Blind:
    """Begin with a member that is blind to a fold, as a student begins."""
    out = to_host(committee.fold) == fold
    seen, unseen = np.flatnonzero(~out), np.flatnonzero(out)
    known = taught(objective, committee, share, fold)
    part = known.on(known.data.take(seen))
    held = replace(objective.on(objective.data.take(unseen)), alpha=0.0)
    fit = cut(part, measured(part, committee.member(fold)), int(tuning.student.first * budget), tuning.newton)
    subset = compact(part, fit.point)
    fit = refit(subset.part, Fit(subset.drop(fit.point), fit.value), tuning.student.steps, tuning.newton)
    return _Blind(subset, fit, held)
