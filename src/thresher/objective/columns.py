"""How raw columns become inputs: an origin and a scale for each, so that shifts and units do not matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from thresher.data.rows import OnDisk, is_sparse
from thresher.device import from_host, to_host
from thresher.objective.pages import CHUNK_NUMBERS
from thresher.objective.ranks import Alone

# The spread below which a column counts as constant: its reciprocal overflows in float32.
LEAST_SCALE = 1e-35
# The share of rows that must hold the same value for it to be the origin of a column, and the rows looked at.
COMMON, LOOKED_AT = 0.2, 2000
# A mean that is nearer to zero than this many of its standard errors is taken for zero.
INSIGNIFICANT = 4.0
# A column that is mostly at its origin is scaled below others: this power of its share of other values.
RARE = 0.25


@dataclass(frozen=True, eq=False)
class Columns:
    """How raw columns become inputs: ``(x - origin) / scale``.

    Attributes
    ----------
    origin, scale : arrays of shape (d,)
    centred : bool
        Whether origins were looked for; they may all be zero.
    """

    origin: np.ndarray
    scale: np.ndarray
    centred: bool = False

    def only(self, places: np.ndarray) -> Columns:
        """Give origin and scale of some of the columns."""
        return Columns(self.origin[places], self.scale[places], self.centred)


def canonical(X: Any) -> Any:
    """Give a sparse matrix as CSR with every place written once, in order; what came is not changed."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def standard_columns(X: Any, weight: np.ndarray | None, centred: bool, ranks: Alone | None = None) -> Columns:
    """Choose origin and scale of every column, so that a shifted or scaled column becomes the same input.

    The origin of a column is the least value that many rows have, as in counts, pixels and indicators, and
    where there is none its mean, or zero where the mean cannot be told from it; without `centred`, zero.
    The scale is the root mean square about the origin.
    """
    ranks, (held, d) = ranks or Alone(), X.shape
    rows = ranks.rows(held)
    amount = rows if weight is None else _added(ranks, weight.sum())[0]
    # One number stands for all rows where they count the same.
    share = np.broadcast_to(1.0 / rows, held) if weight is None else weight / amount
    origin = np.zeros(d)
    if is_sparse(X):
        # Sparse rows are not centred, and what is not written is zero.
        size, present = np.zeros(d), np.zeros(d)
        for start, part in _sparse_parts(X):
            part_share = np.ascontiguousarray(share[start : start + part.shape[0]])
            size += part_share @ part.power(2)
            present += part_share @ (part != 0)
        size, present = _added(ranks, size, present)
        return _scaled(origin, np.sqrt(size), present)
    mean, spread = _moments(X, share, ranks)
    few = np.linspace(0, rows - 1, min(rows, LOOKED_AT)).astype(np.int64)
    counts, present = ranks.pick(lambda own: share[own], few), np.zeros(d)
    counts = counts / max(counts.sum(), 1e-300)
    if centred:
        error = spread / np.sqrt(amount)
        origin = np.where(np.abs(mean) < INSIGNIFICANT * error, 0.0, mean)
    # Of wide data a copy of those rows would be as large as all of it: a few columns are looked at at a time.
    step = max(1, CHUNK_NUMBERS // len(few)) if not isinstance(X, OnDisk) else d
    for first in range(0, d, step):
        part = slice(first, first + step)
        some = ranks.pick(partial(_some, X, part), few)
        if centred:
            origin[part] = [_common(one, counts, at) for one, at in zip(some.T, origin[part], strict=True)]
        present[part] = counts @ (some != origin[part])
    scale = np.sqrt(np.square(spread) + np.square(mean - origin))
    return replace(_scaled(origin, scale, present), centred=centred)


def _scaled(origin: np.ndarray, scale: np.ndarray, present: np.ndarray) -> Columns:
    """Give columns their scales, from their sizes about the origin and the share of rows away from it."""
    flat = ~(scale > np.maximum(LEAST_SCALE, 1e-12 * np.abs(origin)))
    size = np.where(present > 0, present, 1.0) ** RARE
    used = ~flat & (present > 0)
    common = np.sqrt(np.mean(size[used] ** 2)) if used.any() else 1.0
    return Columns(origin, np.where(flat, 1.0, scale) * common / size)


def _common(values: np.ndarray, counts: np.ndarray, otherwise: float) -> float:
    """Give the least value that is common among some, if there is one."""
    distinct, place = np.unique(values, return_inverse=True)
    common = np.flatnonzero(np.bincount(place, weights=counts) >= COMMON)
    return float(distinct[common[0]]) if len(common) else otherwise


def _some(X: Any, columns: slice, rows: np.ndarray) -> np.ndarray:
    return np.asarray(X[rows, columns])


def _added(ranks: Alone, *parts: Any) -> tuple[np.ndarray, ...]:
    """Add up what the ranks have."""
    return tuple(to_host(part) for part in ranks.sum(*(from_host(np.asarray(part)) for part in parts)))


def _moments(X: Any, share: np.ndarray, ranks: Alone) -> tuple[np.ndarray, np.ndarray]:  # (d,), (d,)
    """Give mean and standard deviation of every column, sums being taken about the first row."""
    first = ranks.pick(partial(_some, X, slice(None)), np.zeros(1, dtype=np.int64))[0].astype(np.float64)
    mean, square = np.zeros(len(first)), np.zeros(len(first))
    for start, part in _parts(X):
        away = part - first
        part_share = np.ascontiguousarray(share[start : start + len(part)])
        mean += part_share @ away
        square += part_share @ np.square(away, out=away)
    mean, square = _added(ranks, mean, square)
    return mean + first, np.sqrt(np.maximum(0.0, square - np.square(mean)))


def _parts(X: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Read the rows as float64, a chunk at a time."""
    step = max(64, CHUNK_NUMBERS // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        # The order of the numbers in memory is not to show in the last digit.
        yield start, np.ascontiguousarray(X[start : start + step], dtype=np.float64)


def _sparse_parts(X: Any) -> Iterator[tuple[int, scipy.sparse.csr_array]]:
    """Read sparse rows, a chunk at a time where they are on disk."""
    if scipy.sparse.issparse(X):
        yield 0, canonical(X)
        return
    step = max(1, CHUNK_NUMBERS // max(1, X.numbers_each))
    for start in range(0, X.shape[0], step):
        yield start, X[start : start + step]
