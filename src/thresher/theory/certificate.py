"""Certificates: what is proved about a fitted network on given data, what is not, and over which dictionary.

Three levels, each *holds*, *fails* or *unknown*:

- *unique on its support*: with these gates and this support, no other weights have as small a squared error;
- *isolated*: besides, no single weight outside would enter in a step of thresholding, so the network is a
  strict local minimum among those with as many nonzeros, and thresholding with a step below 2 / beta that
  starts close enough returns to it;
- *unique in the dictionary*: the network fits to rounding, and of all weights over a stated dictionary of
  gates that give its answers on these rows it is the only one, or the only one with the smallest L1 norm
  (unit columns); nor is it one of those that another network without collinear neurons equals as a function.

Everything is proved for the network's own answers; the labels differ from them by what `fits` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError, MemoryLimitError, ParameterError
from thresher.network import Network
from thresher.theory import conditions as state
from thresher.theory.conditions import UNKNOWN, Condition
from thresher.theory.dictionary import Dictionary, dictionary_of, scan, whole_spectrum
from thresher.theory.fused import Fused, fused_of, row_rounding
from thresher.theory.identity import identity
from thresher.theory.levels import DUAL, IN_DICTIONARY, ISOLATED, ON_SUPPORT, levels_of, verdict_on
from thresher.theory.patterns import MEMORY_LIMIT, Patterns, checked_rows
from thresher.theory.spectra import Spectrum, spectrum


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known of a network on given data.

    Attributes
    ----------
    conditions : tuple of Condition
    levels : dict
        Status of each level by name; "unique in the dictionary" comes once for each dictionary, as
        "unique in the dictionary (own)".
    verdict : str
        What has been proved and what has not, in plain sentences.
    dictionaries : tuple of str
        The dictionaries, described.
    eigenvalues : array
        Spectrum of the support's unit columns, ascending; empty where the theory does not apply.
    weights : array
        Sizes of the weights of unit columns, descending.
    gradient : float
        The largest gradient outside the support, in the same units.
    """

    conditions: tuple[Condition, ...]
    levels: dict[str, str]
    verdict: str
    dictionaries: tuple[str, ...] = ()
    eigenvalues: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    weights: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    gradient: float = 0.0

    def __getitem__(self, name: str) -> Condition:
        for found in self.conditions:
            if found.name == name:
                return found
        known = ", ".join(found.name for found in self.conditions)
        raise KeyError(f"{name!r} is no condition of this certificate. It has {known}.")

    def __str__(self) -> str:
        width = max(len(found.name) for found in self.conditions)
        lines = [f"{found.name:<{width}}  {found.status:<7}  {found.sentence}" for found in self.conditions]
        return "\n".join([*lines, "", self.verdict])

    def plain(self) -> dict[str, Any]:
        """Give the certificate as what JSON can hold."""
        return {
            "verdict": self.verdict,
            "levels": dict(self.levels),
            "conditions": [found.plain() for found in self.conditions],
            "dictionaries": list(self.dictionaries),
        }


def certify(
    network: Network,
    X: Any,
    y: Any,
    *,
    held_out: tuple[Any, Any] | None = None,
    dictionary: str | Patterns | Sequence[str | Patterns] = ("own", "one-sided", "one-sparse"),
    precision: float | None = None,
    confidence: float = 0.99,
    random_state: int = 0,
    memory_limit: int = MEMORY_LIMIT,
) -> Certificate:
    """Certify a network on data: named conditions, three levels of uniqueness, and a verdict.

    Parameters
    ----------
    network : Network
        With direct connections these count as a neuron whose gate is always open.
    X : array of shape (n, features)
    y : array of shape (n,), or (n, outputs)
        Targets, or labels for a classifier.
    held_out : tuple of (X, y), optional
        Fresh rows from the same source.
    dictionary : str, Patterns, or a sequence of them
        The gates over which uniqueness is asked: "own", "opposite" (own and complements), "one-sided" (one of
        each pair of 1-sparse gates), "one-sparse", "two-sparse", "sampled", or patterns on the same rows. The
        network's own gates belong to each.
    precision : float, optional
        Relative rounding of the targets; by default that of float32 where all of them fit into it, else
        float64.
    confidence : float
        Of the statement about held-out rows.
    random_state : int
        Seed of sampled gates.
    memory_limit : int
        Bytes that the support's columns, and a dictionary's gates, may take.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from thresher.data.planted import planted
    >>> from thresher.theory.forms import network_of
    >>> problem = planted(n=400, d=6, hidden=3, budget=5, seed=1)
    >>> found = certify(network_of(problem), problem.X, problem.y)
    >>> found.levels["isolated"], found["fits"].status
    ('holds', 'holds')
    """
    rows, targets, answers = _checked(network, X, y)
    if not 0 < confidence < 1 or (precision is not None and not 0 < precision < 1):
        raise ParameterError(
            f"confidence={confidence} and precision={precision}, but both are numbers between 0 and 1."
        )
    reason = _out_of_reach(network)
    if reason is not None:
        return _nothing_proved(network, rows, targets, answers, reason, held_out, precision, confidence)
    _refuse_too_large(network, len(rows), memory_limit)
    fused = fused_of(network, rows)
    target = targets[:, 0]
    rounding = row_rounding(network, fused.spread, target, precision)
    residual = fused.output - target
    found = spectrum(fused.columns)
    fitting = state.fits(residual, rounding)
    dictionaries = _dictionaries(dictionary, fused, random_state, memory_limit)
    conditions = [
        fitting,
        state.enough_rows(len(rows), fused.size),
        state.decided_gates(fused),
        state.independent(fused, found),
        state.stationary(fused, residual, rounding, found),
        state.resolved(fused, residual, rounding, found, fitting.holds),
    ]
    scanned, gradient = _scanned(dictionaries, fused, residual, rounding, found)
    conditions += [*scanned, state.activity(fused), state.apart(fused), state.gaussian(rows)]
    conditions.append(state.identified(identity(network)))
    conditions += _held_out(network, held_out, rounding, precision, confidence)
    levels = levels_of(conditions, dictionaries)
    weights = np.sort(np.abs(fused.unit_weights))[::-1]
    return Certificate(
        tuple(conditions),
        levels,
        verdict_on(conditions, levels, dictionaries),
        tuple(one.description for one in dictionaries),
        found.eigenvalues,
        weights,
        gradient,
    )


def _checked(
    network: Network, X: Any, y: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Check that network and data belong together; give rows, numeric targets and the network's answers."""
    rows = checked_rows(X.toarray() if hasattr(X, "toarray") else X)
    answers = network.forward(X)
    labels = np.asarray(y)
    if labels.shape[:1] != rows.shape[:1] or labels.ndim not in (1, 2):
        raise DataError(
            f"y has shape {labels.shape}, but X has {len(rows)} rows: give one target, or one row of "
            "targets, each."
        )
    if network.classes is not None:
        known = np.isin(labels, network.classes)
        if not known.all():
            raise DataError(
                f"y holds {labels[~known][0]!r}, but the network knows the classes {list(network.classes)}."
            )
        return rows, np.searchsorted(np.sort(network.classes), labels).reshape(-1, 1).astype(float), answers
    try:
        targets = labels.astype(np.float64).reshape(len(rows), -1)
    except (TypeError, ValueError) as error:
        raise DataError(f"y holds what is not a number ({error}): this network is a regression.") from error
    if targets.shape[1] != network.outputs:
        raise DataError(
            f"y has {targets.shape[1]} columns, but the network has {network.outputs} outputs: they must be "
            "as many."
        )
    if not np.isfinite(targets).all():
        raise DataError("y holds NaN or infinity. Drop those rows.")
    return rows, targets, answers


def _refuse_too_large(network: Network, rows: int, memory_limit: int) -> None:
    """Refuse columns that would not fit, before they are made: three copies of them, and two of the gates."""
    needed = 8 * rows * (3 * network.nonzeros + 2 * (network.hidden[0] + (network.direct is not None)))
    if needed > memory_limit:
        raise MemoryLimitError(
            f"the columns of {network.nonzeros:,} nonzeros on {rows:,} rows would need {needed:,} bytes, but "
            f"memory_limit is {memory_limit:,}. Certify on fewer rows, or raise memory_limit."
        )


def _out_of_reach(network: Network) -> str | None:
    """Say why the theory does not apply, if it does not."""
    if network.classes is not None:
        return "it answers classes, and the theory is about squared error on real targets"
    if network.link != "identity":
        return f"it answers by a {network.link} link, and the theory is about squared error on its outputs"
    if len(network.layers) != 2:
        return f"it has {len(network.layers) - 1} hidden layers, and the theory covers one"
    if network.outputs != 1:
        return f"it has {network.outputs} outputs, and the theory covers one"
    if network.live_neurons == (0,):
        return "no neuron takes part in its answer"
    return None


def _nothing_proved(
    network: Network,
    rows: NDArray[np.float64],
    targets: NDArray[np.float64],
    answers: NDArray[np.float64],
    reason: str,
    held_out: tuple[Any, Any] | None,
    precision: float | None,
    confidence: float,
) -> Certificate:
    """Measure what can be measured of a network that the theory does not cover, and claim nothing."""
    conditions = []
    if network.classes is None and network.link == "identity":
        spread = np.abs(answers).max(axis=1) + np.abs(targets).max(axis=1)
        rounding = row_rounding(network, spread, np.abs(targets).max(axis=1), precision)
        conditions.append(state.fits((answers - targets).ravel(), rounding))
        conditions += _held_out(network, held_out, rounding, precision, confidence)
    conditions.append(
        state.condition("theory", None, None, f"The theory does not apply to this network: {reason}.")
    )
    conditions.append(state.gaussian(rows))
    levels = dict.fromkeys((ON_SUPPORT, ISOLATED, IN_DICTIONARY), UNKNOWN)
    verdict = f"Nothing is proved about this network: {reason}."
    return Certificate(tuple(conditions), levels, verdict)


def _dictionaries(
    asked: str | Patterns | Sequence[str | Patterns], fused: Fused, seed: int, memory_limit: int
) -> list[Dictionary]:
    """Make the dictionaries that were asked for, each with a name of its own."""
    named = (asked,) if isinstance(asked, (str, Patterns)) else tuple(asked)
    if not named:
        raise ParameterError("dictionary=(), but uniqueness is asked over at least one. Use 'own'.")
    made: list[Dictionary] = []
    for each in dict.fromkeys(named):
        one = dictionary_of(each, fused, seed, memory_limit)
        same = sum(other.name.split()[0] == one.name for other in made)
        made.append(replace(one, name=f"{one.name} {same + 1}") if same else one)
    return made


def _scanned(
    dictionaries: list[Dictionary],
    fused: Fused,
    residual: NDArray[np.float64],
    rounding: NDArray[np.float64],
    found: Spectrum,
) -> tuple[list[Condition], float]:
    """Go through every dictionary: the margin over all of them, and both dual conditions over each."""
    if found.certain <= 0:
        sentence = "Not asked, since the support's columns are dependent."
        names = ["margin", *(f"{kind} ({one.name})" for one in dictionaries for kind in DUAL)]
        return [state.condition(name, None, None, sentence) for name in names], 0.0
    scans = [scan(one, fused, residual, found) for one in dictionaries]
    conditions = [state.margin(fused, scans, rounding)]
    for one, seen in zip(dictionaries, scans, strict=True):
        whole = whole_spectrum(one, fused)
        conditions += [state.injective(one, whole), state.tropp(one, seen), state.fuchs(one, seen)]
    return conditions, max(seen.gradient for seen in scans)


def _held_out(
    network: Network,
    held_out: tuple[Any, Any] | None,
    rounding: NDArray[np.float64],
    precision: float | None,
    confidence: float,
) -> list[Condition]:
    """Count the held-out rows that agree; what counts was fixed by the rows before."""
    if held_out is None:
        return [state.condition("held out", None, None, "No held-out rows were given.")]
    rows, targets, answers = _checked(network, *held_out)
    level = state.root_mean_square(rounding)
    own = row_rounding(network, np.abs(answers).max(axis=1), np.abs(targets).max(axis=1), precision)
    allowed = state.ROUNDING_FACTOR * np.maximum(level, own)
    agree = int((np.abs(answers - targets).max(axis=1) <= allowed).sum())
    return [state.held_out(agree, len(rows), confidence)]
