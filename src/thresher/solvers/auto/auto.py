"""The default solver: ways that each give candidates, and one judge that chooses.

Exact recovery comes first where it makes sense. Small problems are then searched by Newton's method: linear
models, growing with exchanges, wide random networks that are pruned. Large ones are trained by minibatches
under a falling budget. The winner is fitted on all rows and cleaned of what does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from thresher.linear.vector import SparseVector
from thresher.memory import give_back
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.clean import cleaned, raw_nonzeros, some_rows, through_zero
from thresher.solvers.auto.falling import Falling, largest_within, within
from thresher.solvers.auto.judge import Candidate
from thresher.solvers.auto.newton import Fit, measured, refit, shrink
from thresher.solvers.auto.problem import Problem, may_be_exact, problem_size
from thresher.solvers.auto.recover import recover
from thresher.solvers.auto.small import Small
from thresher.solvers.auto.subset import Subset, compact, compactly, fewer_neurons, packed, subset_of
from thresher.solvers.auto.tuning import FallingTuning, Tuning
from thresher.solvers.auto.ways import exchange, under
from thresher.solvers.auto.wide import loss_of_constant
from thresher.solvers.loop import FINISHED, RECOVERED, Iterate, Needs, Start, Status


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
    """

    batch_size: int | str | None = "auto"
    passes: float = 200
    seed: int = 0
    tuning: Tuning = field(default_factory=Tuning)
    alpha: float | None = None
    incremental: bool = False

    @property
    def needs(self) -> Needs:
        """Any network; it may connect directly and knows centred coordinates."""
        return Needs(direct=True, centred=True)

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
    """One run of the default solver."""

    def __init__(self, solver: Auto, objective: Relu, budget: int) -> None:
        self.solver, self.objective, self.budget = solver, objective, budget
        self.tuning, self.seed, self.passes = solver.tuning, solver.seed, 0.0
        self.few = self.small_pays and not solver.incremental
        self.subset: Subset = subset_of(objective, budget, self.few, self.tuning.subset)
        self.tried: list[Candidate] = []
        # What recovery found that does not explain the targets entirely.
        self.close: list[Candidate] = []
        # Makes a network within the budget of what is being trained.
        self.cut: Callable[[], Fit] | None = None
        self.small: Small | None = None

    @property
    def alphas(self) -> tuple[float, ...]:
        """The penalties to try, beside a sum over rows."""
        if self.solver.alpha is not None:
            return (self.solver.alpha,)
        judge = self.tuning.judge
        return judge.squared if self.objective.loss.link == "identity" else judge.classes

    def iterates(self, start: Start | None) -> Iterator[Iterate]:
        """Give candidates, the last of which is the answer."""
        known = None if start is None or start.w.nonzeros == 0 else self._known(start)
        if known is not None and not self.solver.incremental:
            yield self._iterate(self.subset.lift(known), math.nan, "start", score=math.inf)
        fresh = known is None and not self.solver.incremental
        problem = self._problem()
        exact = fresh and may_be_exact(problem)
        if exact and self.objective.data.amount >= self.tuning.judge.first * problem_size(problem):
            if (yield from self._recovered(problem)):
                return
            exact = False
        if self.few:
            best = yield from self._small(known)
        else:
            best = yield from self._large(known)
        near = self.tuning.judge.exact < best.score <= self.tuning.judge.promising
        if exact and near and (yield from self._recovered(problem, best.score)):
            return
        close = min(self.close, key=lambda one: one.score, default=best)
        yield self._answer(close if close.score < self.tuning.judge.close * best.score else best)

    def cut_short(self) -> Iterate:
        """Give a network within the budget before there is a candidate, an empty one if need be."""
        if self.cut is None:
            return self._iterate(self._empty, math.inf, "nothing")
        fit = self.cut()
        return self._iterate(fit.point, fit.value, "cut short")

    def _problem(self) -> Problem:
        batch = self.tuning.falling.batch(self.solver.batch_size, self.objective.data.rows)
        return Problem(self.objective, self.budget, self.solver.passes, batch, self.seed, self.tuning.recover)

    def _recovered(self, problem: Problem, rival: float = math.inf) -> Generator[Iterate, None, bool]:
        """Try exact recovery; says whether it succeeded."""
        before = self.passes
        for progress in recover(problem, rival):
            self.passes = before + progress.passes
            self.cut = progress.cut
            if progress.fit is None:
                yield self._iterate(self._empty, progress.value, "recovery", kept=False)
            elif not progress.found:
                self.close.append(self._nearly(problem, progress.fit))
                yield self._candidate(self.close[-1])
            else:
                exact = replace(self.objective.to(torch.float64), alpha=0.0)
                fit = cleaned(exact, progress.fit, self.tuning.clean, self.tuning.newton)
                fit = through_zero(exact, fit, self.tuning.clean, self.tuning.clean.accident)
                if raw_nonzeros(exact, fit.point) <= self.budget:
                    answer = self._iterate(fit.point, fit.value, "recovery", score=-math.inf)
                    yield replace(answer, status=RECOVERED)
                    return True
        return False

    def _nearly(self, problem: Problem, fit: Fit) -> Candidate:
        """Make a candidate of a network that recovery fitted to all rows.

        Its score is Akaike's final prediction error, ``value (n + k) / (n - k)`` for k numbers on n rows.
        """
        rows, numbers = self.objective.data.amount, problem_size(problem)
        score = torch.tensor([fit.value * (rows + numbers) / max(1.0, rows - numbers)], dtype=torch.float64)
        fit = Fit(self._dropped(fit.point), fit.value) if self.few else fit
        return Candidate("recovery", fit, self.alphas[0], score, torch.ones_like(score), 1.0, ("recovery",))

    @property
    def _empty(self) -> Point:
        return Point(SparseVector.zeros(self.objective.size, self.objective.data.dtype), None)

    def _known(self, start: Start) -> Point:
        """Give the network to start from in the coordinates that are searched, within the budget."""
        point = self._dropped(Point(start.w, start.signs))
        return within(self.subset.part, point, point.w.values.abs(), self.budget)

    def _dropped(self, point: Point) -> Point:
        """Give a network its places in the subset, which has as many neurons as it needs."""
        if self.subset.units[1] is not None:
            point = packed(self.objective.layout, point)
        return self.subset.drop(point)

    @property
    def newton_pays(self) -> bool:
        """Whether Newton's equations on a wide network are cheap enough to be solved again and again."""
        judge, wide = self.tuning.judge, self.tuning.wide
        count = max(wide.least, wide.inflation * self.budget)
        work = 2.0 * self.objective.layout.widths[-1] * count**2 * self._searched
        few = self.objective.layout.widths[-1] <= judge.outputs
        return few and work <= judge.work and self._solvable(count)

    @property
    def small_pays(self) -> bool:
        """Whether a search by Newton's method makes more in the same time than minibatches do."""
        judge = self.tuning.judge
        # It does not of many rows with classes, the sooner without a committee.
        narrow = self.objective.data.columns <= self.tuning.committee.inputs
        plenty = judge.plenty * self.budget if narrow else judge.many
        return self.newton_pays and (self.objective.loss.quadratic or self.objective.data.amount < plenty)

    def _solvable(self, weights: float) -> bool:
        """Whether the memory limit has room for Newton's equations of so many weights and their inputs."""
        data, newton = self.objective.data, self.tuning.newton
        numbers = data.rows * min(data.columns, weights) + newton.matrices * weights**2
        room = max(self.objective.memory_limit, newton.small)
        return self.budget <= self.tuning.judge.most and 8 * numbers <= room

    @property
    def _searched(self) -> int:
        """Rows that candidates are searched on."""
        judge = self.tuning.judge
        return int(min(self.objective.data.rows, max(judge.rows, judge.rows_each * self.budget)))

    def _small(self, known: Point | None) -> Generator[Iterate, None, Candidate]:
        """Search by Newton's method."""
        solver, before = self.solver, self.passes
        self.small = Small(self.subset.part, self.budget, solver.passes, self.seed, solver.alpha, self.tuning)
        search = self.small.search(known)
        while True:
            try:
                candidate = next(search)
            except StopIteration as end:
                return end.value
            self.passes, self.tried = before + self.small.passes, self.small.tried
            if candidate is None:
                self.cut = self._cut_small
                yield self._iterate(self._empty, math.nan, "committee", kept=False)
            else:
                yield self._candidate(candidate)

    def _cut_small(self) -> Fit:
        assert self.small is not None
        fit = self.small.cut()
        return Fit(self.subset.lift(fit.point), fit.value)

    @property
    def _part(self) -> Relu:
        """What is trained on, under its penalty."""
        tuning = self.tuning.falling
        return under(self.subset.part, self.alphas[tuning.alpha] if self.alphas[1:] else self.alphas[0])

    def _large(self, known: Point | None) -> Generator[Iterate, None, Candidate]:
        """Train by minibatches under a falling budget, then exchange or remove weights by Newton's method."""
        if known is None and (exact := (yield from self._explained())) is not None:
            return exact
        quadratic = self.objective.loss.quadratic
        wide = min(self.subset.part.size, round(self.tuning.falling.spare * self.budget))
        last = wide if quadratic and self._solvable(wide) else self.budget
        exchanges = not quadratic and self.newton_pays and self.objective.layout.layers == 2
        point = yield from self._fallen(known, last, exchanges)
        if quadratic and self._solvable(last):
            point = self._compacted(largest_within(self._part, point, last))
        part = self._part
        found = [(measured(part, largest_within(part, point, self.budget)), part.alpha)]
        if quadratic and self._solvable(last):
            fit = shrink(part, measured(part, point), self.budget, self.tuning.newton)
            found.append((fit, part.alpha))
            if fit.value <= self.tuning.judge.exact and self.solver.alpha is None:
                found.append((self._unpenalised(part, fit.point), 0.0))
        if exchanges:
            double = part.to(torch.float64)
            found.append((self._exchanged(double, found[0][0].point.to(torch.float64)), part.alpha))
        for number, (fit, alpha) in enumerate(found):
            yield self._candidate(self._offered(fit, alpha, number))
        return min(self.tried, key=lambda candidate: candidate.score)

    def _fallen(self, known: Point | None, last: int, exchanges: bool) -> Generator[Iterate, None, Point]:
        """Train under a budget that falls to `last`."""
        objective, tuning = self._part, self.tuning.falling
        whole = objective.loss.quadratic or known is not None
        width = objective.size if whole else tuning.width(self.budget, objective.layout.widths[-1])
        narrow = fewer_neurons(objective, width)
        tuning = replace(tuning, enough=tuning.followed) if exchanges else tuning
        falling = self._falling(narrow.part, last, tuning)
        start = falling.start(self.seed) if known is None else known.to(objective.data.dtype)
        return (yield from self._trained(falling, narrow, start))

    def _compacted(self, point: Point) -> Point:
        """Go on among the inputs and neurons that a network uses, in float64; others are let go of."""
        used = compact(self.subset.part.to(torch.float64), point)
        point = used.drop(point).to(torch.float64)
        self.subset = self.subset.then(used)
        self.cut = partial(self._cut_training, self.subset.part, point)
        give_back()
        return point

    def _explained(self) -> Generator[Iterate, None, Candidate | None]:
        """Train for a short while, and look for a network that explains the targets in what that leaves."""
        objective, tuning, newton = self._part, self.tuning.falling, self.tuning.newton
        wide = min(objective.size, round(tuning.short_spare * self.budget))
        may = objective.loss.quadratic and not self.solver.alpha and not self.solver.incremental
        if not may or not self._solvable(wide) or tuning.short * self.solver.passes < 1:
            return None
        falling = self._falling(objective, wide, tuning, tuning.short)
        every = fewer_neurons(objective, objective.size)
        point = yield from self._trained(falling, every, falling.start(self.seed))
        if objective.value(point) > self.tuning.recover.almost * loss_of_constant(objective):
            return None
        point = largest_within(objective, point, wide).to(torch.float64)
        used = compact(under(objective.to(torch.float64), 0.0), point)
        some = some_rows(used.part, self._searched)
        point = shrink(some, measured(some, used.drop(point)), self.budget, newton).point
        fit = self._unpenalised(used.part, point)
        fit = Fit(used.lift(fit.point), fit.value)
        return self._offered(fit, 0.0, 0) if fit.value <= self.tuning.judge.done else None

    def _unpenalised(self, part: Relu, point: Point) -> Fit:
        """Refit what nearly explains the targets: no penalty is to stand in the way of the last digit."""
        bare, steps = under(part, 0.0), self.tuning.judge.exact_steps
        return refit(bare, Fit(point, bare.value(point)), steps, self.tuning.newton, rough=False)

    def _falling(self, objective: Relu, last: int, tuning: FallingTuning, share: float = 1.0) -> Falling:
        batch = tuning.batch(self.solver.batch_size, objective.data.rows)
        return Falling(objective, last, self.solver.passes, batch, self.seed, tuning, share)

    def _trained(self, falling: Falling, among: Subset, point: Point) -> Generator[Iterate, None, Point]:
        """Train by minibatches, and tell how far it is after every pass."""
        for trained, passes in falling.run(point):
            self.passes += passes
            point = among.lift(trained)
            self.cut = partial(self._cut_training, self.subset.part, point)
            kept = point.w.nonzeros <= self.budget
            loss = falling.objective.value(trained) if kept else math.nan
            yield self._iterate(self.subset.lift(point), loss, "training", kept=kept)
        return point

    def _offered(self, fit: Fit, alpha: float, number: int) -> Candidate:
        """Make a candidate of a network that was trained on all rows, under a penalty beside their mean."""
        one, alpha = torch.ones(1, dtype=torch.float64), alpha * self.objective.data.amount
        fit = Fit(self.subset.lift(fit.point), fit.value)
        self.tried.append(Candidate("training", fit, alpha, fit.value * one, one, 1.0, (number,)))
        return self.tried[-1]

    def _cut_training(self, objective: Relu, point: Point) -> Fit:
        fit = measured(objective, largest_within(objective, point, self.budget))
        return Fit(self.subset.lift(fit.point), fit.value)

    def _exchanged(self, objective: Relu, point: Point) -> Fit:
        """Fit a network by Newton's method: on some rows, with an exchange of weights, then on all."""
        tuning, newton = self.tuning, self.tuning.newton

        def fitted(part: Relu, fit: Fit) -> Fit:
            return refit(part, fit, newton.last, newton)

        few = some_rows(objective, int(tuning.falling.rows_each * self.budget))
        fit = compactly(few, measured(few, point), fitted)
        trial = exchange(few, fit, tuning.falling.admitted, self.budget, tuning)
        fit = trial if trial.value < fit.value else fit
        return compactly(objective, measured(objective, fit.point), fitted)

    def _answer(self, best: Candidate) -> Iterate:
        """Fit the winner on all rows, clean it, and say what else was tried."""
        fit = best.fit if self.small is None else self.small.finished(best)
        status = Status(FINISHED.name, f"{self._story(best, fit)} Raise max_iter for a longer search.")
        if self.objective.loss.quadratic and fit.value <= self.tuning.judge.recovered:
            status = RECOVERED
        answer = self._iterate(
            self._lifted(fit.point), fit.value, best.way, score=-math.inf, alpha=best.alpha
        )
        return replace(answer, status=status)

    def _story(self, best: Candidate, fit: Fit) -> str:
        tried = [*self.tried, *self.close]
        scores = {
            way: min(one.score for one in tried if one.way == way)
            for way in dict.fromkeys(one.way for one in tried)
        }
        others = ", ".join(f"{way} {score:.4g}" for way, score in scores.items())
        return f"the best of all ways was '{best.way}' with {fit.nonzeros} nonzeros (scores: {others})."

    def _candidate(self, candidate: Candidate) -> Iterate:
        point = self._lifted(candidate.fit.point)
        return self._iterate(
            point, candidate.fit.value, candidate.way, score=candidate.score, alpha=candidate.alpha
        )

    def _lifted(self, point: Point) -> Point:
        """Give a candidate its places among all inputs and neurons; those of large problems have them."""
        return self.subset.lift(point) if self.few else point

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
        return Iterate(point.w, loss, passes, point.signs, kept, record=told, score=score)
