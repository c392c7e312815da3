"""The default solver: ways that each give candidates, and one judge that chooses.

Exact recovery comes first where it makes sense. Small problems are then searched by Newton's method: linear
models, growing with exchanges, wide random networks that are pruned. Large ones are trained by minibatches
under a falling budget. The winner is fitted on all rows and cleaned of what does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace

import torch

from thresher.linear.vector import SparseVector
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.centre import Centred, centred
from thresher.solvers.auto.clean import cleaned, raw_nonzeros, through_zero
from thresher.solvers.auto.falling import within
from thresher.solvers.auto.judge import Candidate
from thresher.solvers.auto.large import Large
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.recovery.problem import Problem
from thresher.solvers.auto.recovery.recoveries import Recovery, recovery_of
from thresher.solvers.auto.size import Size
from thresher.solvers.auto.small import Small, finished
from thresher.solvers.auto.subset import Subset, packed, subset_of
from thresher.solvers.auto.tuning import Tuning
from thresher.solvers.auto.ways import penalties
from thresher.solvers.loop import Iterate, Needs, Start
from thresher.solvers.status import FINISHED, RECOVERED, Status


@dataclass(frozen=True)
class Auto:
    """Search for the best network within the budget, in every way that makes sense.

    Attributes
    ----------
    batch_size : int, "auto" or None
        Rows of a minibatch, where there are minibatches; None takes all rows at once.
    passes : float
        Passes over the data that phases are planned for.
    seed : int
        Seed of everything random.
    tuning : Tuning
        Every constant.
    alpha : float, optional
        The L2 penalty beside a sum over rows; None lets the judge choose.
    incremental : bool
        Whether rows are a part of those there are, so that one training from the start given is all.
    descends : bool
        Whether the start is what a larger budget led to, so that it is cut down and nothing else is searched.
    screen : float, optional
        The share of the blocks of a gradient that a training looks at for new places; that of the tuning by
        default.
    """

    batch_size: int | str | None = "auto"
    passes: float = 200
    seed: int = 0
    tuning: Tuning = field(default_factory=Tuning)
    alpha: float | None = None
    incremental: bool = False
    descends: bool = False
    screen: float | None = None

    @property
    def needs(self) -> Needs:
        """Any network; it may connect directly and knows centred coordinates."""
        return Needs(direct=True, centred=True, inputs=self.tuning.subset.each, allowed=True)

    def init(self, objective: Relu, budget: int, start: Start | None) -> Iterate:
        """Start with nothing; a given network is the first candidate."""
        search = Search(self, objective, budget)
        zero = SparseVector.zeros(objective.size, torch.float64)
        return Iterate(zero, math.inf, 0.0, kept=False, carry=(search, search.iterates(start)))

    def step(self, iterate: Iterate) -> Iterate:
        """Go on to the next candidate."""
        return replace(next(iterate.carry[1]), carry=iterate.carry)

    def stop(self, iterate: Iterate) -> Status | None:
        """The last candidate brings its own status."""
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Cut down what is being trained; every candidate is within the budget."""
        search: Search = iterate.carry[0]
        return replace(iterate, kept=True) if iterate.kept else search.cut_short()


class Search:
    """One run of the default solver. Networks are in the coordinates of the objective."""

    def __init__(self, solver: Auto, objective: Relu, budget: int) -> None:
        self.solver, self.budget = solver, budget
        self.tuning, self.seed, self.passes = solver.tuning, solver.seed, 0.0
        if solver.screen is not None:
            self.tuning = replace(self.tuning, falling=replace(self.tuning.falling, screen=solver.screen))
        self.small = Size(objective, budget, self.tuning).small and not solver.incremental
        if self.small:
            objective = objective.gathered()
        self.objective = objective
        self.subset: Subset = subset_of(objective, budget, self.small, self.tuning.subset)
        self.tried: list[Candidate] = []
        # What recovery found that does not explain the targets entirely.
        self.close: list[Candidate] = []
        # Makes a network within the budget of what is being trained.
        self.cut: Callable[[], Fit] | None = None

    def iterates(self, start: Start | None) -> Iterator[Iterate]:
        """Give candidates, the last of which is the answer."""
        known = None if start is None or start.w.nonzeros == 0 else self._known(start)
        if known is not None and not self.solver.incremental:
            first = self.subset.lift(self._cut(known))
            yield self._iterate(first, math.nan, "start", score=math.inf)
        fresh = known is None and not self.solver.incremental
        problem = self._problem()
        exact = recovery_of(problem) if fresh else None
        if exact and self.objective.data.amount >= self.tuning.judge.first * exact.size(problem):
            if (yield from self._recovered(exact, problem)):
                return
            exact = None
        search = self._small(known) if self.small else self._large()
        best = yield from self._searched(search, known)
        near = self.tuning.judge.exact < best.score <= self.tuning.judge.promising
        if exact and near and (yield from self._recovered(exact, problem, best.score)):
            return
        close = min(self.close, key=lambda one: one.score, default=best)
        if close.score < self.tuning.judge.close * best.score:
            free = self.solver.alpha is None
            yield self._answer(close, finished(self.objective.to(torch.float64), close, free, self.tuning))
        else:
            yield self._answer(best, search.finished(best))

    def cut_short(self) -> Iterate:
        """Give a network within the budget before there is a candidate, an empty one if need be."""
        if self.cut is None:
            return self._iterate(self._empty, math.inf, "nothing")
        fit = self.cut()
        return self._iterate(fit.point, fit.value, "cut short")

    def _problem(self) -> Problem:
        batch = self.tuning.falling.batch(self.solver.batch_size, self.objective.data.rows)
        tuning = self.tuning
        settings = (self.solver.passes, batch, self.seed, tuning.recover, tuning.deep)
        # What explains the targets may be allowed by chance: that is looked at once it is found.
        return Problem(replace(self.objective, allowed=None), self.budget, *settings)

    def _recovered(
        self, way: Recovery, problem: Problem, rival: float = math.inf
    ) -> Generator[Iterate, None, bool]:
        """Try exact recovery; says whether it succeeded."""
        before = self.passes
        for progress in way.search(problem, rival):
            self.passes = before + progress.passes
            self.cut = progress.cut
            if progress.fit is None:
                yield self._iterate(self._empty, progress.value, "recovery", kept=False)
            elif not progress.found:
                if self.objective.permitted(progress.fit.point) is not progress.fit.point:
                    continue
                self.close.append(self._nearly(way.size(problem), progress.fit))
                yield self._candidate(self.close[-1])
            else:
                exact = replace(self.objective.to(torch.float64), alpha=0.0)
                fit = cleaned(exact, progress.fit, self.tuning.clean, self.tuning.newton)
                fit = through_zero(exact, fit, self.tuning.clean, self.tuning.clean.accident)
                if raw_nonzeros(exact, fit.point) <= self.budget and exact.permitted(fit.point) is fit.point:
                    answer = self._iterate(fit.point, fit.value, "recovery", score=-math.inf)
                    yield replace(answer, status=RECOVERED)
                    return True
        return False

    def _nearly(self, numbers: int, fit: Fit) -> Candidate:
        """Make a candidate of a network that recovery fitted to all rows.

        Its score is Akaike's final prediction error, ``value (n + k) / (n - k)`` for k numbers on n rows.
        """
        rows = self.objective.data.amount
        score = torch.tensor([fit.value * (rows + numbers) / max(1.0, rows - numbers)], dtype=torch.float64)
        alpha = penalties(self.objective.loss, self.solver.alpha, self.tuning.judge)[0]
        return Candidate("recovery", fit, alpha, score, torch.ones_like(score), 1.0, ("recovery",))

    @property
    def _empty(self) -> Point:
        return Point(SparseVector.zeros(self.objective.size, self.objective.data.dtype), None)

    def _known(self, start: Start) -> Point:
        """Give the network to start from in the coordinates that are searched, within the budget.

        That of a larger budget is given whole: which of its weights to do without is what is searched for.
        """
        point = Point(start.w, start.signs)
        if self.subset.units[1] is not None:
            # The subset has as many neurons as a network needs.
            point = packed(self.objective.layout, point)
        point = self.subset.drop(point)
        return point if self.solver.descends else self._cut(point)

    def _cut(self, point: Point) -> Point:
        return within(self.subset.part, point, point.w.values.abs(), self.budget)

    def _small(self, known: Point | None) -> Small:
        """Make the search by Newton's method."""
        solver, subset = self.solver, self.subset
        # A network that is known may have no room for the biases that other origins ask for.
        keeps = known is not None or self.budget < self.tuning.judge.centred
        moved = Centred(subset.part) if keeps else centred(subset.part)

        def back(point: Point) -> Point:
            return subset.lift(moved.lift(point))

        settings = (solver.passes, self.seed, solver.alpha, self.tuning, back, solver.descends)
        return Small(moved.part, self.budget, *settings)

    def _large(self) -> Large:
        """Make the search by minibatches."""
        solver = self.solver
        settings = (self.budget, solver.passes, solver.batch_size, self.seed, solver.alpha, self.tuning)
        large = Large(self.subset, *settings, solver.incremental, solver.descends)
        # Its columns are let go of once they have served.
        self.subset = Subset.of(self.objective, (None,) * len(self.objective.layout.widths))
        return large

    def _searched(self, of: Small | Large, known: Point | None) -> Generator[Iterate, None, Candidate]:
        """Show what a search finds, and return its winner."""
        before, search = self.passes, of.search(known)
        while True:
            try:
                found = next(search)
            except StopIteration as end:
                return end.value
            self.passes, self.tried = before + of.passes, of.tried
            if isinstance(found, Candidate):
                yield self._candidate(found)
            else:
                self.cut = of.cut
                fit = found.fit or Fit(self._empty, math.nan)
                told = {} if found.left is None else {"left": found.left}
                yield self._iterate(fit.point, fit.value, found.way, kept=found.kept, **told)

    def _answer(self, best: Candidate, fit: Fit) -> Iterate:
        """Say what was chosen, and what else was tried."""
        # A longer search offers the same line or constant again.
        advice = "" if best.way in ("linear", "constant") else " Raise max_iter for a longer search."
        status = Status(FINISHED.name, f"{self._story(best, fit)}{advice}")
        if self.objective.loss.quadratic and fit.value <= self.tuning.judge.recovered:
            status = RECOVERED
        answer = self._iterate(fit.point, fit.value, best.way, score=-math.inf, alpha=best.alpha)
        return replace(answer, status=status)

    def _story(self, best: Candidate, fit: Fit) -> str:
        tried = [*self.tried, *self.close]
        scores = {
            way: min(one.score for one in tried if one.way == way)
            for way in dict.fromkeys(one.way for one in tried)
        }
        others = ", ".join(f"{way} {score:.4g}" for way, score in scores.items())
        return f"the best of all ways was '{best.way}' with {fit.nonzeros} nonzeros (scores: {others})."

    def _candidate(self, one: Candidate) -> Iterate:
        return self._iterate(one.fit.point, one.fit.value, one.way, score=one.score, alpha=one.alpha)

    def _iterate(
        self,
        point: Point,
        loss: float,
        way: str,
        *,
        kept: bool = True,
        score: float | None = None,
        **record: float,
    ) -> Iterate:
        passes = min(self.passes, self.solver.passes - 1e-9)
        told = {"way": way, **record} if score is None else {"way": way, "score": score, **record}
        if kept and (allowed := self.objective.permitted(point)) is not point:
            # A training that is shown on its way may read too many inputs by a neuron.
            point, loss = allowed, self.objective.value(allowed)
        return Iterate(point.w, loss, passes, point.signs, kept, record=told, score=score)
