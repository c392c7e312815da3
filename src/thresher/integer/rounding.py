"""Weights rounded one after the other, the rest refitted each time to what rounding did.

For one neuron with inputs A (rows, k), weights w and a weight r for each row, what rounding changes is
``sum_r r (A (q - w))^2 = (q - w)' H (q - w)`` with ``H = A' r A``. The heaviest weight is rounded first; then
those not rounded yet move to where they make up for it best, which one Cholesky factor of ``inv(H)`` tells
for all of them (optimal brain surgeon on one neuron). Many step sizes are tried side by side, and single
steps are taken at the end as long as one of them helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thresher.errors import ParameterError

# Added to the diagonal of H, as a share of itself and of its mean: weights that rows do not tell apart stay
# near what they were.
DAMPING, FLOOR = 1e-2, 1e-9

# Single steps at the end, for each weight and at most.
STEPS_PER_WEIGHT, MOST_STEPS = 3, 600

# Weights of a neuron beyond which they are rounded without moving the rest, whose cost is their number cubed.
MOST_MOVED = 600

KINDS = {"int8": ("int", 8), "int4": ("int", 4), "pow2": ("pow2", 4)}
LEAST_BITS, MOST_BITS = 2, 16


@dataclass(frozen=True)
class Grid:
    """The whole numbers that a weight can be.

    Attributes
    ----------
    powers : bool
        Whether they are plus and minus powers of two, and zero, rather than all whole numbers.
    bits : int
        Bits of one of them: a sign and an exponent for powers of two.
    """

    powers: bool
    bits: int

    @property
    def largest(self) -> int:
        """The largest of them."""
        return 2 ** (2 ** (self.bits - 1) - 1) if self.powers else 2 ** (self.bits - 1) - 1

    @property
    def name(self) -> str:
        """What they are called."""
        return "pow2" if self.powers else f"int{self.bits}"

    def nearest(self, values: np.ndarray) -> np.ndarray:
        """Return the nearest of them.

        Examples
        --------
        >>> Grid(False, 4).nearest(np.array([2.6, -9.0])), Grid(True, 4).nearest(np.array([2.6, -9.0, 0.2]))
        (array([ 3., -7.]), array([ 2., -8.,  0.]))
        """
        if not self.powers:
            return np.clip(np.rint(values), -self.largest, self.largest)
        sizes = np.abs(values)
        lower = 2.0 ** np.floor(np.log2(np.clip(sizes, 1.0, self.largest)))
        power = np.where(sizes > 1.5 * lower, np.minimum(2 * lower, self.largest), lower)
        return np.where(sizes < 0.5, 0.0, np.sign(values) * power)

    def neighbours(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the next smaller and the next larger of them, or the same where there is none."""
        if not self.powers:
            return np.maximum(values - 1, -self.largest), np.minimum(values + 1, self.largest)
        sizes = np.abs(values)
        out = np.where(sizes == 0, 1.0, np.minimum(2 * sizes, self.largest))
        back = np.where(sizes <= 1, 0.0, sizes / 2)
        signs = np.where(values < 0, -1.0, 1.0)
        down = np.where(values > 0, back, -out)
        return np.where(values == 0, -1.0, down), np.where(values < 0, signs * back, out)

    def step_candidates(self, largest: float, count: int) -> np.ndarray:
        """Return sizes of a step worth trying for weights of which the largest is given."""
        if self.powers:
            return largest / self.largest * 2.0 ** np.linspace(-0.5, 0.5, count, endpoint=False)
        # Few bits gain by cutting the largest weight down; many do not.
        return largest / self.largest * np.linspace(1.02, 0.5 if self.bits <= 5 else 0.85, count)


def grid_named(weights: str | None, bits: int) -> Grid:
    """Return the grid of a kind of weights, or of a number of bits."""
    if weights is not None:
        if weights not in KINDS:
            raise ParameterError(
                f"weights={weights!r}, but they are one of {', '.join(KINDS)}; or give bits."
            )
        kind, bits = KINDS[weights]
        return Grid(kind == "pow2", bits)
    if (
        isinstance(bits, bool)
        or not isinstance(bits, int | np.integer)
        or not LEAST_BITS <= bits <= MOST_BITS
    ):
        raise ParameterError(f"bits={bits!r}, but weights have {LEAST_BITS} to {MOST_BITS} bits.")
    return Grid(False, int(bits))


class Rounded(NamedTuple):
    """Whole numbers for each candidate of a step, and what each costs in ``(q - w)' H (q - w)``."""

    values: np.ndarray  # (candidates, k)
    cost: np.ndarray  # (candidates,)


def rounded(
    curvature: np.ndarray,  # (k, k)
    weights: np.ndarray,  # (k,)
    steps: np.ndarray,  # (candidates, k): what 1 is worth
    free: np.ndarray,  # (k,): any whole number will do, as for biases
    grid: Grid,
) -> Rounded:
    """Round weights one after the other, those that are free last.

    Returns
    -------
    Rounded
        For each candidate whole numbers in its steps.
    """
    size = weights.size
    if size == 0:
        return Rounded(np.zeros((len(steps), 0)), np.zeros(len(steps)))
    diagonal = np.diag(curvature)
    H = curvature + np.diag(DAMPING * diagonal + FLOOR * (diagonal.mean() + 1.0))
    order = np.lexsort((-np.diag(H) * weights**2, free))
    H, target, steps, free = H[np.ix_(order, order)], weights[order], steps[:, order], free[order]
    left = np.repeat(target[None], len(steps), axis=0)
    found = np.zeros_like(left)
    factor = np.diag(np.diag(H) ** -0.5)
    if size <= MOST_MOVED:
        factor = np.linalg.cholesky(np.linalg.inv(H)).T  # upper: inv(H) = factor' factor
    for place in range(size):
        scaled = left[:, place] / steps[:, place]
        found[:, place] = np.rint(scaled) if free[place] else grid.nearest(scaled)
        error = (left[:, place] - found[:, place] * steps[:, place]) / factor[place, place]
        left[:, place + 1 :] -= error[:, None] * factor[place, place + 1 :]
    found = _improved(found, H, target, steps, grid, free)
    change = found * steps - target
    cost = np.einsum("ci,ij,cj->c", change, H, change)
    back = np.argsort(order)
    return Rounded(found[:, back], cost)


def _improved(
    found: np.ndarray, H: np.ndarray, target: np.ndarray, steps: np.ndarray, grid: Grid, free: np.ndarray
) -> np.ndarray:
    """Take the single step that helps most, for every candidate, as long as one helps."""
    found = found.copy()
    slope = (found * steps - target) @ H
    rows = np.arange(len(found))
    for _ in range(min(STEPS_PER_WEIGHT * target.size, MOST_STEPS)):
        gains = []
        for near, own in zip(grid.neighbours(found), (found - 1, found + 1), strict=True):
            change = (np.where(free, own, near) - found) * steps
            gains.append((2 * slope * change + np.diag(H) * change**2, change))
        cost = np.concatenate([gains[0][0], gains[1][0]], axis=1)
        best = cost.argmin(axis=1)
        helps = cost[rows, best] < -1e-12 * np.abs(np.diag(H)).max() * np.max(steps) ** 2
        if not helps.any():
            break
        place = best % target.size
        change = np.where(best < target.size, gains[0][1][rows, place], gains[1][1][rows, place]) * helps
        found[rows, place] = np.rint(found[rows, place] + change / steps[rows, place])
        slope += change[:, None] * H[place]
    return found
