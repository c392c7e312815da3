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

from thresher.errors import ParameterError
from thresher.network import Network
from thresher.theory import conditions as state
from thresher.theory.conditions import UNKNOWN, Condition
from thresher.theory.dictionary import Dictionary, Scan, dictionary_of
from thresher.theory.distinct import new_rows
from thresher.theory.effects import margin, smallest_kept
from thresher.theory.levels import EXACT_ONLY, IN_DICTIONARY, ISOLATED, ON_SUPPORT, levels_of, verdict_on
from thresher.theory.outputs import Output, conditions_of, outputs_of, scanned, shared, stacked
from thresher.theory.patterns import MEMORY_LIMIT, Patterns, joined
from thresher.theory.rounding import Precision, label_precision, rounding_of, spread_of
from thresher.theory.subject import checked, network_of_estimator, out_of_reach, refuse_too_large


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
            "conditions": [
                {**found.plain(), "for_noisy_rows": found.name.split(" (")[0] not in EXACT_ONLY}
                for found in self.conditions
            ],
            "dictionaries": list(self.dictionaries),
        }


def certify(
    network: Any,
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
    network : Network, or a fitted estimator
        Direct connections count as a neuron whose gate is always open, several outputs as the stack of
        networks with one. Of a pipeline or a search that ends in an estimator of Thresher it is the network
        in it, on rows that the pipeline takes.
    X : array of shape (n, features)
    y : array of shape (n,), or (n, outputs)
        Targets, or labels for a classifier.
    held_out : tuple of (X, y), optional
        Fresh rows from the same source. Those that are among X, or repeat, do not count.
    dictionary : str, Patterns, or a sequence of them
        The gates over which uniqueness is asked: "own", "opposite" (own and complements), "one-sided" (one of
        each pair of 1-sparse gates), "one-sparse", "two-sparse", "sampled", or patterns on the same rows. The
        network's own gates belong to each.
    precision : float, optional
        Rounding of the targets, relative to each and to the root mean square of all; by default that of
        float32, relative to each, where all of them fit into it, else float64.
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
    network, encode = network_of_estimator(network)
    X = encode(X)
    held_out = None if held_out is None else (encode(held_out[0]), held_out[1])
    rows, targets, answers = checked(network, X, y)
    if not 0 < confidence < 1 or (precision is not None and not 0 < precision < 1):
        raise ParameterError(
            f"confidence={confidence} and precision={precision}, but both are numbers between 0 and 1."
        )
    labels = label_precision(targets, precision)
    fresh = _held_out(network, rows, held_out, labels, confidence)
    reason = out_of_reach(network)
    if reason is not None:
        return _nothing_proved(network, rows, targets, answers, reason, fresh, labels)
    refuse_too_large(network, len(rows), memory_limit)
    outputs = outputs_of(network, rows, targets, labels)
    asked = _dictionaries(dictionary, outputs, random_state, memory_limit)
    seen = [scanned(output, own) for output, own in zip(outputs, asked, strict=True)]
    parts = [[*conditions_of(output), *found] for output, (found, _) in zip(outputs, seen, strict=True)]
    conditions = stacked(parts, shared(network))
    largest, conditions_of_margin = _margin(outputs, [scans for _, scans in seen])
    conditions += [conditions_of_margin, state.gaussian(rows), fresh]
    dictionaries = _described(asked)
    levels = levels_of(conditions, dictionaries)
    return Certificate(
        tuple(conditions),
        levels,
        verdict_on(conditions, levels, dictionaries, network.outputs),
        tuple(one.description for one in dictionaries),
        np.sort(np.concatenate([output.spectrum.eigenvalues for output in outputs])),
        np.sort(np.concatenate([np.abs(output.fused.unit_weights) for output in outputs]))[::-1],
        largest,
    )


def _margin(outputs: Sequence[Output], scans: Sequence[Sequence[Scan]]) -> tuple[float, Condition]:
    """Give the largest gradient outside the support, and whether it reaches the smallest weight inside.

    Thresholding holds one budget for all outputs, so that any weight may be exchanged for any other.
    """
    if any(output.refit is None for output in outputs):
        sentence = "Not asked, since the support's columns are dependent."
        return 0.0, state.condition("margin", None, None, sentence)
    gradient = max(seen.gradient for each in scans for seen in each)
    blur = max(float(np.linalg.norm(output.rounding.rows)) for output in outputs)
    smallest = min(smallest_kept(output.fused, output.residual) for output in outputs)
    return gradient, margin(smallest, gradient + blur)


def _nothing_proved(
    network: Network,
    rows: NDArray[np.float64],
    targets: NDArray[np.float64],
    answers: NDArray[np.float64],
    reason: str,
    fresh: Condition,
    precision: Precision,
) -> Certificate:
    """Measure what can be measured of a network that the theory does not cover, and claim nothing."""
    conditions = []
    if network.classes is None and network.link == "identity":
        conditions.append(state.fits(answers - targets, _rounding(network, rows, targets, precision)))
        conditions.append(fresh)
    conditions.append(
        state.condition("theory", None, None, f"The theory does not apply to this network: {reason}.")
    )
    conditions.append(state.gaussian(rows))
    levels = dict.fromkeys((ON_SUPPORT, ISOLATED, IN_DICTIONARY), UNKNOWN)
    verdict = f"Nothing is proved about this network: {reason}."
    return Certificate(tuple(conditions), levels, verdict)


def _dictionaries(
    asked: str | Patterns | Sequence[str | Patterns],
    outputs: Sequence[Output],
    seed: int,
    memory_limit: int,
) -> list[list[Dictionary]]:
    """Make the dictionaries that were asked for, each with a name of its own, around every output."""
    named = (asked,) if isinstance(asked, (str, Patterns)) else tuple(asked)
    if not named:
        raise ParameterError("dictionary=(), but uniqueness is asked over at least one. Use 'own'.")
    # A gate of the network is its own, whichever output it leads to.
    others = None if len(outputs) == 1 else joined(*(output.fused.patterns for output in outputs))
    around = []
    for output in outputs:
        made: list[Dictionary] = []
        for each in dict.fromkeys(named):
            one = dictionary_of(each, output.fused, seed, memory_limit, others)
            same = sum(other.name.split()[0] == one.name for other in made)
            made.append(replace(one, name=f"{one.name} {same + 1}") if same else one)
        around.append(made)
    return around


def _described(around: Sequence[Sequence[Dictionary]]) -> list[Dictionary]:
    """Describe each dictionary once for all outputs."""
    if len(around) == 1:
        return list(around[0])
    largest = [max(same, key=lambda one: one.columns) for same in zip(*around, strict=True)]
    each = f", for each of {len(around)} outputs"
    return [replace(one, description=one.description + each) for one in largest]


def _rounding(
    network: Network, rows: NDArray[np.float64], targets: NDArray[np.float64], precision: Precision
) -> NDArray[np.float64]:  # (n, outputs)
    """Bound rounding on every row of every output."""
    spread = spread_of(network, rows)
    columns = zip(spread.T, targets.T, strict=True)
    return np.column_stack([rounding_of(network, size, each, precision).rows for size, each in columns])


def _held_out(
    network: Network,
    rows: NDArray[np.float64],
    given: tuple[Any, Any] | None,
    precision: Precision,
    confidence: float,
) -> Condition:
    """Count the held-out rows that agree, of those that are new."""
    if given is None:
        return state.condition("held out", None, None, "No held-out rows were given.")
    fresh, targets, answers = checked(network, *given)
    new = new_rows(fresh, rows)
    if network.classes is not None or network.link != "identity":
        return state.condition("held out", None, None, "Not asked of answers that are no plain numbers.")
    if not len(new):
        return state.condition(
            "held out", None, None, "Every held-out row is among the others, and proves nothing new."
        )
    allowed = state.ROUNDING_FACTOR * _rounding(network, fresh, targets, precision)
    agree: NDArray[np.bool_] = np.all(np.abs(answers - targets) <= allowed, axis=1)
    return state.held_out(int(agree[new].sum()), len(new), confidence)
