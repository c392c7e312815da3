"""The loop: why it stops, what it hands out, what it writes down. Solvers here follow a script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
import torch

from thresher.linear.matrix import MatrixOperator
from thresher.linear.vector import SparseVector
from thresher.objective.linear import Linear
from thresher.solvers.loop import Iterate, Needs, Record, Solution, Start, run
from thresher.solvers.status import SETTLED, Status

SIZE = 6


@dataclass
class Scripted:
    """A solver that hands out given losses, with given numbers of nonzeros, a pass each."""

    losses: Sequence[float]
    nonzeros: Sequence[int] = ()
    settle_at: int | None = None
    interrupt_at: int | None = None
    steps: int = 0
    budget: int = 0
    given: list[Start | None] = field(default_factory=list)
    needs: Needs = field(default_factory=lambda: Needs(kind="linear"))

    def init(self, objective: Linear, budget: int, start: Start | None) -> Iterate:
        self.budget = budget
        self.given.append(start)
        return self.hand_out(SparseVector.zeros(SIZE) if start is None else start.w, math.inf)

    def step(self, iterate: Iterate) -> Iterate:
        if self.steps + 1 == self.interrupt_at:
            raise KeyboardInterrupt
        nonzeros = self.nonzeros[self.steps] if self.nonzeros else 1
        loss = self.losses[self.steps]
        self.steps += 1
        return self.hand_out(vector(nonzeros, value=float(self.steps)), loss)

    def stop(self, iterate: Iterate) -> Status | None:
        return SETTLED if self.steps == self.settle_at else None

    def rescue(self, iterate: Iterate) -> Iterate:
        return replace(iterate, w=vector(self.budget, value=-1.0))

    def hand_out(self, w: SparseVector, loss: float) -> Iterate:
        return Iterate(
            w, loss, float(self.steps), kept=w.nonzeros <= self.budget, record={"mine": self.steps}
        )


def vector(nonzeros: int, value: float) -> SparseVector:
    return SparseVector(torch.arange(nonzeros), torch.full((nonzeros,), value), SIZE)


def objective() -> Linear:
    return Linear(MatrixOperator(torch.eye(SIZE)), torch.zeros(SIZE))


def go(solver: Scripted, **options: object) -> Solution:
    return run(solver, objective(), 2, **options)  # type: ignore[arg-type]


def chosen(solution: Solution) -> int:
    """Say which step's iterate was handed out; a script writes the step into the weights."""
    return int(solution.w.values[0])


def test_max_iter_is_spent() -> None:
    solution = go(Scripted([5.0, 4.0, 3.0, 2.0]), max_iter=3)
    assert solution.status.name == "max_iter"
    assert "raise max_iter" in solution.status.advice
    assert len(solution.history) == 3


def test_a_loss_of_tol_is_fitted() -> None:
    solution = go(Scripted([5.0, 0.5, 0.1]), tol=0.5)
    assert (solution.status.name, len(solution.history), solution.loss) == ("fitted", 2, 0.5)


def test_a_loss_of_zero_is_fitted_without_a_tol() -> None:
    assert go(Scripted([1.0, 0.0])).status.name == "fitted"


def test_an_iterate_beyond_the_budget_is_not_fitted() -> None:
    solution = go(Scripted([0.1, 0.1, 0.2], nonzeros=[5, 5, 2]), tol=0.3)
    assert (solution.status.name, len(solution.history), chosen(solution)) == ("fitted", 3, 3)


def test_the_solver_says_when_to_stop() -> None:
    solution = go(Scripted([5.0, 4.0, 3.0], settle_at=2))
    assert (solution.status, len(solution.history)) == (SETTLED, 2)


def test_a_callback_that_answers_true_stops() -> None:
    seen: list[tuple[Record, Iterate]] = []

    def callback(record: Record, iterate: Iterate) -> bool:
        seen.append((record, iterate))
        return len(seen) == 2

    solution = go(Scripted([5.0, 6.0, 1.0]), callback=callback)
    assert solution.status.name == "callback"
    assert chosen(solution) == 1
    assert [record["step"] for record, _ in seen] == [1, 2]
    assert [iterate.loss for _, iterate in seen] == [5.0, 6.0]


def test_a_callback_that_answers_nothing_does_not_stop() -> None:
    assert (
        go(Scripted([5.0, 4.0]), callback=lambda record, iterate: None, max_iter=2).status.name == "max_iter"
    )


@pytest.mark.parametrize("where", ["callback", "step"])
def test_an_interruption_keeps_the_best_so_far(where: str) -> None:
    def callback(record: Record, iterate: Iterate) -> None:
        if where == "callback" and record["step"] == 3:
            raise KeyboardInterrupt

    solver = Scripted([5.0, 2.0, 4.0, 1.0], interrupt_at=4 if where == "step" else None)
    solution = go(solver, callback=callback)
    assert solution.status.name == "interrupted"
    assert (chosen(solution), solution.loss, len(solution.history)) == (2, 2.0, 3)


def test_an_interruption_before_anything_fits_the_budget_still_gives_something_that_does() -> None:
    solution = go(Scripted([5.0, 4.0, 3.0], nonzeros=[4, 4, 4], interrupt_at=3))
    assert solution.status.name == "interrupted"
    assert 1 <= solution.w.nonzeros <= 2


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(IndexError):
        go(Scripted([5.0]))


def test_the_best_iterate_is_remembered() -> None:
    solution = go(Scripted([5.0, 2.0, 4.0, 3.0]), max_iter=4)
    assert (chosen(solution), solution.loss) == (2, 2.0)


def test_of_equally_good_iterates_the_first_is_kept() -> None:
    assert chosen(go(Scripted([5.0, 2.0, 2.0]), max_iter=3)) == 2


def test_the_last_iterate_on_request() -> None:
    solution = go(Scripted([5.0, 2.0, 4.0]), max_iter=3, keep="last")
    assert (chosen(solution), solution.loss) == (3, 4.0)


@pytest.mark.parametrize("keep", ["best", "last"])
def test_what_is_beyond_the_budget_is_never_handed_out(keep: str) -> None:
    solution = go(Scripted([3.0, 5.0, 1.0, 1.0], nonzeros=[6, 2, 3, 6]), max_iter=4, keep=keep)
    assert (chosen(solution), solution.loss, solution.w.nonzeros) == (2, 5.0, 2)
    assert [record["nonzeros"] for record in solution.history] == [6, 2, 3, 6], "the history tells all"


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_start_beyond_the_budget_is_not_handed_out_either(interrupted: bool) -> None:
    solver = Scripted([1.0, 1.0], nonzeros=[4, 4], interrupt_at=2 if interrupted else None)
    assert go(solver, start=Start(vector(5, value=9.0)), max_iter=2).w.nonzeros <= 2


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_loss_that_is_no_number_is_never_the_best(bad: float, place: int) -> None:
    losses = [4.0, 3.0, 5.0]
    losses[place] = bad
    solution = go(Scripted(losses), max_iter=3)
    assert solution.loss == min(loss for loss in losses if math.isfinite(loss))


def test_a_judge_decides_what_is_best() -> None:
    solution = go(Scripted([5.0, 2.0, 4.0]), max_iter=3, judge=lambda iterate: -iterate.loss)
    assert (chosen(solution), solution.loss) == (1, 5.0)


def test_patience_ends_when_the_judge_sees_nothing_better() -> None:
    solution = go(Scripted([5.0, 3.0, 4.0, 3.0, 3.5, 1.0]), patience=3, judge=lambda iterate: iterate.loss)
    assert (solution.status.name, len(solution.history), chosen(solution)) == ("early_stopping", 5, 2)


def test_iterates_beyond_the_budget_do_not_wear_out_patience() -> None:
    solution = go(Scripted([5.0, 6.0, 6.0, 6.0, 1.0], nonzeros=[2, 6, 6, 6, 2]), patience=1, max_iter=5)
    assert (solution.status.name, chosen(solution)) == ("max_iter", 5)


def test_the_history_is_plain_records() -> None:
    history = go(Scripted([5.0, 4.0, 4.5]), max_iter=3).history
    assert [record["step"] for record in history] == [1, 2, 3]
    assert [record["passes"] for record in history] == [1.0, 2.0, 3.0]
    assert [record["loss"] for record in history] == [5.0, 4.0, 4.5]
    assert [record["mine"] for record in history] == [1, 2, 3], "what the solver adds"
    seconds = [record["seconds"] for record in history]
    assert seconds == sorted(seconds) and seconds[0] >= 0


def test_the_start_and_the_objective_are_passed_on() -> None:
    solver, start, given = Scripted([1.0]), Start(vector(1, value=3.0)), objective()
    assert run(solver, given, 2, start=start, max_iter=1).objective is given
    assert solver.given == [start]


def test_a_status_reads_as_a_sentence() -> None:
    assert str(SETTLED).startswith("settled: the support stayed the same")
