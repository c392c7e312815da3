"""The methods that figures compare: the paper's algorithm, the default solver, and the baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from thresher.errors import BudgetError
from thresher.experiments.fits import Fit, fit, fits_along, time_limit
from thresher.experiments.record import Cell
from thresher.experiments.tasks import PLANTED, Problem

PRUNING = ("imp-paper", "imp")
METHODS = ("paper", "auto", *PRUNING, "gmp", "rigl", "one-shot", "dense")
# What a figure shows unless told otherwise: the paper's, ours, and pruning as it is and as it should be.
SHOWN = METHODS[:5]

NAMES = {
    "paper": "paper (IHT)",
    "auto": "Thresher (auto)",
    "imp-paper": "IMP as in the paper",
    "imp": "IMP, retrained",
    "gmp": "gradual pruning",
    "rigl": "RigL",
    "one-shot": "one-shot pruning",
    "dense": "dense (no budget)",
}


# Rows of a minibatch of the baselines that are given a fair chance: the paper's batches, up to all rows,
# would leave them a few steps of training.
FAIR_BATCH = 128


def batch_of(method: str, paper: int | None, rows: int) -> int | None:
    """Give the batch size of a method: the paper's where the paper runs it, None for all rows at once."""
    wanted = paper if method in ("paper", "auto", "imp-paper") else FAIR_BATCH
    return None if wanted is None or wanted >= rows else wanted


def fit_by_method(cell: Cell, problem: Problem) -> dict[str, Any]:
    """Fit a problem by the method of a cell, and measure the fit.

    Returns
    -------
    dict
        `score`, `fit_seconds`, `processor_seconds`, `peak_bytes`, `nonzeros`, `passes` and `status`.
    """
    if problem.empty:
        # As in the paper: nothing is fitted, and the score is zero.
        return {
            "score": 0.0,
            "fit_seconds": 0.0,
            "processor_seconds": 0.0,
            "peak_bytes": 0,
            "nonzeros": 0,
            "status": "all labels are zero",
        }
    return _measured(cell, problem, fit(_model(cell, problem.kind), problem.X, problem.y))


def fit_path_by_method(cells: Sequence[Cell], problem: Problem) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Fit cells that differ by their budget alone by one run of iterative pruning, largest budget first.

    Seconds are those that each network would have taken by itself; memory is that of the run so far.
    """
    asked = {cell["budget"]: cell for cell in cells}
    path = _model(cells[0], problem.kind).fit_path(problem.X, problem.y, asked)
    for budget, fitted in fits_along(path):
        yield asked[budget], _measured(asked[budget], problem, fitted)


def _measured(cell: Cell, problem: Problem, fitted: Fit) -> dict[str, Any]:
    model = fitted.model
    nonzeros = int(model.nonzeros_)
    if nonzeros > cell["budget"] and cell["method"] != "dense":
        raise BudgetError(
            f"{cell['method']} handed out {nonzeros:,} nonzeros where {cell['budget']:,} are allowed."
        )
    status = getattr(model, "status_", None)
    return {
        "score": problem.score(model),
        "fit_seconds": round(fitted.seconds, 3),
        "processor_seconds": round(fitted.processor_seconds, 3),
        "peak_bytes": fitted.peak_bytes,
        "nonzeros": nonzeros,
        "passes": int(getattr(model, "n_iter_", cell["passes"])),
        "status": getattr(status, "name", "finished"),
    }


def _model(cell: Cell, kind: str) -> Any:
    method, m = cell["method"], cell["hidden"]
    shape = {"budget": cell["budget"], "hidden": m if cell["layers"] == 1 else (m,) * cell["layers"]}
    common = {**shape, "max_iter": cell["passes"], "random_state": cell.seed}
    if method not in ("paper", "auto"):
        from thresher.baselines import BASELINES

        return BASELINES[method](kind, **common, batch_size=cell["batch_size"], bias=False)
    from thresher.estimators import SparseMLPClassifier, SparseMLPRegressor

    estimator = SparseMLPClassifier if kind == "classification" else SparseMLPRegressor
    if method == "paper":
        # All steps are taken, as in the paper, however well the network fits.
        return estimator(solver="paper", batch_size=cell["batch_size"], dtype="float32", tol=0.0, **common)
    # Planted networks have no biases, and the other methods are told so too.
    bias = False if cell["data"] == PLANTED else None
    limit = time_limit(cell.configuration.get("seconds", math.inf))
    return estimator(solver="auto", bias=bias, callback=limit, **common)
