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

# Standard deviations that rounding of labels exceeds by chance once in two million times.
CHANCE = 5.0

# The same of the largest of all weights outside the support.
EXTREME = 7.0

# The share of a weight's standard error, under noise, by which it may miss the refitted weight: a millionth
# of the variance.
STILL = 1e-3

# Roundings of a stored number that a fused weight goes through: two factors and their product, and one more.
ROUNDINGS = 4.0


@dataclass(frozen=True, eq=False)
class Refit:
    """The least-squares weights on a support, all in unit columns, and how far they may be missed.

    Attributes
    ----------
    step : array of shape (s,)
        The network's weights less the refitted ones.
    inverse : array of shape (s, n)
        ``A_S^+``: what each row's label does to each weight.
    errors : array of shape (n,)
        Size of the rounding of each label, as the refit shows it, and at most `ROUNDING_FACTOR` times what is
        stated; zero where the network leaves more than rounding.
    rest : array of shape (n,)
        The residual that the refit leaves.
    deviations : array of shape (s,)
        Standard error of every weight from whatever the refit leaves, noise included.
    missed : array of shape (s,)
        How far each weight is from the refitted one, relative to its own tolerance.
    pulled : array of shape (s,)
        The gradient along each weight alone, relative to its tolerance.
    together : float
        The root of the squared error that the refit saves, relative to its tolerance.
    saved : float
        The share of the squared error that the refit saves.
    """

    step: NDArray[np.float64]
    inverse: NDArray[np.float64]
    errors: NDArray[np.float64]
    rest: NDArray[np.float64]
    deviations: NDArray[np.float64]
    missed: NDArray[np.float64]
    pulled: NDArray[np.float64]
    together: float
    saved: float

    @property
    def worst(self) -> float:
        """Give the largest of what is compared with a tolerance."""
        return float(max(self.missed.max(), self.pulled.max(), self.together))


def refit_of(fused: Fused, residual: NDArray[np.float64], rounding: Rounding, fitting: bool) -> Refit:
    """Refit the weights on a support of independent columns.

    Parameters
    ----------
    fused : Fused
    residual : array of shape (n,)
    rounding : Rounding
    fitting : bool
        Whether the network fits to rounding: labels with noise are what they are, and hide nothing.
    """
    columns = fused.columns
    n, s = columns.shape
    orthogonal, triangle = np.linalg.qr(columns)
    inverse = np.linalg.solve(triangle, orthogonal.T)
    step = inverse @ residual
    # Once more on what is left, since the first step is rounded relative to all of the residual.
    rest = residual - columns @ step
    step, rest = step + inverse @ rest, rest - columns @ (inverse @ rest)
    distinct = int(fused.alike.max()) + 1
    noise = math.sqrt(float(rest @ rest) / n * distinct / max(1, distinct - s))
    errors = _label_errors(rest, noise, rounding) if fitting else np.zeros(n)
    deviations = noise * np.linalg.norm(inverse, axis=1)
    stored = ROUNDINGS * rounding.stored * np.abs(fused.unit_weights)
    far = _blur(inverse, errors, fused) + np.abs(inverse) @ rounding.arithmetic
    steep = _blur(columns.T, errors, fused) + np.abs(columns.T) @ rounding.arithmetic
    apart = np.linalg.norm(_blur(orthogonal.T, errors, fused)) + np.linalg.norm(rounding.arithmetic)
    saved = float(np.linalg.norm(orthogonal.T @ residual))
    return Refit(
        step=step,
        inverse=inverse,
        errors=errors,
        rest=rest,
        deviations=deviations,
        missed=_share(np.abs(step), far + stored + STILL * deviations),
        pulled=_share(
            np.abs(columns.T @ residual), steep + np.abs(columns.T @ columns) @ stored + STILL * noise
        ),
        together=saved / (apart + float(stored.sum()) + STILL * noise * math.sqrt(s)) if saved > 0 else 0.0,
        saved=max(0.0, 1 - float(rest @ rest) / float(residual @ residual)) if residual.any() else 0.0,
    )


def _label_errors(rest: NDArray[np.float64], noise: float, rounding: Rounding) -> NDArray[np.float64]:  # (n,)
    """Give the size of each label's rounding: as all rows show it, or its own where that is larger."""
    stated = rounding.labels / math.sqrt(3.0)  # of a uniform rounding
    level = math.sqrt(float(stated @ stated) / len(rest))
    shown = noise / level * stated if level > 0 else np.zeros(len(rest))
    return np.minimum(np.maximum(shown, np.abs(rest)), ROUNDING_FACTOR * stated)


def _blur(directions: NDArray[np.float64], errors: NDArray[np.float64], fused: Fused) -> NDArray[np.float64]:
    """Give what rounding of labels makes of directions (k, n); rows answered alike are rounded alike."""
    count = int(fused.alike.max()) + 1
    sums = [np.bincount(fused.alike, weights=each * errors, minlength=count) for each in directions]
    return CHANCE * np.linalg.norm(np.array(sums).reshape(len(directions), count), axis=1)


def _share(sizes: NDArray[np.float64], allowed: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(sizes, allowed, out=np.where(sizes > 0, math.inf, 0.0), where=allowed > 0)


def stationary(refit: Refit) -> Condition:
    """Say whether the weights are the least-squares ones on their support and gates."""
    worst = refit.worst
    sentence = (
        f"The weights are within {worst:.2g} times what rounding, or a thousandth of a standard error, "
        "allows of the least-squares weights on this support: each by itself, moved alone, and all together."
    )
    if worst > 1:
        size, place = np.abs(refit.step), int(refit.missed.argmax())
        errors = size[place] / refit.deviations[place] if refit.deviations[place] > 0 else math.inf
        sentence = (
            f"The least-squares weights on this support leave {100 * refit.saved:.2g}% less squared error, "
            f"{worst:.2g} times what rounding allows; "
            f"{int((refit.missed > 1).sum()):,} of {len(size):,} weights differ, the farthest by "
            f"{errors:.2g} standard errors."
        )
    return condition("stationary", worst <= 1, worst, sentence)


def uncertain(residual: NDArray[np.float64], rounding: Rounding, refit: Refit) -> NDArray[np.float64]:
    """Bound what rounding leaves uncertain of each weight of a network that fits, in unit columns."""
    return np.asarray(np.abs(refit.inverse) @ (np.abs(residual) + rounding.rows))


def resolved(
    fused: Fused, residual: NDArray[np.float64], rounding: Rounding, refit: Refit, fitting: bool
) -> Condition:
    """Say whether every weight is larger than what rounding leaves uncertain of it."""
    if not fitting:
        return condition("resolved", None, None, "Not asked, since it needs a fit to rounding.")
    blur = uncertain(residual, rounding, refit)
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
    alike = found <= EXTREME
    return condition(
        "remainder",
        alike,
        found,
        f"A weight outside the support would explain {found:.2g} times the residual that rounding leaves it "
        f"on average (up to {EXTREME:g} times is chance): "
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
