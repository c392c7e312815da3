"""How much worse a network predicts when an input is exchanged between rows: the mean over all exchanges."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.errors import DataError
from thresher.explain.deviance import Deviance
from thresher.explain.parts import kept_rows, parts_of, rows_read
from thresher.network.structure import Structure

# Rows that are looked at, evenly spread where there are more: each is paired with every other.
MOST_ROWS = 300


def permutation_importance(
    network: Structure, X: Any, y: Any = None, most_rows: int = MOST_ROWS
) -> np.ndarray:  # (inputs,)
    """Measure what a network loses when an input comes from another row, over all pairs of rows.

    A permutation drawn at random estimates this; here nothing is random.

    Parameters
    ----------
    network : Network
    X : array-like or sparse array of shape (n, inputs)
    y : array of shape (n,) or (n, targets), optional
        Targets or labels: then it is the mean loss that is compared (squared error, log loss, half the
        Poisson deviance), and an input that misleads is below zero. Without, it is the mean square of the
        change of the outputs.
    most_rows : int
        Rows that are paired with each other, evenly spread ones where there are more.

    Examples
    --------
    >>> from thresher import Network
    >>> permutation_importance(Network.fused([[1.0], [0.0]], None, [1]), [[0.0, 5.0], [2.0, 7.0]])
    array([2., 0.])
    """
    parts = parts_of(network)
    rows = rows_read(network, X, most_rows)
    before = parts.values(rows)
    deviance = None
    if y is not None:
        deviance = Deviance.of(network, _kept(y, X, most_rows))
    found = np.zeros(network.inputs)
    base = 0.0 if deviance is None else deviance.total(before) / len(rows)
    for place, column in enumerate(parts.read.tolist()):
        moved = parts.reading(place)
        rest, mixed, losses = before - moved.values(rows), rows.copy(), 0.0
        for value, count in zip(*np.unique(rows[:, place], return_counts=True), strict=True):
            mixed[:, place] = value
            after = rest + moved.values(mixed)
            loss = float(((after - before) ** 2).sum()) if deviance is None else deviance.total(after)
            losses += int(count) * loss
        found[column] = losses / len(rows) ** 2 - base
    return found


def _kept(y: Any, X: Any, most: int) -> np.ndarray:
    y = np.asarray(y)
    count = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(y) != count:
        raise DataError(f"y has {len(y):,} entries, but X has {count:,} rows: give one for each.")
    return y[kept_rows(count, most)]
