"""What each weight does to the loss, beside what rounding and noise can do to it.

Every weight is compared with the refitted one, the least-squares weights on the same support and gates in
float64, and held to a tolerance of its own: large weights excuse nothing in small ones. How far labels are
rounded is bounded by what is stated, and measured by what the refit leaves: labels that it explains exactly
hide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.theory.conditions import ROUNDING_FACTOR, Condition, condition
from thresher.theory.dictionary import Scan
from thresher.theory.fused import Fused
from thresher.theory.rounding import Rounding

# Standard deviations that rounding of labels exceeds by chance once in 500 million times.
CHANCE = 6.0

# The share of a weight's standard error, under noise, by which it may miss the refitted weight: a millionth
# of the variance.
STILL = 1e-3

# Roundings of a stored number that a fused weight goes through: two factors and their product, and one more.
ROUNDINGS = 4.0


@dataclass(frozen=True, eq=False)
class Refit:
    """The least-squares weights on a support, all in unit columns, and how far each may be missed.

    Attributes
    ----------
    step : array of shape (s,)
        The network's weights less the refitted ones.
    inverse : array of shape (s, n)
        ``A_S^+``: what each row's label does to each weight.
    errors : array of shape (n,)
        Size of the rounding of each label, as the refit shows it, and at most `ROUNDING_FACTOR` times what is
        stated.
    rest : array of shape (n,)
        The residual that the refit leaves.
    deviations : array of shape (s,)
        Standard error of every weight from whatever the refit leaves, noise included.
    tolerance : array of shape (s,)
        How far each weight may be from the refitted one and count as the same.
    left : float
        Squared error of the network.
    """

    step: NDArray[np.float64]
    inverse: NDArray[np.float64]
    errors: NDArray[np.float64]
    rest: NDArray[np.float64]
    deviations: NDArray[np.float64]
    tolerance: NDArray[np.float64]
    left: float

    @property
    def saved(self) -> float:
        """Give the share of the squared error that the refit saves."""
        return max(0.0, 1 - float(self.rest @ self.rest) / self.left) if self.left > 0 else 0.0


def refit_of(fused: Fused, residual: NDArray[np.float64], rounding: Rounding) -> Refit:
    """Refit the weights on a support of independent columns."""
    n, s = fused.columns.shape
    orthogonal, triangle = np.linalg.qr(fused.columns)
    inverse = np.linalg.solve(triangle, orthogonal.T)
    step = inverse @ residual
    # Once more on what is left, since the first step is rounded relative to all of the residual.
    rest = residual - fused.columns @ step
    step, rest = step + inverse @ rest, rest - fused.columns @ (inverse @ rest)
    distinct = int(fused.groups.max()) + 1
    noise = math.sqrt(float(rest @ rest) / n * distinct / max(1, distinct - s))
    stated = rounding.labels / math.sqrt(3.0)  # of a uniform rounding
    level = math.sqrt(float(stated @ stated) / n)
    shown = noise / level * stated if level > 0 else np.zeros(n)
    # The residual of a row says more of it than all rows together, where it is larger.
    errors = np.minimum(np.maximum(shown, np.abs(rest)), ROUNDING_FACTOR * stated)
    # Rows that repeat are rounded alike.
    grouped = [np.bincount(fused.groups, weights=each * errors, minlength=distinct) for each in inverse]
    by_labels = np.linalg.norm(np.array(grouped).reshape(s, distinct), axis=1)
    deviations = noise * np.linalg.norm(inverse, axis=1)
    tolerance = (
        ROUNDINGS * rounding.stored * np.abs(fused.unit_weights)
        + np.abs(inverse) @ rounding.arithmetic
        + CHANCE * by_labels
        + STILL * deviations
    )
    return Refit(step, inverse, errors, rest, deviations, tolerance, float(residual @ residual))


def stationary(refit: Refit) -> Condition:
    """Say whether the weights are the least-squares ones on their support and gates."""
    size = np.abs(refit.step)
    ratio = np.divide(size, refit.tolerance, out=np.zeros(len(size)), where=size > 0)
    worst = float(np.max(ratio, initial=0.0))
    sentence = (
        f"Every weight is within {worst:.2g} times its own tolerance of the least-squares weights on this "
        "support (storage, labels' rounding, a thousandth of its standard error)."
    )
    if worst > 1:
        missed = int((ratio > 1).sum())
        place = int(ratio.argmax())
        errors = size[place] / refit.deviations[place] if refit.deviations[place] > 0 else math.inf
        sentence = (
            f"{missed:,} of {len(ratio):,} weights are not the least-squares ones on this support, which "
            f"leave {refit.saved:.2%} less squared error; the farthest is {errors:.2g} standard errors away, "
            f"{worst:.2g} times what rounding allows it."
        )
    return condition("stationary", worst <= 1, worst, sentence)


def resolved(
    fused: Fused, residual: NDArray[np.float64], rounding: Rounding, refit: Refit, fitting: bool
) -> Condition:
    """Say whether every weight is larger than what rounding leaves uncertain of it."""
    if not fitting:
        return condition("resolved", None, None, "Not asked, since it needs a fit to rounding.")
    blur = np.abs(refit.inverse) @ (np.abs(residual) + rounding.rows)
    sizes = np.abs(fused.unit_weights)
    ratio = np.divide(sizes, blur, out=np.full(len(sizes), math.inf), where=blur > 0)
    place = int(ratio.argmin())
    return condition(
        "resolved",
        bool(ratio[place] > 1),
        float(ratio[place]),
        f"The least certain weight is {sizes[place]:.2e}, and rounding leaves {blur[place]:.1e} of it "
        "uncertain (unit columns).",
    )


def remainder(scans: Sequence[Scan], fitting: bool) -> Condition:
    """Say whether a weight outside the support explains of the residual what rounding cannot have made."""
    if not fitting:
        return condition("remainder", None, None, "Not asked, since it needs a fit to rounding.")
    found = max(scan.remainder for scan in scans)
    alike = found <= CHANCE
    return condition(
        "remainder",
        alike,
        found,
        f"A weight outside the support would explain {found:.2g} times the residual that rounding leaves it "
        f"on average (up to {CHANCE:g} times is chance): "
        + (
            "what is left is rounding."
            if alike
            else "labels are more precise than that, and a weight is missing."
        ),
    )


def smallest_kept(fused: Fused, residual: NDArray[np.float64]) -> float:
    """Give the size of the smallest weight on the support, before or after a step of size 1."""
    stepped = fused.unit_weights - fused.columns.T @ residual
    return float(np.minimum(np.abs(stepped), np.abs(fused.unit_weights)).min())


def margin(smallest: float, largest: float) -> Condition:
    """Say whether no weight outside the support would enter in a step of thresholding."""
    return condition(
        "margin",
        largest < smallest,
        largest / smallest if smallest > 0 else math.inf,
        f"The largest gradient outside the support is {largest:.2e} and the smallest weight {smallest:.2e} "
        f"(unit columns, step 1): "
        + ("none would enter." if largest < smallest else "a step of thresholding could exchange them."),
    )
