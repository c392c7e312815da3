"""Exact recovery: find the network behind targets that a sparse network explains entirely."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.solvers.grow import grow_lines
from thresher.solvers.loop import Iterate
from thresher.solvers.plan import Plan
from thresher.solvers.settle import Rows, backward, refit, settle
from thresher.solvers.sides import to_relu
from thresher.solvers.student import Pace, Student, merge, shrinking

# Adam's step in units of a typical weight, how far it falls in a phase, the L1 penalty in units of the step.
RATE, DECAY, PENALTY = 0.008, 300.0, 0.1
# Passes and haste of the wide stretches, and passes of the two parts of a cycle.
STRETCHES, WIDENED, NARROWED = ((3.0, 4.0), (10.0, 2.0), (40.0, 1.0)), 8.0, 5.0
# The share of the residual that merging may add.
MERGE = 0.4
# Mean squared errors as shares of the targets' variance: a wide student that leaves more than this is not
# looking at an exact network (even before it is done); less is worth an attempt; still less an exact fit.
HOPELESS, UNEXPLAINED, ALMOST, PROMISING = 0.3, 3e-2, 1e-3, 1e-5
# The mean squared error, as a share of the largest target squared, at which a network is found: 110 dB.
FOUND = 1e-11
# How often a student may be repaired by growing a few weights.
REPAIRS = 8
# Rows on which neurons are compared, and on which students are settled.
COMPARED, FEW = 2000, 10_000


def recover(plan: Plan) -> Generator[Iterate, None, bool]:
    """Search in the line form for the network that explains the targets; says whether it was found.

    A wide student is trained in stretches, and after each one an attempt is made to cut it down, since many
    networks are found at once. When the longest has failed, cycles follow: widen the best student with small
    random neurons, train, cut down again.
    """
    d, dtype = plan.data.width, plan.data.y.dtype
    W, v = plan.neurons(plan.width, plan.size)
    wide = Student(W, v, torch.zeros(d, dtype=dtype), torch.zeros(d, dtype=dtype))
    rows = Rows(*plan.data.sample(max(FEW, 6 * plan.budget)), plan.objective.loss, plan.penalty)
    hunt = _Hunt(plan, rows, _unit_of_passes(plan), RATE * plan.unit)
    wide = _with_axes(rows, wide)
    stretches = [pair for pair in STRETCHES if pair[0] * hunt.passes >= 2] or STRETCHES[-1:]
    for length, haste in stretches:
        pace = Pace(length * hunt.passes, haste * hunt.rate, hunt.rate / DECAY, PENALTY)
        wide, loss = yield from plan.trained(wide, pace, "wide")
        last = (length, haste) == stretches[-1]
        if 2 * loss > (UNEXPLAINED if last else HOPELESS) * plan.size**2:
            return False
        if (2 * loss < ALMOST * plan.size**2 or last) and (yield from hunt.attempt(wide, length / 8)):
            return True
    while plan.left > 0.1 * plan.passes + (WIDENED + NARROWED) * hunt.passes:
        pace = Pace(WIDENED * hunt.passes, hunt.rate / 4, hunt.rate / 400, PENALTY)
        wide, _ = yield from plan.trained(hunt.widened(), pace, "wide")
        if (yield from hunt.attempt(wide, NARROWED)):
            return True
    return False


def _with_axes(rows: Rows, student: Student) -> Student:
    """Start with the linear part and the folds that fit best by themselves."""
    axes, _ = refit(rows, replace(student, W=student.W[:, :0], v=student.v[:0]), 1, every_fold=True)
    return replace(student, linear=axes.linear, folds=axes.folds)


def _unit_of_passes(plan: Plan) -> float:
    """Give the passes that count as one: more where there are few rows, less where few passes are allowed."""
    return min(max(1.0, 5000 / plan.data.rows), plan.passes / 100)


@dataclass(eq=False)
class _Hunt:
    """Attempts to cut wide students down, and the best that came of it."""

    plan: Plan
    rows: Rows
    passes: float
    rate: float
    best: tuple[Student, float] | None = None
    narrow: Student | None = None
    residual: float = 0.0

    def attempt(self, wide: Student, length: float) -> Generator[Iterate, None, bool]:
        """Merge, prune, train, settle and choose sides; says whether the network was found."""
        plan, rows = self.plan, self.rows
        student = _merged(rows, wide).prune(int(2.5 * plan.budget))
        pace = Pace(max(1.0, length * self.passes), self.rate / 4, self.rate / 400, PENALTY / 2, fixed=True)
        student, loss = yield from plan.trained(student, pace, "merged")
        student = _merged(rows, student)
        plan.spend(rows)
        settled = settle(rows, student.prune(int(1.5 * plan.budget)), plan.budget)
        if self.best is None or settled[1] < self.best[1]:
            self.best = settled
        if (yield from _answer(plan, rows, self.best)):
            return True
        self.best = _repaired(plan, rows, self.best)
        self.residual = math.sqrt(2 * loss)
        self.narrow = self.best[0] if self.best[1] < 2 * loss else student
        return (yield from _answer(plan, rows, self.best))

    def widened(self) -> Student:
        """Add small random neurons to the best student, and a little noise to every weight that is zero."""
        assert self.narrow is not None
        plan, student = self.plan, self.narrow
        count = min(plan.width - student.neurons, max(2, int(0.3 * min(plan.hidden, plan.budget))))
        W, v = student.W, student.v
        if count > 0:
            fresh, signs = plan.neurons(count, 2 * self.residual)
            W, v = torch.cat([W, fresh], 1), torch.cat([v, signs])
        noise = plan.noise(*W.shape) * (0.05 * self.residual / math.sqrt(max(1, W.numel())))
        return replace(student, W=W + (W == 0) * noise, v=v)


def _answer(plan: Plan, rows: Rows, best: tuple[Student, float]) -> Generator[Iterate, None, bool]:
    """Hand a student out as a ReLU network if it is good enough; says whether the network was found."""
    if best[1] > PROMISING * plan.size**2 and plan.left > 0.3 * plan.passes:
        return False
    W, v, fits = _relu(plan, rows, best[0])
    answer = plan.hand_out(*_cut(rows, W, v, plan.budget), "sides", exact=True)
    found = _explains(plan, answer)
    if not found and not fits:
        # The sides cost more weights than there are: let training find the best compromise.
        rate = RATE * plan.unit / 2
        shrink = shrinking(int((W != 0).sum()), plan.budget)
        pace = Pace(max(1.0, 0.03 * plan.passes), rate, rate / 100, fixed=True, shrink=shrink)
        dtype = rows.X.dtype
        relu, _ = yield from plan.trained(plan.within(rows, Student(W.to(dtype), v.to(dtype))), pace, "sides")
        answer = min(answer, plan.hand_out(relu.W, relu.v, "sides", exact=True), key=lambda it: it.loss)
        found = _explains(plan, answer)
    yield replace(answer, record={"phase": "found" if found else "sides"})
    return found


def _explains(plan: Plan, answer: Iterate) -> bool:
    return 2 * answer.loss < FOUND * plan.peak**2 * plan.data.total


def _merged(rows: Rows, student: Student) -> Student:
    few = rows.head(COMPARED)
    return merge(few.weighed, student, MERGE * math.sqrt(few.error(student)))


def _repaired(plan: Plan, rows: Rows, best: tuple[Student, float]) -> tuple[Student, float]:
    """Admit a few more weights by gradient and settle again, while that helps."""
    for _ in range(REPAIRS):
        if best[1] < 0.1 * FOUND * plan.peak**2:
            break
        plan.spend(rows)
        tried = settle(rows, grow_lines(rows, best[0], max(5, plan.budget // 10)), plan.budget)
        better = tried[1] < 0.6 * best[1]
        best = tried if tried[1] < best[1] else best
        if not better:
            break
    return best


def _relu(plan: Plan, rows: Rows, student: Student) -> tuple[Tensor, Tensor, bool]:
    """Choose sides at the finest tolerance whose network fits, or else the one that exceeds the least."""
    residual = math.sqrt(rows.error(student)) + 1e-8 * plan.size
    best: tuple[int, Tensor, Tensor] | None = None
    for share in (0.01, 0.1, 1.0, 10.0):
        W, v = to_relu(student, share * residual)
        lit = (rows.X.double() @ W > 0).any(0)
        W, v = W[:, lit], v[lit]
        over = max(0, int((W != 0).sum()) - plan.budget) + max(0, W.shape[1] - plan.hidden)
        if best is None or over < best[0]:
            best = (over, W, v)
        if over == 0:
            break
    assert best is not None
    return best[1], best[2], best[0] == 0


def as_relu(plan: Plan, student: Student) -> tuple[Tensor, Tensor]:
    """Write an unfinished student as ReLU neurons, whatever its form."""
    if not student.lines:
        return student.W, student.v
    rows = Rows(*plan.data.sample(COMPARED), plan.objective.loss, plan.penalty)
    return _relu(plan, rows, student.prune(plan.budget))[:2]


def _cut(rows: Rows, W: Tensor, v: Tensor, budget: int) -> tuple[Tensor, Tensor]:
    """Bring ReLU neurons down to the budget by backward elimination with gates held."""
    excess = int((W != 0).sum()) - budget
    if excess <= 0:
        return W, v
    feature, neuron = (W != 0).nonzero(as_tuple=True)
    X = rows.X.double()
    columns = X[:, feature] * ((X @ W > 0) * v)[:, neuron]
    if rows.weight is not None:
        columns = columns * rows.weight.double().sqrt()[:, None]
    gram = columns.T @ columns
    removed = backward(gram, W[feature, neuron], torch.ones(len(feature), dtype=torch.bool), excess)
    W = W.clone()
    W[feature[removed], neuron[removed]] = 0
    live = (W != 0).any(0)
    return W[:, live], v[live]
