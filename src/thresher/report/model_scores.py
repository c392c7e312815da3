"""What a network scores on rows, beside the best constant, for the page of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.explain.deviance import Deviance
from thresher.network import Network

# Classes up to which confusions are shown.
MOST_CLASSES = 12


def scores_of(network: Network, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Score a network, as a table of measures and, for classes, one of confusions.

    Returns
    -------
    dict
        ``rows``: pairs of a measure, its value, and that of the best constant; ``confusion``: None, or
        ``labels`` and ``counts``, true classes by predicted ones.
    """
    outputs = network.forward(X)
    deviance = Deviance.of(network, y)
    if network.classes is None:
        return {"rows": _numbers(network.predict(X), np.asarray(y, dtype=np.float64)), "confusion": None}
    codes, count = deviance.y[:, 0].astype(int), len(network.classes)
    labels = network.classes.tolist()
    place = {label: number for number, label in enumerate(labels)}
    guess = np.array([place[label] for label in network.predict(X).tolist()])
    table = np.zeros((count, count), dtype=int)
    np.add.at(table, (codes, guess), 1)
    present = table.sum(axis=1) > 0
    balanced = float((np.diag(table)[present] / table.sum(axis=1)[present]).mean())
    shares = table.sum(axis=1) / len(codes)
    rows = [
        ("accuracy", float((codes == guess).mean()), float(shares.max())),
        ("balanced accuracy", balanced, 1 / int(present.sum())),
    ]
    if network.link != "identity":
        mean = len(codes)
        rows.append(("log loss", deviance.total(outputs) / mean, deviance.least_constant() / mean))
    confusion = {"labels": [str(label) for label in labels], "counts": table.tolist()}
    return {"rows": rows, "confusion": confusion if count <= MOST_CLASSES else None}


def _numbers(guess: np.ndarray, y: np.ndarray) -> list[tuple[str, float | None, float]]:
    y = y.reshape(guess.shape)
    errors, around = guess - y, y - y.mean(axis=0)
    spread = np.square(around).sum(axis=0)
    known = np.atleast_1d(spread) > 0
    shares = np.atleast_1d(np.square(errors).sum(axis=0))[known] / np.atleast_1d(spread)[known]
    return [
        ("R2", float(np.mean(1 - shares)) if known.any() else None, 0.0),
        ("RMSE", float(np.sqrt(np.square(errors).mean())), float(np.sqrt(np.square(around).mean()))),
        ("MAE", float(np.abs(errors).mean()), float(np.abs(y - np.median(y, axis=0)).mean())),
    ]
