"""The phase diagram of theorem 1: how often planted weights are found, over rows and nonzeros.

Networks of s neurons with one weight each (assumption 1(a) with k = 1, on s different features) label
Gaussian rows. The dictionary holds one of each pair of opposite 1-sparse gates, with every feature. "theorem"
is the theorem's own algorithm with a budget of 3 s (what it asks for, 32 (beta / alpha)^2 s, exceeds the
dictionary); "refined" takes the normalised step and solves on each support, at the planted budget.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import time
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.assumed import assumed
from thresher.data.planted import PlantedProblem, psnr
from thresher.errors import ParameterError
from thresher.experiments.experiment import Choices, Experiment, Summary, Table
from thresher.experiments.fits import PERFECT
from thresher.experiments.record import Cell, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES = 10
ROWS = (20, 40, 80, 160, 320)
NONZEROS = (1, 2, 3, 4, 6, 8)
SOLVERS = ("theorem", "refined")
DRAWS, STEPS = 8, 1500
QUICK_ROWS, QUICK_NONZEROS, QUICK_DRAWS = (20, 80), (1, 3), 2

# The budget that the theorem's algorithm is allowed, in planted nonzeros.
INFLATION = 3

# Weights this close, relative to the largest planted one, count as found.
FOUND = 1e-3


def _cells(choices: Choices) -> list[Cell]:
    rows = (choices.rows,) if choices.rows else QUICK_ROWS if choices.quick else ROWS
    sizes = choices.s or (QUICK_NONZEROS if choices.quick else NONZEROS)
    draws = QUICK_DRAWS if choices.quick else DRAWS
    for size in sizes:
        if size > FEATURES:
            raise ParameterError(
                f"--s {size}, but this diagram plants on {FEATURES} features: use at most as many."
            )
    return [
        Cell(
            "phase-diagram",
            {"n": n, "d": FEATURES, "s": s, "draws": draws, "steps": STEPS, "solver": solver},
            seed,
        )
        for solver in _checked(choices.methods or SOLVERS)
        for seed in choices.seeds or (0,)
        for n in rows
        for s in sizes
    ]


def _checked(solvers: Sequence[str]) -> Sequence[str]:
    for solver in solvers:
        if solver not in SOLVERS:
            close = get_close_matches(solver, SOLVERS, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise ParameterError(f"--methods {solver}, but this diagram has {' and '.join(SOLVERS)}.{hint}")
    return solvers


def _problem(cell: Cell, draw: int) -> PlantedProblem:
    return assumed(cell["n"], cell["d"], cell["s"], 1, "a", one_sided=True, seed=1000 * cell.seed + draw)


def _fingerprint(cell: Cell) -> str:
    problem = _problem(cell, 0)
    digest = hashlib.sha256(json.dumps(dict(cell.configuration), sort_keys=True).encode())
    digest.update(problem.X[:64].astype("<f4").tobytes())
    digest.update(problem.weights[0].toarray().astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def _measure(cell: Cell) -> dict[str, Any]:
    began = time.perf_counter()
    solve = _theorem if cell["solver"] == "theorem" else _refined
    runs = [solve(cell, *instance(_problem(cell, draw))) for draw in range(cell["draws"])]
    conditions = [run["condition"] for run in runs if run["condition"] is not None]
    return {
        "recovered": sum(run["error"] <= FOUND for run in runs) / len(runs),
        "psnr": statistics.median(run["psnr"] for run in runs),
        "error": statistics.median(run["error"] for run in runs),
        "condition": statistics.median(conditions) if conditions else None,
        "finite": len(conditions),
        "monotone": all(run["monotone"] for run in runs),
        "fit_seconds": time.perf_counter() - began,
    }


def instance(problem: PlantedProblem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the unit columns of the dictionary, and the planted weights in their units."""
    from thresher.theory.guarantee import planted_weights
    from thresher.theory.patterns import patterns_of
    from thresher.theory.spectra import dictionary_columns

    assert problem.signs is not None
    X = problem.X.astype(np.float64)
    U = problem.weights[0].toarray().astype(np.float64)
    patterns = patterns_of(X, np.eye(problem.settings.d))
    columns, norms = dictionary_columns(X, patterns)
    return columns, planted_weights(U * problem.signs, (X @ U > 0).T, patterns.gates(), norms)


def _theorem(cell: Cell, columns: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, Any]:
    from thresher.theory.guarantee import run_theorem

    size = int(np.count_nonzero(truth))
    run = run_theorem(columns, truth, allowed=INFLATION * size, max_iter=cell["steps"])
    finite = math.isfinite(run.condition)
    return _result(columns, truth, run.weights, run.condition if finite else None, run.monotone)


def _refined(cell: Cell, columns: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, Any]:
    import torch

    from thresher.linear.matrix import MatrixOperator
    from thresher.solvers.iht import iht
    from thresher.theory.spectra import spectrum

    size = int(np.count_nonzero(truth))
    operator = MatrixOperator(torch.from_numpy(np.ascontiguousarray(columns)))
    found = iht(operator, columns @ truth, size, max_iter=cell["steps"]).w.to_dense().numpy()
    visited = spectrum(columns[:, (found != 0) | (truth != 0)]).condition
    return _result(columns, truth, found, visited if math.isfinite(visited) else None, True)


def _result(
    columns: NDArray[np.float64],
    truth: NDArray[np.float64],
    found: NDArray[np.float64],
    condition: float | None,
    monotone: bool,
) -> dict[str, Any]:
    return {
        "error": float(np.abs(found - truth).max() / np.abs(truth).max()),
        "psnr": min(PERFECT, psnr(columns @ truth, columns @ found)),
        "condition": condition,
        "monotone": monotone,
    }


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    tables = []
    shares: dict[str, dict[str, float]] = {}
    for solver in dict.fromkeys(outcome.cell["solver"] for outcome in outcomes):
        chosen = [outcome for outcome in outcomes if outcome.cell["solver"] == solver]
        sizes = sorted({outcome.cell["s"] for outcome in chosen})
        rows = []
        for n in sorted({outcome.cell["n"] for outcome in chosen}):
            here = [
                [
                    outcome.result["recovered"]
                    for outcome in chosen
                    if (outcome.cell["n"], outcome.cell["s"]) == (n, s)
                ]
                for s in sizes
            ]
            rows.append((n, *(statistics.mean(found) if found else None for found in here)))
        tables.append(
            Table(
                f"Share of planted networks found: {solver}",
                ("n", *(f"s = {s}" for s in sizes)),
                tuple(rows),
                f"within {FOUND:g} of the largest weight; one weight for each neuron, {FEATURES} features",
            )
        )
        shares[solver] = {str(n): statistics.mean([x for x in rest if x is not None]) for n, *rest in rows}
    return Summary(tuple(tables), {"share": shares})


PHASE_DIAGRAM = Experiment(
    "phase-diagram",
    "How often theorem 1's algorithm finds planted weights, over rows and nonzeros",
    _cells,
    _fingerprint,
    _measure,
    _summarise,
    varies=("solver", "n", "s"),
    takes=("rows", "s", "methods"),
)
