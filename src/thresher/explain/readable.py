"""A network in words: its formula with terms in order, thresholds in units, and as many digits as matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.explain.deviance import Deviance
from thresher.explain.naming import Named, named_inputs
from thresher.explain.parts import Parts, kept_rows, parts_of, rows_read
from thresher.explain.rounding import (
    MOST_DIGITS,
    checked_digits,
    digits_of,
    rounded_alike,
    rounded_by,
    significant,
)
from thresher.explain.terms import Hinge, Sum, Term, sum_of
from thresher.explain.wording import formula_text, product_text
from thresher.network.formula import MOST_NONZEROS, left_sides, printable, text
from thresher.network.layer import Layer
from thresher.network.metadata import spread_of
from thresher.network.structure import Structure

# Rows on which terms are measured, evenly spread ones where there are more.
MOST_ROWS = 5000
# Digits where no rows tell how many matter.
DIGITS = 4
# With targets, rounding may cost this share of what one more parameter gains by chance; without, it may move
# the outputs by this share of their spread.
WORTH, MOVED = 0.25, 1e-3


@dataclass(frozen=True)
class Written:
    """A term of a formula.

    Attributes
    ----------
    output : int
    text : str
    moves : float, optional
        The standard deviation over rows of what it adds to the output.
    on : float, optional
        The share of rows on which it adds anything.
    """

    output: int
    text: str
    moves: float | None
    on: float | None


@dataclass(frozen=True)
class Explanation:
    """A network in words, and what writing it this way costs.

    Attributes
    ----------
    formula : str
        A line for each output.
    terms : tuple of Written
        Those of every output, the one that moves it most first; empty for several hidden layers.
    outputs : tuple of str
        What outputs are called.
    digits : int
        Significant digits of the number that has most.
    rows : int
        Rows it was measured on.
    measure : str, optional
        The score below.
    exact, written : float, optional
        The score of the network, and that of the formula as it is written.
    notes : tuple of str
        What the formula takes for granted.
    """

    formula: str
    terms: tuple[Written, ...]
    outputs: tuple[str, ...]
    digits: int
    rows: int
    measure: str | None
    exact: float | None
    written: float | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [self.formula]
        if self.terms:
            width = max(len(term.text) for term in self.terms)
            outputs = len({term.output for term in self.terms}) > 1
            lines += ["", f"{'term':<{width}}  {'moves by':>9}  {'on for':>6}{'  of' if outputs else ''}"]
            for term in self.terms:
                moves = "-" if term.moves is None else f"{term.moves:.3g}"
                on = "-" if term.on is None else f"{term.on:.0%}"
                of = f"  {self.outputs[term.output]}" if outputs else ""
                lines.append(f"{term.text:<{width}}  {moves:>9}  {on:>6}{of}")
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])

    def plain(self) -> dict[str, Any]:
        """Give all of it as plain values, fit for JSON."""
        terms = [vars(term) for term in self.terms]
        return {**vars(self), "terms": [dict(term) for term in terms], "notes": list(self.notes)}


def explain(
    network: Structure,
    X: Any = None,
    y: Any = None,
    *,
    digits: int | None = None,
    names: Sequence[str] | None = None,
) -> Explanation:
    """Write a network in words.

    Linear parts are written as linear, terms that differ by a factor as one, and those that matter most come
    first. A neuron of one input is a kink at a threshold: ``0.2*(minutes above 100)`` is 0.2 times how far
    minutes are above 100, and nothing where they are not. With rows, a neuron that is on for all of them is
    linear, and one that is never on is left out.

    Parameters
    ----------
    network : Network
    X : array-like or sparse array of shape (n, inputs), optional
        Rows to measure on; at most 5,000 of them are looked at.
    y : array of shape (n,) or (n, targets), optional
        Their targets or labels.
    digits : int, optional
        Significant digits of all numbers. By default as many as the rows can tell: rounding costs less than a
        quarter of what one parameter gains by chance (with targets), or moves the outputs by less than a
        thousandth of their spread; without rows, 4.
    names : sequence of str, optional
        Names of the inputs, instead of the network's own.

    Examples
    --------
    >>> from thresher import Network
    >>> network = Network.fused([[0.2], [0.0]], [-20.0], [1], output_bias=9.0, features=["minutes", "photos"])
    >>> explain(network).formula
    'y = 0.2*(minutes above 100) + 9'
    """
    if network.nonzeros > MOST_NONZEROS:
        raise ParameterError(
            f"a formula of {network.nonzeros:,} nonzeros is too long to read (at most {MOST_NONZEROS}): use "
            "describe() or effects(), or fit with a smaller budget."
        )
    if digits is not None:
        checked_digits(digits)
    rows = None if X is None else rows_read(network, X, MOST_ROWS)
    if X is None and y is not None:
        raise ParameterError("y came without X: give the rows that these are the targets of.")
    deviance = None
    if rows is not None and y is not None:
        count = _count(X)
        given = np.asarray(y)
        if len(given) != count:
            raise ParameterError(
                f"y has {len(given):,} entries, but X has {count:,} rows: give one for each."
            )
        deviance = Deviance.of(network, given[kept_rows(count, MOST_ROWS)])
    parts = parts_of(network)
    if parts.deep is not None:
        return _nested(network, parts, rows, deviance, digits, names, 0 if X is None else _count(X))
    called = named_inputs(network, names)
    sums = _sums(network, parts, rows, called)
    written = _rounded(network, sums, rows, deviance, digits)
    formula = formula_text(network, written, called)
    terms = tuple(
        _measured(term, output, rows, called) for output, each in enumerate(written) for term in each.terms
    )
    before = None if rows is None else parts.values(rows)
    after = None if rows is None else np.column_stack([each.values(rows) for each in written])
    notes = (*_notes(written, rows), *_reading(written))
    found = _result(deviance, before, after, 0 if X is None else _count(X))
    return replace(
        found,
        formula=formula,
        terms=terms,
        outputs=tuple(left_sides(network, printable, printable)),
        digits=_most_digits(written),
        notes=notes + found.notes,
    )


def _sums(network: Structure, parts: Parts, rows: np.ndarray | None, called: Sequence[Named]) -> list[Sum]:
    spread = spread_of(network.details, network.inputs)
    scale = np.ones(len(parts.read)) if spread is None else spread[parts.read]
    indicators = {place for place, name in enumerate(called) if name.value is not None}
    if rows is not None:
        indicators |= {place for place in range(rows.shape[1]) if np.isin(rows[:, place], (0.0, 1.0)).all()}
    chosen = frozenset(indicators)
    return [sum_of(parts, output, chosen, scale, rows) for output in range(network.outputs)]


def _rounded(
    network: Structure,
    sums: list[Sum],
    rows: np.ndarray | None,
    deviance: Deviance | None,
    digits: int | None,
) -> list[Sum]:
    if digits is not None or rows is None:
        return rounded_alike(sums, digits or DIGITS)
    exact = np.column_stack([each.values(rows) for each in sums])

    curvature = 1.0 if deviance is None else deviance.curvature(exact)

    def cost(trial: Sequence[Sum]) -> float:
        outputs = np.column_stack([each.values(rows) for each in trial])
        return float((curvature * (outputs - exact) ** 2).sum())

    return rounded_by(sums, cost, _allowed(exact, deviance, network.nonzeros))


def _allowed(exact: np.ndarray, deviance: Deviance | None, parameters: int) -> float:
    if deviance is None:
        return float(MOVED**2 * exact.var(axis=0).sum() * len(exact))
    return WORTH * deviance.worth(exact, parameters)


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _result(
    deviance: Deviance | None, before: np.ndarray | None, after: np.ndarray | None, given: int
) -> Explanation:
    """Say what the outputs as written are worth beside those of the network, on some of the rows given."""
    empty = Explanation("", (), (), 0, 0 if before is None else len(before), None, None, None, ())
    if before is None or after is None:
        return empty
    if deviance is None:
        moved = float(np.sqrt(((after - before) ** 2).mean()))
        return replace(empty, notes=(f"As written, outputs move by {moved:.2g} (root mean square).",))
    (measure, exact), (_, written) = deviance.score(before), deviance.score(after)
    rows = f"{len(before):,}" if len(before) == given else f"{len(before):,} of {given:,}"
    note = f"{measure} {exact:.4f} as fitted, {written:.4f} as written, on {rows} rows."
    return replace(empty, measure=measure, exact=exact, written=written, notes=(note,))


def _nested(
    network: Structure,
    parts: Parts,
    rows: np.ndarray | None,
    deviance: Deviance | None,
    digits: int | None,
    names: Sequence[str] | None,
    given: int,
) -> Explanation:
    """Write several hidden layers, nested, all numbers with the same digits."""
    if rows is None:
        chosen = digits or DIGITS
        return Explanation(text(network, names, chosen), (), (), chosen, 0, None, None, None, ())
    exact = parts.values(rows)
    limit = _allowed(exact, deviance, network.nonzeros)
    curvature = 1.0 if deviance is None else deviance.curvature(exact)
    tried = range(1, MOST_DIGITS + 1) if digits is None else (digits,)
    for chosen in tried:
        after = parts_of(_with_digits(network, chosen)).values(rows)
        if float((curvature * (after - exact) ** 2).sum()) <= limit:
            break
    found = _result(deviance, exact, after, given)
    note = "Several hidden layers: terms are nested, and have no order."
    return replace(found, formula=text(network, names, chosen), digits=chosen, notes=(note, *found.notes))


def _with_digits(network: Structure, digits: int) -> Structure:
    """Give a network whose numbers are rounded; what reads an input still reads it."""
    round_all = np.vectorize(lambda value: significant(float(value), digits), otypes=[float])

    def rounded(weights: Any) -> Any:
        weights = weights.astype(np.float64)
        weights.data = round_all(weights.data) if weights.nnz else weights.data
        return weights

    layers = tuple(
        Layer(rounded(each.weights), round_all(each.bias), each.signs_only) for each in network.layers
    )
    direct = None if network.direct is None else rounded(network.direct)
    return Structure(layers, network.classes, network.link, network.features, {}, direct)


def _measured(term: Term, output: int, rows: np.ndarray | None, called: Sequence[Named]) -> Written:
    weight, shown = product_text(term, called)
    shown = f"-{shown}" if weight < 0 else shown
    if rows is None:
        return Written(output, shown, None, None)
    return Written(output, shown, float(term.values(rows).std()), float(term.on(rows).mean()))


def _most_digits(sums: Sequence[Sum]) -> int:
    return max(digits_of(number) for each in sums for number in each.numbers)


def _notes(sums: Sequence[Sum], rows: np.ndarray | None) -> tuple[str, ...]:
    if rows is None:
        return ()
    silent, always = (max(getattr(each, what) for each in sums) for what in ("silent", "always"))
    told = []
    for count, what in (
        (silent, "never on and left out"),
        (always, "on for all of them and written as linear"),
    ):
        if count:
            verb = "neuron is" if count == 1 else "neurons are"
            told.append(f"On these {len(rows):,} rows {count} {verb} {what}.")
    return tuple(told)


def _reading(sums: Sequence[Sum]) -> tuple[str, ...]:
    """Explain how thresholds are written, where any is."""
    hinges = [term for each in sums for term in each.terms if isinstance(term, Hinge)]
    if not hinges:
        return ()
    return ("(x above t) is how far x is above t, and 0 where it is not; (x below t) likewise.",)
