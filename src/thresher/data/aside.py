"""Which rows a model was fitted to, so that the same table can be split in the same way again.

A model remembers how many rows there were, which share was set aside with which seed, and a digest of the
rows it was fitted to, which tells whether a table is the one that it knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from thresher.data.prepared import _split
from thresher.data.rows import OnDisk


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table: those that a model was fitted to, and those that were set aside.

    Attributes
    ----------
    X, y : arrays
        All rows, where the table is not the one that the model was fitted to.
    aside : tuple of (X, y), optional
    known : bool
        Whether the table is the one that the model was fitted to.
    """

    X: Any
    y: np.ndarray
    aside: tuple[Any, np.ndarray] | None = None
    known: bool = False


def record(X: Any, y: np.ndarray, share: float, seed: int) -> dict[str, Any] | None:
    """Write down which rows a model was fitted to, as plain values; None for rows on disk.

    Parameters
    ----------
    X, y : arrays
        The rows it was fitted to, without those that were set aside.
    share : float
        The share that was set aside, 0 for none.
    seed : int
    """
    if isinstance(X, OnDisk):
        return None
    return {"share": float(share), "seed": seed, "digest": _digest(X, y)}


def as_fitted(X: Any, y: np.ndarray, task: str, told: Any) -> Rows:
    """Split rows as they were split for a fit, where they are the rows of that fit.

    Parameters
    ----------
    X, y : arrays
        All rows of a table, encoded as for the fit.
    task : {"regression", "classification"}
    told : mapping
        What :func:`record` wrote; anything else tells nothing.

    Examples
    --------
    >>> X, y = np.arange(10.0)[:, None], np.arange(10.0)
    >>> kept, out, y_kept, y_out = _split(X, y, 0.2, "regression", 5)
    >>> found = as_fitted(X, y, "regression", record(kept, y_kept, 0.2, 5))
    >>> found.known, len(found.X), len(found.aside[0])
    (True, 8, 2)
    """
    if not isinstance(told, Mapping) or not isinstance(told.get("digest"), str):
        return Rows(X, y)
    share, seed = told.get("share"), told.get("seed")
    if isinstance(share, float) and isinstance(seed, int) and 1 <= round(share * len(y)) < len(y):
        kept, out, y_kept, y_out = _split(X, y, share, task, seed)
        if _digest(kept, y_kept) == told["digest"]:
            return Rows(kept, y_kept, (out, y_out), known=True)
    return Rows(X, y, known=_digest(X, y) == told["digest"])


def _digest(X: Any, y: np.ndarray) -> str:
    """Digest rows and targets, 64 bits of it."""
    digest = hashlib.sha256(str(X.shape).encode())
    if scipy.sparse.issparse(X):
        X = X.tocsr().sorted_indices()
        parts = [X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(np.float64)]
    else:
        parts = [np.ascontiguousarray(X, dtype=np.float64)]
    for part in parts:
        digest.update(part.tobytes())
    digest.update("\0".join(map(str, np.asarray(y).tolist())).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
