"""Numbers with as many digits as the data can tell: rounding them costs less than one parameter is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thresher.errors import ParameterError
from thresher.explain.terms import Sum

# Digits that are written at most where their number is left open.
MOST_DIGITS = 8
# How often what numbers may cost each is halved, until all of them together cost no more than is allowed.
HALVINGS = 20


def significant(value: float, digits: int) -> float:
    """Round to so many significant digits.

    Examples
    --------
    >>> significant(300.1637, 4), significant(-0.00012345, 2)
    (300.2, -0.00012)
    """
    return float(f"{value:.{digits}g}")


def digits_of(value: float) -> int:
    """Count the significant digits that tell a number from all others.

    Examples
    --------
    >>> digits_of(0.1), digits_of(300.0), digits_of(-1.25)
    (1, 1, 3)
    """
    return next(digits for digits in range(1, 18) if significant(value, digits) == value)


def checked_digits(digits: int) -> int:
    """Refuse digits that no number has."""
    if not 1 <= digits <= 17:
        raise ParameterError(f"digits={digits}, but a number has between 1 and 17 significant digits.")
    return digits


def rounded_alike(sums: Sequence[Sum], digits: int) -> list[Sum]:
    """Round all numbers to the same digits."""
    return [each.rounded(tuple(significant(number, digits) for number in each.numbers)) for each in sums]


def rounded_by(
    sums: Sequence[Sum],
    cost: Callable[[Sequence[Sum]], float],
    allowed: float,
    most: int = MOST_DIGITS,
) -> list[Sum]:
    """Give every number the fewest digits with which all of them together cost no more than is allowed.

    Parameters
    ----------
    sums : sequence of Sum
    cost : callable
        What other sums cost, such as the sum of squares by which they differ from these.
    allowed : float
        How much they may cost.
    most : int
        Digits at most.
    """
    share = allowed / max(1, sum(len(each.numbers) for each in sums))
    for _ in range(HALVINGS):
        found = [_fewest(sums, number, cost, share, most) for number in range(len(sums))]
        if cost(found) <= allowed:
            return found
        share /= 2
    return rounded_alike(sums, most)


def _fewest(
    sums: Sequence[Sum], which: int, cost: Callable[[Sequence[Sum]], float], limit: float, most: int
) -> Sum:
    """Round each number of one sum by itself, the others as they are."""
    exact, rounded = sums[which].numbers, []
    for place, number in enumerate(exact):
        for digits in range(1, most + 1):
            value = significant(number, digits)
            trial = sums[which].rounded((*exact[:place], value, *exact[place + 1 :]))
            if value == number or cost([*sums[:which], trial, *sums[which + 1 :]]) <= limit:
                break
        rounded.append(value)
    return sums[which].rounded(tuple(rounded))
