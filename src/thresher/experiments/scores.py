"""What a model scores on rows it has not seen: measures, an interval, and what makes them doubtful."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

# Shares of test sets drawn alike whose score the interval is to hold.
COVERAGE = 0.95
# The quantile of the normal distribution that belongs to it.
NORMAL = 1.959964
# Draws with replacement behind the interval of R2, and numbers that all of them may take.
DRAWS, LEAST_DRAWS, NUMBERS = 1000, 100, 2e7
# Fewer rows drawn with replacement from themselves are too much alike.
ROWS_TO_DRAW = 10

# Below so many test rows a score tells little, and is said to.
FEW_ROWS = 30
# A class of a smaller share, or of fewer rows to train on, is rare.
RARE_SHARE, RARE_ROWS = 0.05, 5
# Names of classes that a note lists.
LISTED = 5

MEASURES = {
    "classification": ("accuracy", "balanced accuracy", "AUC", "log loss"),
    "regression": ("R2", "RMSE", "MAE"),
}
"""What is measured, the score first. In all but the log loss, RMSE and MAE more is better."""

Values = dict[str, float | None]
"""Measures by name; None where the test rows, or the model, cannot tell."""


def class_values(labels: np.ndarray, truth: np.ndarray, guess: np.ndarray, shares: Any) -> Values:
    """Measure a classifier.

    Parameters
    ----------
    labels : array of shape (n_classes,)
        The classes that the model knows, ascending.
    truth, guess : array of shape (n,)
    shares : array of shape (n, n_classes)
        Its probabilities.

    Examples
    --------
    >>> labels, truth = np.array(["no", "yes"]), np.array(["no", "no", "yes"])
    >>> class_values(labels, truth, truth, [[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]])["AUC"]
    1.0
    """
    shares = np.asarray(shares, dtype=np.float64)
    found = [float(np.mean(guess[truth == label] == label)) for label in np.unique(truth)]
    known = np.isin(truth, labels)
    loss = None
    if known.all():
        right = shares[np.arange(len(truth)), np.searchsorted(labels, truth)]
        with np.errstate(divide="ignore"):
            loss = float(-np.log(right).mean())
    return _finite(
        {
            "accuracy": float(np.mean(guess == truth)),
            "balanced accuracy": float(np.mean(found)),
            "AUC": _area(labels, truth, shares),
            "log loss": loss,
        }
    )


def _area(labels: np.ndarray, truth: np.ndarray, shares: np.ndarray) -> float | None:
    """Give the area under the curve of one class against the rest, the mean over classes that can be told."""
    from scipy.stats import rankdata

    areas = []
    for place, label in enumerate(labels):
        of = truth == label
        if of.any() and not of.all():
            ranks, inside = rankdata(shares[:, place]), int(of.sum())
            excess = ranks[of].sum() - inside * (inside + 1) / 2
            areas.append(excess / (inside * (len(of) - inside)))
    return float(np.mean(areas)) if areas else None


def number_values(truth: np.ndarray, guess: np.ndarray) -> Values:
    """Measure a regression.

    Examples
    --------
    >>> number_values(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))["R2"]
    0.5
    """
    error = np.asarray(truth, dtype=np.float64) - guess
    rest = np.square(truth - np.mean(truth)).sum()
    with np.errstate(over="ignore"):
        squared = float(np.square(error).sum())
    return _finite(
        {
            "R2": 1 - squared / float(rest) if len(error) > 1 and rest > 0 else None,
            "RMSE": math.sqrt(squared / len(error)),
            "MAE": float(np.abs(error).mean()),
        }
    )


def _finite(values: Values) -> Values:
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in values.items()
    }


def accuracy_interval(hits: int, rows: int) -> tuple[float, float]:
    """Give Wilson's interval of a share.

    Examples
    --------
    >>> [round(end, 3) for end in accuracy_interval(9, 10)]
    [0.596, 0.982]
    """
    share, extra = hits / rows, NORMAL**2 / rows
    middle = (share + extra / 2) / (1 + extra)
    away = NORMAL * math.sqrt(share * (1 - share) / rows + extra / (4 * rows)) / (1 + extra)
    return max(0.0, middle - away), min(1.0, middle + away)


def r2_interval(truth: np.ndarray, guess: np.ndarray, seed: int = 0) -> tuple[float, float] | None:
    """Give the interval of R2 over test sets drawn with replacement from this one (the bootstrap)."""
    rows, random = len(truth), np.random.default_rng(seed)
    if rows < ROWS_TO_DRAW:
        return None
    squares = np.square(np.asarray(truth, dtype=np.float64) - guess)
    away = truth - np.mean(truth)
    found = []
    for _ in range(int(min(DRAWS, max(LEAST_DRAWS, NUMBERS / rows)))):
        times = np.bincount(random.integers(rows, size=rows), minlength=rows)
        rest = times @ np.square(away) - (times @ away) ** 2 / rows
        if rest > 1e-12 * rows * float(np.mean(np.square(away))):
            found.append(1 - float(times @ squares) / float(rest))
    if len(found) < LEAST_DRAWS / 2 or not np.isfinite(found).all():
        return None
    low, high = np.quantile(found, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often rows of a class were taken for each class.

    Attributes
    ----------
    labels : list
        The classes of model and test rows, ascending.
    counts : int array of shape (n, n)
        True classes by row, predicted ones by column.
    """

    labels: list[Any]
    counts: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray, truth: np.ndarray, guess: np.ndarray) -> Confusion:
        """Count them."""
        every = np.union1d(labels, truth)
        counts = np.zeros((len(every), len(every)), dtype=np.int64)
        np.add.at(counts, (np.searchsorted(every, truth), np.searchsorted(every, guess)), 1)
        return cls(every.tolist(), counts)


def notes(task: str, y: np.ndarray, y_test: np.ndarray) -> list[str]:
    """Say what makes scores doubtful: few rows, classes missing or rare, targets that do not vary."""
    found = []
    if len(y_test) < FEW_ROWS:
        rows = f"{len(y_test)} row{'s' * (len(y_test) != 1)}"
        found.append(f"Only {rows} to test on, which tells little: mind the interval, or give more rows.")
    if task == "regression":
        if len(y_test) > 1 and np.ptp(y_test) == 0:
            found.append("All targets of the test rows are equal, so that R2 is not defined.")
        return found
    labels, counts = np.unique(y, return_counts=True)
    untrained, untested = np.setdiff1d(y_test, labels), np.setdiff1d(labels, y_test)
    if len(untrained):
        found.append(
            f"No row to train on is of class {_listed(untrained)}, so that the model cannot predict it; such "
            "test rows count as wrong."
        )
    if len(untested):
        found.append(f"No test row is of class {_listed(untested)}, so that the score says nothing of it.")
    rare = labels[(counts < RARE_SHARE * len(y)) | (counts < RARE_ROWS)]
    if len(rare):
        least = counts.min()
        found.append(
            f"Rare: class {_listed(rare)}, the fewest with {least:,} of {len(y):,} rows to train on. "
            "Accuracy hardly counts such classes; balanced accuracy counts all alike."
        )
    return found


def _listed(labels: np.ndarray) -> str:
    shown = ", ".join(map(repr, labels[:LISTED].tolist()))
    return shown if len(labels) <= LISTED else f"{shown} and {len(labels) - LISTED:,} more"
