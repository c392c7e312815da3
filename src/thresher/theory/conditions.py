"""The named conditions of a certificate: each holds, fails or is unknown, with a number and a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.theory.assumptions import departure_from_gaussian, epsilon
from thresher.theory.dictionary import Dictionary, Scan
from thresher.theory.fused import Fused
from thresher.theory.identity import Identity, disagreement_bound
from thresher.theory.separation import separation
from thresher.theory.spectra import Spectrum

HOLDS, FAILS, UNKNOWN = "holds", "fails", "unknown"

# A residual within this many times what rounding explains on its row counts as rounding.
ROUNDING_FACTOR = 8.0

# Rows for each weight before a fit counts as evidence.
ROWS_PER_WEIGHT = 4

# Standard errors beyond which data is called not standard normal.
FAR_FROM_GAUSSIAN = 6.0


@dataclass(frozen=True)
class Condition:
    """One condition of a certificate.

    Attributes
    ----------
    name : str
    status : {"holds", "fails", "unknown"}
    number : float or None
        What was measured; the sentence says what it is.
    sentence : str
    """

    name: str
    status: str
    number: float | None
    sentence: str

    @property
    def holds(self) -> bool:
        """Whether the condition is known to hold."""
        return self.status == HOLDS

    def plain(self) -> dict[str, Any]:
        """Give the condition as what JSON can hold."""
        finite = self.number is not None and math.isfinite(self.number)
        return {
            "name": self.name,
            "status": self.status,
            "number": self.number if finite else None,
            "sentence": self.sentence,
        }


def condition(name: str, holds: bool | None, number: float | None, sentence: str) -> Condition:
    """Make a condition from an answer of yes, no or None for unknown."""
    status = UNKNOWN if holds is None else HOLDS if holds else FAILS
    return Condition(name, status, None if number is None else float(number), sentence)


def root_mean_square(values: NDArray[np.float64]) -> float:
    """Give the root of the mean of squares."""
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def fits(residual: NDArray[np.float64], rounding: NDArray[np.float64]) -> Condition:
    """Say whether the residual is at rounding level on every row, each by its own measure."""
    size = np.abs(residual)
    ratio = np.divide(size, rounding, out=np.full(size.shape, math.inf), where=rounding > 0)
    ratio[size == 0] = 0.0
    worst = float(ratio.max(initial=0.0))
    beyond = int((ratio > ROUNDING_FACTOR).sum())
    tail = (
        "which rounding explains"
        if not beyond
        else f"and {beyond:,} of {size.size:,} answers are off by more than rounding explains: noise, or "
        "another network"
    )
    return condition(
        "fits",
        not beyond,
        worst,
        f"The residual is {root_mean_square(residual):.2e} (root mean square), at most {worst:.2g} times the "
        f"rounding of label and weights on its row (up to {ROUNDING_FACTOR:g} times counts as rounding), "
        f"{tail}.",
    )


def enough_rows(n: int, distinct: int, s: int) -> Condition:
    """Ask for rows enough that a fit is no accident: twice what telling s weights from s others needs."""
    asked = ROWS_PER_WEIGHT * s
    repeated = (
        f" ({n - distinct:,} more repeat them in the inputs used, as far as labels can show, and prove "
        "nothing new)"
    )
    return condition(
        "rows",
        distinct >= asked,
        distinct / max(1, s),
        f"{distinct:,} rows{repeated if distinct < n else ''} for {s:,} weights, where {asked:,} are asked "
        f"for: with fewer than {2 * s:,} not all choices of so many weights could be told apart, and with "
        "few more another network may fit by accident.",
    )


def decided_gates(fused: Fused) -> Condition:
    """Say whether every row is clearly on one side of every neuron."""
    sides = fused.gates.size
    if fused.undecided:
        sentence = f"On {fused.undecided:,} of {sides:,} pairs of row and neuron rounding decides the gate."
    else:
        sentence = f"Each of {sides:,} pairs of row and neuron is clearly on one side of the gate."
    return condition("gates", None if fused.undecided else True, fused.undecided, sentence)


def independent(fused: Fused, found: Spectrum) -> Condition:
    """Say whether the columns of the support are independent: its restricted eigenvalues."""
    if fused.idle:
        return condition(
            "independent",
            False,
            0.0,
            f"{fused.idle} nonzeros take no part in the output, so any value would do for them.",
        )
    return condition(
        "independent",
        found.certain > 0,
        found.alpha,
        f"The eigenvalues of the support's unit columns run from {found.alpha:.3g} to {found.beta:.3g}; "
        + (
            "rounding cannot make the smallest zero."
            if found.certain > 0
            else "the smallest cannot be told from zero, so other weights on the same support do as well."
        ),
    )


def injective(dictionary: Dictionary, whole: Spectrum | None) -> Condition:
    """Say whether all columns of a dictionary are independent, so that weights over it are told outright."""
    name = f"injective ({dictionary.name})"
    if whole is None:
        return condition(
            name,
            None,
            None,
            f"{dictionary.description} are {dictionary.columns:,} columns: more than rows, or too many to "
            "try.",
        )
    return condition(
        name,
        whole.certain > 0,
        whole.alpha,
        f"The smallest eigenvalue of all {dictionary.columns:,} columns of {dictionary.description} is "
        f"{whole.alpha:.3g}"
        + (
            ", so no other weights over these gates give the same answers."
            if whole.certain > 0
            else ", or zero."
        ),
    )


def tropp(dictionary: Dictionary, found: Scan) -> Condition:
    """State Tropp's exact-recovery condition over a dictionary."""
    name = f"tropp ({dictionary.name})"
    if found.tropp is None:
        return condition(name, None, None, f"Too much work over {dictionary.columns:,} columns.")
    return condition(
        name,
        found.tropp + found.rounding < 1,
        found.tropp,
        f"Tropp's number over {dictionary.description} is {found.tropp:.4g}; below 1 it proves that no other "
        "weights, over these gates, give the same answers with as small an L1 norm.",
    )


def fuchs(dictionary: Dictionary, found: Scan) -> Condition:
    """State Fuchs' condition over a dictionary."""
    return condition(
        f"fuchs ({dictionary.name})",
        found.fuchs + found.rounding < 1,
        found.fuchs,
        f"Fuchs' dual vector over {dictionary.description} reaches {found.fuchs:.4g} outside the support; "
        f"below 1 it proves the same as Tropp's number, for these signs.",
    )


def activity(fused: Fused) -> Condition:
    """Measure epsilon of the network's gates; a neuron that is on for all rows shows no kink on them."""
    active = fused.patterns.active()
    found, always = epsilon(fused.patterns), int((active == fused.patterns.rows).sum())
    sentence = f"The least active neuron is active on {found:.1%} of the rows (epsilon)."
    if always:
        sentence += (
            f" {always} gates are open on all rows: there the network is linear, and what is linear may "
            f"belong to neurons that open to the other side."
        )
    return condition("activity", found > 0 and not always, found, sentence)


def apart(fused: Fused) -> Condition:
    """Measure gamma of the network's gates; neurons that share a gate on these rows could as well be one."""
    repeated = len(fused.gates) - fused.patterns.count
    note = f" {repeated} neurons share their gate with another, and could as well be one." if repeated else ""
    if fused.patterns.count < 2:
        sentence = f"There is one gate only, and no distance between gates (gamma).{note}"
        return condition("separation", repeated == 0, None, sentence)
    found = separation(fused.patterns)
    return condition(
        "separation",
        repeated == 0,
        found.gamma,
        f"The two closest gates differ on {found.lower:,} of {found.rows:,} rows, {found.gamma:.1%} "
        f"(gamma).{note}",
    )


def gaussian(X: NDArray[np.float64]) -> Condition:
    """Say whether the data is clearly not standard normal, which the paper's probabilities presume."""
    found = departure_from_gaussian(X)
    far = found > FAR_FROM_GAUSSIAN
    return condition(
        "gaussian",
        False if far else None,
        found,
        f"Moments of the data are up to {found:.1f} standard errors from those of standard normal entries. "
        + (
            "The paper's probabilities do not apply: everything here is measured on these rows, nothing "
            "presumed."
            if far
            else "Nothing speaks against it, and nothing here relies on it."
        ),
    )


def held_out(agree: int, rows: int, confidence: float) -> Condition:
    """State what fresh rows say about the function."""
    if agree < rows:
        return condition(
            "held out",
            False,
            1 - agree / rows,
            f"{rows - agree:,} of {rows:,} held-out rows do not agree to rounding.",
        )
    bound = disagreement_bound(rows, confidence)
    return condition(
        "held out",
        True,
        bound,
        f"All {rows:,} held-out rows agree to rounding: with {confidence:.0%} confidence the function "
        f"differs on at most {bound:.2%} of inputs drawn like them.",
    )


def identified(found: Identity) -> Condition:
    """Say whether the function determines the network, among those with one neuron to a line."""
    told = found.told
    return condition(
        "identity",
        True if told else None,
        None,
        f"{found.reason[0].upper()}{found.reason[1:]}: "
        + (
            "among networks with one neuron to a line, only this one, up to order and scaling, is this "
            "function."
            if told
            else "another network may be the same function."
        ),
    )
