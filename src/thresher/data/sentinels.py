"""Numbers such as -999 that stand for a missing value: far outside the rest of a column, and repeated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thresher.data.columns import option

# A value has to come this often, which chance seldom does to the extreme of a measured column, and the rest
# to have this many different values, since few are codes.
REPEATS, DIFFERENT = 3, 8
# How far it has to be from the rest: that share of the rest's own range.
AWAY = 1.0
# Digits of a number of nines that needs to come twice only: -99, 999 and more.
NINES = 2


def sentinels(values: np.ndarray) -> list[float]:
    """Give the values of a column that look like marks of missing ones, the lowest first.

    Parameters
    ----------
    values : array of shape (n,)
        NaN where a value is missing.

    Examples
    --------
    >>> sentinels(np.array([*range(20, 60), -999.0, -999.0, 9999.0, 9999.0]))
    [-999.0, 9999.0]
    >>> sentinels(np.array([*range(20, 60), 75.0, 75.0, 75.0]))
    []
    """
    known = values[np.isfinite(values)]
    if len(known) <= DIFFERENT or max((known == known.min()).sum(), (known == known.max()).sum()) < 2:
        # Most columns need not be sorted.
        return []
    different, counts = np.unique(known, return_counts=True)
    found: list[float] = []
    while len(different) > DIFFERENT + 1:
        end = next((end for end in (0, -1) if _stands_apart(different, counts, end)), None)
        if end is None:
            break
        found.append(float(different[end]))
        different, counts = np.delete(different, end), np.delete(counts, end)
    return sorted(found)


def pointed_out(values: np.ndarray, name: str, known: Sequence[float] = ()) -> tuple[str, str] | None:
    """Say which values of a column look like marks of missing ones, and by which option they become so.

    Parameters
    ----------
    values : array of shape (n,)
    name : str
        The column.
    known : sequence of float
        Marks that the user has told.

    Examples
    --------
    >>> pointed_out(np.array([*range(20, 60), -999.0, -999.0]), "age")
    ('-999 2 times, far from all others: a missing value?', '--as age=number:-999')
    """
    found = sentinels(values)
    if not found:
        return None
    told = " and ".join(f"{value:.15g} {int((values == value).sum()):,} times" for value in found)
    marks = ",".join(f"{value:.15g}" for value in (*known, *found))
    return f"{told}, far from all others: a missing value?", option(f"number:{marks}", name)


def _stands_apart(different: np.ndarray, counts: np.ndarray, end: int) -> bool:
    """Tell whether the lowest value (0) or the highest (-1) is repeated and far from the others."""
    value, other = float(different[end]), -1 - end
    # What is repeated at the other end may be another such value, and no part of the rest.
    rest = np.delete(different, [end, other] if counts[other] > 1 else [end])
    away = abs(value - float(rest[end])) > AWAY * float(rest[-1] - rest[0])
    return away and value == np.floor(value) and bool(counts[end] >= (2 if _nines(value) else REPEATS))


def _nines(value: float) -> bool:
    digits = f"{abs(value):.0f}"
    return len(digits) >= (NINES if value < 0 else NINES + 1) and set(digits) == {"9"}
