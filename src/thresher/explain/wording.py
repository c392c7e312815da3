"""Terms and sums as text, in the words of the user's columns."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.explain.naming import Named
from thresher.explain.rounding import digits_of
from thresher.explain.terms import Hinge, Linear, Sum, Term
from thresher.network.formula import PLAIN, in_brackets, left_sides, printable
from thresher.network.structure import Structure


def formula_text(network: Structure, sums: Sequence[Sum], called: Sequence[Named]) -> str:
    """Write a line for each output."""
    around = PLAIN.links.get(network.link, "{}".format)
    lines = []
    for left, each in zip(left_sides(network, in_brackets, printable), sums, strict=True):
        pairs = [product_text(term, called) for term in each.terms]
        if each.constant or not pairs:
            pairs.append((each.constant, number_text(each.constant)))
        joined = ""
        for weight, shown in pairs:
            sign = "-" if weight < 0 else "+"
            joined += f" {sign} {shown}" if joined else sign.strip("+") + shown
        lines.append(f"{left} = {around(joined)}")
    return "\n".join(lines)


def number_text(value: float) -> str:
    """Write a number's size with the digits that it has."""
    return f"{abs(value):.{max(15, digits_of(value))}g}"


def product_text(term: Term, called: Sequence[Named]) -> tuple[float, str]:
    """Give the sign of a term, as a number, and the term without it."""
    if isinstance(term, Linear):
        return term.slope, _times(term.slope, called[term.place].name)
    if isinstance(term, Hinge):
        return term.slope, _times(term.slope, f"({side_text(called[term.place], term.side, term.threshold)})")
    inner = ""
    for weight, place in zip(term.weights, term.read, strict=True):
        sign = "-" if weight < 0 else "+"
        shown = _times(weight, called[place].name)
        inner += f" {sign} {shown}" if inner else sign.strip("+") + shown
    if term.bias:
        inner += f" {'-' if term.bias < 0 else '+'} {number_text(term.bias)}"
    return float(term.sign), f"relu({inner})"


def side_text(name: Named, side: int, threshold: float) -> str:
    """Say on which side of a threshold an input is.

    Examples
    --------
    >>> side_text(Named("[t [K]]", "t", "t", "K"), 1, -300.2)
    't above -300.2 K'
    """
    sign = "-" if threshold < 0 else ""
    where = "above" if side > 0 else "below"
    return f"{name.label} {where} {sign}{number_text(threshold)}{name.after}"


def _times(weight: float, what: str) -> str:
    number = number_text(weight)
    return what if number == "1" else f"{number}*{what}"
