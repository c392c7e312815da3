"""How much each input of a fitted network matters, in spreads of the rows that it was fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from thresher.data.rows import OnDisk
from thresher.device import from_host, to_host
from thresher.network import Layer, Network
from thresher.network.description import measured
from thresher.network.layer import Weights, columns_of, narrowed
from thresher.objective.pages import CHUNK_NUMBERS

if TYPE_CHECKING:
    from thresher.estimators.task import Rows

# Rows that spreads are measured on, evenly taken from all: a standard deviation known to one per cent.
MOST_ROWS = 5000


def spreads_of(rows: Rows, layers: tuple[Layer, ...], direct: Weights | None) -> np.ndarray:
    """Give the standard deviation, over the rows of all ranks, of every input that any weight reads."""
    columns = narrowed(layers, direct)[0]
    count = len(rows.y)
    chosen = np.unique(np.linspace(0, max(0, count - 1), min(count, MOST_ROWS)).astype(int))
    weight = np.ones(len(chosen)) if rows.weight is None else rows.weight[chosen]
    # Many columns of sparse rows would be large once they are written out; rows on disk are read as a whole.
    step = len(columns) if isinstance(rows.X, OnDisk) else CHUNK_NUMBERS // max(1, len(chosen))
    step = max(1, step)
    blocks = [slice(start, start + step) for start in range(0, len(columns), step)]
    first, second = np.zeros(len(columns)), np.zeros(len(columns))
    for block in blocks:
        first[block] = weight @ _written_out(rows.X, chosen, columns[block])
    amount, summed = rows.ranks.sum(from_host(np.array([weight.sum()])), from_host(first))
    if not float(amount) > 0:
        return np.zeros(len(columns))
    mean = to_host(summed) / float(amount)
    for block in blocks:
        away = _written_out(rows.X, chosen, columns[block]) - mean[block]
        second[block] = weight @ np.square(away, out=away)
    (summed,) = rows.ranks.sum(from_host(second))
    return np.sqrt(to_host(summed) / float(amount))


def _written_out(X: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Give some rows and columns as numbers in float64."""
    if isinstance(X, OnDisk):
        if not len(rows) or not len(columns):
            return np.zeros((len(rows), len(columns)))
        parts = [part for _, part in X.take(rows).only(columns).chunks()]
        return np.concatenate([part.toarray() if X.sparse else part for part in parts]).astype(np.float64)
    if scipy.sparse.issparse(X):
        return columns_of(scipy.sparse.csr_array(X[rows]), columns).toarray().astype(np.float64)
    return np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)


def importances_of(network: Network, spreads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give the inputs that a network reads, ascending, and the share of all importance that each one has.

    An input matters as much as the outputs can move at most for one standard deviation of it.
    """
    columns, reach, _ = measured(network)
    matters = (reach / max(float(reach.max(initial=0.0)), 1e-300)) * spreads
    total = float(matters.sum())
    return columns, matters / total if total > 0 else matters
