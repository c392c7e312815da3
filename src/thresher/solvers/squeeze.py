"""Training under a budget that shrinks to the exact one, for data that no network explains entirely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from thresher.solvers.loop import Iterate, Start
from thresher.solvers.plan import Plan
from thresher.solvers.student import Pace, Student, merge, train

RATE, PENALTY = 0.02, 0.0


def squeeze(plan: Plan, start: Start | None = None) -> Iterator[Iterate]:
    """Train a wide ReLU student, cut neurons to the allowed number, and shrink its weights to the budget."""
    W, v = plan.neurons(plan.width, plan.size)
    if start is not None:
        known, signs = plan.opened(start)
        yield plan.hand_out(known, signs, "start")
        W, v = torch.cat([known, 0.1 * W], 1), torch.cat([signs, v])
    student = Student(W, v)
    passes = max(3.0, plan.left)
    rate = RATE * plan.unit
    between = min(W.numel(), 4 * plan.budget)
    wide = Pace(0.4 * passes, rate, rate / 3, PENALTY, shrink=lambda t: _falling(W.numel(), between, t))
    for student, loss in train(plan.data, student, wide, plan.batch):
        yield plan.progress(student, loss, "wide")
    student = _fewer_neurons(plan, student.compact())
    held = student.nonzeros
    narrow = Pace(
        0.6 * passes, rate / 3, rate / 100, PENALTY, shrink=lambda t: _falling(held, plan.budget, t / 0.5)
    )
    for student, loss in train(plan.data, student, narrow, plan.batch):
        yield plan.progress(student, loss, "shrinking")
    yield plan.hand_out(student.W, student.v, "exact")


def _falling(start: int, end: int, share: float) -> int:
    """Fall geometrically from one budget to another."""
    return max(end, round(start * (end / max(1, start)) ** min(1.0, share)))


def _fewer_neurons(plan: Plan, student: Student) -> Student:
    """Merge what is alike and drop the weakest neurons beyond the allowed number."""
    X, y, _ = plan.data.sample(2000)
    spread = float((student.output(X) - y).square().mean().sqrt()) if plan.objective.loss.quadratic else 0.3
    student = merge(X, student, 0.2 * spread)
    if student.neurons <= plan.hidden:
        return student
    strength = (X @ student.W).clamp_(min=0).square().mean(0)
    kept = torch.topk(strength, plan.hidden).indices.sort().values
    return replace(student, W=student.W[:, kept], v=student.v[kept])
