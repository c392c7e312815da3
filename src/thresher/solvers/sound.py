"""Whether an object is a solver: all that a run will ask of it is there, and says what it takes."""

from __future__ import annotations

from typing import Any

from thresher.errors import ParameterError
from thresher.solvers.solver import OPTIONS, Needs

METHODS = ("init", "step", "stop", "rescue")
KINDS = ("relu", "linear")


def problem_with(solver: Any) -> str | None:
    """Say what an object lacks that would be a solver, None if nothing.

    Examples
    --------
    >>> problem_with(3)
    'it lacks needs, init, step, stop and rescue'
    """
    if isinstance(solver, type):
        return f"it is a class: make an object of it, {solver.__name__}(...)"
    lacks = [] if hasattr(solver, "needs") else ["needs"]
    lacks += [name for name in METHODS if not callable(getattr(solver, name, None))]
    if lacks:
        return f"it lacks {' and '.join([', '.join(lacks[:-1]), lacks[-1]] if lacks[1:] else lacks)}"
    return _problem_with_needs(solver.needs)


def _problem_with_needs(needs: Any) -> str | None:
    if not isinstance(needs, Needs):
        return (
            f"solver.needs={needs!r}, but it must be a thresher.solvers.loop.Needs, which says what it takes"
        )
    if needs.kind not in KINDS:
        return f"needs.kind={needs.kind!r}, but objectives are of kind {' or '.join(map(repr, KINDS))}"
    for name in ("hidden_layers", "outputs"):
        count = getattr(needs, name)
        if count is not None and not (isinstance(count, int) and count >= 1):
            return f"needs.{name}={count!r}, but it must be a whole number of 1 or more, or None for any"
    unknown = sorted(set(needs.options) - OPTIONS)
    if unknown:
        return f"needs.options names {unknown[0]!r}, but options are {', '.join(sorted(OPTIONS))}"
    return None


def refuse_no_solver(solver: Any) -> None:
    """Refuse what is no solver."""
    problem = problem_with(solver)
    if problem is not None:
        raise ParameterError(f"solver={solver!r} came, but {problem}. thresher.solvers.iht.IHT() is one.")
