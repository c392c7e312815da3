"""Fitting a planted network and measuring the fit: what every cell of the planted experiments does."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.planted import PlantedProblem, label_floor, planted, psnr
from thresher.errors import InterruptedFitWarning
from thresher.experiments.record import Cell

if TYPE_CHECKING:
    from thresher.estimators import SparseMLPRegressor

# What a perfect fit is written as, in dB: JSON has no infinity.
PERFECT = 400.0

# Above this, in dB, a planted network counts as recovered; the rounding of labels allows some 161.
RECOVERED = 100.0

# Rows that a fingerprint looks at. Rows are drawn in order, so that those of a smaller draw are the same.
FINGERPRINT_ROWS = 64


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and the seconds it took."""

    model: SparseMLPRegressor
    seconds: float


def plant(cell: Cell) -> PlantedProblem:
    """Draw the problem of a cell: `n`, `d`, `hidden`, `budget` of its configuration, and its seed."""
    return planted(cell["n"], cell["d"], cell["hidden"], cell["budget"], seed=cell.seed)


def fingerprint(cell: Cell) -> str:
    """Give a short text that changes when the problem of a cell would be drawn otherwise.

    It covers the settings, the planted weights, and the first rows with their labels.
    """
    rows = min(FINGERPRINT_ROWS, cell["n"])
    problem = planted(rows, cell["d"], cell["hidden"], cell["budget"], seed=cell.seed)
    digest = hashlib.sha256(json.dumps({**asdict(problem.settings), "n": cell["n"]}).encode())
    for layer in problem.weights:
        digest.update(layer.indices.astype("<i8").tobytes())
        digest.update(layer.data.astype("<f4").tobytes())
    for array in (problem.X, problem.y):
        digest.update(array.astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def fit(problem: PlantedProblem, *, seconds: float = math.inf, **parameters: Any) -> Fit:
    """Fit a regressor to a planted problem.

    Parameters
    ----------
    problem : PlantedProblem
    seconds : float
        After how long the fit is asked to stop.
    **parameters
        Those of :class:`~thresher.SparseMLPRegressor`.
    """
    from thresher.estimators import SparseMLPRegressor

    model = SparseMLPRegressor(callback=lambda record: record["seconds"] > seconds, **parameters)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedFitWarning)
        model.fit(problem.X, problem.y)
    # A fit swallows Ctrl-C and keeps what it has; a sweep must not take that for a result.
    if model.status_.name == "interrupted":
        raise KeyboardInterrupt
    return Fit(model, time.perf_counter() - began)


def measured(problem: PlantedProblem, fitted: Fit) -> dict[str, Any]:
    """Measure a fit: what all cells of planted problems record."""
    model = fitted.model
    return {
        "psnr": decibels(psnr(problem.y, model.predict(problem.X))),
        "floor": decibels(label_floor(problem)),
        "nonzeros": model.nonzeros_,
        "fit_seconds": round(fitted.seconds, 3),
        "passes": model.n_iter_,
        "status": model.status_.name,
    }


def decibels(value: float) -> float:
    """Round a PSNR, a perfect fit included, to what a line of JSON can hold."""
    return round(min(value, PERFECT), 3)


def psnr_curve(problem: PlantedProblem, losses: Iterable[float]) -> list[float]:
    """Turn losses, half the sum of squared errors in the units of y, into PSNR.

    Examples
    --------
    >>> problem = planted(n=50, d=4, hidden=1, budget=2)
    >>> peak = float(abs(problem.y).max())
    >>> psnr_curve(problem, [0.5 * 50 * peak**2, 0.0])
    [0.0, 400.0]
    """
    peak = float(np.abs(problem.y).max())
    errors = (2 * loss / len(problem.y) for loss in losses)
    return [
        decibels(20 * math.log10(peak) - 10 * math.log10(error) if error > 0 else math.inf)
        for error in errors
    ]


def settled_step(history: Sequence[dict[str, Any]]) -> int | None:
    """Give the first step that left the support as it stayed, if the gates were updated since.

    Examples
    --------
    >>> def step(number, changed):
    ...     return {"step": number, "support_changed": changed, "gates_moved": True}
    >>> settled_step([step(1, True), step(2, True), step(3, False)])
    3
    >>> settled_step([step(1, True), step(2, True)]) is None
    True
    """
    last = max((record["step"] for record in history if record["support_changed"]), default=0)
    updated = any(record["gates_moved"] for record in history if record["step"] >= last)
    return last + 1 if updated and last < len(history) else None


def median(values: Iterable[float]) -> float:
    """Give the median of at least one number, as a float."""
    return float(statistics.median(values))
