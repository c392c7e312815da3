"""Fitting data that no network explains entirely: shrink a wide student, grow a small one, exchange."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterator
from dataclasses import replace

import torch

from thresher.objective.gated import GatedOperator
from thresher.solvers.compare import Choice, comparable, compared, comparisons
from thresher.solvers.grow import grow_relus
from thresher.solvers.iht import paper_iht
from thresher.solvers.loop import Iterate, Start
from thresher.solvers.plan import Plan
from thresher.solvers.settle import Rows, eliminate, refit
from thresher.solvers.student import Pace, Student, merge, shrinking
from thresher.solvers.working import FULL_BATCH

RATE = 0.02
# Budgets up to this are also reached from below, and weights exchanged at their end.
SMALL = 200
# Shares of the passes: thresholding from random gates, growing from nothing, exchanging weights after that,
# exchanging at the end.
THRESHOLDING, GROWING, EXCHANGING, LAST = 0.1, 0.2, 0.1, 0.15
# The share of the passes that comparisons on few rows may take, and the steps of growing it must allow.
COMPARING, LEAST_COMPARED = 0.33, 8
# How many weights an exchange admits, as shares of the budget, in turn.
EXCHANGES = (0.5, 0.25, 0.1)


def squeeze(plan: Plan, start: Start | None = None) -> Iterator[Iterate]:
    """Train a wide ReLU student, cut neurons to the allowed number, and shrink its weights to the budget."""
    rows = Rows(*plan.data.sample(max(5000, 10 * plan.budget)), plan.objective.loss, plan.penalty)
    W, v = plan.neurons(plan.width, plan.size)
    if start is not None:
        known, signs = plan.opened(start)
        yield plan.hand_out(known, signs, "start")
        W, v = torch.cat([known, 0.1 * W], 1), torch.cat([signs, v])
    small, passes = plan.budget <= SMALL, plan.left
    if small:
        grown = yield from _pursued(plan, rows, int(GROWING * passes))
        if plan.budget == 1 and plan.objective.loss.quadratic:
            # What every single weight gains has been compared, exactly: there is nothing else to find.
            yield plan.hand_out(grown.W, grown.v, "grown")
            return
        choice = yield from _chosen(plan, rows, grown, COMPARING * passes)
        if choice.line is not None:
            yield plan.hand_out_as_is(choice.line, "line")
            return
    # On a handful of rows any gates fit, and which ones would be up to rounding.
    if plan.objective.loss.quadratic and plan.whole and plan.data.total >= FULL_BATCH:
        yield from _thresholded(plan, int(THRESHOLDING * passes))
    if small:
        if choice.strength > 1:
            plan.strength = choice.strength
            rows = replace(rows, alpha=plan.penalty)
            grown = yield from _pursued(plan, rows, int(GROWING * passes))
        yield from _exchanged(plan, rows, grown, int(EXCHANGING * passes), "grown")
    # The last pass must end before all are spent, so that its result is handed out.
    student = yield from _shrunk(plan, rows, Student(W, v), 0.999 * (plan.left - LAST * passes * small))
    yield plan.hand_out(student.W, student.v, "shrunk")
    if small:
        yield from _exchanged(plan, rows, student.prune(plan.budget), int(plan.left), "exchanged")


def _chosen(plan: Plan, rows: Rows, grown: Student, passes: float) -> Generator[Iterate, None, Choice]:
    """Compare with lines, and penalties with each other, where rows are few."""
    steps = int(passes / comparisons(rows))
    if steps < LEAST_COMPARED or not comparable(plan, rows, grown):
        return Choice()

    def growing(plan: Plan, part: Rows) -> Generator[Iterate, None, Student]:
        student = yield from _pursued(plan, part, max(1, steps - len(EXCHANGES)))
        return (yield from _improved(plan, part, student, len(EXCHANGES), "comparing"))

    return (yield from compared(plan, rows, growing))


def _thresholded(plan: Plan, steps: int) -> Iterator[Iterate]:
    """Threshold from dense random gates, as the paper does.

    Nothing does better where there are more weights than rows and few neurons: rows that no neuron of a
    trained student lights are out of its reach.
    """
    operator = plan.objective.operator
    assert isinstance(operator, GatedOperator)
    signs = torch.ones(operator.neurons, dtype=operator.dtype)
    if plan.negative:
        signs[1::2] = -1
    solver = replace(paper_iht(seed=plan.seed), signs=signs)
    iterate = solver.init(plan.objective, plan.budget, None)
    best = iterate
    for _ in range(steps):
        iterate = solver.step(iterate)
        plan.data.passes += 1
        best = iterate if iterate.exact and iterate.loss < best.loss else best
        yield replace(iterate, passes=plan.data.passes, kept=False, record={"phase": "thresholding"})
    if best.w.nonzeros:
        yield plan.hand_out(*plan.opened(Start(best.w, signs)), "thresholded")


def _shrunk(plan: Plan, rows: Rows, student: Student, passes: float) -> Generator[Iterate, None, Student]:
    """Train under a budget that falls in two phases, with the neurons cut in between."""
    rate = RATE * plan.unit
    size, between = student.W.numel(), min(student.W.numel(), 4 * plan.budget)
    wide = Pace(0.4 * passes, rate, rate / 3, shrink=shrinking(size, between, 1.0))
    student, _ = yield from plan.trained(student, wide, "wide")
    student = _fewer_neurons(plan, rows, student.compact())
    narrow = Pace(0.6 * passes, rate / 3, rate / 100, shrink=shrinking(student.nonzeros, plan.budget, 0.5))
    student, _ = yield from plan.trained(student, narrow, "shrinking")
    return student


def _fewer_neurons(plan: Plan, rows: Rows, student: Student) -> Student:
    """Merge what is alike and drop the weakest neurons beyond the allowed number."""
    few = rows.head(2000)
    spread = math.sqrt(few.error(student)) if plan.objective.loss.quadratic else 0.3
    return plan.within(few, merge(few.weighed, student, 0.2 * spread))


def _pursued(plan: Plan, rows: Rows, steps: int) -> Generator[Iterate, None, Student]:
    """Grow a student from nothing in a number of steps, refitting after each."""
    empty = torch.zeros(plan.data.width, 0, dtype=rows.X.dtype)
    student = Student(empty, torch.zeros(0, dtype=rows.X.dtype))
    ratio = plan.budget ** (1 / max(1, steps - 1))
    while student.nonzeros < plan.budget:
        target = min(plan.budget, max(student.nonzeros + 1, round(student.nonzeros * ratio)))
        count = target - student.nonzeros
        grown = grow_relus(rows, student, count, plan.places(student), plan.negative, plan.bias)
        if grown.nonzeros == student.nonzeros:
            break
        refitted, error = refit(rows, grown, 3)
        student = refitted.compact()
        plan.spend(rows)
        yield plan.progress(student, error / 2, "growing")
    return student


def _exchanged(plan: Plan, rows: Rows, student: Student, rounds: int, phase: str) -> Iterator[Iterate]:
    """Exchange weights and hand the student out."""
    student = yield from _improved(plan, rows, student, rounds, phase)
    yield plan.hand_out(student.W, student.v, phase)


def _improved(
    plan: Plan, rows: Rows, student: Student, rounds: int, phase: str
) -> Generator[Iterate, None, Student]:
    """Grow beyond the budget, refit, remove what costs least, refit: again and again, keeping the best."""
    student, best = refit(rows, student, 3)
    for share in itertools.islice(itertools.cycle(EXCHANGES), rounds):
        count = max(1, round(share * plan.budget))
        grown = grow_relus(rows, student, count, plan.places(student, 2), plan.negative, plan.bias)
        wide, _ = refit(rows, grown, 3)
        narrow = eliminate(rows, wide.compact(), plan.budget, slack=0.0)
        trial, error = refit(rows, plan.within(rows, narrow), 5)
        if error < best:
            student, best = trial.compact(), error
        plan.spend(rows)
        yield plan.progress(student, best / 2, phase)
    return student
