"""Fitting a planted network and measuring the fit: what every cell of the planted experiments does."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from thresher.clock import Seconds
from thresher.data.planted import PlantedProblem, label_floor, planted, psnr
from thresher.errors import InterruptedFitWarning
from thresher.experiments.memory import peak_during
from thresher.experiments.record import Cell

# What a perfect fit is written as, in dB: JSON has no infinity.
PERFECT = 400.0

# Above this, in dB, a planted network counts as recovered; the rounding of labels allows some 161.
RECOVERED = 100.0

# Rows of the paper's planted problems.
ROWS = 50_000

# Rows that a fingerprint looks at. Rows are drawn in order, so that those of a smaller draw are the same.
FINGERPRINT_ROWS = 64


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model, what it took by the clock and of the processor, and memory beyond that held before."""

    model: Any
    seconds: float
    processor_seconds: float
    peak_bytes: int


def plant(cell: Cell, rows: int | None = None) -> PlantedProblem:
    """Draw the problem of a cell: `n`, `d`, `hidden`, `budget` of its configuration, and its seed.

    `layers` and `outputs` are 1 where the configuration has none; `rows` are drawn instead of `n`.
    """
    of = cell.configuration
    hidden = (cell["hidden"],) * of.get("layers", 1)
    return planted(
        rows or cell["n"],
        cell["d"],
        hidden,
        cell["budget"],
        outputs=of.get("outputs", 1),
        seed=cell.seed,
    )


def fingerprint(cell: Cell) -> str:
    """Give a short text that changes when the problem of a cell would be drawn otherwise.

    It covers the settings, the planted weights, and the first rows with their labels.
    """
    of = cell.configuration
    shape = cell["n"], cell["d"], cell["hidden"], cell["budget"]
    return _fingerprint(*shape, of.get("layers", 1), of.get("outputs", 1), cell.seed)


# Many cells share a problem: one for each method.
@cache
def _fingerprint(n: int, d: int, hidden: int, budget: int, layers: int, outputs: int, seed: int) -> str:
    rows = min(FINGERPRINT_ROWS, n)
    problem = planted(rows, d, (hidden,) * layers, budget, outputs=outputs, seed=seed)
    digest = hashlib.sha256(json.dumps({**asdict(problem.settings), "n": n}).encode())
    for layer in problem.weights:
        digest.update(layer.indices.astype("<i8").tobytes())
        digest.update(layer.data.astype("<f4").tobytes())
    for array in (problem.X, problem.y):
        digest.update(array.astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def fit_planted(problem: PlantedProblem, *, seconds: float = math.inf, **parameters: Any) -> Fit:
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

    model = SparseMLPRegressor(callback=time_limit(seconds), **parameters)
    return fit(model, problem.X, problem.y)


def time_limit(seconds: float) -> Callable[[dict[str, Any]], bool]:
    """Give a callback that stops a fit after some seconds, by the clock and of the processor.

    A fit that other work keeps from the processor has as long as it would have had without.
    """
    began = Seconds.now()

    def spent(record: dict[str, Any]) -> bool:
        return bool(record["seconds"] > seconds) and Seconds.since(began).processor > seconds

    return spent


def fit(model: Any, X: Any, y: Any) -> Fit:
    """Fit any model, and watch its time and memory."""
    _warm_up()

    def timed() -> Seconds:
        began = Seconds.now()
        model.fit(X, y)
        return Seconds.since(began)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedFitWarning)
        # Tidying up memory before the fit is part of watching it, not of the fit.
        took, peak = peak_during(timed)
    # A fit swallows Ctrl-C and keeps what it has; a sweep must not take that for a result.
    if getattr(getattr(model, "status_", None), "name", None) == "interrupted":
        raise KeyboardInterrupt
    return Fit(model, took.wall, took.processor, peak)


def fits_along(path: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Fit]]:
    """Watch the memory of models that come one after the other, each with the time that it tells."""
    _warm_up()
    most = 0
    while True:
        found, peak = peak_during(lambda: next(path, None))
        if found is None:
            return
        most = max(most, peak)
        budget, model = found
        yield budget, Fit(model, model.seconds_, model.processor_seconds_, most)


@cache
def _warm_up() -> None:
    """Let torch set up once what it needs on first use, so that it counts for no fit."""
    import torch

    weights = torch.ones(64, 64, requires_grad=True)
    optimiser = torch.optim.Adam([weights])
    torch.relu(torch.ones(256, 64) @ weights).square().mean().backward()
    optimiser.step()


def measured(problem: PlantedProblem, fitted: Fit) -> dict[str, Any]:
    """Measure a fit: what all cells of planted problems record."""
    model = fitted.model
    return {
        "psnr": decibels(psnr(problem.y, model.predict(problem.X))),
        "floor": decibels(label_floor(problem)),
        "nonzeros": model.nonzeros_,
        "fit_seconds": round(fitted.seconds, 3),
        "peak_bytes": fitted.peak_bytes,
        "passes": model.n_iter_,
        "status": model.status_.name,
        "cut": [f"{problem.settings.n:,} of {ROWS:,} rows"] if problem.settings.n < ROWS else [],
    }


def decibels(value: float) -> float:
    """Round a PSNR, a perfect fit included, to what a line of JSON can hold."""
    return round(min(value, PERFECT), 3)


def psnr_curve(problem: PlantedProblem, losses: Iterable[float]) -> list[float]:
    """Turn losses, half the mean squared error in the units of y, into PSNR.

    Examples
    --------
    >>> problem = planted(n=50, d=4, hidden=1, budget=2)
    >>> peak = float(abs(problem.y).max())
    >>> psnr_curve(problem, [0.5 * peak**2, 0.0])
    [0.0, 400.0]
    """
    peak = float(np.abs(problem.y).max())
    return [
        decibels(20 * math.log10(peak) - 10 * math.log10(2 * loss) if loss > 0 else math.inf)
        for loss in losses
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
