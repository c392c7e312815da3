"""Watching a trained network: is it found again from images and its answers to them alone?

A classifier with one hidden layer is trained on MNIST's training images within a budget. A new fit sees some
of the images and the ten logits that the classifier gives for them, and is told width and budget, no more. It
is judged by the logits of the test images, and by how many of the classifier's weights it holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.mnist import FILES, load_mnist
from thresher.data.planted import psnr
from thresher.errors import ParameterError
from thresher.experiments.experiment import Choices, Cost, Experiment, Summary, Table
from thresher.experiments.fits import RECOVERED, decibels, fit, time_limit
from thresher.experiments.record import Cell, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresher.network import Network

NAME = "watched"
IMAGES, PIXELS, DIGITS = 60_000, 784, 10
HIDDEN, BUDGETS, ROWS = (100,), (300, 1000), (15_000, 30_000, IMAGES)
QUICK_HIDDEN, QUICK_BUDGETS, QUICK_ROWS = (20,), (150,), (10_000,)
# Passes of the classifier's training, and of the fit that watches it, with a limit of its seconds.
TRAINING, PASSES, SECONDS = 30, 200, 3600.0
QUICK_TRAINING = 5

# Rows for each number that recovery fits freely: the targets are known to be those of a network, so that it
# comes first even where rows are few.
FIRST = 2.0

# Bytes of working arrays: by default students would read half of the pixels that vary.
MEMORY = 2**28

# Weights this close, relative to the largest of a neuron or an output, count as found.
FOUND = 1e-3


def _cells(choices: Choices) -> list[Cell]:
    rows = (choices.rows,) if choices.rows else QUICK_ROWS if choices.quick else ROWS
    if max(rows) > IMAGES:
        raise ParameterError(
            f"--rows {max(rows)}, but there are {IMAGES:,} images to watch. Use at most so many."
        )
    widths = choices.m or (QUICK_HIDDEN if choices.quick else HIDDEN)
    budgets = choices.s or (QUICK_BUDGETS if choices.quick else BUDGETS)
    training = QUICK_TRAINING if choices.quick else TRAINING
    return [
        Cell(
            NAME,
            {"n": n, "d": PIXELS, "hidden": m, "budget": s, "training": training, "passes": PASSES},
            seed,
        )
        for seed in choices.seeds or (0,)
        for m in widths
        for s in budgets
        for n in sorted(rows, reverse=True)
    ]


def _fingerprint(cell: Cell) -> str:
    content = [
        NAME,
        *(cell[name] for name in ("n", "hidden", "budget", "training")),
        *(one.md5 for one in FILES),
    ]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def _images(folder: Path | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return load_mnist(folder)


# Cells of a budget differ by their rows alone.
@lru_cache(maxsize=1)
def _trained(hidden: int, budget: int, training: int, seed: int, folder: Path | None) -> Network:
    from thresher.estimators import SparseMLPClassifier

    X, y = _images(folder)
    model = SparseMLPClassifier(budget=budget, hidden=hidden, max_iter=training, random_state=seed)
    return model.fit(X[:IMAGES], y[:IMAGES]).network_


def _measure(cell: Cell, folder: Path | None = None) -> dict[str, Any]:
    X, y = _images(folder)
    watched = _trained(cell["hidden"], cell["budget"], cell["training"], cell.seed, folder)
    logits = np.asarray(watched.decision_function(X), dtype=np.float64)
    rows, test = X[: cell["n"]], slice(IMAGES, None)
    fitted = fit(_watcher(cell), rows, logits[: cell["n"]])
    found = fitted.model.network_
    guess = np.asarray(found.predict(X[test]))
    shares = shares_found(watched, found, rows.min(0) < rows.max(0))
    return {
        "psnr": decibels(psnr(logits[test], guess)),
        "psnr_watched": decibels(psnr(logits[: cell["n"]], fitted.model.predict(rows))),
        "weights_found": shares,
        "accuracy": round(float(np.mean(logits[test].argmax(1) == y[test])), 5),
        "agreement": round(float(np.mean(logits[test].argmax(1) == guess.argmax(1))), 5),
        "nonzeros_watched": watched.nonzeros,
        "nonzeros": fitted.model.nonzeros_,
        "status": fitted.model.status_.name,
        "fit_seconds": round(fitted.seconds, 3),
        "processor_seconds": round(fitted.processor_seconds, 3),
        "peak_bytes": fitted.peak_bytes,
    }


def _watcher(cell: Cell) -> Any:
    """Make the model that sees nothing but images and logits."""
    from thresher.estimators import SparseMLPRegressor
    from thresher.solvers.auto import Tuning
    from thresher.solvers.auto.tuning import JudgeTuning

    return SparseMLPRegressor(
        budget=cell["budget"],
        hidden=cell["hidden"],
        max_iter=cell["passes"],
        random_state=cell.seed + 1,
        tuning=Tuning(judge=JudgeTuning(first=FIRST)),
        memory_limit=MEMORY,
        callback=time_limit(SECONDS),
    )


def shares_found(watched: Network, found: Network, varies: NDArray[np.bool_]) -> dict[str, float]:
    """Say which share of a network's weights another one holds, up to the order and the scale of neurons.

    Parameters
    ----------
    watched, found : Network
        With one hidden layer.
    varies : bool array of shape (inputs,)
        Inputs whose weights count; others show nothing.

    Returns
    -------
    dict
        "hidden", the weights and biases of hidden neurons; "outer", the weights by which outputs read them;
        "direct", direct connections; and "all" of these.
    """
    truth, guess = (_parts(network, varies) for network in (watched, found))
    nearest = (truth["hidden"] @ guess["hidden"].T).argmax(1) if len(guess["hidden"]) else None
    counts = {}
    for name in ("hidden", "outer", "direct"):
        one = truth[name]
        if name == "direct":
            other = guess[name]
        else:
            other = np.zeros_like(one) if nearest is None else guess[name][nearest]
        size = np.abs(one).max(axis=1, keepdims=True, initial=0.0)
        counts[name] = int(((one != 0) & (np.abs(one - other) <= FOUND * size)).sum()), int((one != 0).sum())
    counts["all"] = tuple(map(sum, zip(*counts.values(), strict=True)))  # type: ignore[assignment]
    return {name: round(right / total, 4) if total else 1.0 for name, (right, total) in counts.items()}


def _parts(network: Network, varies: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
    """Give neurons of length 1 with their biases, how outputs read them, and direct connections."""
    hidden, last = network.layers
    inner = np.column_stack([hidden.weights.toarray().T * varies, hidden.bias]).astype(np.float64)
    outer = last.weights.toarray().astype(np.float64)
    length = np.linalg.norm(inner, axis=1)
    live = (length > 0) & outer.any(axis=1)
    direct = np.zeros((network.outputs, len(varies)))
    if network.direct is not None:
        direct = network.direct.toarray().T * varies
    return {
        "hidden": inner[live] / length[live, None],
        "outer": outer[live] * length[live, None],
        "direct": direct.astype(np.float64),
    }


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    rows = tuple(
        (
            outcome.cell["hidden"],
            outcome.cell["budget"],
            outcome.cell["n"],
            outcome.cell.seed,
            outcome.result["psnr"],
            round(100 * outcome.result["weights_found"]["all"], 1),
            round(100 * outcome.result["agreement"], 2),
            outcome.result["nonzeros"],
            outcome.result["processor_seconds"],
        )
        for outcome in outcomes
    )
    names = (
        "m",
        "s",
        "images",
        "seed",
        "dB, test",
        "% of weights",
        "% same digit",
        "nonzeros",
        "processor s",
    )
    title = "Trained networks found again from images and logits"
    table = Table(title, names, rows, f"weights within {FOUND:g} of the largest of their neuron or output")
    found = sum(outcome.result["psnr"] > RECOVERED for outcome in outcomes)
    return Summary((table,) if rows else (), {"found": found, "of": len(rows)})


def _check(cells: Sequence[Cell], folder: Path | None) -> None:
    """Read the images, so that a missing or damaged file is told before any work."""
    if cells:
        _images(folder)


WATCHED = Experiment(
    NAME,
    "Trained networks found again from what they answer",
    _cells,
    _fingerprint,
    _measure,
    _summarise,
    varies=("hidden", "budget", "n"),
    takes=("rows", "m", "s"),
    cost=lambda cell: Cost(1e-5 * cell["n"] * cell["budget"], 2**30),
    check=_check,
)
