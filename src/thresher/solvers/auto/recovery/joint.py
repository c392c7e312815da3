"""From outputs in the absolute-value form to one ReLU network: sides, halves of axes, and the last fit.

``v |z| = 2 v relu(sigma z) - sigma v z`` for either side sigma, which is the same for all outputs that read a
neuron: every input of every output says something about the sides, and the right ones leave the least of all
linear parts together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.clean import without_idle
from thresher.solvers.auto.equations import removal
from thresher.solvers.auto.newton import Fit, brought_along, measured, refit, shrink
from thresher.solvers.auto.recovery.lines import Stack
from thresher.solvers.auto.recovery.sides import sides_of
from thresher.solvers.auto.recovery.straight import straight_neurons
from thresher.solvers.auto.recovery.tuning import RecoverTuning
from thresher.solvers.auto.subset import Subset, compact


@dataclass(frozen=True, eq=False)
class Written:
    """A ReLU network of several outputs, as arrays that may hold zeros.

    Attributes
    ----------
    hidden : tensor of shape (neurons, inputs), or (neurons, inputs + 1) with the biases last
    outer : tensor of shape (outputs, neurons)
    direct : tensor of shape (outputs, inputs)
    constants : tensor of shape (outputs, 1), or (outputs, 0)
    """

    hidden: Tensor
    outer: Tensor
    direct: Tensor
    constants: Tensor

    def strongest(self, count: int) -> Written:
        """Keep the neurons that outputs read most of."""
        strength = self.outer.norm(dim=0) * self.hidden.norm(dim=1)
        live = int((strength > 0).sum())
        order = torch.argsort(strength, descending=True, stable=True)[: min(count, live)]
        return replace(self, hidden=self.hidden[order], outer=self.outer[:, order])

    def at(self, objective: Relu) -> tuple[Relu, Point]:
        """Give the objective with room for these neurons and no more, and this network as a point of it."""
        widths = objective.layout.widths
        layout = replace(objective.layout, widths=(widths[0], max(1, len(self.hidden)), widths[2]))
        neuron, feature = self.hidden.nonzero(as_tuple=True)
        output, source = self.outer.nonzero(as_tuple=True)
        biased = (self.constants != 0).any(1).nonzero().flatten()
        places = [layout.position(0, neuron, feature), layout.position(1, output, source)]
        places.append(layout.biases(1, biased))
        values = [self.hidden[neuron, feature], self.outer[output, source], self.constants[biased].sum(1)]
        if layout.direct:
            output, feature = self.direct.nonzero(as_tuple=True)
            places.append(layout.position(2, output, feature))
            values.append(self.direct[output, feature])
        indices, order = torch.cat(places).sort()
        w = SparseVector(indices, torch.cat(values)[order], layout.size)
        return replace(objective, layout=layout), Point(w, None)


def written(stack: Stack, tolerance: float, direct: bool, forced: bool, tuning: RecoverTuning) -> Written:
    """Write outputs in the absolute-value form as one ReLU network.

    Parameters
    ----------
    stack : Stack
    tolerance : float
        What is left of a linear part, a fold or a constant up to this is taken for zero.
    direct : bool
        Whether a linear part may be left as direct connections.
    forced : bool
        Whether outputs have biases in any case.
    tuning : RecoverTuning
    """
    outputs, inputs = stack.linear.shape
    read = (stack.gains != 0).any(0)
    lines, gains = stack.weights[read], stack.gains[:, read]
    pull = (gains[:, None] * lines[:, :inputs].T).reshape(outputs * inputs, -1)
    parts = stack.linear.reshape(-1), stack.folds.reshape(-1)
    side, rest, folds = sides_of(pull, *parts, tolerance, tuning.sides)
    rest, folds = rest.view(outputs, inputs), folds.view(outputs, inputs)
    up, down, through = _halves(folds + rest, folds - rest, tolerance, direct)
    constants = stack.constants - ((gains * side) @ lines[:, inputs:])
    if not forced:
        constants = torch.where(constants.abs() > tolerance, constants, 0.0)
    axes = torch.zeros(inputs, lines.shape[1], dtype=lines.dtype)
    axes[:, :inputs] = torch.eye(inputs, dtype=lines.dtype)
    hidden = torch.cat([lines * side[:, None], axes, -axes])
    outer = torch.cat([2 * gains, up, down], 1)
    live = (outer != 0).any(0)
    return Written(hidden[live], outer[:, live], through, constants)


def _halves(up: Tensor, down: Tensor, tolerance: float, direct: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Share what is on the axes among their halves and direct connections; all are (outputs, inputs)."""
    up, down = (torch.where(part.abs() > tolerance, part, 0.0) for part in (up, down))
    both = (up != 0) & (down != 0)
    if not direct or not bool(both.any()):
        return up, down, torch.zeros_like(up)
    # A direct connection and one half do what both halves do: the half that other outputs read anyway.
    alone = ~both
    upward = ((up != 0) & alone).any(0) >= ((down != 0) & alone).any(0)
    kink = up + down
    kink = torch.where(kink.abs() > tolerance, kink, 0.0)
    through = torch.where(both, torch.where(upward, -down, up), 0.0)
    kept_up = torch.where(both, torch.where(upward, kink, 0.0), up)
    kept_down = torch.where(both, torch.where(upward, 0.0, kink), down)
    return kept_up, kept_down, through


class Joint:
    """One network of all outputs, fitted together on some rows and measured on all.

    Parameters
    ----------
    objective : Relu
        The objective on all rows, in float64.
    few : Relu
        The same on some rows.
    budget : int
    peak : float
        The root of the sum of the squares of what outputs are at most.
    tuning : RecoverTuning
    """

    def __init__(self, objective: Relu, few: Relu, budget: int, peak: float, tuning: RecoverTuning) -> None:
        self.objective, self.few, self.budget, self.tuning = objective, few, budget, tuning
        self.peak = peak

    @property
    def allowed(self) -> int:
        """Nonzeros of a network that explains the targets: output biases that centring asks for are extra."""
        layout = self.few.layout
        return self.budget + layout.widths[-1] * int(self.few.centred and layout.bias)

    def network(self, stack: Stack) -> Fit:
        """Choose sides, and refit the whole within the budget on some rows; gives it on all rows."""
        tuning, best = self.tuning, None
        residual = (2 * stack.values.mean()).sqrt().item() + tuning.rounding
        for share in tuning.tolerances:
            network = written(stack, share * residual, *self._kind, tuning)
            fit = self._at(self._straightened(network, share * residual))
            if best is None or fit.nonzeros < best.nonzeros:
                best = fit
            if fit.nonzeros <= self.allowed:
                break
        assert best is not None
        return self._fitted(best)

    @property
    def _kind(self) -> tuple[bool, bool]:
        return self.few.layout.direct, self.few.centred and self.few.layout.bias

    def _straightened(self, network: Written, tolerance: float) -> Written:
        """Write linear parts that outputs share as neurons that are on for all rows."""
        room = self.few.layout.widths[1] - len(network.hidden)
        if room <= 0 or not bool((network.direct != 0).any()):
            return network
        weights, gains, direct = straight_neurons(network.direct, tolerance)
        weights, gains, direct = weights[:room], gains[:, :room], direct + gains[:, room:] @ weights[room:]
        low, high = self._extremes(weights)
        side = torch.where(high <= 0, -1.0, 1.0).double()
        low = torch.where(high <= 0, -high, low)
        # Where a neuron is not on by itself a bias makes it so.
        if self.few.layout.bias:
            lift = torch.where(low < 0, -low, 0.0)
            constants = network.constants - (gains * side * lift).sum(1, keepdim=True)
            hidden = torch.cat([weights * side[:, None], lift[:, None]], 1)
        else:
            on = low >= 0
            direct = direct + gains[:, ~on] @ weights[~on]
            hidden, gains, side = (weights * side[:, None])[on], gains[:, on], side[on]
            constants = network.constants
        outer = torch.cat([network.outer, gains * side], 1)
        return Written(torch.cat([network.hidden, hidden]), outer, direct, constants)

    def _extremes(self, weights: Tensor) -> tuple[Tensor, Tensor]:  # both (neurons,)
        """Give the least and the largest sums over all rows."""
        data = self.objective.data
        low, high = (torch.full((len(weights),), sign * torch.inf, dtype=weights.dtype) for sign in (1, -1))
        for batch in data.chunks(len(weights)):
            sums = batch.X @ weights.T
            low, high = torch.minimum(low, sums.min(0).values), torch.maximum(high, sums.max(0).values)
        return data.ranks.highest(low.neg()).neg(), data.ranks.highest(high)

    def _at(self, network: Written) -> Fit:
        objective, point = network.strongest(self.few.layout.widths[1]).at(self.few)
        subset = Subset.of(self.few, (None, torch.arange(objective.layout.widths[1]), None))
        fit = measured(subset.part, without_idle(subset.part, point))
        return Fit(subset.lift(fit.point), fit.value)

    def _fitted(self, fit: Fit) -> Fit:
        tuning, subset = self.tuning, compact(self.few, fit.point)
        fit = Fit(subset.drop(fit.point), fit.value)
        if fit.nonzeros > self.allowed:
            fit = shrink(subset.part, fit, self.allowed, tuning.newton)
        fit = self._trimmed(subset.part, refit(subset.part, fit, tuning.joint_steps, tuning.newton))
        return self._on_all(subset.lift(fit.point))

    def _trimmed(self, few: Relu, fit: Fit) -> Fit:
        """Let go of weights that gain no more than an accident does, where the targets are explained."""
        tuning, outputs = self.tuning, few.layout.widths[-1]
        if fit.nonzeros == 0 or not self.explains(fit):
            return fit
        H, _ = few.curvature(fit.point, rough=True)
        accident = tuning.no_accident * 2 * fit.value / (few.data.rows * outputs)
        free = ~brought_along(few, fit.point.w.indices)
        gone = removal(H, fit.point.w.values, free, 0, tuning.newton.ridge, math.inf, accident)
        if gone.numel() == 0:
            return fit
        trial = refit(few, measured(few, fit.point.without(gone)), tuning.joint_steps, tuning.newton)
        return trial if self.explains(trial) else fit

    def explains(self, fit: Fit) -> bool:
        """Say whether all outputs together are explained."""
        return 2 * fit.value <= self.tuning.found * self.peak**2

    def within(self, fit: Fit) -> Fit:
        """Bring a network that does not explain the targets within the budget itself."""
        if fit.nonzeros <= self.budget:
            return fit
        subset = compact(self.few, fit.point)
        part = Fit(subset.drop(fit.point), fit.value)
        return self._on_all(subset.lift(shrink(subset.part, part, self.budget, self.tuning.newton).point))

    def _on_all(self, point: Point) -> Fit:
        subset = compact(self.objective, point)
        return Fit(point, subset.part.value(subset.drop(point)))
