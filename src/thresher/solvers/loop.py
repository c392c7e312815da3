"""The one loop: a solver is `init`, `step` and `stop`; limits, history, the best and Ctrl-C live here.

A run that is stopped goes on from a journal. A solver with two more methods, `save` and `load`, is taken up
where it was. Others take their steps again, which costs little where what takes long is in the journal as
well: so are the trainings of the default solver.

What a solver takes and gives (`solver.py`) can be imported from here, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NoReturn

from thresher.errors import ParameterError
from thresher.solvers.journal import State, forgetting, journal
from thresher.solvers.solver import (
    OPTIONS,
    Iterate,
    Needs,
    Record,
    SavedSolver,
    Solution,
    Solver,
    Start,
)
from thresher.solvers.status import CALLED_OFF, FITTED, INTERRUPTED, RECOVERED, SPENT, STALLED, Status

__all__ = ["OPTIONS", "Iterate", "Needs", "Record", "SavedSolver", "Solution", "Solver", "Start", "run"]


def run(
    solver: Solver,
    objective: Any,
    budget: int,
    *,
    start: Start | None = None,
    max_iter: float = 100,
    tol: float = 0.0,
    callback: Callable[[Record, Iterate], object] | None = None,
    keep: str = "best",
    judge: Callable[[Iterate], float] | None = None,
    patience: float = math.inf,
) -> Solution:
    """Run a solver to its end.

    Parameters
    ----------
    solver : Solver
    objective : Linear or Relu
    budget : int
        The most nonzeros that may be handed out.
    start : Start, optional
        Where to start; zero by default.
    max_iter : float
        Passes over the data.
    tol : float
        Stop when the objective is at most this.
    callback : callable, optional
        Called with each record and iterate; a true answer stops the run.
    keep : {"best", "last"}
        Which iterate to hand out.
    judge : callable, optional
        Says how bad an iterate within the budget is, by default its loss: the best is kept.
    patience : float
        Stop after this many iterates within the budget that the judge finds no better.
    """
    refuse_misfit(solver, objective)

    def answer() -> Solution:
        course = _Course(solver, _checked(solver, "init", solver.init(objective, budget, start)))
        status: Status | None = None
        try:
            with journal().work("steps", course.save, course.load):
                course.catch_up()
                while status is None:
                    iterate = course.step()
                    if keep == "last" and iterate.kept:
                        course.best = iterate
                    elif iterate.kept and iterate.exact:
                        own = iterate.loss if iterate.score is None else iterate.score
                        course.compare(iterate, own if judge is None else course.judged(judge(iterate)))
                    if callback is not None and _told(callback, course.history[-1], iterate):
                        status = CALLED_OFF
                    elif iterate.kept and iterate.exact and iterate.loss <= tol and not _under_way(iterate):
                        status = iterate.status if iterate.status is RECOVERED else FITTED
                    elif course.since >= patience:
                        status = STALLED
                    else:
                        spent = SPENT if iterate.passes >= max_iter else None
                        status = iterate.status or solver.stop(iterate) or spent
                    if status is None:
                        journal().pause()
                    elif status is CALLED_OFF:
                        journal().leave()
        except KeyboardInterrupt:
            journal().break_off()
            status = INTERRUPTED
        best = course.best
        if not best.kept or best.w.nonzeros == 0:
            best = solver.rescue(course.iterate)
        return Solution(best.w, best.signs, best.loss, status, course.history, objective)

    return journal().recall("run", answer, _saved_solution, lambda state: _loaded_solution(state, objective))


class _Course:
    """How far a run is.

    Attributes
    ----------
    iterate, best : Iterate
        The last iterate, and the one to hand out.
    history : list of dict
    lowest : float
        How bad the best one is.
    since : int
        Iterates since then.
    """

    def __init__(self, solver: Solver, first: Iterate) -> None:
        self.solver, self.iterate, self.best = solver, first, first
        self.history, self.lowest, self.since = list[Record](), math.inf, 0
        self.began, self.behind = time.perf_counter(), 0
        self.saved = solver if isinstance(solver, SavedSolver) else None

    def step(self) -> Iterate:
        """Take a step and write it down."""
        self._advance()
        seconds = time.perf_counter() - self.began
        self.history.append(_record(self.iterate, len(self.history) + 1, seconds))
        return self.iterate

    def compare(self, iterate: Iterate, badness: float) -> None:
        """Keep an iterate if it is better than the best so far."""
        self.since += 1
        if badness < self.lowest:
            self.best, self.lowest, self.since = iterate, badness, 0

    def judged(self, badness: float) -> float:
        """Write down what the judge says of the last step."""
        self.history[-1]["badness"] = badness
        return badness

    def catch_up(self) -> None:
        """Take again the steps of a solver that cannot be taken up where it was."""
        for _ in range(self.behind):
            self._advance()

    def _advance(self) -> None:
        # Whoever saves states saves them between steps.
        with nullcontext() if self.saved is None else forgetting():
            self.iterate = _checked(self.solver, "step", self.solver.step(self.iterate))

    def save(self) -> State:
        """Give what a run needs to go on."""
        best = self.best
        return {
            "solver": None if self.saved is None else self.saved.save(self.iterate),
            "best": {"w": best.w, "signs": best.signs, "loss": best.loss, "kept": best.kept},
            "lowest": self.lowest,
            "since": self.since,
            "history": self.history,
            "seconds": time.perf_counter() - self.began,
        }

    def load(self, state: State) -> None:
        """Go on from there."""
        self.history, self.lowest, self.since = state["history"], state["lowest"], state["since"]
        self.began -= state["seconds"]
        best = state["best"]
        if best["w"].size != self.iterate.w.size:
            raise ValueError("a state of another problem")
        self.best = Iterate(best["w"], best["loss"], 0.0, best["signs"], best["kept"])
        if self.saved is None:
            self.behind = len(self.history)
        else:
            self.iterate = self.saved.load(self.iterate, state["solver"])


def _told(callback: Callable[[Record, Iterate], object], record: Record, iterate: Iterate) -> object:
    """Tell a callback of a step; what it may fit itself is no part of this run."""
    with forgetting():
        return callback(record, iterate)


def _saved_solution(solution: Solution) -> State:
    status = solution.status
    return {
        "w": solution.w,
        "signs": solution.signs,
        "loss": solution.loss,
        "status": [status.name, status.advice],
        "history": solution.history,
    }


def _loaded_solution(state: State, objective: Any) -> Solution:
    status = Status(*state["status"])
    return Solution(state["w"], state["signs"], state["loss"], status, state["history"], objective)


def _under_way(iterate: Iterate) -> bool:
    """Say whether a solver that judges by scores is still searching: a candidate is not its answer yet."""
    return iterate.score is not None and iterate.status is None


def _checked(solver: Solver, method: str, came: Any) -> Iterate:
    """Refuse what is no iterate, naming who gave it."""
    if not isinstance(came, Iterate):
        raise ParameterError(
            f"{type(solver).__name__}.{method} gave {type(came).__name__}, but a solver's {method} gives an "
            "Iterate: return one, such as dataclasses.replace(iterate, w=w, loss=loss)."
        )
    return came


def refuse_misfit(solver: Solver, objective: Any) -> None:
    """Refuse an objective that a solver does not take, naming both and what is missing."""
    needs = solver.needs
    if needs.kind != objective.kind:
        raise ParameterError(
            f"{type(solver).__name__} cannot work on {type(objective).__name__}: it needs a {needs.kind} "
            f"objective, and this one is {objective.kind}. Use a solver that needs that kind, such as "
            f"{'Auto' if objective.kind == 'relu' else 'IHT'}."
        )
    if objective.layout is not None:
        refuse_network(solver, objective.layout.widths)


def refuse_network(solver: Solver, widths: tuple[int, ...]) -> None:
    """Refuse a network that a solver does not take, naming both and what is missing."""
    needs, layers, outputs = solver.needs, len(widths) - 2, widths[-1]
    network = (
        f"a network of {layers} hidden layer{'s' * (layers > 1)} and {outputs} output{'s' * (outputs > 1)}"
    )
    if needs.hidden_layers not in (None, layers):
        _refuse(solver, network, f"exactly {needs.hidden_layers} hidden layer")
    if needs.outputs not in (None, outputs):
        _refuse(solver, network, f"exactly {needs.outputs} output")


def _refuse(solver: Solver, what: str, missing: str) -> NoReturn:
    raise ParameterError(
        f"{type(solver).__name__} cannot work on {what}: it needs {missing}. Use solver='auto', which takes "
        "any network."
    )


def _record(iterate: Iterate, step: int, seconds: float) -> Record:
    return {
        "step": step,
        "passes": iterate.passes,
        "loss": iterate.loss,
        "nonzeros": iterate.w.nonzeros,
        "seconds": seconds,
        **iterate.record,
    }
