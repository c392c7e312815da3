"""From a wide deep student to a network within the budget: merge, remove, refit, repair.

Every step keeps what the student has found: neurons become one, and weights go, only while little more is
left than before. All is done in float64 by Newton's method.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch

from thresher.linear.budget import largest
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.newton import Fit, cut, measured, refit, shrink
from thresher.solvers.auto.recovery.deep_merge import merged
from thresher.solvers.auto.recovery.deep_sides import with_sides
from thresher.solvers.auto.recovery.deep_sprout import sprouted
from thresher.solvers.auto.recovery.deep_student import usefulness
from thresher.solvers.auto.recovery.deep_tuning import DeepTuning
from thresher.solvers.auto.subset import compact, compactly


@dataclass(frozen=True, eq=False)
class Cutting:
    """What a student is cut down to.

    Attributes
    ----------
    few : Relu
        The objective on some rows in float64, with room for a student.
    budget : int
        Nonzeros of the network.
    hidden : tuple of int
        Neurons that each hidden layer may have.
    least : float
        The mean loss below which a network explains the targets.
    tuning : DeepTuning
    """

    few: Relu
    budget: int
    hidden: tuple[int, ...]
    least: float
    tuning: DeepTuning

    def explains(self, fit: Fit) -> bool:
        """Say whether a network explains the targets."""
        return fit.value < self.least

    def fits(self, fit: Fit) -> bool:
        """Say whether a network is within the budget and has no more neurons than allowed."""
        return self._fits(self.few, fit)

    def settled_below(self, fit: Fit) -> bool:
        """Say whether the first of two hidden layers has no more neurons than allowed, and the second more.

        The second is then a network of one hidden layer without biases, on what the first one gives.
        """
        used, allowed = compact(self.few, fit.point).part.layout, self.hidden
        simple = used.layers == 3 and used.fused and not used.bias
        return simple and used.widths[1] <= allowed[0] and used.widths[2] > allowed[1]

    def _fits(self, objective: Relu, fit: Fit) -> bool:
        used = compact(objective, fit.point).part.layout.widths[1:-1]
        return fit.nonzeros <= self.budget and all(a <= b for a, b in zip(used, self.hidden, strict=True))

    def pruned(self, point: Point) -> Fit:
        """Keep the weights of a student that cost most to remove, and refit them."""
        tuning, few = self.tuning, self.few
        point = self._alike(point.to(torch.float64))
        cost = usefulness(few, point)
        count = min(tuning.refitted(self.budget), int((cost > 0).sum()))
        fit = measured(few, point.keep(largest(cost.float(), count).sort().values))
        return compactly(few, fit, self._refitted)

    def narrowed(self, fit: Fit, enough: float | None = None) -> Fit:
        """Merge neurons and remove weights, as long as no more than `enough` is left.

        By default that is a little more than before. What is exact then is removed down to what fits only.
        """
        enough = max(self.least, self.tuning.slack * fit.value if enough is None else enough)
        return compactly(self.few, fit, partial(self._narrowed, enough))

    def repaired(self, fit: Fit) -> Iterator[Fit]:
        """Admit weights where the gradient is largest, and new paths, refit, and narrow, while that helps.

        Gives the best network after each time.
        """
        tuning, helped, times = self.tuning, True, 0
        while helped and times < tuning.repairs and not self.explains(fit):
            grown = fit
            for _ in range(tuning.rounds):
                grown = self._grown(grown)
            # Narrowing may spend half of what growing has gained.
            trial = self.narrowed(grown, math.sqrt(grown.value * fit.value))
            helped, times = trial.value < tuning.repair_helps * fit.value, times + 1
            fit = trial if trial.value < fit.value else fit
            yield fit

    def within(self, point: Point) -> Fit:
        """Bring any student within the budget and the neurons allowed, whatever that costs."""
        few, layout = self.few, self.few.layout
        fit = measured(few, self._alike(point.to(torch.float64)))
        cost, stays = usefulness(few, fit.point), torch.ones(fit.nonzeros, dtype=torch.bool)
        for block, allowed in enumerate(self.hidden):
            part = layout.split(fit.point.w.indices)[block]
            neuron, _ = layout.pairs(fit.point.w.indices[part], block)
            worth = torch.zeros(layout.widths[block + 1], dtype=torch.float64).index_add_(
                0, neuron, cost[part]
            )
            chosen = torch.zeros(worth.numel(), dtype=torch.bool)
            chosen[largest(worth.float(), min(allowed, worth.numel()))] = True
            stays[part] &= chosen[neuron]
        # A neuron that nothing is fed is on no path any more.
        fit = measured(few, fit.point.keep(stays))
        kept = largest(
            usefulness(few, fit.point).float(), min(fit.nonzeros, self.tuning.refitted(self.budget))
        )
        fit = measured(few, fit.point.keep(kept.sort().values))
        return compactly(few, fit, lambda part, fit: shrink(part, fit, self.budget, self.tuning.newton))

    def _grown(self, fit: Fit) -> Fit:
        tuning, few = self.tuning, self.few
        count = max(tuning.repaired_least, int(tuning.repaired * self.budget))
        batch = few.data.batch(slice(0, few.data.rows))
        fresh = few.largest_gradients(fit.point, batch, count).indices
        point = sprouted(few, fit.point, tuning.sprouts)
        point = point.at(few.closed(torch.cat([point.w.indices, fresh]).unique()))
        return compactly(few, Fit(point, few.value(point)), self._refitted)

    def _alike(self, point: Point) -> Point:
        """Make one neuron of those that are nearly one, as long as hardly more is left than before."""
        few, value = self.few, self.few.value(point)
        for near in self.tuning.merged:
            trial = merged(few.layout, point, near)
            if few.value(trial) <= max(self.least, self.tuning.slack * value):
                point = trial
        return point

    def _refitted(self, objective: Relu, fit: Fit) -> Fit:
        return self._fitted(objective, fit, self.tuning.steps_first)

    def _fitted(self, objective: Relu, fit: Fit, steps: int) -> Fit:
        """Take so many Newton steps, or as many as are affordable."""
        equations = objective.data.rows * objective.layout.widths[-1]
        steps = min(steps, self.tuning.newton_steps(max(1, fit.nonzeros), equations))
        return refit(objective, fit, steps, self.tuning.newton)

    def _narrowed(self, enough: float, objective: Relu, fit: Fit) -> Fit:
        fit, before = self._melted(enough, objective, fit), math.inf
        while fit.nonzeros < before and not self._done(objective, fit):
            fit = self._removed(enough, objective, fit)
            before = fit.nonzeros
            # Neurons on the wrong side hold weights that no removal can do without.
            fit = self._turned(enough, objective, fit)
        return fit if self.explains(fit) else self._fitted(objective, fit, self.tuning.steps_last)

    def _done(self, objective: Relu, fit: Fit) -> bool:
        return self.explains(fit) and self._fits(objective, fit)

    def _removed(self, enough: float, objective: Relu, fit: Fit) -> Fit:
        """Remove the weights that cost least, fewer at a time where that is too many."""
        tuning, share = self.tuning, self.tuning.removed
        while share * fit.nonzeros >= 0.5 and not self._done(objective, fit):
            if share < tuning.finest and not self.explains(fit):
                break
            # What is not exact goes on below the budget: weights that mean nothing are in the way of others.
            trial = cut(objective, fit, fit.nonzeros - max(1, int(share * fit.nonzeros)), tuning.newton)
            trial = refit(objective, trial, tuning.steps_between, tuning.newton)
            if trial.value > enough:
                trial = self._fitted(objective, trial, tuning.steps_last)
            if trial.value <= enough:
                fit = trial
            else:
                share /= 2
        return fit

    def _turned(self, enough: float, objective: Relu, fit: Fit) -> Fit:
        """Choose sides anew, if that costs fewer weights and the rest can be refitted to them."""
        tuning = self.tuning
        for tolerance in tuning.tolerances:
            allowed = tolerance * math.sqrt(2 * max(fit.value, self.least))
            point = with_sides(objective.layout, fit.point, allowed, tuning.sides)
            if point.w.nonzeros < fit.nonzeros:
                trial = refit(objective, measured(objective, point), tuning.steps_between, tuning.newton)
                if trial.value <= enough and trial.nonzeros < fit.nonzeros:
                    return trial
        return fit

    def _melted(self, enough: float, objective: Relu, fit: Fit) -> Fit:
        """Make one neuron of those that are nearly one, if the rest can be refitted to that."""
        tuning = self.tuning
        for near in tuning.merged:
            point = merged(objective.layout, fit.point, near)
            if point.w.nonzeros < fit.nonzeros:
                trial = refit(objective, measured(objective, point), tuning.steps_between, tuning.newton)
                fit = trial if trial.value <= enough else fit
        return fit
