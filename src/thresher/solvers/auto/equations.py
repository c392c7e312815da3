"""Newton's equations on a support: factored where their matrix is affordable, else solved by products.

Both ways offer the same: gradient and diagonal of the curvature, a damped step, and which weights cost least
to remove. Removal by the matrix is backward elimination with the rest refitted, the optimal brain surgeon of
Hassibi and Stork; by the diagonal, the optimal brain damage of LeCun, Denker and Solla.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.objective.curvature import Curvature
from thresher.objective.relu import Relu
from thresher.objective.running import Running
from thresher.solvers.auto.newton_tuning import NewtonTuning

# Removals after which the inverse is brought up to date.
DEFERRED = 64
# Times that weights at a bound are fixed there and the others solved for.
BOUND_ROUNDS = 8


class Equations(Protocol):
    """Newton's equations at a point."""

    gradient: Tensor  # (held,)
    diagonal: Tensor  # (held,)

    @property
    def finite(self) -> bool:
        """Whether they consist of numbers."""
        ...

    def solved(self, damping: float) -> Tensor | None:  # (held,)
        """Give the step that a share of the diagonal damps, to be subtracted; None where there is none."""
        ...

    def bounded(self, step: Tensor, damping: float, values: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Give a step from some values that ends within bounds, in place of one that may not."""
        ...

    def cheapest(self, values: Tensor, free: Tensor, count: int) -> Tensor:  # (held,), (held,) -> (count,)
        """Choose weights to remove among the free ones. The equations have served then."""
        ...


def equations(objective: Relu, running: Running, tuning: NewtonTuning, rough: bool) -> Equations:
    """Set up Newton's equations at a point, in the way that its number of weights affords."""
    way = Factored if factored(running.values.numel(), objective.memory_limit, tuning) else Iterated
    return way(objective, running, tuning, rough)


def factored(held: int, memory_limit: int, tuning: NewtonTuning) -> bool:
    """Say whether the equations of so many weights are factored."""
    room = max(memory_limit, tuning.small)
    return held <= tuning.factored and matrix_bytes(held, tuning) <= room


def matrix_bytes(held: int, tuning: NewtonTuning) -> int:
    """Give the bytes of the matrices that factoring the equations of so many weights takes."""
    return 8 * tuning.matrices * held**2


class Factored:
    """Equations written out as a matrix."""

    def __init__(self, objective: Relu, running: Running, tuning: NewtonTuning, rough: bool) -> None:
        self.H, self.gradient = objective.curvature(running, rough)
        self.diagonal, self.tuning = self.H.diagonal().clone(), tuning

    @property
    def finite(self) -> bool:
        """Whether they consist of numbers."""
        return math.isfinite(float(self.H.sum()))

    def solved(self, damping: float) -> Tensor | None:
        """Solve by Cholesky's factors; None where rounding leaves none."""
        triangle, definite = _factored(self.H, damping * self.diagonal + floor_of(self.diagonal))
        return torch.cholesky_solve(self.gradient[:, None], triangle)[:, 0] if definite else None

    def bounded(self, step: Tensor, damping: float, values: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Let weights that would leave their bounds end there, and solve for the others with that known."""
        at, low, high = values.double(), low.double(), high.double()
        added = damping * self.diagonal + floor_of(self.diagonal)
        ends = torch.zeros_like(low, dtype=torch.bool)
        for _ in range(BOUND_ROUNDS):
            left = at - step
            leaving = ((left < low) | (left > high)) & ~ends
            if not bool(leaving.any()):
                break
            ends |= leaving
            step = torch.where(ends, at - left.clamp(low, high), step)
            free = (~ends).nonzero().flatten()
            pull = self.gradient[free] - self.H[free][:, ends] @ step[ends]
            triangle, definite = _factored(self.H[free[:, None], free], added[free])
            if free.numel() and definite:
                step[free] = torch.cholesky_solve(pull[:, None], triangle)[:, 0]
        return at - (at - step).clamp(low, high)

    def cheapest(self, values: Tensor, free: Tensor, count: int) -> Tensor:
        """Choose each the one whose removal costs least once the rest is refitted."""
        return removal(self.__dict__.pop("H"), values, free, count, self.tuning.ridge)


class Iterated:
    """Equations that are solved by conjugate gradients, from products with the curvature alone."""

    def __init__(self, objective: Relu, running: Running, tuning: NewtonTuning, rough: bool) -> None:
        self.curvature, self.tuning = Curvature(objective, running, rough), tuning
        self.gradient, self.diagonal = self.curvature.gradient, self.curvature.diagonal

    @property
    def finite(self) -> bool:
        """Whether they consist of numbers."""
        return math.isfinite(float(self.gradient.sum() + self.diagonal.sum()))

    def solved(self, damping: float) -> Tensor | None:
        """Take so many steps of conjugate gradients, or fewer where what is left is a small share.

        The diagonal is the preconditioner. Where they end, the step is at right angles to what is left of the
        gradient, so that what it promises is what a whole step would.
        """
        added = damping * self.diagonal + floor_of(self.diagonal)
        scale = self.diagonal + added
        step, left = torch.zeros_like(self.gradient), self.gradient.clone()
        moved = left / scale
        along, size = moved, float(left @ moved)
        enough = self.tuning.solved**2 * size
        for _ in range(self.tuning.iterations):
            if size <= enough:
                break
            product = self.curvature.times(along) + added * along
            length = size / max(float(along @ product), 1e-300)
            step.add_(along, alpha=length)
            left.sub_(product, alpha=length)
            moved = left / scale
            before, size = size, float(left @ moved)
            along = moved + (size / before) * along
        return step

    def bounded(self, step: Tensor, damping: float, values: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Let weights that would leave their bounds end there."""
        return values - (values - step).clamp(low, high)

    def cheapest(self, values: Tensor, free: Tensor, count: int) -> Tensor:
        """Choose those whose squares times the curvature are least: what removal costs without a refit."""
        cost = values.square() * (self.diagonal + self.tuning.ridge * self.diagonal.mean())
        among = free.nonzero().flatten()
        stays = torch.zeros_like(free)
        stays[among[largest(cost[among].float(), max(0, among.numel() - count))]] = True
        return (free & ~stays).nonzero().flatten()


def floor_of(diagonal: Tensor) -> float:
    """Give what is added to a diagonal in any case, since weights that do nothing have none."""
    return 1e-12 * float(diagonal.mean()) + 1e-300


def removal(
    H: Tensor,
    values: Tensor,
    free: Tensor,
    count: int,
    ridge: float,
    slack: float = 0.0,
    each: float = math.inf,
) -> Tensor:
    """Choose weights to remove, each the one whose removal costs least once the rest is refitted.

    Parameters
    ----------
    H : tensor of shape (k, k)
        The curvature.
    values : tensor of shape (k,)
        Where the objective is least.
    free : bool tensor of shape (k,)
        What may be removed.
    count : int
        How many to remove.
    ridge : float
        Added to the curvature, as a share of its mean diagonal.
    slack, each : float
        After those, more are removed while all removals together raise twice the objective by no more than
        `slack`, and no one of them by more than `each`.
    """
    inverse = inverse_of(H, ridge)
    # Nobody else may hold it: a matrix less while the others are changed.
    del H
    values, live, names = values.clone(), free.clone(), torch.arange(values.numel())
    # Every removal takes ``column column'`` off the inverse. That is written now and then: choosing needs
    # the diagonal, and one column at a time.
    diagonal, columns = inverse.diagonal().clone(), torch.empty(DEFERRED, values.numel(), dtype=inverse.dtype)
    removed: list[int] = []
    pending, spent = 0, 0.0
    while (len(removed) < count or slack > 0) and bool(live.any()):
        # Costs are compared in float32: what differs by rounding only is a tie, and goes to the lower place.
        cost = torch.where(live, values.square() / diagonal.clamp(min=1e-300), math.inf)
        least = int(cost.float().argmin())
        spent += float(cost[least])
        if len(removed) >= count and (spent > slack or float(cost[least]) > each):
            break
        before = columns[:pending]
        column = torch.addmv(inverse[least], before.T, before[:, least], alpha=-1)
        pivot = max(float(column[least]), 1e-300)
        values.sub_(column, alpha=float(values[least]) / pivot)
        columns[pending] = column.div_(math.sqrt(pivot))
        diagonal.addcmul_(column, column, value=-1)
        live[least], pending = False, pending + 1
        removed.append(int(names[least]))
        if pending == DEFERRED:
            kept = (live | ~free).nonzero().flatten()
            left = columns[:, kept]
            inverse = inverse[kept[:, None], kept].addmm_(left.T, left, alpha=-1)
            values, diagonal, names = values[kept], inverse.diagonal().clone(), names[kept]
            free, live, columns, pending = free[kept], live[kept], torch.empty_like(left), 0
    return torch.tensor(removed, dtype=torch.int64)


def solve(H: Tensor, g: Tensor, ridge: float) -> Tensor:
    """Give the whole Newton step, with a share `ridge` of its mean diagonal added to the curvature."""
    return torch.cholesky_solve(g[:, None], _factor(H, ridge))[:, 0]


def inverse_of(H: Tensor, ridge: float) -> Tensor:
    """Invert a curvature, with a share `ridge` of its mean diagonal added."""
    triangle = _factor(H, ridge)
    return torch.cholesky_inverse(triangle, out=triangle)


def _factor(H: Tensor, ridge: float) -> Tensor:
    """Factor a matrix, with as much added to its diagonal as that takes."""
    size = float(H.diagonal().mean())
    while True:
        triangle, definite = _factored(H, ridge * size + 1e-30)
        if definite:
            return triangle
        ridge *= 10


def _factored(H: Tensor, added: Tensor | float) -> tuple[Tensor, bool]:
    """Factor a symmetric matrix with something added to its diagonal; says whether that succeeded."""
    # Column by column, LAPACK needs no copy of its own.
    triangle, failed = H.clone().T, torch.zeros((), dtype=torch.int32)
    triangle.diagonal().add_(added)
    torch.linalg.cholesky_ex(triangle, out=(triangle, failed))
    return triangle, int(failed) == 0
