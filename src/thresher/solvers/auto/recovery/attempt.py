"""The search of exact recovery: students are trained, cut down to the budget, and widened again."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host
from thresher.memory import give_back
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto import equations
from thresher.solvers.auto.adam import AdamSchedule, falling, train
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.recovery import moves
from thresher.solvers.auto.recovery.absolute import AbsoluteForm, absolute_objective, counted
from thresher.solvers.auto.recovery.polish import Polish, polish_of
from thresher.solvers.auto.recovery.problem import Problem, Progress, feature_subset, room_of, sampled_rows
from thresher.solvers.auto.recovery.sides import ReluForm
from thresher.solvers.auto.subset import Subset


class Search:
    """A recovery under way: the problem in its several forms, the passes spent, the best student."""

    def __init__(
        self, problem: Problem, rival: float, among: Tensor | None = None, folding: Tensor | None = None
    ) -> None:
        self.problem, self.tuning, self.budget, self.rival = problem, problem.tuning, problem.budget, rival
        objective, tuning = problem.objective, problem.tuning
        features = feature_subset(problem, among)
        self.subset = Subset.of(objective, (features, None, None))
        self.form = absolute_objective(self.subset.part, None if folding is None else folding[features])
        self.spread, self.peak = _sizes(objective)
        self.random = np.random.default_rng([problem.seed, 3])
        self.orders = np.random.default_rng([problem.seed, 2])
        order = np.random.default_rng([problem.seed, 1]).permutation(objective.data.rows)
        sampled = np.sort(order[: sampled_rows(problem)])
        self.polished = np.sort(order[: max(tuning.polished, int(tuning.polished_each * self.budget))])
        # As long as all rows, they make room for the sample.
        del order
        give_back()
        self.sample = replace(self.form, data=self.form.data.take(sampled))
        # Passes that count as one: more where there are few rows, less where few passes are allowed.
        self.unit = min(max(1.0, tuning.unit_rows / objective.data.rows), tuning.unit_share * problem.passes)
        self.rate = tuning.rate * self.spread / math.sqrt(problem.budget)
        self.passes, self.residual = 0.0, 0.0
        # By how much more sums of inputs vary than those of independent ones.
        self.coherence = 1.0
        # Mean losses after each wide training.
        self.values: list[float] = []
        self.axes, self.signs = self._axes()
        # The equations of all inputs leave gaps in the heap as large as a copy of the sample.
        give_back()
        self.best: tuple[AbsoluteForm, float] | None = None
        self.narrow: AbsoluteForm | None = None

    @cached_property
    def polish(self) -> Polish:
        """What a network is fitted to at last. Its rows, in float64, are read once an attempt gets there."""
        exact = replace(self.subset, whole=self.problem.objective.to(torch.float64))
        return polish_of(exact, self.polished, self.budget, self.spread, self.peak, self.tuning)

    @property
    def best_value(self) -> float:
        """The mean loss of the best student that was cut down."""
        return math.inf if self.best is None else self.best[1]

    def stands_still(self, before: float, after: float) -> bool:
        """Say whether training no longer helps although much is left to explain."""
        much = 2 * after > self.tuning.almost * self.spread**2
        return much and after > self.tuning.standstill * before

    def falls(self, before: float, after: float) -> bool:
        """Say whether a training under way still falls fast."""
        return after < self.tuning.falling * before

    def raised(self, value: float) -> bool:
        """Say whether a student that leaves so little is cut down once more, to a larger budget."""
        return False

    @property
    def left(self) -> float:
        """Passes that remain."""
        return self.problem.passes - self.passes

    @property
    def width(self) -> int:
        """Neurons of the wide student."""
        tuning, inputs = self.tuning, self.form.layout.widths[0] // 2
        wanted = max(tuning.neurons, int(tuning.wider * min(self.problem.hidden, self.budget)))
        return max(2, min(room_of(self.problem) // inputs, wanted))

    def schedule(self, passes: float, rate: float, fall: float, l1: float = 1.0) -> AdamSchedule:
        """Plan a training, in units of passes, rates and L1 shares."""
        tuning, first = self.tuning, rate * self.rate
        length = min(self.left, max(1.0, passes * self.unit))
        return AdamSchedule(length, first, first / fall, warm_up=tuning.warm_up, l1=l1 * tuning.l1)

    @property
    def cheap(self) -> bool:
        """Whether an attempt costs so little that it may come early."""
        tuning = self.tuning
        numbers = tuning.kept_last * self.budget + self.form.layout.widths[0]
        rows = min(self.sample.data.rows, max(tuning.fitted, tuning.fitted_each * numbers))
        return rows * numbers**2 <= tuning.cheap

    def _axes(self) -> tuple[AbsoluteForm, int]:
        """Fit linear part and folds by themselves, and see from those which signs the neurons have.

        A neuron bends the network the same way along all its inputs. If every input that bends it for certain
        does so upwards, neurons are taken to be added, +1; if all do so downwards, subtracted, -1; else 0.
        """
        dtype, layout = self.form.data.dtype, self.form.layout
        nothing = torch.zeros(0, layout.widths[0] // 2 + int(layout.bias), dtype=dtype)
        form = AbsoluteForm.of(self.sample, nothing, nothing[:, 0])
        form, value = moves.refit(self.sample, form, 1, self.tuning, every_fold=True)
        objective, point = form.held(self.sample, every_fold=True)
        H, _ = objective.curvature(point)
        inverse = equations.inverse_of(H, self.tuning.newton.ridge).diagonal()
        fold = counted(objective.layout, point.w.indices)
        size = point.w.values[fold].double() / (2 * value / self.sample.data.rows * inverse[fold]).sqrt()
        # The largest of so many standard normal numbers is about this.
        certain = self.tuning.certain + math.sqrt(2 * math.log(max(1, size.numel())))
        return form, int((size > certain).any()) - int((size < -certain).any())

    def start(self) -> AbsoluteForm:
        """Make a wide student of small random neurons, with a linear part and folds that fit alone."""
        weights, signs = self._neurons(self.width, self.spread)
        return replace(self.axes, weights=weights, signs=signs)

    def _neurons(self, count: int, size: float) -> tuple[Tensor, Tensor]:
        """Draw small random neurons whose sum has about the given size, and their signs."""
        inputs, bias = self.form.layout.widths[0] // 2, int(self.form.layout.bias)
        weights = self._noise(count, inputs + bias)
        weights *= self.tuning.start * size / math.sqrt(weights.numel()) / self.coherence
        signs = torch.full((count,), self.signs or 1.0, dtype=weights.dtype)
        if not self.signs:
            signs[1::2] = -1
        return weights, signs

    def _noise(self, *shape: int) -> Tensor:
        return from_host(self.random.standard_normal(shape)).to(self.form.data.dtype)

    def trained(
        self,
        form: AbsoluteForm,
        schedule: AdamSchedule,
        phase: str,
        fixed: bool = False,
        before: float = math.inf,
    ) -> Generator[Progress, None, tuple[AbsoluteForm, float]]:
        """Train a student, all its weights or those that are not zero; gives it and its mean loss.

        It ends early where it stands still at what the training before it has left, and is not falling fast.
        """
        objective, point = form.held(self.form, every_weight=not fixed, every_fold=True)
        value, half, layout = math.inf, math.inf, objective.layout
        glance = self.tuning.glance * schedule.passes
        halfway, enough = self.passes + 0.5 * glance, self.passes + glance
        for trained, value, passes in train(
            objective,
            point,
            schedule,
            self.problem.batch,
            self.orders,
            thresholded=lambda indices: counted(layout, indices),
        ):
            self.passes += passes
            form = form.read(layout, trained)
            yield Progress(phase, self.passes, value, form.nonzeros, cut=partial(self.cut, form))
            half = value if self.passes <= halfway else half
            if self.passes >= enough and not self.falls(half, value) and self.stands_still(before, value):
                break
        return form, value

    def cut(self, form: AbsoluteForm) -> Fit:
        """Make a network within the budget of an unfinished student."""
        form = self._merged(form).prune(self.form, int(self.tuning.kept_last * self.budget))
        network, _ = self.polish.relu(*self._shrunk(form))
        return self.polish.fit(*network.strongest(self.problem.hidden).at(self.polish.few))

    def attempt(self, wide: AbsoluteForm, passes: float) -> Generator[Progress, None, bool]:
        """Merge, prune, train, eliminate and choose sides; says whether the network was found."""
        tuning, budget = self.tuning, self.budget
        give_back()
        student = self._merged(wide).prune(self.form, int(tuning.kept * budget))
        schedule = self.schedule(passes, tuning.fixed_rate, tuning.fixed_fall, tuning.fixed_l1)
        student, value = yield from self.trained(student, schedule, "fixed", fixed=True)
        student = self._merged(student)
        tried = self._shrunk(student.prune(self.form, int(tuning.kept_last * budget)))
        if self.best is None or tried[1] < self.best[1]:
            self.best = tried
        self.best = self._repaired(*self.best)
        self.residual = math.sqrt(2 * value)
        self.narrow = self.best[0] if self.best[1] < value else student
        found, misfit = yield from self._candidate(*self.best)
        if not found and misfit is not None and self.left > 0:
            found = yield from self._compromise(misfit)
        return found

    def widened(self) -> AbsoluteForm:
        """Add small random neurons to the best student, and a little noise to every weight that is zero."""
        assert self.narrow is not None
        tuning, form = self.tuning, self.narrow
        allowed = min(self.problem.hidden, self.budget)
        count = min(self.width - form.neurons, max(tuning.fresh_least, int(tuning.fresh * allowed)))
        weights, signs = form.weights, form.signs
        if count > 0:
            fresh, more = self._neurons(count, tuning.fresh_size * self.residual)
            weights, signs = torch.cat([weights, fresh]), torch.cat([signs, more])
        size = tuning.noise * self.residual / math.sqrt(max(1, weights.numel()))
        noise = self._noise(*weights.shape) * size
        return replace(form, weights=weights + (weights == 0) * noise, signs=signs)

    def _merged(self, form: AbsoluteForm) -> AbsoluteForm:
        compared = self._head(self.tuning.compared)
        objective, point = form.held(compared)
        tolerance = self.tuning.merged * 2 * objective.value(point)
        batch = compared.data.batch(slice(0, compared.data.rows))
        return moves.merge(compared, form, batch, tolerance, self.tuning)

    def _head(self, rows: int) -> Relu:
        """Give the first rows of the sample."""
        data = self.sample.data
        return self.sample if rows >= data.rows else replace(self.sample, data=data.take(np.arange(rows)))

    def _shrunk(self, form: AbsoluteForm) -> tuple[AbsoluteForm, float]:
        """Bring a student down to the budget by elimination."""
        tuning = self.tuning
        self.passes += self.sample.data.rows / self.problem.objective.data.rows
        numbers = form.nonzeros + 2 * form.inputs
        rows = self._head(max(tuning.fitted, int(tuning.fitted_each * numbers)))
        return moves.shrink(rows, form, self.budget, tuning)

    def _repaired(self, form: AbsoluteForm, value: float) -> tuple[AbsoluteForm, float]:
        """Admit a few more weights by gradient and eliminate again, while that helps."""
        tuning = self.tuning
        count = max(tuning.repaired_least, int(tuning.repaired * self.budget))
        for _ in range(tuning.repairs):
            if 2 * value < tuning.repaired_to * tuning.found * self.peak**2:
                break
            tried, after = self._shrunk(moves.grow(self.sample, form, count))
            better = after < tuning.repair_helps * value
            form, value = (tried, after) if after < value else (form, value)
            if not better:
                break
        return form, value

    def promises(self, value: float) -> bool:
        """Say whether a student that was cut down is worth a candidate."""
        promising = 2 * value <= self.tuning.promising * self.spread**2
        return promising or self.left <= self.tuning.patience * self.problem.passes

    def _candidate(
        self, form: AbsoluteForm, value: float
    ) -> Generator[Progress, None, tuple[bool, ReluForm | None]]:
        """Give a student as a ReLU network if it is good enough.

        Says whether the network was found; if not, and if the sides cost more weights than there are, gives
        the network that holds too many.
        """
        if not self.promises(value):
            return False, None
        network, fits = self.polish.relu(form, value)
        answer = self._polished(network.strongest(self.problem.hidden).at(self.polish.few))
        yield answer
        return answer.found, None if fits else network

    def _polished(self, network: tuple[Relu, Point]) -> Progress:
        fit = self.polish.fit(*network)
        found = self.polish.explains(fit)
        return Progress("candidate", self.passes, fit.value, fit.nonzeros, fit=fit, found=found)

    def _compromise(self, network: ReluForm) -> Generator[Progress, None, bool]:
        """Train a ReLU network that holds too many weights, or neurons, while they fall to the budget."""
        tuning, rate = self.tuning, self.tuning.compromise_rate * self.rate
        if network.neurons > self.problem.hidden:
            network = network.strongest(self.problem.hidden)
        objective, point = network.at(self.subset.part)
        schedule = AdamSchedule(
            min(self.left, max(1.0, tuning.compromise * self.problem.passes)),
            rate,
            rate / tuning.compromise_fall,
            warm_up=tuning.warm_up,
            budget=falling(point.w.nonzeros, self.budget, tuning.compromise_until),
        )
        point = point.to(objective.data.dtype)
        for trained, value, passes in train(objective, point, schedule, self.problem.batch, self.orders):
            point = trained
            self.passes += passes
            cut = partial(self.polish.fit, objective, point)
            yield Progress("compromise", self.passes, value, point.w.nonzeros, cut=cut)
        answer = self._polished((objective, point))
        yield answer
        return answer.found


def _sizes(objective: Relu) -> tuple[float, float]:
    """Give the root mean square of the targets about their mean, and their largest magnitude."""
    data = objective.data
    targets, share = data.every(data.targets)[:, 0].double(), data.every(data.share).double()
    peak, mean = float(targets.abs().max()), float(targets @ share)
    spread = math.sqrt(float(targets.sub(mean).square_() @ share))
    return spread or abs(mean) or 1.0, peak or 1.0
