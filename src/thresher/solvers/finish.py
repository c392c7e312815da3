"""The end game for layered networks under a squared error: exact fits on a support, removal one by one.

Fits are Levenberg and Marquardt's: the equations of Gauss and Newton, damped until they lower the loss. What
to remove follows from the same equations (`settle.backward`). Everything is float64, so that a network that
explains its targets is found to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.layered import Held, LayeredObjective
from thresher.solvers.settle import backward

# Multiplications that one set of equations may take, the least rows for each unknown in a sample, and rows
# that are enough until the last fit.
WORK, ROWS_EACH, FEW = 1e10, 8, 10_000
# Numbers in one chunk of derivatives.
CHUNK_NUMBERS = 2**22
# Budgets beyond this are left to the steps of training: the equations grow with the square.
MOST = 1500
# How much is removed before the rest is fitted again, and by how much a step must help for another to follow.
REMOVED, HELPS = 0.15, 1e-3
# Steps of a fit: first, between removals, last.
STEPS = (8, 3, 20)
DAMPING, DAMPED_LEAST, DAMPED_MOST = 1e-3, 1e-9, 1e6


def finish(objective: LayeredObjective, w: SparseVector, budget: int, seed: int = 0) -> Point:
    """Fit a network that may hold more than the budget, and bring it down to the budget.

    Parameters
    ----------
    objective : LayeredObjective
        Its loss must be a squared error.
    w : SparseVector
    budget : int
    seed : int
        Which rows are taken where there are more than the equations need.
    """
    exact = replace(
        objective, design=objective.design.with_dtype(torch.float64), signs=_double(objective.signs)
    )
    point = Point.of(exact, w.to(torch.float64))
    first, between, last = STEPS
    if w.nonzeros > budget:
        point = fit(exact, point, first, seed, FEW)
    while point.w.nonzeros > budget:
        excess = point.w.nonzeros - max(budget, int((1 - REMOVED) * point.w.nonzeros))
        point = fit(exact, point.without(exact, excess, seed), between, seed, FEW)
    return fit(exact, point, last, seed)


@dataclass(frozen=True, eq=False)
class Point:
    """Weights on paths that matter, and their loss on all rows."""

    w: SparseVector
    loss: float

    @classmethod
    def of(cls, objective: LayeredObjective, w: SparseVector) -> Point:
        """Drop what is on no path, and measure."""
        alive = objective.hold(w.indices, w.values).alive()
        w = SparseVector(w.indices[alive], w.values[alive], w.size)
        return cls(w, objective.value(objective.hold(w.indices, w.values)))

    def without(self, objective: LayeredObjective, count: int, seed: int) -> Point:
        """Remove the weights whose removal costs least."""
        H, _ = equations(objective, self.w, seed, FEW)
        removed = backward(H, self.w.values, torch.ones(self.w.nonzeros, dtype=torch.bool), count)
        stays = torch.ones(self.w.nonzeros, dtype=torch.bool)
        stays[removed] = False
        w = SparseVector(self.w.indices[stays], self.w.values[stays], self.w.size)
        return Point.of(objective, w)


def fit(objective: LayeredObjective, point: Point, steps: int, seed: int, most: int | None = None) -> Point:
    """Take damped steps of Gauss and Newton on the support while they help."""
    damping = DAMPING
    for _ in range(steps):
        if point.w.nonzeros == 0 or point.loss == 0:
            break
        H, h = equations(objective, point.w, seed, most)
        better, damping = _step(objective, point, H, h, damping)
        if better is None:
            break
        helped = better.loss < (1 - HELPS) * point.loss
        point = better
        if not helped:
            break
    return point


def _step(
    objective: LayeredObjective, point: Point, H: Tensor, h: Tensor, damping: float
) -> tuple[Point | None, float]:
    """Find a damping with which the loss falls, little where that served last time."""
    w, diagonal = point.w, H.diagonal().clone()
    floor = 1e-12 * float(diagonal.mean()) + 1e-300
    while damping <= DAMPED_MOST:
        damped = H.clone()
        damped.diagonal().add_(damping * diagonal + floor)
        triangle, failed = torch.linalg.cholesky_ex(damped)
        if int(failed) == 0:
            values = w.values - torch.cholesky_solve(h[:, None], triangle)[:, 0]
            loss = objective.value(objective.hold(w.indices, values))
            if loss < point.loss:
                return Point(w.with_values(values), loss), max(DAMPED_LEAST, damping / 10)
        damping *= 10
    return None, damping


def equations(
    objective: LayeredObjective, w: SparseVector, seed: int, most: int | None = None
) -> tuple[Tensor, Tensor]:
    """Give ``J'J`` and ``J'r`` for the weights held, over all rows or as many as the work allows.

    `most` rows are enough, unless the unknowns need more.
    """
    held = objective.hold(w.indices, w.values)
    unknowns, outputs = w.nonzeros, objective.layout.widths[-1]
    rows = _rows(objective, unknowns, most, seed)
    H = torch.zeros(unknowns, unknowns, dtype=torch.float64)
    h = torch.zeros(unknowns, dtype=torch.float64)
    step = max(64, CHUNK_NUMBERS // max(1, unknowns))
    for first in range(0, len(rows), step):
        X, y, weight = objective.read(rows[first : first + step])
        fed = held.forward(X)
        residual = fed[-1] - y
        for output in range(outputs):
            J = _derivatives(held, fed, output)
            weighed = J if weight is None else J * weight[:, None]
            H.addmm_(J.T, weighed)
            h.addmv_(weighed.T, residual[:, output])
    if objective.alpha:
        share = objective.alpha * len(rows) / objective.design.rows
        H.diagonal().add_(share)
        h.add_(w.values, alpha=share)
    return H, h


def _rows(objective: LayeredObjective, unknowns: int, most: int | None, seed: int) -> np.ndarray:
    rows, outputs = objective.design.rows, objective.layout.widths[-1]
    affordable = min(most or rows, int(WORK / max(1, 2 * outputs * unknowns**2)))
    wanted = max(affordable, -(-ROWS_EACH * unknowns // outputs), 500)
    if wanted >= rows:
        return np.arange(rows)
    return np.sort(np.random.default_rng([seed, 5]).choice(rows, wanted, replace=False))


def _derivatives(held: Held, fed: list[Tensor], output: int) -> Tensor:  # (rows, held)
    """Give the derivative of one output with respect to every weight held, row by row."""
    rows = fed[0].shape[0]
    slope = torch.zeros(rows, fed[-1].shape[1], dtype=fed[0].dtype)
    slope[:, output] = 1
    out = torch.zeros(rows, held.values.numel(), dtype=fed[0].dtype)
    for layer, delta in held.deltas(fed, slope):
        out[:, held.slices[layer]] = held.parts[layer].derivatives(fed[layer], delta)
    return out


def _double(signs: Tensor | None) -> Tensor | None:
    return None if signs is None else signs.double()
