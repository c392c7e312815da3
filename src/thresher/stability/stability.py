"""Stability selection: which inputs and kinks come again when a network is fitted to half of the rows.

Meinshausen and Buehlmann's stability selection on complementary pairs of half-samples, as Shah and Samworth
have it: the bound on false inputs then needs no assumption about which inputs are exchangeable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from thresher.data.rows import OnDisk
from thresher.errors import DataError, ParameterError
from thresher.explain.naming import named_inputs
from thresher.explain.parts import kept_rows
from thresher.network import Network
from thresher.network.formula import input_names, printable
from thresher.objective.loss import Huber
from thresher.stability.bounds import unimodal_bound, worst_case_bound
from thresher.stability.halves import check_halves, fit_halves
from thresher.stability.intervals import LEAST_ROWS, Interval, bootstrap_intervals, check_resampling
from thresher.stability.kinks import Kink, kinks_of, recurrences

# Rows that kinks are compared on, evenly spread ones where there are more.
COMPARED_ROWS = 2000
# Inputs that a summary lists.
LISTED = 15


@dataclass(frozen=True)
class InputStability:
    """An input, and the share of the half-samples in which it was selected.

    Attributes
    ----------
    column : int
    name : str
    frequency : float
    used : bool
        Whether the network that was fitted to all rows reads it.
    stable : bool
        Whether it was selected often enough.
    """

    column: int
    name: str
    frequency: float
    used: bool
    stable: bool


@dataclass(frozen=True)
class KinkStability:
    """A kink of the network, and the share of the half-samples in which it came again.

    Attributes
    ----------
    name : str
    columns : tuple of int
    threshold : float, optional
        Of a neuron of one input.
    unit : str
    frequency : float
    low, high : float, optional
        Between which nine of ten thresholds lay that came again.
    """

    name: str
    columns: tuple[int, ...]
    threshold: float | None
    unit: str
    frequency: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Stability:
    """How sure the structure of a network is.

    Attributes
    ----------
    inputs : tuple of InputStability
        Those that were ever selected, the most frequent first.
    kinks : tuple of KinkStability
        Those of the network, likewise; empty for several hidden layers.
    intervals : tuple of Interval
        Weights and thresholds of the network's structure; empty where there are none, `notes` says why.
    pairs : int
        Pairs of half-samples.
    rows : int
    threshold : float
        The share of half-samples from which on an input is stable.
    selected : float
        Inputs that a half-sample selected, in the mean.
    candidates : int
        Inputs there are.
    bound : float
        The expected number of false inputs among the stable ones is at most this, whatever the data are.
    bound_unimodal : float
        The same, where shares of selection have one peak.
    coverage : float
        Of the intervals.
    notes : tuple of str
    """

    inputs: tuple[InputStability, ...]
    kinks: tuple[KinkStability, ...]
    intervals: tuple[Interval, ...]
    pairs: int
    rows: int
    threshold: float
    selected: float
    candidates: int
    bound: float
    bound_unimodal: float
    coverage: float
    notes: tuple[str, ...]

    @property
    def stable(self) -> tuple[int, ...]:
        """Give the numbers of the stable inputs, ascending."""
        return tuple(sorted(each.column for each in self.inputs if each.stable))

    def plain(self) -> dict[str, Any]:
        """Give all of it as plain values, fit for JSON."""
        lists = {
            name: [dict(vars(each)) for each in getattr(self, name)]
            for name in ("inputs", "kinks", "intervals")
        }
        return {**vars(self), **lists, "stable": list(self.stable), "notes": list(self.notes)}

    def __str__(self) -> str:
        lines = [
            f"stability over {self.pairs} pairs of half-samples of {self.rows // 2:,} rows",
            f"stable inputs: {len(self.stable)} of {self.candidates:,}, in {self.threshold:.0%} of the fits "
            f"or more; {self.selected:.1f} selected in a fit",
            f"false inputs to be expected: at most {self.bound:.2g}"
            f" ({self.bound_unimodal:.2g} where shares of selection have one peak)",
        ]
        lines += _table(
            "input", [(each.name, each.frequency, "stable" * each.stable) for each in self.inputs]
        )
        lines += _table("kink", [(_where(each), each.frequency, _range(each)) for each in self.kinks])
        if self.intervals:
            lines += ["", f"{self.coverage:.0%} intervals, the structure taken as it is"]
            lines += [f"  {each.words}" for each in self.intervals]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])


def _table(head: str, rows: list[tuple[str, float, str]]) -> list[str]:
    if not rows:
        return []
    shown, width = rows[:LISTED], max(len(head), *(len(name) for name, _, _ in rows[:LISTED])) + 2
    lines = ["", f"  {head:<{width}}share"]
    lines += [f"  {name:<{width}}{share:>5.0%}  {rest}".rstrip() for name, share, rest in shown]
    return lines + ([f"  and {len(rows) - LISTED:,} more"] if len(rows) > LISTED else [])


def _where(kink: KinkStability) -> str:
    unit = f" {kink.unit}" if kink.unit else ""
    return kink.name if kink.threshold is None else f"{kink.name} at {kink.threshold:.4g}{unit}"


def _range(kink: KinkStability) -> str:
    return "" if kink.low is None else f"{kink.low:.4g} to {kink.high:.4g}"


def stability(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    pairs: int = 25,
    threshold: float = 0.75,
    coverage: float = 0.9,
    resamples: int = 200,
    random_state: int = 0,
    each: Callable[[str, int, int], object] | None = None,
) -> Stability:
    """Fit a network to both halves of the rows, again and again, and say what recurs.

    Parameters
    ----------
    estimator : SparseMLPRegressor or SparseMLPClassifier
        Fitted to these rows; copies of it are fitted to halves of them.
    X : array-like or sparse array of shape (n, inputs)
    y : array of shape (n,) or (n, targets)
    pairs : int
        Pairs of half-samples, two fits each.
    threshold : float
        The share of half-samples from which on an input is stable.
    coverage : float
        Of the intervals.
    resamples : int
        For the intervals; 0 leaves them out.
    random_state : int
    each : callable, optional
        Called after each fit with what is done ("half-samples", "resamples"), how often, and of how many.

    References
    ----------
    Shah and Samworth, "Variable selection with error control: another look at stability selection", Journal
    of the Royal Statistical Society B, 2013.
    """
    check_is_fitted(estimator, "network_")
    if pairs < 1:
        raise ParameterError(f"pairs={pairs}, but one pair of half-samples or more is needed: try 25.")
    worst_case_bound(0.0, 1, threshold)
    if resamples:
        check_resampling(coverage, resamples)
    network: Network = estimator.network_
    X, y = plain_rows(X), np.asarray(y)
    if X.shape[1] != network.inputs or X.shape[0] != len(y):
        raise DataError(
            f"X has shape {X.shape} and y {len(y):,} entries, but the estimator was fitted to "
            f"{network.inputs:,} columns, and each row needs an entry of y."
        )
    check_halves(y, network.classes is not None)
    told = None if each is None else (lambda done: each("half-samples", done, 2 * pairs))
    found = list(fit_halves(estimator, X, y, pairs, random_state, told))
    counts = np.zeros(network.inputs)
    for one in found:
        counts[one.inputs_used()] += 1
    selected = float(counts.sum()) / len(found)
    shares = counts / len(found)
    notes = list[str]()
    bound = worst_case_bound(selected, network.inputs, threshold)
    inputs = _inputs(network, shares, threshold)
    if bound >= sum(one.stable for one in inputs):
        notes.append(
            "The bound on false inputs says nothing here, because a fit selects a large part of all inputs. "
            "A smaller budget or a higher threshold makes it lower."
        )
    intervals = _intervals(estimator, X, y, coverage, resamples, random_state, notes, each)
    return Stability(
        inputs,
        _kinks(network, found, X, notes),
        intervals,
        pairs,
        len(y),
        threshold,
        selected,
        network.inputs,
        bound,
        unimodal_bound(selected, network.inputs, threshold, pairs),
        coverage,
        tuple(notes),
    )


def plain_rows(X: Any) -> Any:
    """Give rows as an array or a CSR array, frames without their names."""
    if isinstance(X, OnDisk):
        return X
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(X)
    return np.asarray(X)


def _inputs(network: Network, shares: np.ndarray, threshold: float) -> tuple[InputStability, ...]:
    called, used = input_names(network), set(network.inputs_used().tolist())
    known = dict(
        zip(network.inputs_used().tolist(), (each.plain for each in named_inputs(network)), strict=True)
    )
    order = [column for column in np.argsort(-shares, kind="stable").tolist() if shares[column] > 0]
    return tuple(
        InputStability(
            column,
            known.get(column, printable(called(column))),
            float(shares[column]),
            column in used,
            bool(shares[column] >= threshold),
        )
        for column in order
    )


def _kinks(network: Network, found: list[Network], X: Any, notes: list[str]) -> tuple[KinkStability, ...]:
    if len(network.hidden) != 1:
        notes.append("Kinks are compared for networks of one hidden layer only.")
        return ()
    rows = X[kept_rows(X.shape[0], COMPARED_ROWS)]
    own = kinks_of(network, rows)
    again = recurrences(own, [kinks_of(each, rows) for each in found])
    rated = [_rated(kink, same, len(found)) for kink, same in zip(own, again, strict=True)]
    return tuple(sorted(rated, key=lambda each: -each.frequency))


def _rated(kink: Kink, same: list[Kink], fits: int) -> KinkStability:
    places = [one.threshold for one in same if one.threshold is not None]
    low = high = None
    if kink.threshold is not None and len(places) > 1:
        low, high = (float(value) for value in np.quantile(places, (0.05, 0.95)))
    return KinkStability(kink.name, kink.columns, kink.threshold, kink.unit, len(same) / fits, low, high)


def _intervals(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    coverage: float,
    resamples: int,
    seed: int,
    notes: list[str],
    each: Callable[[str, int, int], object] | None,
) -> tuple[Interval, ...]:
    """Give intervals where they can be had, else say why not."""
    network: Network = estimator.network_
    if resamples == 0:
        return ()
    if len(network.hidden) > 1 or len(y) < LEAST_ROWS * network.nonzeros:
        why = "several hidden layers" if len(network.hidden) > 1 else "too few rows for its nonzeros"
        notes.append(f"No intervals: the network has {why}.")
        return ()
    chosen = getattr(estimator, "loss", "auto")
    # What a network's link does not tell.
    loss = Huber() if chosen == "huber" else None if isinstance(chosen, str) else chosen
    told = None if each is None else (lambda done: each("resamples", done, resamples))
    found = bootstrap_intervals(
        network, X, y, coverage=coverage, resamples=resamples, random_state=seed, loss=loss, each=told
    )
    return tuple(found)
