"""Exact recovery: find the network behind targets that a sparse network explains entirely."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace

import torch
from torch import Tensor

from thresher.solvers.grow import grow_lines
from thresher.solvers.loop import Iterate
from thresher.solvers.plan import Plan
from thresher.solvers.settle import Rows, backward, settle
from thresher.solvers.sides import to_relu
from thresher.solvers.student import Pace, Student, merge

# Adam's step in units of a typical weight, how far it falls in a phase, the L1 penalty in units of the step.
RATE, DECAY, PENALTY = 0.008, 300.0, 0.1
# The share of the residual that merging may add.
MERGE = 0.4
# A wide student that leaves more of the targets than this unexplained is not looking at an exact network.
UNEXPLAINED = 0.03
# The mean squared error, as a share of that of the zero network, at which a network counts as found.
FOUND = 1e-9
# The error at which a student is worth an exact fit.
PROMISING = 1e-6
# Passes of the longest attempt.
LONG = 40.0
# Rows on which neurons are compared, and on which the first attempts are made.
COMPARED, FEW = 2000, 10_000


def recover(plan: Plan) -> Generator[Iterate, None, bool]:
    """Search in the line form, in attempts of growing length; says whether the network was found."""
    d, dtype = plan.data.width, plan.data.y.dtype
    W, v = plan.neurons(plan.width, plan.size)
    student = Student(W, v, torch.zeros(d, dtype=dtype), torch.zeros(d, dtype=dtype))
    rows = Rows(*plan.data.sample(max(FEW, 6 * plan.budget)), plan.objective.loss, plan.penalty)
    best: tuple[Student, float] | None = None
    for passes in _lengths(plan.passes):
        rate = RATE * plan.unit * (1.0 if passes < LONG else 0.25)
        student, loss = yield from plan.trained(student, Pace(passes, rate, rate / DECAY, PENALTY), "wide")
        if 2 * loss > UNEXPLAINED * plan.size**2:
            return False
        slow = Pace(max(1, passes / 8), RATE * plan.unit / 4, RATE * plan.unit / 400, PENALTY / 2, fixed=True)
        student = _merged(rows, student).prune(int(2.5 * plan.budget))
        student, loss = yield from plan.trained(student, slow, "merged")
        student = _merged(rows, student)
        plan.spend(rows)
        settled = settle(rows, student.prune(int(1.5 * plan.budget)), plan.budget)
        best = settled if best is None or settled[1] < best[1] else best
        found = yield from _answer(plan, rows, best)
        if not found and best[1] < PROMISING * plan.size**2:
            best = _repaired(plan, rows, best)
            found = yield from _answer(plan, rows, best)
        if found:
            return True
        student = _widened(plan, student, math.sqrt(2 * loss))
    return False


def _answer(plan: Plan, rows: Rows, best: tuple[Student, float]) -> Generator[Iterate, None, bool]:
    """Hand a student out as a ReLU network if it is good enough; says whether the network was found."""
    if best[1] > PROMISING * plan.size**2 and plan.left > 0.3 * plan.passes:
        return False
    W, v = _relu(plan, rows, best[0])
    answer = plan.hand_out(W, v, "sides", exact=True)
    found = 2 * answer.loss < FOUND * plan.size**2 * plan.data.rows
    yield replace(answer, record={"phase": "found" if found else "sides"})
    return found


def _lengths(passes: float) -> list[float]:
    """Plan the passes of each attempt: short ones first, since many networks are found at once."""
    lengths, total, length = [], 0.0, 3.0
    while total + 1.125 * length < 0.8 * passes:
        lengths.append(length)
        total += 1.125 * length
        length = min(LONG, 2 * length)
    return lengths or [max(1.0, 0.6 * passes)]


def _merged(rows: Rows, student: Student) -> Student:
    few = rows.head(COMPARED)
    return merge(few.weighed, student, MERGE * math.sqrt(few.error(student)))


def _repaired(plan: Plan, rows: Rows, best: tuple[Student, float]) -> tuple[Student, float]:
    """Admit a few more weights by gradient and settle again, while that helps."""
    for _ in range(3):
        if best[1] < FOUND * plan.size**2:
            break
        plan.spend(rows)
        tried = settle(rows, grow_lines(rows, best[0], max(5, plan.budget // 10)), plan.budget)
        better = tried[1] < 0.5 * best[1]
        best = tried if tried[1] < best[1] else best
        if not better:
            break
    return best


def _widened(plan: Plan, student: Student, residual: float) -> Student:
    """Add small random neurons, and a little noise to every weight that is zero."""
    count = min(plan.width - student.neurons, max(2, int(0.3 * min(plan.hidden, plan.budget))))
    W, v = student.W, student.v
    if count > 0:
        fresh, signs = plan.neurons(count, 2 * residual)
        W, v = torch.cat([W, fresh], 1), torch.cat([v, signs])
    noise = plan.noise(*W.shape) * (0.05 * residual / math.sqrt(max(1, W.numel())))
    return replace(student, W=W + (W == 0) * noise, v=v)


def _relu(plan: Plan, rows: Rows, student: Student) -> tuple[Tensor, Tensor]:
    """Choose sides at the tolerance that needs the fewest weights, and cut what is still too much."""
    residual = math.sqrt(rows.error(student)) + 1e-7 * plan.size
    choices = [to_relu(student, share * residual) for share in (0.1, 1.0, 10.0)]
    W, v = min(choices, key=lambda choice: int((choice[0] != 0).sum()))
    lit = (rows.X.double() @ W > 0).any(0)
    return _cut(rows, W[:, lit], v[lit], plan.budget)


def as_relu(plan: Plan, student: Student) -> tuple[Tensor, Tensor]:
    """Write an unfinished student as ReLU neurons, whatever its form."""
    if not student.lines:
        return student.W, student.v
    return _relu(
        plan, Rows(*plan.data.sample(COMPARED), plan.objective.loss, plan.penalty), student.prune(plan.budget)
    )


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
