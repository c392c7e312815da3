"""If-then tables: what each input adds between its thresholds, where inputs do not depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.explain.naming import Named, named_inputs
from thresher.explain.parts import parts_of, rows_read
from thresher.explain.readable import DIGITS, MOST_ROWS
from thresher.explain.rounding import checked_digits, significant
from thresher.explain.terms import SAME, Hinge, Linear, Sum, sum_of
from thresher.explain.wording import number_text
from thresher.network.structure import Structure


@dataclass(frozen=True)
class Rule:
    """What an input adds to an output within an interval: ``value + slope * (x - start)``.

    Attributes
    ----------
    column : int
        The number of the input.
    name : str
    output : int
    low, high : float
        The interval, infinite at its ends.
    start : float
        Where `value` is added: the end of the interval that is finite, else 0.
    value, slope : float
    condition, then : str
        The same in words.
    rows : int, optional
        Rows within the interval.
    """

    column: int
    name: str
    output: int
    low: float
    high: float
    start: float
    value: float
    slope: float
    condition: str
    then: str
    rows: int | None = None


def rules(network: Structure, X: Any = None, *, digits: int | None = None) -> list[Rule]:
    """Write a network whose neurons read one input each as if-then tables, one for each input and output.

    The output, before any link, is the constant of `explain` and what one rule of every input adds.

    Parameters
    ----------
    network : Network
    X : array-like or sparse array of shape (n, inputs), optional
        Rows to count in each interval.
    digits : int, optional
        Significant digits in words; 4 by default.

    Raises
    ------
    ParameterError
        When a neuron reads several inputs, with the names of these.

    Examples
    --------
    >>> from thresher import Network
    >>> network = Network.fused([[0.2]], [-20.0], [1], direct=[0.1], features=["minutes"])
    >>> for rule in rules(network):
    ...     print(f"if {rule.condition}: {rule.then}")
    if minutes up to 100: 0.1*minutes
    if minutes above 100: 10 + 0.3*(minutes - 100)
    """
    parts = parts_of(network)
    digits = checked_digits(DIGITS if digits is None else digits)
    named = named_inputs(network)
    if parts.interacting:
        together = ", ".join(named[place].plain for place in sorted(parts.interacting)[:6])
        raise ParameterError(
            f"if-then tables are for networks whose neurons read one input each, but {together} are read "
            "together. Fit with max_fan_in=1, or look at effects()."
        )
    rows = None if X is None else rows_read(network, X, MOST_ROWS)
    indicators = frozenset(place for place, name in enumerate(named) if name.value is not None)
    found = []
    for output in range(network.outputs):
        whole = sum_of(parts, output, indicators, np.ones(len(parts.read)), None)
        for place in dict.fromkeys(term.places[0] for term in whole.terms):
            values = None if rows is None else rows[:, place]
            own = _table(whole, place, named[place], values, digits)
            found += [(int(parts.read[place]), output, *one) for one in own]
    return [
        Rule(column, named[_at(parts.read, column)].plain, output, *rest) for column, output, *rest in found
    ]


def _at(read: np.ndarray, column: int) -> int:
    return int(np.searchsorted(read, column))


def _table(
    whole: Sum, place: int, name: Named, values: np.ndarray | None, digits: int
) -> list[tuple[Any, ...]]:
    """Give low, high, start, value, slope, condition, then and rows of every interval of one input."""
    terms = [term for term in whole.terms if term.places == (place,)]
    slope = sum(term.slope for term in terms if isinstance(term, Linear))
    hinges = [term for term in terms if isinstance(term, Hinge)]
    if name.value is not None and not hinges:
        shown = f"{'-' if slope < 0 else ''}{number_text(significant(slope, digits))}"
        count = None if values is None else int((values == 1).sum())
        return [(1.0, 1.0, 1.0, slope, 0.0, name.label, shown, count)]
    cuts = _apart([hinge.threshold for hinge in hinges])
    ends = [-np.inf, *cuts, np.inf]
    found = []
    for low, high in pairwise(ends):
        start = low if np.isfinite(low) else high if np.isfinite(high) else 0.0
        middle = _between(low, high)
        on = [hinge for hinge in hinges if hinge.side * (middle - hinge.threshold) > 0]
        steep = slope + sum(hinge.side * hinge.slope for hinge in on)
        value = slope * start + sum(hinge.slope * hinge.side * (start - hinge.threshold) for hinge in on)
        # A flat piece next to zero is zero but for rounding.
        scale = abs(slope) + sum(abs(hinge.slope) for hinge in hinges)
        steep = 0.0 if abs(steep) <= SAME * scale else steep
        value = 0.0 if abs(value) <= SAME * scale * max(1e-300, *map(abs, cuts or [1.0])) else value
        count = None if values is None else int(((values > low) & (values <= high)).sum())
        words = _condition(name, low, high, digits), _then(name, start, value, steep, digits)
        found.append((low, high, start, value, steep, *words, count))
    return found


def _apart(thresholds: Sequence[float]) -> list[float]:
    """Give thresholds in order, those that are the same but for rounding once."""
    found: list[float] = []
    for threshold in sorted(thresholds):
        if not found or threshold - found[-1] > SAME * abs(threshold):
            found.append(threshold)
    return found


def _between(low: float, high: float) -> float:
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    step = max(1.0, abs(low if np.isfinite(low) else high if np.isfinite(high) else 0.0))
    return low + step if np.isfinite(low) else high - step if np.isfinite(high) else 0.0


def _signed(value: float, digits: int) -> str:
    value = significant(value, digits)
    return f"{'-' if value < 0 else ''}{number_text(value)}"


def _condition(name: Named, low: float, high: float, digits: int) -> str:
    bottom, top = _signed(low, digits), _signed(high, digits)
    if np.isfinite(low) and np.isfinite(high):
        return f"{name.label} from {bottom} to {top}{name.after}"
    if np.isfinite(low):
        return f"{name.label} above {bottom}{name.after}"
    return f"{name.label} up to {top}{name.after}" if np.isfinite(high) else f"any {name.label}"


def _then(name: Named, start: float, value: float, slope: float, digits: int) -> str:
    if slope == 0:
        return _signed(value, digits)
    number, sign = number_text(significant(slope, digits)), "-" if slope < 0 else ""
    size = "" if number == "1" else f"{number}*"
    # A line through zero needs no start.
    if abs(value - slope * start) <= SAME * abs(value):
        return f"{sign}{size}{name.label}"
    away = f"{name.label} {'+' if start < 0 else '-'} {number_text(significant(start, digits))}"
    head = "" if value == 0 else f"{_signed(value, digits)} {'-' if slope < 0 else '+'} "
    return f"{head}{sign if not head else ''}{size}({away})"
