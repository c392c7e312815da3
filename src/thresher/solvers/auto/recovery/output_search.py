"""The search of one output among several: it knows the lines of others, and ends before sides are chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.recovery import moves
from thresher.solvers.auto.recovery.absolute import AbsoluteForm, absolute_objective
from thresher.solvers.auto.recovery.attempt import Search
from thresher.solvers.auto.recovery.lines import on_all_inputs, on_inputs
from thresher.solvers.auto.recovery.problem import Problem, Progress
from thresher.solvers.auto.recovery.sides import ReluForm


@dataclass(frozen=True, eq=False)
class Told:
    """What the search of one output is told.

    Attributes
    ----------
    exact : Relu
        The objective of the output on some rows, in float64.
    known : AbsoluteForm
        What the lines that are known say of it.
    left : float
        The mean loss that those leave, if errors are to be compared with it where it is small; else infinity.
    steady : int64 tensor
        The inputs that students may read.
    coherence : float
        By how much more sums of inputs vary than those of independent ones.
    folding : bool tensor of shape (inputs,)
        The inputs that may have folds.
    most : int
        Nonzeros that the output may be allowed.
    finish : callable
        Makes a network of all outputs, where this one is as given.
    """

    exact: Relu
    known: AbsoluteForm
    left: float
    steady: Tensor
    coherence: float
    folding: Tensor
    most: int
    finish: Callable[[AbsoluteForm], Fit]


class OutputSearch(Search):
    """The search of one output, which starts from lines that are known and ends before sides are chosen.

    Sides are the same for all outputs and chosen for all together. A student that seems to need more weights
    than it is allowed is allowed more.

    Parameters
    ----------
    problem : Problem
        Of this output alone.
    rival : float
    told : Told
    """

    def __init__(self, problem: Problem, rival: float, told: Told) -> None:
        super().__init__(problem, rival, told.steady, told.folding)
        self.told = told
        self.coherence = told.coherence
        # The share of its spread above which a student looks nothing like a network.
        self.nothing = self.tuning.early
        if 2 * told.left <= self.tuning.mostly * self.spread**2:
            # How near a student is shows in what least squares leave: a linear part explains nearly all.
            self.spread = math.sqrt(2 * told.left)
            self.rate = self.tuning.rate * self.spread / math.sqrt(problem.budget)
            most, last = self.tuning.hopeless_rest, self.tuning.unexplained_rest
            self.tuning = replace(self.tuning, hopeless=most, unexplained=last)
            self.nothing = most
            if self.coherence > 1:
                # Short steps take longer, and students that learn slowly are no sign that there is nothing.
                self.unit = max(self.unit, self.tuning.coherent_rows / problem.objective.data.rows)
                self.tuning = replace(self.tuning, standstill=1.0)
        self.rate /= self.coherence
        known = on_inputs(told.known, self.subset.units[0])
        self.known = known.to(self.form.data.dtype).folded(self.form)
        self.exact = absolute_objective(told.exact, told.folding)
        self.found: AbsoluteForm | None = None
        if self.known.neurons and bool((self.known.signs != self.signs).any()):
            self.signs = 0

    def start(self) -> AbsoluteForm:
        """Make a wide student of the lines that are known and small random neurons."""
        form, known = super().start(), self.known
        if known.neurons == 0:
            return form
        weights, signs = torch.cat([known.weights, form.weights]), torch.cat([known.signs, form.signs])
        return replace(known, weights=weights, signs=signs)

    def raised(self, value: float) -> bool:
        """Allow more weights where cutting a student down is what spoiled it."""
        tuning = self.tuning
        good = 2 * value <= tuning.almost * self.spread**2
        if not good or self.budget >= self.told.most or self.best_value <= tuning.raised_above * value:
            return False
        self.budget, self.best = min(self.told.most, int(tuning.raised * self.budget)), None
        return True

    def fitted(self, form: AbsoluteForm) -> tuple[AbsoluteForm, float]:
        """Fit a student in float64, admit what it lacks, drop what gains no more than an accident does."""
        tuning = self.tuning
        form = self.whole(form).to(torch.float64)
        form, value = moves.refit(self.exact, form, tuning.polish_steps, tuning)
        for _ in range(tuning.repairs):
            if self._explains(value) or 2 * value > tuning.near * self.spread**2:
                break
            count = max(tuning.repaired_least, int(tuning.repaired * self.budget))
            more, after = moves.shrink(self.exact, moves.grow(self.exact, form, count), self.budget, tuning)
            if after >= tuning.repair_helps * value:
                break
            form, value = more, after
        for smaller in (self._without_twins, self._without_accidents):
            if self._explains(value):
                few, after = moves.refit(self.exact, smaller(form), tuning.polish_steps, tuning)
                form, value = (few, after) if self._explains(after) else (form, value)
        return form, value

    def closest(self) -> tuple[AbsoluteForm, float] | None:
        """Give what the search came closest with, and its mean loss; a last fit may find the output."""
        if self.found is not None or self.best is None:
            return None
        form, value = self.fitted(self.best[0])
        self.found = form if self._explains(value) else None
        return form, value

    def _without_twins(self, form: AbsoluteForm) -> AbsoluteForm:
        """Merge neurons of nearly one line, whatever that costs before the next fit."""
        tuning = replace(self.tuning, merge_cosine=1 - self.tuning.twins)
        batch = self.exact.data.batch(slice(0, self.exact.data.rows))
        return moves.merge(self.exact, form, batch, math.inf, tuning)

    def _without_accidents(self, form: AbsoluteForm) -> AbsoluteForm:
        return moves.eliminate(self.exact, form, form.nonzeros, self.tuning)

    def _explains(self, value: float) -> bool:
        nothing = SparseVector.zeros(self.polish.few.size, torch.float64)
        return self.polish.explains(Fit(Point(nothing, None), value))

    def cut(self, form: AbsoluteForm) -> Fit:
        """Make a network of all outputs, this one as an unfinished student has it."""
        form = self._merged(form.to(self.form.data.dtype))
        form = form.prune(self.form, int(self.tuning.kept_last * self.budget))
        return self.told.finish(self.whole(self._shrunk(form)[0]))

    def whole(self, form: AbsoluteForm) -> AbsoluteForm:
        """Give a student, which reads some inputs, on all of them."""
        return on_all_inputs(form, self.subset.units[0], self.problem.objective.layout.widths[0])

    def _candidate(
        self, form: AbsoluteForm, value: float
    ) -> Generator[Progress, None, tuple[bool, ReluForm | None]]:
        if 2 * value > self.tuning.near * self.spread**2:
            return False, None
        form, value = self.fitted(form)
        found = self._explains(value)
        if found:
            self.found = form
        cut = partial(self.told.finish, form)
        yield Progress("candidate", self.passes, value, form.nonzeros, cut=cut, found=found)
        return found, None
