"""What data may not hold: text, bytes, dates and durations, which NumPy turns into numbers without a word."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from thresher.data.rows import OnDisk
from thresher.errors import DataError

# Kinds of types that are numbers, whatever their values; complex ones are scikit-learn's to refuse.
NUMERIC_KINDS = "biufc"

ENCODE = "Convert it with astype(float) if it spells numbers, or encode it, such as by OneHotEncoder."
NOT_NUMBERS: tuple[tuple[tuple[type, ...], str, str], ...] = (
    ((str,), "text", ENCODE),
    ((bytes, bytearray), "bytes", ENCODE),
    ((timedelta, np.timedelta64), "durations", "Give their length as a number, such as of seconds."),
    ((date, time, np.datetime64), "dates", "Give numbers instead, such as days since some date, or months."),
)
EVERY_TYPE = tuple(kind for kinds, _, _ in NOT_NUMBERS for kind in kinds)

# Characters of a value that are quoted in a message.
QUOTED = 40


def refuse_all_but_numbers(name: str, values: Any) -> None:
    """Refuse data with text, bytes, dates or durations in it; of what else is wrong scikit-learn tells.

    Objects that are numbers are numbers, and a column of categories is what its categories are.

    Parameters
    ----------
    name : str
        What the data is called: X or y.
    values : array-like, frame or sparse array of shape (n,) or (n, d)

    Examples
    --------
    >>> refuse_all_but_numbers("X", [[1, 2.5], [3, "4"]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    thresher.errors.DataError: column 1 of X holds text ('4'), but a network computes with numbers. Convert...
    """
    for column, entries in _columns_in_doubt(values):
        # Types first: a set of them is an order of magnitude faster than a look at every entry.
        if not any(issubclass(kind, EVERY_TYPE) for kind in set(map(type, entries))):
            continue
        found = next(entry for entry in entries if isinstance(entry, EVERY_TYPE))
        what, advice = next((what, advice) for kinds, what, advice in NOT_NUMBERS if isinstance(found, kinds))
        shown = repr(found[:QUOTED]) if isinstance(found, (str, bytes, bytearray)) else str(found)
        where = name if column is None else f"column {column!r} of {name}"
        raise DataError(f"{where} holds {what} ({shown}), but a network computes with numbers. {advice}")


def as_frame(X: Any) -> Any:
    """Make a frame of pandas of one of another library, such as polars; anything else stays as it is.

    A frame is told by names of columns and `to_numpy`, and by what pandas has and arrays lack.

    Examples
    --------
    >>> as_frame([[1.0]])
    [[1.0]]
    """
    names = getattr(X, "columns", None)
    if names is None or hasattr(X, "iloc") or not callable(getattr(X, "to_numpy", None)):
        return X
    return pd.DataFrame(X.to_numpy(), columns=list(names))


def target_of(X: Any, y: Any) -> Any:
    """Give the targets that came, or those that rows on disk bring along."""
    if y is not None or not isinstance(X, OnDisk):
        return y
    if X.target is None:
        raise DataError(
            f"{X!r} came without a target: name it in open_rows(path, target=...), or give y beside the rows."
        )
    return X.target


def part_of(X: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Give some of the rows, and their numbers: those on disk stay there, and in their order."""
    if not isinstance(X, OnDisk):
        return X[rows], rows
    rows = np.sort(rows)
    return X.take(rows), rows


def _columns_in_doubt(values: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the name or number of every column whose type does not say that it holds numbers, and the column.

    Data of one dimension is a column without a name.
    """
    if scipy.sparse.issparse(values) or _numeric(getattr(values, "dtype", None)):
        return
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        for place, (column, dtype) in enumerate(zip(values.columns, values.dtypes, strict=True)):
            if not _numeric(dtype):
                yield column, np.asarray(values.iloc[:, place], dtype=object)
        return
    try:
        array = np.asarray(values)
        if _numeric(array.dtype):
            return
        if not hasattr(values, "dtype"):
            # A list: a single text in it would make text of all its numbers.
            array = np.asarray(values, dtype=object)
    except (TypeError, ValueError):
        return
    if array.ndim == 1:
        yield None, array
    elif array.ndim == 2:
        yield from enumerate(array.T)


def _numeric(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in NUMERIC_KINDS
