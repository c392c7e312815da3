"""The default solver: ways that each give candidates, and one judge that chooses.

Exact recovery comes first where it makes sense. Small problems are then searched by Newton's method: linear
models, growing with exchanges, wide random networks that are pruned. Large ones are trained by minibatches
under a falling budget. The winner is fitted on all rows and cleaned of what does nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch

from thresher.linear.budget import keep_largest
from thresher.linear.vector import SparseVector
from thresher.objective.relu import Point, Relu
from thresher.solvers.auto.clean import cleaned
from thresher.solvers.auto.falling import Falling
from thresher.solvers.auto.judge import Candidate, Judge, judges_of
from thresher.solvers.auto.newton import Fit, measured, refit, shrink
from thresher.solvers.auto.subset import Subset, subset_of
from thresher.solvers.auto.tuning import Tuning
from thresher.solvers.auto.ways import grown, linear, pruned
from thresher.solvers.auto.wide import alternating
from thresher.solvers.loop import FINISHED, Iterate, Needs, Start, Status

Way = Callable[[Judge, int], Iterator[Candidate]]


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
    """

    batch_size: int | str | None = "auto"
    passes: float = 200
    seed: int = 0
    tuning: Tuning = field(default_factory=Tuning)
    alpha: float | None = None

    @property
    def needs(self) -> Needs:
        """Any network; it may connect directly and knows centred coordinates."""
        return Needs(direct=True, centred=True)

    def init(self, objective: Relu, budget: int, start: Start | None) -> Iterate:
        """Start with nothing; a given network is the first candidate."""
        search = Search(self, objective, budget)
        zero = SparseVector.zeros(objective.size, torch.float64)
        return Iterate(zero, math.inf, 0.0, kept=False, carry=search.iterates(start))

    def step(self, iterate: Iterate) -> Iterate:
        """Go on to the next candidate."""
        return replace(next(iterate.carry), carry=iterate.carry)

    def stop(self, iterate: Iterate) -> Status | None:
        """The last candidate brings its own status."""
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Every candidate is within the budget; before the first there is nothing."""
        return replace(iterate, kept=True)


class Search:
    """One run of the default solver."""

    def __init__(self, solver: Auto, objective: Relu, budget: int) -> None:
        self.solver, self.objective, self.budget = solver, objective, budget
        self.tuning, self.seed, self.passes = solver.tuning, solver.seed, 0.0
        self.subset: Subset = subset_of(objective, budget, self.tuning.subset)
        self.tried: list[Candidate] = []

    @property
    def alphas(self) -> tuple[float, ...]:
        """The penalties to try, beside a sum over rows."""
        if self.solver.alpha is not None:
            return (self.solver.alpha,)
        judge = self.tuning.judge
        return judge.squared if self.objective.loss.link == "identity" else judge.classes

    def iterates(self, start: Start | None) -> Iterator[Iterate]:
        """Give candidates, the last of which is the answer."""
        best: Candidate | None = None
        if start is not None and start.w.nonzeros:
            point = Point(start.w, start.signs)
            yield self._iterate(point, self.objective.value(point), "start", score=math.inf)
        if self.newton_pays:
            best = yield from self._small(start)
        else:
            best = yield from self._large(start)
        yield self._answer(best)

    @property
    def newton_pays(self) -> bool:
        """Whether Newton's equations on a wide network are cheap enough to be solved again and again."""
        judge, wide = self.tuning.judge, self.tuning.wide
        rows = min(self.objective.data.rows, max(judge.rows, judge.rows_each * self.budget))
        count = max(wide.least, wide.inflation * self.budget)
        work = 2.0 * self.objective.layout.widths[-1] * count**2 * rows
        return work <= judge.work and self.budget <= judge.most

    def _small(self, start: Start | None) -> Iterator[Iterate]:
        """Search by Newton's method on rows of which some are held out."""
        whole = self.subset.part.to(torch.float64)
        judges = judges_of(whole, self.budget, self.seed, self.tuning.judge)
        ways: list[Callable[[Judge, int], Iterator[Candidate]]] = []
        if whole.layout.direct and self.budget > int(whole.layout.bias):
            ways.append(lambda judge, fold: linear(judge, self.budget, self.alphas, self.tuning))
        if whole.layout.layers == 2:
            ways.append(lambda judge, fold: grown(judge, self.budget, self.alphas, self.tuning))
        ways.append(lambda judge, fold: pruned(judge, self.budget, self.alphas, self.seed + fold, self.tuning))
        for way in ways:
            for fold, judge in enumerate(judges):
                for candidate in way(judge, fold):
                    self.tried.append(candidate)
                    self.passes += judge.share * self.tuning.judge.pass_share
                    yield self._candidate(candidate)
        return self._chosen()

    def _large(self, start: Start | None) -> Iterator[Iterate]:
        """Train by minibatches under a falling budget, then remove the rest by Newton's method."""
        objective, tuning = self.subset.part, self.tuning.falling
        alpha = self.solver.alpha
        if alpha is None:
            alpha = 0.0 if objective.loss.link == "identity" else 1.0
        objective = replace(objective, alpha=alpha / objective.data.amount)
        batch = tuning.batch(self.solver.batch_size, objective.data.rows)
        ends = objective.loss.quadratic and self.budget <= self.tuning.judge.most
        target = round(tuning.spare * self.budget) if ends else self.budget
        target = min(target, objective.size)
        falling = Falling(objective, target, self.solver.passes, batch, self.seed, tuning)
        point = falling.start(self.seed)
        for point, passes in falling.run(point):
            self.passes += passes
            cut = point if point.w.nonzeros <= self.budget else None
            if self.passes < falling.passes and cut is None:
                yield self._iterate(point, math.nan, "training", kept=False)
            elif self.passes < falling.passes:
                yield self._iterate(point, objective.value(point), "training")
        plain = replace_budget(falling, self.budget).cut(point)
        candidates = [Candidate("training", measured(objective, plain), alpha, 0.0, ("training",))]
        if ends:
            few = objective.to(torch.float64)
            wide = measured(few, falling.cut(point).to(torch.float64))
            fit = shrink(few, wide, self.budget, self.tuning.newton)
            candidates.append(Candidate("training", fit, alpha, 0.0, ("newton",)))
        for candidate in candidates:
            candidate = replace(candidate, score=candidate.fit.value)
            self.tried.append(candidate)
            yield self._candidate(candidate)
        return min(self.tried, key=lambda one: one.score)

    def _chosen(self) -> Candidate:
        """Choose the settings with the least mean score over folds, then the best candidate found with them."""
        groups: dict[tuple, list[Candidate]] = defaultdict(list)
        for candidate in self.tried:
            groups[candidate.key].append(candidate)
        most = max(len(group) for group in groups.values())
        full = {key: group for key, group in groups.items() if len(group) == most}
        mean = {key: sum(one.score for one in group) / most for key, group in full.items()}
        margin = self.tuning.linear.margin
        weighed = {key: score if key[0] != "linear" else margin * score for key, score in mean.items()}
        least = min(weighed.values())
        equal = self.tuning.judge.equal
        near = [key for key, score in weighed.items() if score <= least + equal * abs(least) + 1e-20]
        key = min(near, key=lambda one: (min(part.nonzeros for part in full[one]), weighed[one]))
        return min(full[key], key=lambda one: one.score)

    def _answer(self, best: Candidate) -> Iterate:
        """Fit the winner on all rows, clean it, and say what else was tried."""
        whole = replace(self.subset.part, alpha=best.alpha / self.objective.data.amount)
        exact = whole.to(torch.float64) if self.newton_pays else whole
        if self.newton_pays:
            fit = best.finish(exact) if best.finish is not None else self._refitted(exact, best)
            fit = cleaned(exact, fit, self.tuning.clean, self.tuning.newton)
        else:
            fit = best.fit
        status = Status(FINISHED.name, f"{self._story(best, fit)} Raise max_iter for a longer search.")
        point = self.subset.lift(fit.point)
        return replace(
            self._iterate(point, fit.value, best.way, score=-math.inf, alpha=best.alpha), status=status
        )

    def _refitted(self, objective: Relu, best: Candidate) -> Fit:
        point = best.fit.point
        return refit(
            objective, Fit(point, objective.value(point)), self.tuning.judge.steps, self.tuning.newton, rough=False
        )

    def _story(self, best: Candidate, fit: Fit) -> str:
        scores = {way: min(one.score for one in self.tried if one.way == way) for way in
                  dict.fromkeys(one.way for one in self.tried)}
        others = ", ".join(f"{way} {score:.4g}" for way, score in scores.items())
        return f"the best of all ways was '{best.way}' with {fit.nonzeros} nonzeros (scores: {others})."

    def _candidate(self, candidate: Candidate) -> Iterate:
        point = self.subset.lift(candidate.fit.point)
        return self._iterate(
            point, candidate.fit.value, candidate.way, score=candidate.score, alpha=candidate.alpha
        )

    def _iterate(
        self, point: Point, loss: float, way: str, *, kept: bool = True, score: float | None = None, **record: float
    ) -> Iterate:
        passes = min(self.passes, self.solver.passes - 1e-9)
        told = {"way": way, **record} if score is None else {"way": way, "score": score, **record}
        return Iterate(point.w, loss, passes, point.signs, kept, record=told, score=score)


def replace_budget(falling: Falling, budget: int) -> Falling:
    """Give a training whose end holds another number of weights."""
    falling.budget = budget
    return falling
