"""Exact recovery: find the network behind targets that a sparse network explains entirely."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace

import torch
from torch import Tensor

from thresher.solvers.loop import Iterate
from thresher.solvers.plan import Plan
from thresher.solvers.settle import Rows, backward, grow, settle
from thresher.solvers.sides import to_relu
from thresher.solvers.student import Pace, Student, merge, train

# Adam's step in units of a typical weight, how far it falls in a phase, and the L1 penalty in units of the step.
RATE, DECAY, PENALTY = 0.008, 300.0, 0.1
# The share of the residual that merging may add.
MERGE = 0.4
# A wide student that leaves more of the targets than this unexplained is not looking at an exact network.
UNEXPLAINED = 0.03
# The mean squared error, as a share of that of the zero network, at which a network counts as found.
FOUND = 1e-9
# Rows on which neurons are compared, and on which the first attempts are made.
COMPARED, FEW = 2000, 10_000


def recover(plan: Plan) -> Generator[Iterate, None, bool]:
    """Search in the line form, in attempts of growing length; says whether the network was found."""
    d, dtype = plan.data.width, plan.data.y.dtype
    W, v = plan.neurons(plan.width, plan.size)
    student = Student(W, v, torch.zeros(d, dtype=dtype), torch.zeros(d, dtype=dtype))
    rows = Rows(*plan.data.sample(max(FEW, 6 * plan.budget)))
    best: tuple[Student, float] | None = None
    rate = RATE * plan.unit
    for attempt, passes in enumerate(_lengths(plan.passes)):
        first = attempt == 0
        pace = Pace(passes, rate if first else rate / 4, rate / DECAY if first else rate / 400, PENALTY)
        for student, loss in train(plan.data, student, pace, plan.batch):
            yield plan.progress(student, loss, "wide")
        if 2 * loss > UNEXPLAINED * plan.size**2:
            return False
        student = _merged(rows, student).prune(int(2.5 * plan.budget))
        pace = Pace(max(1, passes / 8), rate / 4, rate / 400, PENALTY / 2, fixed=True)
        for student, loss in train(plan.data, student, pace, plan.batch):
            yield plan.progress(student, loss, "merged")
        student = _merged(rows, student)
        settled = settle(rows, student.prune(int(1.5 * plan.budget)), plan.budget)
        best = settled if best is None or settled[1] < best[1] else best
        best = _repaired(plan, rows, best)
        if best[1] < 10 * FOUND * plan.size**2 or plan.left < 0.2 * plan.passes:
            W, v = _relu(plan, rows, best[0])
            found = plan.hand_out(W, v, "sides", exact=True)
            yield found
            if 2 * found.loss < FOUND * plan.size**2 * plan.data.rows:
                return True
        student = _widened(plan, student, math.sqrt(2 * loss))
    return False


def _lengths(passes: float) -> list[float]:
    """Plan the passes of each attempt: short ones first, since many networks are found at once."""
    lengths, total = [], 0.0
    length = max(2.0, passes / 40)
    while total + length * 1.125 < 0.9 * passes:
        lengths.append(length)
        total += 1.125 * length
        length = min(40.0, length * 2)
    return lengths or [max(1.0, 0.6 * passes)]


def _merged(rows: Rows, student: Student) -> Student:
    few = rows.head(COMPARED)
    return merge(few.X, student, MERGE * math.sqrt(few.error(student)))


def _repaired(plan: Plan, rows: Rows, best: tuple[Student, float]) -> tuple[Student, float]:
    """Admit a few more weights by gradient and settle again, while that helps."""
    for _ in range(3):
        if best[1] < FOUND * plan.size**2:
            break
        tried = settle(rows, grow(rows, best[0], max(5, plan.budget // 10)), plan.budget)
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
