"""The state of a deep recovery: what students are trained on, the passes spent, the best network so far."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.adam import AdamSchedule, train
from thresher.solvers.auto.newton import Fit, measured, refit
from thresher.solvers.auto.recovery.deep_cut import Cutting
from thresher.solvers.auto.recovery.deep_student import (
    random_student,
    student_layout,
    telling_inputs,
    widened,
)
from thresher.solvers.auto.recovery.deep_tuning import DeepTuning
from thresher.solvers.auto.recovery.deep_upper import joined, upper_objective
from thresher.solvers.auto.recovery.problem import Problem, Progress
from thresher.solvers.auto.recovery.recover import recover
from thresher.solvers.auto.subset import Subset, compact
from thresher.solvers.auto.wide import relevance


class DeepSearch:
    """A recovery under way.

    Attributes
    ----------
    form, few : Relu
        The objective of students on a sample of the rows, and on fewer, in float64, that of Newton's method.
    passes : float
        Passes over the data so far.
    best : Fit, optional
        The best network so far, within the budget or not, on the rows of `few`.
    """

    def __init__(self, problem: Problem) -> None:
        tuning = self.tuning = problem.deep
        self.problem = problem
        whole = problem.objective
        self.random = np.random.default_rng([problem.seed, 6])
        self.order = self.random.permutation(whole.data.rows)
        targets, share = whole.data.every(whole.data.targets).double(), whole.data.every(whole.data.share)
        self.outputs = targets.shape[1]
        self.spread = float((targets - share.double() @ targets).square().sum(1) @ share.double()) or 1.0
        self.peak = float(targets.abs().max()) or 1.0
        # Where no target is below zero, and nothing was subtracted, neurons are only added.
        self.added = not whole.centred and float(targets.min()) >= 0
        self.passes = 0.0
        self.best: Fit | None = None
        # The least error of what was offered.
        self.least = math.inf
        inputs = whole.layout.widths[0]
        every = torch.arange(inputs)
        # Inputs that are looked at.
        self.inputs = every if inputs <= tuning.inputs else _telling(whole, tuning.inputs)
        self.read(self.inputs)

    def read(self, features: Tensor) -> None:
        """Let students read these inputs, ascending, and have as many neurons as there is room for then."""
        whole, budget = self.problem.objective.layout, self.problem.budget
        self._train_on(features, student_layout(whole, features.numel(), budget, self.tuning))
        self.cutting = self._cutting()

    def _train_on(self, features: Tensor, layout: Layout) -> None:
        """Prepare the rows that students are trained on."""
        self.features, self.layout = features, layout
        rows = max(self.tuning.sample, self.tuning.sample_each * self.problem.budget)
        self.form = self._part(rows, torch.float32, layout, features)

    def _cutting(self) -> Cutting:
        """Prepare Newton's equations, which see all inputs."""
        tuning, whole, budget = self.tuning, self.problem.objective, self.problem.budget
        # Every output of a row is an equation.
        equations = max(tuning.fitted, tuning.fitted_each * tuning.refitted(budget))
        rows = equations / min(self.outputs, tuning.outputs)
        layout = replace(self.layout, widths=(self.inputs.numel(), *self.layout.widths[1:]))
        few = self._part(rows, torch.float64, layout, self.inputs)
        allowed = budget + int(whole.centred and whole.layout.bias)
        least = 0.5 * self.outputs * tuning.found * self.peak**2
        return Cutting(few, allowed, whole.layout.widths[1:-1], least, tuning)

    @property
    def few(self) -> Relu:
        """The objective of Newton's equations."""
        return self.cutting.few

    def _part(self, rows: float, dtype: torch.dtype, layout: Layout, inputs: Tensor) -> Relu:
        """Give the objective of students on some rows and inputs."""
        whole = self.problem.objective
        data = self._rows(rows, dtype, inputs)
        origins = None if whole.origins is None else whole.origins[inputs]
        return replace(whole, data=data, layout=layout, origins=origins, alpha=0.0)

    def _rows(self, rows: float, dtype: torch.dtype, inputs: Tensor) -> Data:
        whole = self.problem.objective
        chosen = np.sort(self.order[: min(math.ceil(rows), room_of(whole, self.tuning))])
        return whole.data.take(chosen).only(inputs).to(dtype)

    @property
    def way(self) -> Subset:
        """The way from the inputs that students read to all of them."""
        places = torch.searchsorted(self.inputs, self.features)
        return Subset(self.few, self.form, (places, *(None for _ in self.layout.widths[1:])))

    @property
    def left(self) -> float:
        """Passes that remain."""
        return self.problem.passes - self.passes

    @property
    def share(self) -> float:
        """The share of the rows that students are trained on."""
        return self.form.data.rows / self.problem.objective.data.rows

    def unexplained(self, value: float) -> float:
        """Give the share of the targets' variance that a mean loss stands for."""
        return 2 * value / self.spread

    def started(self) -> Point:
        """Draw a student."""
        return random_student(self.layout, self.random, self.added, self.tuning)

    def widened(self, fit: Fit) -> Point:
        """Make a student of a network, which may have found use for more inputs."""
        used = compact(self.few, fit.point).units[0]
        features = torch.cat([self.features, self.inputs if used is None else self.inputs[used]]).unique()
        if features.numel() > self.features.numel():
            layout = replace(self.layout, widths=(features.numel(), *self.layout.widths[1:]))
            self._train_on(features, layout)
        return widened(self.layout, self.way.drop(fit.point), self.random, self.tuning)

    def trained(
        self, point: Point, steps: int, rate: float, most: float
    ) -> Generator[Progress, None, tuple[Point, float]]:
        """Train a student, for a share `most` of the passes at most; gives it and its mean loss."""
        tuning, form, share = self.tuning, self.form, self.share
        batch = int(min(tuning.batch, max(tuning.batch_least, form.data.rows / tuning.batches)))
        most = min(self.left, most * self.problem.passes) / share
        passes = min(steps * batch / form.data.rows, max(1.0, most))
        schedule = AdamSchedule(passes, rate, rate / tuning.fall, warm_up=tuning.warm_up, l1=tuning.l1)
        value, layout, student = math.inf, form.layout, point.to(form.data.dtype)
        for trained, value, taken in train(
            form,
            student,
            schedule,
            batch,
            self.random,
            thresholded=lambda indices: ~layout.is_bias(indices),
        ):
            self.passes += taken * share
            student, held = trained, int((trained.w.values != 0).sum())
            yield Progress("wide", self.passes, value, held, cut=partial(self.cut, student))
        return student, value

    def telling(self, point: Point, value: float) -> Tensor:
        """Give the inputs that a student has use for."""
        return self.features[telling_inputs(self.form, point, self.tuning.idle * value)]

    def done(self, fit: Fit) -> bool:
        """Say whether a network is the one looked for, as far as some rows can tell."""
        return self.cutting.explains(fit) and self.cutting.fits(fit)

    def betters(self, fit: Fit) -> bool:
        """Say whether a network is within the limits, nearly exact, and far better than what was offered."""
        near = self.unexplained(fit.value) < self.tuning.promising and fit.value < 0.5 * self.least
        return near and self.cutting.fits(fit) and not self.cutting.explains(fit)

    def offered(self, fit: Fit) -> Progress:
        """Offer a network as it is, in case that none is found."""
        self.least, placed = fit.value, self.placed(fit, 0)
        return Progress("candidate", self.passes, placed.value, placed.nonzeros, fit=placed)

    def told(self, fit: Fit) -> Progress:
        """Tell of a network that is not done yet, and keep it if it is the best so far."""
        if self.best is None or fit.value < self.best.value:
            self.best = fit
        return Progress("fixed", self.passes, fit.value, fit.nonzeros, cut=partial(self._cut, fit.point))

    def cut(self, student: Point) -> Fit:
        """Make a network within the budget of the best there is, or else of an unfinished student."""
        return self._cut(self.way.lift(student) if self.best is None else self.best.point)

    def _cut(self, point: Point) -> Fit:
        return self.placed(self.cutting.within(point), 0)

    def rebuilt(self, fit: Fit) -> Generator[Progress, None, Fit]:
        """Find the layers above the first one anew, and fit all of them together.

        They are a network with one hidden layer, whose inputs are the neurons of the first.
        """
        used, whole = compact(self.few, fit.point), self.problem.objective.layout
        at = used.drop(fit.point)
        first = used.part.layout.split(at.w.indices)[0]
        inputs = used.units[0]
        read = self.inputs if inputs is None else self.inputs[inputs]
        data = self._rows(self.form.data.rows, torch.float32, read)
        upper = upper_objective(replace(used.part, data=data), at.to(data.dtype), whole.widths[2:-1])
        budget, passes = self.cutting.budget - (first.stop - first.start), self.left / self.share
        if budget < 1 or passes < 1:
            return fit
        before, problem = self.passes, self.problem
        inner = replace(problem, objective=upper, budget=budget, passes=passes, batch=self.tuning.batch)
        for told in recover(inner):
            self.passes = before + self.share * told.passes
            yield replace(told, passes=self.passes, fit=None, found=False, cut=partial(self._cut, fit.point))
            if told.fit is not None:
                layout, point = joined(used.part.layout, at, upper.layout, told.fit.point)
                part = replace(used.part, layout=layout)
                again = refit(part, measured(part, point), self.tuning.steps_first, self.tuning.newton)
                room = (inputs, used.units[1], torch.arange(layout.widths[2]), None)
                return Fit(Subset(self.few, part, room).lift(again.point), again.value)
        return fit

    def placed(self, fit: Fit, steps: int) -> Fit:
        """Give a network its places in the problem's own layout, and refit it on all rows."""
        used, whole = compact(self.few, fit.point), self.problem.objective.to(torch.float64)
        whole = replace(whole, alpha=0.0)
        inputs = self.inputs if used.units[0] is None else self.inputs[used.units[0]]
        hidden = (torch.arange(width) for width in used.part.layout.widths[1:-1])
        point = Subset(whole, used.part, (inputs, *hidden, None)).lift(used.drop(fit.point))
        small = compact(whole, point)
        point = small.drop(point)
        done = refit(small.part, Fit(point, small.part.value(point)), steps, self.tuning.newton)
        return Fit(small.lift(done.point), done.value)


def room_of(objective: Relu, tuning: DeepTuning) -> int:
    """Give the rows that half of the memory limit has room for, in float64."""
    return objective.memory_limit // (16 * min(objective.layout.widths[0], tuning.inputs))


def _telling(objective: Relu, count: int) -> Tensor:
    """Choose the inputs that tell most by themselves, ascending."""
    return largest(relevance(objective).float(), count).sort().values
