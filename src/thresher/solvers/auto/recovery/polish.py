"""From a student in the absolute-value form to a ReLU network within the budget, fitted in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.equations import removal
from thresher.solvers.auto.newton import Fit, brought_along, measured, refit, shrink
from thresher.solvers.auto.recovery.absolute import AbsoluteForm
from thresher.solvers.auto.recovery.sides import ReluForm, to_relu
from thresher.solvers.auto.recovery.tuning import RecoverTuning
from thresher.solvers.auto.subset import Subset, compact


@dataclass(frozen=True, eq=False)
class Polish:
    """What a network is fitted to, and how large it may be.

    Attributes
    ----------
    subset : Subset
        The objective on all inputs in float64, on those that students use, and the way back.
    few : Relu
        The latter on some rows.
    budget : int
        Nonzeros of the network.
    spread, peak : float
        Root mean square of the targets about their mean, and their largest magnitude.
    tuning : RecoverTuning
    """

    subset: Subset
    few: Relu
    budget: int
    spread: float
    peak: float
    tuning: RecoverTuning

    @property
    def allowed(self) -> int:
        """Nonzeros of a network that explains the targets: an output bias that centring asks for is extra."""
        return self.budget + int(self.few.centred and self.few.layout.bias)

    @property
    def hidden(self) -> int:
        """Neurons allowed."""
        return self.few.layout.widths[1]

    def explains(self, fit: Fit, times: float = 1.0) -> bool:
        """Say whether a network is the one looked for, or its error at most so many times as large."""
        return 2 * fit.value < times * self.tuning.found * self.peak**2

    def relu(self, form: AbsoluteForm, value: float) -> tuple[ReluForm, bool]:
        """Choose sides at the finest tolerance whose network fits, or else the one that exceeds the least."""
        tuning, objective = self.tuning, self.few
        residual = math.sqrt(2 * value) + tuning.rounding * self.spread
        best: tuple[int, ReluForm] | None = None
        for share in tuning.tolerances:
            network = to_relu(
                form, share * residual, objective.layout.direct, objective.centred, tuning.sides
            )
            network = self._lit(network)
            room, point = network.at(objective)
            nonzeros = room.closed(point.w.indices).numel()
            over = max(0, nonzeros - self.allowed) + max(0, network.neurons - self.hidden)
            if best is None or over < best[0]:
                best = over, network
            if over == 0:
                break
        assert best is not None
        return best[1], best[0] == 0

    def _lit(self, network: ReluForm) -> ReluForm:
        """Drop neurons that are on for no row."""
        objective, point = network.at(self.few)
        running, lit = objective.run(point), torch.zeros(network.neurons, dtype=torch.bool)
        for batch in objective.data.chunks(network.neurons):
            lit |= (running.forward(batch.X).fed[1] > 0).any(0)
        return replace(network, weights=network.weights[lit], signs=network.signs[lit])

    def fit(self, objective: Relu, point: Point) -> Fit:
        """Bring a network within the budget and refit it: on some rows, then on all if that explains those.

        Parameters
        ----------
        objective : Relu
            Its layout is for the inputs that students use, and no more neurons than allowed.
        point : Point
            A network there.

        Returns
        -------
        Fit
            A network in the problem's own layout, and the objective on all rows.
        """
        tuning, few = self.tuning, replace(self.few, layout=objective.layout)
        fit = measured(few, point.to(torch.float64))
        if fit.nonzeros > self.allowed:
            fit = shrink(few, fit, self.allowed, tuning.newton)
        fit = self._trimmed(few, refit(few, fit, tuning.polish_steps, tuning.newton))
        fit = self._trimmed(few, self._filled(few, fit))
        promising = self.explains(fit, tuning.explained)
        whole = self._on_all(few, fit, tuning.last_steps if promising else 0)
        if fit.nonzeros > self.budget and not self.explains(whole):
            # The extra output bias is for a network that is found.
            whole = self._on_all(few, shrink(few, fit, self.budget, tuning.newton), 0)
        return whole

    def _on_all(self, few: Relu, fit: Fit, steps: int) -> Fit:
        """Give a network its places in the problem's own layout, and refit it on all rows."""
        whole = self.subset.whole
        neurons = torch.arange(few.layout.widths[1])
        point = Subset(whole, few, (self.subset.units[0], neurons, None)).lift(fit.point)
        small = compact(whole, point)
        point = small.drop(point)
        fit = refit(small.part, Fit(point, small.part.value(point)), steps, self.tuning.newton)
        return Fit(small.lift(fit.point), fit.value)

    def _trimmed(self, few: Relu, fit: Fit) -> Fit:
        """Let go of weights that gain no more than an accident does, where the targets are explained."""
        tuning, free = self.tuning, ~brought_along(few, fit.point.w.indices)
        if not self.explains(fit):
            return fit
        H, _ = few.curvature(fit.point, rough=True)
        accident = tuning.no_accident * 2 * fit.value / few.data.rows
        gone = removal(H, fit.point.w.values, free, 0, tuning.newton.ridge, math.inf, accident)
        if gone.numel() == 0:
            return fit
        trial = measured(few, fit.point.without(gone))
        trial = refit(few, trial, tuning.polish_steps, tuning.newton)
        return trial if self.explains(trial) else fit

    def _filled(self, few: Relu, fit: Fit) -> Fit:
        """Spend what is left of the budget where the gradient is largest, if that saves much of the error.

        A few more are admitted, of which those go again that cost least.
        """
        tuning, room = self.tuning, self.allowed - fit.nonzeros
        if room <= 0 or self.explains(fit, tuning.repaired_to):
            return fit
        batch = few.data.batch(slice(0, few.data.rows))
        fresh = few.largest_gradients(fit.point, batch, room + tuning.repaired_least).indices
        indices = few.closed(torch.cat([fit.point.w.indices, fresh]).unique())
        filled = refit(few, measured(few, fit.point.at(indices)), tuning.polish_steps, tuning.newton)
        if filled.nonzeros > self.allowed:
            filled = shrink(few, filled, self.allowed, tuning.newton)
        return filled if filled.value < tuning.filled * fit.value else fit


def polish_of(
    subset: Subset, rows: np.ndarray, budget: int, spread: float, peak: float, tuning: RecoverTuning
) -> Polish:
    """Prepare to polish on some rows first; the objective on all inputs is in float64."""
    data = subset.whole.data.take(rows, subset.units[0])
    return Polish(subset, replace(subset.part, data=data), budget, spread, peak, tuning)
