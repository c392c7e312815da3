"""Columns that rows of very wide sparse data hold: which there are, and which of them tell most.

A column that no row holds cannot matter, so such data is seen through the columns it has. Where even one
number for each of these is too much, they are looked at in ranges, a few at a time, and only those that tell
most by themselves are remembered. Nothing is ever as long as the data is wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from thresher.data.rows import OnDisk
from thresher.device import from_host, to_host
from thresher.linear.budget import largest

# Bytes that a fit holds for each column: origins, scales, sums of what it tells.
FOR_A_COLUMN = 64
# Bytes that a nonzero takes while its range of columns is looked at, beside eight for each output: where it
# is, its row, column, value, place in order, and the products of these.
FOR_A_NONZERO = 96
# Nonzeros whose columns say where ranges end, and nonzeros that are looked through at a time.
SAMPLE, CHUNK = 2**16, 2**18


def very_wide(X: Any, memory_limit: int) -> bool:
    """Whether rows are sparse, and wider than they hold numbers or than a number for each column fits."""
    if not scipy.sparse.issparse(X):
        return False
    return X.shape[1] > X.nnz or FOR_A_COLUMN * X.shape[1] > memory_limit


def telling_columns(
    X: scipy.sparse.csr_array, slope: np.ndarray, share: np.ndarray, most: float, memory_limit: int
) -> np.ndarray:  # int64, ascending
    """Give the columns that hold something, those that tell most by themselves where there are too many.

    Parameters
    ----------
    X : CSR array of shape (rows, columns)
    slope : array of shape (rows, outputs)
        The derivative of the loss of the best constant with respect to its outputs.
    share : array of shape (rows,)
        What each row counts.
    most : float
        How many columns there may be; infinite for all.
    memory_limit : int
        Bytes that a range of columns may take.

    Examples
    --------
    >>> X = scipy.sparse.csr_array(([1.0, 1.0, 1.0], [7, 3, 7], [0, 1, 3]), (2, 10**9))
    >>> telling_columns(X, np.array([[-1.0], [-1.0]]), np.full(2, 0.5), 1, 2**20)
    array([7])
    """
    columns, scores = np.zeros(0, dtype=np.int64), np.zeros(0)
    for entries in _ranges(X.indices, memory_limit // (FOR_A_NONZERO + 8 * slope.shape[1])):
        found, told = _told(X, entries, slope, share)
        columns, scores = np.concatenate([columns, found]), np.concatenate([scores, told])
        if len(columns) > most:
            kept = to_host(largest(from_host(scores), int(most)))
            columns, scores = columns[kept], scores[kept]
    return columns


def only_columns(X: Any, columns: np.ndarray) -> Any:
    """Give some columns, ascending, of rows of any kind: those on disk stay there."""
    if scipy.sparse.issparse(X):
        return only(X, columns)
    return X.only(columns) if isinstance(X, OnDisk) else X[:, columns]


def only(X: scipy.sparse.csr_array, columns: np.ndarray) -> scipy.sparse.csr_array:
    """Give some columns, ascending, numbered anew."""
    data, places, counts = [], [], np.zeros(X.shape[0] + 1, dtype=np.int64)
    for start in range(0, X.nnz, CHUNK):
        part = slice(start, start + CHUNK)
        place = np.searchsorted(columns, X.indices[part])
        found = np.flatnonzero(np.take(columns, place, mode="clip") == X.indices[part])
        data.append(X.data[part][found])
        places.append(place[found].astype(np.int32))
        np.add.at(counts, _rows_of(X, start + found) + 1, 1)
    parts = (np.concatenate([X.data[:0], *data]), np.concatenate([np.zeros(0, np.int32), *places]))
    return scipy.sparse.csr_array((*parts, np.cumsum(counts)), shape=(X.shape[0], len(columns)))


def _rows_of(X: scipy.sparse.csr_array, entries: np.ndarray) -> np.ndarray:
    return np.searchsorted(X.indptr, entries, side="right") - 1


def _ranges(indices: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Give the nonzeros of one range of columns after another, about `size` or those of one column."""
    count = -(-len(indices) // max(1, size))
    sample = np.sort(indices[:: max(1, len(indices) // SAMPLE)])
    ends = np.unique(sample[len(sample) * np.arange(1, count) // count]) if len(sample) else sample
    for first, last in zip([None, *ends], [*ends, None], strict=True):
        found = []
        for start in range(0, len(indices), CHUNK):
            part = indices[start : start + CHUNK]
            inside = np.ones(len(part), dtype=bool) if first is None else part >= first
            if last is not None:
                inside &= part < last
            found.append(start + np.flatnonzero(inside))
        if found:
            yield np.concatenate(found)


def _told(
    X: scipy.sparse.csr_array, entries: np.ndarray, slope: np.ndarray, share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # (columns,), (columns,)
    """Say how much each of some columns tells: what its better half, above or below zero, explains."""
    entries = entries[np.argsort(X.indices[entries], kind="stable")]
    column, row = X.indices[entries].astype(np.int64), _rows_of(X, entries)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    if not len(starts):
        return column, np.zeros(0)
    value, told = X.data[entries].astype(np.float64), np.zeros(len(starts))
    for half in (np.maximum(value, 0), np.minimum(value, 0)) if (value < 0).any() else (value,):
        sums = np.add.reduceat(half[:, None] * slope[row], starts)
        size = np.add.reduceat(half**2 * share[row], starts)
        np.maximum(told, (sums**2).sum(1) / np.maximum(size, 1e-300), out=told)
    return column[starts], told
