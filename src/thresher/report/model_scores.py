"""What a network scores on rows, beside the best constant, and how far its intervals reach, for its page."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.errors import ThresherError
from thresher.experiments.scores import (
    COVERAGE,
    Confusion,
    accuracy_interval,
    class_values,
    number_values,
    r2_interval,
)
from thresher.network import Network
from thresher.network.conformal import reach

# Classes up to which confusions are shown.
MOST_CLASSES = 12
# The share of targets that intervals on the page are to hold.
HELD = 0.9


def scores_of(network: Network, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Score a network.

    Returns
    -------
    dict
        ``rows``: a measure, its value, and that of the best constant, each; ``interval``: a sentence on the
        first of them, or None; ``confusion``: None, or ``labels`` and ``counts``, true classes by predicted.
    """
    y, guess = np.asarray(y), network.predict(X)
    if network.classes is None:
        return _of_numbers(y.astype(np.float64), guess)
    labels, shares = network.classes, network.predict_proba(X)
    values = class_values(labels, y, guess, shares)
    mean = np.array([float(np.mean(y == label)) for label in labels])
    constant = class_values(labels, y, np.full(len(y), labels[mean.argmax()]), np.tile(mean, (len(y), 1)))
    interval = accuracy_interval(int((guess == y).sum()), len(y))
    found = Confusion.of(labels, y, guess)
    shown = {"labels": [str(label) for label in found.labels], "counts": found.counts.tolist()}
    return {
        "rows": [(name, value, constant[name]) for name, value in values.items()],
        "interval": _sentence("accuracy", interval),
        "confusion": shown if len(labels) <= MOST_CLASSES else None,
    }


def _of_numbers(y: np.ndarray, guess: np.ndarray) -> dict[str, Any]:
    """Score numbers; of several targets the mean of each measure."""
    columns = list(zip(y.reshape(len(y), -1).T, guess.reshape(len(y), -1).T, strict=True))
    values = [number_values(truth, told) for truth, told in columns]
    constants = [number_values(truth, np.full(len(truth), truth.mean())) for truth, _ in columns]
    interval = (
        r2_interval(y.ravel(), guess.ravel()) if len(columns) == 1 and values[0]["R2"] is not None else None
    )
    rows = [(name, _mean(values, name), _mean(constants, name)) for name in values[0]]
    return {"rows": rows, "interval": _sentence("R2", interval), "confusion": None}


def _mean(values: list[dict[str, float | None]], name: str) -> float | None:
    known = [value for each in values if (value := each[name]) is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _sentence(name: str, interval: tuple[float, float] | None) -> str | None:
    if interval is None:
        return None
    low, high = interval
    return f"{COVERAGE:.0%} interval of {name}: {low:.3f} to {high:.3f}, if rows are like these."


def intervals_of(network: Network, X: Any = None, y: np.ndarray | None = None) -> dict[str, str | None]:
    """Say how far intervals of answers reach, where the model file keeps calibration rows, or why not.

    Returns
    -------
    dict
        ``found`` and ``why``, sentences, one of which is None.
    """
    classes = network.classes is not None
    try:
        ends = reach(network, HELD, classes)
    except ThresherError as error:
        return {"found": None, "why": str(error)}
    if classes:
        told = f"Sets of classes hold the right one for {HELD:.0%} of rows like those of the calibration"
    else:
        widths = ", ".join(f"{end:.4g}" for end in ends)
        unit = " times the root of the prediction" if network.link == "log" else ""
        told = (
            f"{HELD:.0%} of targets are within {widths}{unit} of the prediction, for rows like those of the "
        )
        told += "calibration"
    if X is None or y is None:
        return {"found": f"{told}.", "why": None}
    if classes:
        assert network.classes is not None
        sets = network.predict_set(X, HELD)
        place = {label: number for number, label in enumerate(network.classes.tolist())}
        held = np.mean([sets[row, place[label]] for row, label in enumerate(y.tolist())])
        size = sets.sum(axis=1).mean()
        return {
            "found": f"{told}. On these rows they hold {held:.1%}, with {size:.2f} classes each.",
            "why": None,
        }
    interval = network.predict_interval(X, HELD)
    truth = np.asarray(y, dtype=np.float64)
    held = np.mean((interval[:, 0] <= truth) & (truth <= interval[:, 1]))
    return {"found": f"{told}. On these rows it is {held:.1%}.", "why": None}
