"""Large problems: training by minibatches under a falling budget, and an end by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from copy import copy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from thresher.memory import give_back
from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.clean import some_rows, without_idle
from thresher.solvers.auto.falling import Falling, exchanged, largest_within
from thresher.solvers.auto.judge import Candidate, Judge, Progress, parted
from thresher.solvers.auto.newton import Fit, measured, refit, shrink
from thresher.solvers.auto.size import Size
from thresher.solvers.auto.subset import Subset, compact, fewer_neurons
from thresher.solvers.auto.tuning import FallingTuning, Tuning
from thresher.solvers.auto.ways import linear, penalties, under
from thresher.solvers.auto.wide import loss_of_constant


class Large:
    """The search on a large problem.

    Parameters
    ----------
    subset : Subset
        The inputs that are trained on. Fits are given in the coordinates of the whole.
    budget : int
    passes : float
        Passes over the data that the training is planned for.
    batch_size : int, "auto" or None
    seed : int
    alpha : float, optional
        The penalty beside a sum over rows; None leaves it open.
    tuning : Tuning
    incremental : bool
        Whether rows are a part of those there are, so that one training is all.
    descends : bool
        Whether what is known is the network of a larger budget, so that a short training will do.

    Attributes
    ----------
    passes : float
        Passes taken.
    kept : float
        Passes that the training leaves for Newton's steps at the end, where equations are solved by products.
    tried : list of Candidate
    """

    def __init__(
        self,
        subset: Subset,
        budget: int,
        passes: float,
        batch_size: int | str | None,
        seed: int,
        alpha: float | None,
        tuning: Tuning,
        incremental: bool = False,
        descends: bool = False,
    ) -> None:
        self.subset, self.budget, self.limit, self.seed = subset, budget, passes, seed
        self.batch_size, self.alpha, self.tuning, self.incremental = batch_size, alpha, tuning, incremental
        self.descends = descends
        self.size = Size(subset.whole, budget, tuning)
        self.passes, self.kept, self.tried = 0.0, self._kept(), list[Candidate]()
        # What is being trained, in the coordinates of the part.
        self.point: Point | None = None

    @property
    def part(self) -> Relu:
        """What is trained on, under its penalty."""
        alphas = penalties(self.subset.part.loss, self.alpha, self.tuning.judge)
        return under(self.subset.part, alphas[self.tuning.falling.alpha] if alphas[1:] else alphas[0])

    def search(self, known: Point | None) -> Generator[Candidate | Progress, None, Candidate]:
        """Train under a falling budget, then exchange or remove weights by Newton's method."""
        if known is None and (exact := (yield from self._explained())) is not None:
            return exact
        yield from self._linear()
        compares = known is None and self.alpha is None and not self.incremental and self._wide
        if compares and self.tuning.falling.chooses * self.limit >= 1:
            self.alpha = yield from self._penalty()
        quadratic, layout, tuning = self.part.loss.quadratic, self.part.layout, self.tuning
        wide = min(self.part.size, round(tuning.falling.spare * self.budget))
        removes = quadratic and (self.size.solvable(wide) or self.kept > 0)
        few = layout.widths[-1] <= tuning.falling.outputs and layout.layers == 2
        exchanges = not quadratic and few and self.size.cheap
        point = yield from self._fallen(known, wide if removes else self.budget, exchanges)
        if removes:
            point = self._compacted(largest_within(self.part, point, wide))
        part = self.part
        found = [(measured(part, largest_within(part, point, self.budget)), part.alpha)]
        if removes:
            newton = tuning.newton.within(self.limit - self.passes) if self.kept else tuning.newton
            self.passes += newton.passes if self.kept else 0.0
            fit = shrink(part, measured(part, point), self.budget, newton)
            found.append((fit, part.alpha))
            if fit.value <= tuning.judge.exact and self.alpha is None:
                found.append((self._unpenalised(part, fit.point), 0.0))
        if exchanges:
            trained = found[0][0].point.to(torch.float64)
            found.append((exchanged(part.to(torch.float64), trained, self.budget, tuning), part.alpha))
        for number, (fit, alpha) in enumerate(found):
            yield self._offered(fit, alpha, number)
        return min(self.tried, key=lambda candidate: candidate.score)

    def cut(self) -> Fit:
        """Cut down what is being trained."""
        assert self.point is not None
        part = self.subset.part
        return self._lifted(measured(part, largest_within(part, self.point, self.budget)))

    def finished(self, best: Candidate) -> Fit:
        """Let go of neurons that are on for no row; the winner has seen all rows."""
        fit, whole = best.fit, self.subset.whole
        # The columns that were trained on have served: there is not room for two copies.
        self.subset = Subset.of(whole, (None,) * len(whole.layout.widths))
        used = compact(whole.to(fit.point.w.values.dtype), fit.point)
        point = used.drop(fit.point)
        left = without_idle(used.part, point)
        return Fit(used.lift(left), fit.value) if left.w.nonzeros < point.w.nonzeros else fit

    def _lifted(self, fit: Fit) -> Fit:
        return Fit(self.subset.lift(fit.point), fit.value)

    def _kept(self) -> float:
        wide = min(self.part.size, round(self.tuning.falling.spare * self.budget))
        kept = self.tuning.falling.kept * self.limit
        pays = self.part.loss.quadratic and not self.incremental and self.tuning.newton.within(kept).last > 0
        return kept if pays and not self.size.factored(wide) else 0.0

    def _linear(self) -> Iterator[Candidate]:
        """Offer linear models where one look at the rows is enough for all of them."""
        part, tuning = self.subset.part, self.tuning
        few = part.data.columns <= min(tuning.committee.inputs, part.data.rows)
        if self.incremental or not (part.loss.quadratic and part.layout.direct and few):
            return
        alphas = penalties(part.loss, self.alpha, tuning.judge)
        part = part.to(torch.float64)
        judge = Judge(part, replace(part, alpha=0.0), 1.0, tuning.judge)
        found = list(linear(judge, self.budget, alphas, self.seed, tuning))
        for best in sorted(found, key=lambda one: one.score)[:1]:
            self.tried.append(replace(best, fit=self._lifted(best.fit)))
            yield self.tried[-1]

    @property
    def _wide(self) -> bool:
        """Whether there are more inputs than rows, so that the penalty decides more than the support does."""
        part = self.subset.part
        return self.tuning.judge.least(part.loss) <= part.data.rows < part.data.columns

    def _penalty(self) -> Generator[Progress, None, float]:
        """Choose the penalty by short trainings on some rows, scored on others; the strongest comes first."""
        part, tuning = self.part, self.tuning.falling
        unseen = parted(part, self.seed, self.tuning.judge) == 0
        usual, best, least = part.alpha * part.data.amount, math.nan, math.inf
        if unseen.all() or not unseen.any():
            return usual
        seen, held = (part.on(part.data.take(np.flatnonzero(rows))) for rows in (~unseen, unseen))
        few = replace(tuning, exchanges=tuning.chooses_exchanges, fewest=tuning.chooses_exchanges)
        for alpha in (usual * times for times in tuning.stronger):
            narrow = fewer_neurons(under(seen, alpha), tuning.neurons)
            falling = self._falling(narrow.part, self.budget, few, tuning.chooses)
            for trained, _, passes in falling.run(falling.start(self.seed)):
                self.passes += passes * seen.data.amount / part.data.amount
                self.point = narrow.lift(trained)
                yield Progress("penalty")
            assert self.point is not None
            point = largest_within(seen, self.point, self.budget)
            score = _at_best_size(held, point, tuning.sizes)
            if score > least:
                break
            best, least = alpha, score
        return best

    def _fallen(
        self, known: Point | None, last: int, exchanges: bool
    ) -> Generator[Candidate | Progress, None, Point]:
        """Train under a budget that falls to `last`."""
        objective, tuning = self.part, self.tuning.falling
        whole = objective.loss.quadratic or known is not None
        # Where inputs outnumber rows most weights are direct ones, and neurons only take time.
        outputs = 1 if self._wide else objective.layout.widths[-1]
        width = objective.size if whole else tuning.width(self.budget, outputs)
        narrow = fewer_neurons(objective, width)
        tuning = replace(tuning, enough=tuning.followed) if exchanges else tuning
        share = self.tuning.path.training if known is not None and self.descends else 1.0
        falling = self._falling(narrow.part, last, tuning, share)
        start = falling.start(self.seed) if known is None else known.to(objective.data.dtype)
        return (yield from self._trained(falling, narrow, start))

    def _compacted(self, point: Point) -> Point:
        """Go on among the inputs and neurons that a network uses, in float64; others are let go of."""
        part = self.subset.part.to(torch.float64)
        limit = part.memory_limit
        if self.kept:
            # Beside so many weights there is no room for one more copy of the rows, or of some columns.
            data = copy(part.data)
            data.memory_limit = 0
            part = replace(part, data=data, memory_limit=0)
        used = compact(part, point)
        used = replace(used, part=replace(used.part, memory_limit=limit))
        self.point = used.drop(point).to(torch.float64)
        self.subset = self.subset.then(used)
        give_back()
        return self.point

    def _explained(self) -> Generator[Candidate | Progress, None, Candidate | None]:
        """Train for a short while, and look for a network that explains the targets in what that leaves."""
        objective, tuning, newton = self.part, self.tuning.falling, self.tuning.newton
        wide = min(objective.size, round(tuning.short_spare * self.budget))
        may = objective.loss.quadratic and not self.alpha and not self.incremental
        if not may or not self.size.solvable(wide) or tuning.short * self.limit < 1:
            return None
        falling = self._falling(objective, wide, tuning, tuning.short)
        every = fewer_neurons(objective, objective.size)
        point = yield from self._trained(falling, every, falling.start(self.seed))
        if objective.value(point) > self.tuning.recover.almost * loss_of_constant(objective):
            return None
        point = largest_within(objective, point, wide).to(torch.float64)
        used = compact(under(objective.to(torch.float64), 0.0), point)
        some = some_rows(used.part, self.size.searched)
        point = shrink(some, measured(some, used.drop(point)), self.budget, newton).point
        fit = self._unpenalised(used.part, point)
        fit = Fit(used.lift(fit.point), fit.value)
        return self._offered(fit, 0.0, 0) if fit.value <= self.tuning.judge.done else None

    def _unpenalised(self, part: Relu, point: Point) -> Fit:
        """Refit what nearly explains the targets: no penalty is to stand in the way of the last digit."""
        bare, steps = under(part, 0.0), self.tuning.judge.exact_steps
        return refit(bare, Fit(point, bare.value(point)), steps, self.tuning.newton, rough=False)

    def _falling(self, objective: Relu, last: int, tuning: FallingTuning, share: float = 1.0) -> Falling:
        batch = tuning.batch(self.batch_size, objective.data.rows)
        return Falling(objective, last, self.limit - self.kept, batch, self.seed, tuning, share)

    def _trained(
        self, falling: Falling, among: Subset, point: Point
    ) -> Generator[Candidate | Progress, None, Point]:
        """Train by minibatches, and tell how far it is after every pass."""

        def measure(trained: Point, number: int) -> float:
            return falling.objective.value(trained) if trained.w.nonzeros <= self.budget else math.nan

        left = falling.passes
        for trained, loss, passes in falling.run(point, measure):
            self.passes, left = self.passes + passes, left - passes
            point = self.point = among.lift(trained)
            kept = point.w.nonzeros <= self.budget
            yield Progress("training", self._lifted(Fit(point, loss)), kept, left)
        return point

    def _offered(self, fit: Fit, alpha: float, number: int) -> Candidate:
        """Make a candidate of a network that was trained on all rows, under a penalty beside their mean."""
        one, alpha = torch.ones(1, dtype=torch.float64), alpha * self.subset.whole.data.amount
        place = (number,)
        self.tried.append(Candidate("training", self._lifted(fit), alpha, fit.value * one, one, 1.0, place))
        return self.tried[-1]


def _at_best_size(objective: Relu, point: Point, sizes: tuple[float, ...]) -> float:
    """Give the mean loss of a network whose outputs are multiplied by what suits them best.

    The stronger a penalty, the smaller the outputs it leaves; that alone is not to decide between penalties.
    """
    running, loss = objective.run(point), objective.loss

    def each(batch: Batch) -> tuple[Tensor, ...]:
        output = running.forward(batch.X).output
        return tuple(loss.value(size * output, batch.y) @ batch.share.double() for size in sizes)

    return float(min(objective.data.total(each, max(objective.layout.widths[1:]))))
