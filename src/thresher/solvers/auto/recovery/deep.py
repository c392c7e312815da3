"""Recovery of networks with several hidden layers: find the one that explains the targets.

A student of the shape asked for, but several times as wide, is trained until little is left. Neurons that do
the same become one, weights go while little more is left than before, and the rest is fitted by Newton's
method in float64. Where the first layer is found and those above are not, exact recovery finds these anew;
weights and paths that are missing are admitted where they explain most. What is not exact then is widened by
small random weights and trained again; what no longer improves makes way for another student.
"""

from __future__ import annotations

import math
from collections.abc import Generator

from thresher.objective.running import Point
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.recovery.deep_search import DeepSearch, room_of
from thresher.solvers.auto.recovery.problem import Problem, Progress


def may_be_deep(problem: Problem) -> bool:
    """Say whether deep recovery takes this problem, and could tell a network from an accident."""
    objective, tuning = problem.objective, problem.deep
    layout, data = objective.layout, objective.data
    fits = layout.layers > 2 and objective.loss.name == "squared" and problem.budget <= tuning.most
    enough = tuning.enough(layout.widths[0], problem.budget)
    if not fits or min(data.amount, room_of(objective, tuning)) < enough:
        return False
    # Targets of two values are labels, of which a sparse network is not the source.
    return data.every(data.targets).unique().numel() > 2


def deep_size(problem: Problem) -> int:
    """Count the numbers that a network within the budget fits freely."""
    return problem.budget


def recover_deep(problem: Problem, rival: float = math.inf) -> Generator[Progress, None, bool]:
    """Search for the deep network that explains the targets.

    Parameters
    ----------
    problem : Problem
    rival : float
        The mean loss of the best network that is known. What is nearly found must be better.

    Yields
    ------
    Progress
        After every pass of a training, and whenever there is a network within the budget.

    Returns
    -------
    bool
        Whether the network was found: the last candidate is then the answer.
    """
    search, tuning = DeepSearch(problem), problem.deep
    if not (yield from _looked(search)):
        return False
    going_on = True
    while going_on and search.left > tuning.shortest * problem.passes:
        best, going_on = yield from _started(search)
        if best is not None and search.done(best):
            fit = search.placed(best, tuning.steps_all)
            found = search.cutting.explains(fit)
            yield Progress("candidate", search.passes, fit.value, fit.nonzeros, fit=fit, found=found)
            if found:
                return True
    best = search.best
    if best is not None and best.value < rival and search.unexplained(best.value) < tuning.almost:
        fit = search.placed(search.cutting.within(best.point), tuning.steps_all)
        yield Progress("candidate", search.passes, fit.value, fit.nonzeros, fit=fit)
    return False


def _looked(search: DeepSearch) -> Generator[Progress, None, bool]:
    """Train a student for a short while: which inputs matter, and whether the targets can be explained."""
    tuning = search.tuning
    student, value = yield from search.trained(search.started(), tuning.look, tuning.rate, tuning.look_most)
    if search.unexplained(value) > tuning.hopeless:
        return False
    telling = search.telling(student, value)
    if 0 < telling.numel() < search.features.numel():
        search.read(telling)
    return True


def _started(search: DeepSearch) -> Generator[Progress, None, tuple[Fit | None, bool]]:
    """Train a student, cut it down, widen it, and so on.

    Gives the last network that was cut down, and whether another start is worth trying if that is not the one
    looked for.
    """
    tuning, before, student = search.tuning, math.inf, search.started()
    steps, rate, best = tuning.steps, tuning.rate, None
    for last in (*(tuning.cycles - 1) * (False,), True):
        student, value = yield from search.trained(student, steps, rate, tuning.training_most)
        if search.unexplained(value) > tuning.unexplained:
            return best, False
        best = yield from _cut_down(search, student)
        value = min(value, best.value)
        if search.betters(best):
            yield search.offered(best)
        if search.done(best) or last or search.left <= 0:
            break
        if value > tuning.standstill * before:
            return best, search.unexplained(value) < tuning.almost
        before, student = value, search.widened(best)
        steps, rate = tuning.steps_after, tuning.rate_after
    return best, True


def _cut_down(search: DeepSearch, student: Point) -> Generator[Progress, None, Fit]:
    """Cut a student down as far as hardly anything is lost, and repair what is missing."""
    cutting = search.cutting
    fit = cutting.pruned(search.way.lift(student))
    yield search.told(fit)
    if search.unexplained(fit.value) > search.tuning.promising:
        return fit
    fit = cutting.narrowed(fit)
    yield search.told(fit)
    if not cutting.explains(fit):
        if cutting.settled_below(fit):
            again = yield from search.rebuilt(fit)
            fit = again if again.value < search.tuning.slack * fit.value else fit
        for grown in cutting.repaired(fit):
            fit = grown
            yield search.told(fit)
    return fit if cutting.fits(fit) or not cutting.explains(fit) else cutting.narrowed(fit)
