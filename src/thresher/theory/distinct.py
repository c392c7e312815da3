"""Which rows repeat others: a row that came before proves nothing new."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Rows whose entries differ by less than this share of their column's range count as one.
SAME_ROW = 1e-6

# Rows that are compared at a time.
BLOCK = 4096
# Rows that are compared with all counted before, at a time.
TOLD_BLOCK = 128


def groups_of(
    rows: NDArray[np.float64],  # (n, width)
    ranges: NDArray[np.float64] | None = None,  # (width,)
) -> NDArray[np.int64]:  # (n,)
    """Number the groups of rows that are the same up to a millionth of their columns' ranges.

    Rows are sorted along one random direction, along which the same rows stand side by side, and compared
    with their neighbours.

    Parameters
    ----------
    rows : array of shape (n, width)
    ranges : array of shape (width,), optional
        The columns' ranges, where they are not those of all rows.

    Examples
    --------
    >>> groups_of(np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    if rows.shape[1] == 0:
        return np.zeros(len(rows), dtype=np.int64)
    least = rows.min(axis=0)
    width = rows.max(axis=0) - least if ranges is None else ranges.copy()
    width[width == 0] = 1.0
    direction = np.random.default_rng(0).uniform(0.5, 1.5, rows.shape[1])
    order = np.argsort((rows - least) @ (direction / width), kind="stable")
    new = np.zeros(len(rows), dtype=np.bool_)
    for start in range(1, len(rows), BLOCK):
        stop = min(start + BLOCK, len(rows))
        apart = np.abs(rows[order[start:stop]] - rows[order[start - 1 : stop - 1]])
        new[start:stop] = (apart > SAME_ROW * width).any(axis=1)
    groups = np.empty(len(rows), dtype=np.int64)
    groups[order] = np.cumsum(new)
    # Numbered in the order in which they come, which no direction decides.
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which].astype(np.int64)


def told_apart(
    rows: NDArray[np.float64],  # (n, width)
    worth: NDArray[np.float64],  # (width,)
    hidden: NDArray[np.float64],  # (n,)
    most: int,
) -> int:
    """Count rows, each farther from all counted before than labels can hide; stops at `most`.

    Rows that are nearer repeat one another as far as labels can show: noise on one of them is fitted on all.

    Parameters
    ----------
    rows : array of shape (n, width)
    worth : array of shape (width,)
        How much an answer changes, at most, with each entry.
    hidden : array of shape (n,)
        How far an answer may be off on each row and still fit.
    most : int

    Examples
    --------
    >>> rows = np.array([[0.0], [0.1], [2.0], [2.1], [0.2]])
    >>> told_apart(rows, np.ones(1), np.full(5, 0.1), most=9)
    2
    """
    scaled, counted = rows * worth, np.zeros(0, dtype=np.int64)
    for start in range(0, len(rows), TOLD_BLOCK):
        block = np.arange(start, min(start + TOLD_BLOCK, len(rows)))
        block = block[~_near(scaled, hidden, block, counted).any(axis=1)]
        near, fresh = _near(scaled, hidden, block, block), list[int]()
        for place in range(len(block)):
            if not near[place, fresh].any():
                fresh.append(place)
        counted = np.append(counted, block[fresh])
        if len(counted) >= most:
            return most
    return len(counted)


def _near(
    scaled: NDArray[np.float64],  # (n, width)
    hidden: NDArray[np.float64],  # (n,)
    some: NDArray[np.int64],
    others: NDArray[np.int64],
) -> NDArray[np.bool_]:  # (some, others)
    """Say which rows differ in every entry by no more than labels can hide of both."""
    allowed = hidden[some, None] + hidden[others]
    near = np.ones(allowed.shape, dtype=np.bool_)
    for column in scaled.T:
        near &= np.abs(column[some, None] - column[others]) <= allowed
    return near


def new_rows(rows: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.int64]:
    """Give the places of rows that are neither among the known ones nor repeat one before.

    Examples
    --------
    >>> new_rows(np.array([[1.0], [2.0], [2.0]]), np.array([[1.0], [5.0]])).tolist()
    [1]
    """
    groups = groups_of(np.vstack([known, rows]))
    _, first = np.unique(groups, return_index=True)
    return np.sort(first[first >= len(known)]) - len(known)
