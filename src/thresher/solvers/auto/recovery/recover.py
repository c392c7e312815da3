"""Exact recovery: find the network behind targets that a sparse network explains entirely.

A wide student in the absolute-value form is trained in stretches. After each one that leaves little
unexplained an attempt is made to cut it down: merge neurons, prune, refit, eliminate weights one by one down
to the budget, choose the sides of the neurons, polish in float64. When the longest has failed, cycles follow:
widen the best student with small random neurons, train, cut down again.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

from thresher.solvers.auto.recovery.attempt import Search
from thresher.solvers.auto.recovery.problem import Problem, Progress


def recover(problem: Problem, rival: float = math.inf) -> Generator[Progress, None, bool]:
    """Search for the network that explains the targets.

    Parameters
    ----------
    problem : Problem
    rival : float
        The mean loss of the best network that is known. A wide student that stays far above it is given up.

    Yields
    ------
    Progress
        After every pass of a training, and whenever there is a network within the budget.

    Returns
    -------
    bool
        Whether the network was found: the last candidate is then the answer.
    """
    return (yield from searched(Search(problem, rival)))


def searched(search: Search) -> Generator[Progress, None, bool]:
    """Run a search; see `recover`."""
    problem, tuning = search.problem, search.tuning
    found = yield from _wide(search)
    if found is None and search.signs:
        # Neurons of one sign leave too much: try both, as long as that is better.
        search.signs = 0
        found = yield from _wide(search, [tuning.both_signs * value for value in search.values])
    if found is not False:
        return bool(found)
    search.signs = 0
    cycle = (tuning.widen_passes + tuning.narrow_passes) * search.unit
    while search.left > tuning.left_alone * problem.passes + cycle:
        before = search.best_value
        schedule = search.schedule(tuning.widen_passes, tuning.fixed_rate, tuning.fixed_fall)
        wide, _ = yield from search.trained(search.widened(), schedule, "wide")
        if (yield from search.attempt(wide, tuning.narrow_passes)):
            return True
        if search.stands_still(before, search.best_value):
            return False
    return False


def _wide(search: Search, most: Sequence[float] = ()) -> Generator[Progress, None, bool | None]:
    """Train a wide student in stretches, and try to cut it down after each that leaves little.

    Says whether the network was found; None where no network seems to be behind the targets, or where a
    stretch, the first apart, leaves more than `most` of that stretch.
    """
    tuning, student = search.tuning, search.start()
    worth = [pair for pair in tuning.stretches if pair[0] * search.unit >= tuning.shortest]
    stretches = worth or list(tuning.stretches[-1:])
    for number, (length, haste) in enumerate(stretches):
        schedule = search.schedule(length, haste, tuning.fall * haste)
        before = search.values[-1] if number else math.inf
        student, value = yield from search.trained(student, schedule, "wide", before=before)
        search.values.append(value)
        last, unexplained = number == len(stretches) - 1, 2 * value / search.spread**2
        worse = 0 < number < len(most) and value > most[number]
        stands = search.stands_still(before, value)
        worse |= number > 0 and value > tuning.behind * search.rival
        if worse or stands or unexplained > (tuning.unexplained if last else tuning.hopeless):
            return None
        if (unexplained < (tuning.early if search.cheap else tuning.almost) or last) and (
            yield from search.attempt(student, tuning.fixed_passes * length)
        ):
            return True
        while search.raised(value):
            if (yield from search.attempt(student, tuning.fixed_passes * length)):
                return True
        if 2 * search.best_value <= tuning.near * search.spread**2:
            # It is nearly found: cycles, which start from there, are shorter than the next stretch.
            return False
    return False
