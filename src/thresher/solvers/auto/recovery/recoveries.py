"""The exact recoveries there are, each for networks of another shape."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from thresher.solvers.auto.recovery.deep import deep_size, may_be_deep, recover_deep
from thresher.solvers.auto.recovery.outputs import outputs_may_be_exact, outputs_size, recover_outputs
from thresher.solvers.auto.recovery.problem import Problem, Progress, may_be_exact, problem_size
from thresher.solvers.auto.recovery.recover import recover


@dataclass(frozen=True)
class Recovery:
    """A search for the network that explains the targets entirely.

    Attributes
    ----------
    takes : callable
        Says whether it takes a problem, and could tell a network from an accident.
    size : callable
        Counts the numbers that it fits freely: on few rows for each, a good fit says nothing.
    search : callable
        From a problem and the mean loss of the best network that is known, if there is one, to what it tells;
        it returns whether the network was found, which is the last candidate then.
    """

    takes: Callable[[Problem], bool]
    size: Callable[[Problem], int]
    search: Callable[[Problem, float], Generator[Progress, None, bool]]


RECOVERIES = (
    Recovery(may_be_exact, problem_size, recover),
    Recovery(outputs_may_be_exact, outputs_size, recover_outputs),
    Recovery(may_be_deep, deep_size, recover_deep),
)


def recovery_of(problem: Problem) -> Recovery | None:
    """Give the recovery that takes a problem, if there is one."""
    return next((one for one in RECOVERIES if one.takes(problem)), None)
