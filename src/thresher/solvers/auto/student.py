"""The student: one network within the budget that learns from targets which a committee has smoothed.

A committee's mean is nearer to the truth than any network fitted to noisy targets, and knows nothing of a
budget. The student's targets lie between the two, the nearer to the committee's the noisier they are, so that
all of the budget may be spent without fitting noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.loss import Loss
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.clean import some_rows
from thresher.solvers.auto.committee import Committee
from thresher.solvers.auto.committee_tuning import StudentTuning
from thresher.solvers.auto.judge import parted
from thresher.solvers.auto.newton import Fit, cut, measured, refit, shrink
from thresher.solvers.auto.subset import compact, compactly
from thresher.solvers.auto.tuning import Tuning
from thresher.solvers.auto.ways import exchange, growth
from thresher.solvers.auto.wide import alternating


def alpha_for(loss: Loss, noise: float, tuning: StudentTuning) -> float:
    """Give the penalty beside a sum over rows that suits targets of so much noise."""
    return tuning.flatness(loss) * tuning.alpha * noise**tuning.power


def trust(
    loss: Loss, rows: float, budget: int, noise: float, tuning: StudentTuning, excess: float = 0.0
) -> float:
    """Say how much of the way to what a committee says targets are moved.

    The more noise there is, and the more weights for each row that could fit it, the nearer to the committee;
    the more the committee leaves in excess of noise, the further away.
    """
    harm = noise * min(1.0, budget / (tuning.crowded * rows))
    return harm / (harm + tuning.flatness(loss) * tuning.half + excess / tuning.crowded)


def taught(objective: Relu, committee: Committee, share: float, fold: int | None = None) -> Relu:
    """Give the objective with targets between what came and what the committee says.

    With a fold, only members that are blind to it are asked.
    """
    data = objective.data
    targets = committee.teach(data.targets, share, fold)
    return replace(
        objective, data=Data(data.X, targets, data.weight, data.seen, data.dtype, data.memory_limit)
    )


def student(
    part: Relu, committee: Committee, budget: int, noise: float, share: float, tuning: Tuning
) -> Iterator[tuple[str, Fit]]:
    """Prune members of the committee, grow a network, on some of many rows; go on with the best of them."""
    found: list[tuple[str, Fit]] = []
    starts = list(committee.nearest(min(tuning.student.starts, committee.members // 2)))
    first = int(tuning.student.first * budget)
    wide, narrow = (
        _on_some(part, count, noise, tuning.student)
        for count in (min(first, starts[0].w.nonzeros), 2 * budget)
    )

    def pruned(part: Relu, fit: Fit) -> Fit:
        fit = cut(part, fit, first, tuning.newton)
        return shrink(part, refit(part, fit, tuning.student.steps, tuning.newton), budget, tuning.newton)

    for start in starts:
        fit = compactly(wide, measured(wide, start), pruned)
        found.append(("pruning", Fit(fit.point, narrow.value(fit.point))))
        yield found[-1]
    empty = measured(narrow, Point(SparseVector.zeros(part.size, torch.float64), alternating(part.layout)))
    found.append(("growing", [empty, *growth(narrow, empty, budget, tuning)][-1]))
    found.sort(key=lambda one: one[1].value)
    race, rest = tuning.student.race, tuning.student.exchanges
    better = [
        (way, exchanged(narrow, fit, race, budget, tuning)) for way, fit in found[: tuning.student.finalists]
    ]
    way, fit = min(better, key=lambda one: one[1].value)
    fit = exchanged(narrow, fit, rest, budget, tuning)
    yield way, smaller(narrow, fit, tuning)


def _on_some(part: Relu, weights: int, noise: float, tuning: StudentTuning) -> Relu:
    """Give the objective on as many rows as a fit of so many weights needs, more where there is noise."""
    rows = max(tuning.rows, tuning.rows_each * weights) * (1 + tuning.rows_noise * noise)
    return some_rows(part, int(rows / part.layout.widths[-1]))


def exchanged(part: Relu, fit: Fit, shares: tuple[float, ...], budget: int, tuning: Tuning) -> Fit:
    """Exchange weights again and again, keeping what helps."""
    failed: set[float] = set()
    for share in shares:
        # The same exchange of the same network would fail again.
        if share in failed:
            continue
        trial = exchange(part, fit, share, budget, tuning)
        if trial.value < fit.value:
            fit, failed = trial, set()
        else:
            failed.add(share)
    return fit


def smaller(part: Relu, fit: Fit, tuning: Tuning) -> Fit:
    """Remove weights as long as other rows can be expected to lose no more for it.

    How much a row loses by being left out of a refit tells noise from what the weights are for. A smaller
    network takes the place of larger ones if the rows agree that it is hardly worse than any of them.
    """
    student, fold = tuning.student, parted(part, 0, tuning.judge)
    chosen, path, least = fit, list[tuple[int, Tensor]](), math.inf
    while not path or fit.nonzeros < path[-1][0]:
        expected = _expected(part, fit, fold, tuning)
        mean = float(part.data.share.double() @ expected)
        least = min(least, mean)
        if mean > student.patience * least:
            break
        if all(_hardly_worse(part, expected, other, size - fit.nonzeros, student) for size, other in path):
            chosen = fit
        path.append((fit.nonzeros, expected))
        fit = shrink(part, fit, max(1, int(student.kept * fit.nonzeros)), tuning.newton)
    return chosen


def _hardly_worse(part: Relu, losses: Tensor, others: Tensor, fewer: int, tuning: StudentTuning) -> bool:
    """Say whether rows lose no more, an error included, than so many weights would gain by fitting noise."""
    share, amount = part.data.share.double(), part.data.amount
    allowed = min(tuning.tolerance, tuning.cost * fewer / amount)
    more = losses - (1 + allowed) * others
    mean = float(share @ more)
    return mean + float(share @ (more - mean).square() / amount) ** 0.5 <= 0


def _expected(part: Relu, fit: Fit, fold: np.ndarray, tuning: Tuning) -> Tensor:  # (rows,)
    """Give what each row loses, and what it would lose more if refits had not seen it.

    The support was chosen with all rows in view, so what is lost more counts for more than it is, the more so
    the fewer rows there are for each weight.
    """
    used = compact(part, fit.point)
    point, data = used.drop(fit.point), used.part.data
    seen = used.part.row_values(point).double()
    unseen = torch.empty_like(seen)
    for number in np.unique(fold):
        out = np.flatnonzero(fold == number)
        rest = used.part.on(data.take(np.flatnonzero(fold != number)))
        again = refit(rest, Fit(point, rest.value(point)), tuning.student.refits, tuning.newton)
        unseen[from_host(out)] = used.part.on(data.take(out)).row_values(again.point).double()
    left = 1 - min(tuning.student.crammed, fit.nonzeros / data.amount)
    return seen + tuning.student.cost / left * (unseen - seen)
