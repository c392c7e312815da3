"""Few noisy rows: whether they deserve more than a line, and how strong a penalty, by cross-validation.

On few rows the loss says little about fresh ones, since a search over supports fits the noise too. So what a
network of the budget would lose on rows that it has not seen is compared with what linear models would, which
are found by an L1 penalty and are as hard to beat as they are cheap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.solvers.linear import Lasso, Line
from thresher.solvers.loop import Iterate
from thresher.solvers.plan import Plan
from thresher.solvers.settle import Rows
from thresher.solvers.student import Student

# How many rows are few; on fewer than the first number nothing can be compared.
FEWEST, FEW = 50, 2000
FOLDS = 4
# Where a network leaves less than this share of a line's squared error, there is nothing to compare.
CLEAR = 0.5
# On rows that it has not seen, a network must lose less than this share of what the line loses.
MARGIN = 0.98
# A penalty is tried as it is and this many times as strong.
STRENGTHS = (1.0, 10.0)
# How far the slopes of an L1-penalised line go to those that are fitted without it.
RELAXED = (0.0, 0.5, 1.0)
# Scales at which outputs of classifiers are compared.
SCALES = np.geomspace(0.1, 10, 41).tolist()

# Grows a network on some rows.
Growing = Callable[[Plan, Rows], Generator[Iterate, None, Student]]


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen: a line, as a student, or else a network under a penalty of some strength."""

    line: Student | None = None
    strength: float = 1.0


def comparable(plan: Plan, rows: Rows, network: Student) -> bool:
    """Say whether rows are few, a line fits into the budget, and the network is not better by far anyway."""
    if not FEWEST <= plan.data.total < FEW or len(rows.y) < plan.data.rows or _most(plan, rows) < 1:
        return False
    if not plan.objective.loss.quadratic:
        return True
    lasso = _lasso(plan, rows)
    line = as_student(plan, rows, lasso.refit(list(lasso.path(_most(plan, rows)))[-1], rows.alpha))
    return rows.error(network) > CLEAR * rows.error(line)


def comparisons(rows: Rows) -> float:
    """Say how many passes one step of all networks that are compared takes."""
    return (FOLDS - 1) * len(_strengths(rows))


def compared(plan: Plan, rows: Rows, growing: Growing) -> Generator[Iterate, None, Choice]:
    """Compare the L1 path's last line, relaxed or not, with networks under penalties of some strengths."""
    folds = list(_folds(plan, rows))
    if len(folds) < FOLDS:
        return Choice()
    lasso, strengths = _lasso(plan, rows), _strengths(rows)
    path = list(lasso.path(_most(plan, rows)))
    plan.spend(rows)
    lines: dict[int, Tensor] = defaultdict(lambda: torch.zeros_like(rows.y))
    networks: dict[int, Tensor] = defaultdict(lambda: torch.zeros_like(rows.y))
    for unseen in folds:
        part, rest = _chosen(rows, ~unseen), rows.X[unseen]
        again = _lasso(plan, part)
        line = [again.fit(line.penalty) for line in path][-1]
        plan.spend(part)
        for place, form in enumerate(_forms(again, line, part)):
            lines[place][unseen] = _output(plan, form, rest)
        for place, strength in enumerate(strengths):
            student = yield from growing(plan, replace(part, alpha=strength * part.alpha))
            networks[place][unseen] = student.output(rest)
    (best, loss), (place, other) = _least(rows, lines), _least(rows, networks)
    if other < MARGIN * loss:
        return Choice(strength=strengths[place])
    return Choice(as_student(plan, rows, _forms(lasso, path[-1], rows)[best]))


def as_student(plan: Plan, rows: Rows, line: Line) -> Student:
    """Write a line as ReLU neurons, of which one or two are always on.

    Where no target is negative, the line itself is a neuron. Where no column changes its sign on the rows,
    what adds is one neuron and what subtracts another. Otherwise a neuron gets a bias that keeps it on, also
    on rows twice as far out, and the output bias takes it back.
    """
    w = torch.zeros(rows.X.shape[1], dtype=torch.float64)
    w[line.features] = line.slopes
    constant = line.constant
    if plan.bias:
        constant, w[-1] = constant + float(w[-1]), 0
    output = torch.zeros_like(w)
    if not plan.negative:
        W, v = w[:, None], torch.ones(1)
        if plan.bias:
            W[-1, 0] = constant
        return Student(W.to(rows.X.dtype), v.to(rows.X.dtype))
    if _one_signed(plan, rows):
        up = torch.where((w > 0) == (rows.X.amax(0) > 0), w, 0)
        W, v = torch.stack([up, up - w, output], 1), torch.tensor([1.0, -1.0, 1.0])
    else:
        values = line.output(rows.X) - line.constant
        on = 2 * float(values.max() - values.min())
        w[-1], constant = on, constant - on
        W, v = torch.stack([w, output], 1), torch.ones(2)
    if plan.bias:
        W[-1, -1], v[-1] = abs(constant), 1.0 if constant >= 0 else -1.0
    return Student(W.to(rows.X.dtype), v.to(rows.X.dtype))


def _one_signed(plan: Plan, rows: Rows) -> bool:
    one = (rows.X.amin(0) >= 0) | (rows.X.amax(0) <= 0)
    return plan.hidden > 1 and bool(one.all())


def _most(plan: Plan, rows: Rows) -> int:
    """Say how many slopes a line within the budget can have, the constant counted where it is one of them."""
    free = int(plan.objective.loss.quadratic and plan.bias)
    if not plan.negative or _one_signed(plan, rows):
        return plan.budget - free
    return plan.budget - 2 if plan.bias else 0


def _lasso(plan: Plan, rows: Rows) -> Lasso:
    """Penalise slopes; for classes the constant too, without which rare features are bought for its sake."""
    return Lasso(rows, plan.objective.loss.quadratic and plan.bias)


def _forms(lasso: Lasso, line: Line, rows: Rows) -> list[Line]:
    """Give a line as the L1 penalty left it, and on the way to the fit without that penalty.

    Where classes can be separated, the whole way is too far.
    """
    fitted = lasso.refit(line, _strengths(rows)[-1] * rows.alpha)
    return [line.towards(fitted, share) for share in (RELAXED if rows.loss.quadratic else RELAXED[:-1])]


def _strengths(rows: Rows) -> tuple[float, ...]:
    return STRENGTHS if rows.alpha else STRENGTHS[:1]


def _folds(plan: Plan, rows: Rows) -> Iterator[Tensor]:
    """Divide the rows by what they hold, so that equal rows stay together and a weight equals repeats."""
    direction = np.random.default_rng([plan.seed, 4]).standard_normal(rows.X.shape[1])
    place = rows.X.double() @ torch.from_numpy(direction)
    fold = ((1000 * place).remainder(1) * FOLDS).long()
    for number in range(FOLDS):
        seen = fold != number if rows.weight is None else (fold != number) & (rows.weight > 0)
        if bool(seen.any()) and bool((fold == number).any()):
            yield fold == number


def _chosen(rows: Rows, mask: Tensor) -> Rows:
    """Take some rows; weights average to one again, and the penalty stays what it is beside a sum."""
    if rows.weight is None:
        share, weight = float(mask.double().mean()), None
    else:
        share, weight = float((rows.weight * mask).mean()), rows.weight[mask]
        weight = weight / weight.mean()
    return replace(rows, X=rows.X[mask], y=rows.y[mask], weight=weight, alpha=rows.alpha / share)


def _output(plan: Plan, line: Line, X: Tensor) -> Tensor:
    output = line.output(X).to(X.dtype)
    return output if plan.negative else output.clamp_(min=0)


def _least(rows: Rows, options: dict[int, Tensor]) -> tuple[int, float]:
    """Give the option whose outputs lose least, and how much.

    Classes are compared at the best scale of the outputs, since labels do not depend on it.
    """
    scales = [1.0] if rows.loss.quadratic else SCALES
    losses = {
        option: min(rows.loss.value(scale * output, rows.y, rows.weight) for scale in scales)
        for option, output in options.items()
    }
    best = min(losses, key=losses.__getitem__)
    return best, losses[best]
