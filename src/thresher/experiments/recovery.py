"""The recovery grid, figure 1 (left) of the paper: which planted networks are found again.

Networks of m neurons and s weights, m and s from 1 to 1000, label 50,000 rows of 100 inputs. The paper's
algorithm takes 15 full-batch steps; the default solver takes a minute at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.experiments.estimate import planted_cost
from thresher.experiments.experiment import Choices, Experiment, Summary, Table, known
from thresher.experiments.fits import RECOVERED, fingerprint, fit_planted, measured, median, plant
from thresher.experiments.record import Cell, Outcome

SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SOLVERS = ("paper", "auto")
QUICK_ROWS, QUICK_SIZES = 4_000, (1, 10, 100)

# How each solver is run, and what stops it.
PARAMETERS: dict[str, dict[str, Any]] = {
    "paper": {"max_iter": 15, "dtype": "float32", "tol": 0.0},
    # Planted networks have no biases, and the paper's algorithm is told so too.
    "auto": {"max_iter": 200, "bias": False},
}
# A fit can be stopped between the parts of its end game only, so the limit leaves room for one.
SECONDS = {"auto": 50.0}

# The cells that more than one seed is spent on: a lattice of 20 that meets every row and column twice.
SAMPLE = frozenset(
    (m, s) for row, m in enumerate(SIZES) for column, s in enumerate(SIZES) if (row + 2 * column) % 5 == 0
)


def _cells(choices: Choices) -> list[Cell]:
    sizes = QUICK_SIZES if choices.quick else SIZES
    rows = choices.rows or (QUICK_ROWS if choices.quick else 50_000)
    grid = [(m, s) for m in choices.m or sizes for s in choices.s or sizes]
    if choices.seeds is not None or choices.quick:
        drawn = [(m, s, seed) for seed in choices.seeds or (0,) for m, s in grid]
    else:
        drawn = [(m, s, seed) for seed in (0, 1, 2) for m, s in grid if seed == 0 or (m, s) in SAMPLE]
    return [
        Cell("recovery", _configuration(rows, m, s, solver), seed)
        for solver in known("--methods", choices.methods or SOLVERS, SOLVERS)
        for m, s, seed in drawn
    ]


def _configuration(rows: int, m: int, s: int, solver: str) -> dict[str, Any]:
    limit = {"seconds": SECONDS[solver]} if solver in SECONDS else {}
    planted = {"n": rows, "d": 100, "hidden": m, "budget": s}
    return {**planted, "solver": solver, "parameters": PARAMETERS[solver], **limit}


def _measure(cell: Cell) -> dict[str, Any]:
    problem = plant(cell)
    fitted = fit_planted(
        problem,
        seconds=cell.configuration.get("seconds", float("inf")),
        budget=cell["budget"],
        hidden=cell["hidden"],
        solver=cell["solver"],
        random_state=cell.seed,
        **cell["parameters"],
    )
    return {**measured(problem, fitted), "nonzero_labels": bool(problem.y.any())}


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    groups: dict[tuple[str, int], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.result["nonzero_labels"]:
            groups.setdefault((outcome.cell["solver"], outcome.cell.seed), []).append(outcome)
    rows: list[tuple[Any, ...]] = []
    shares: dict[str, dict[str, float]] = {}
    missed: dict[str, list[Any]] = {}
    for (solver, seed), group in groups.items():
        lost = [outcome for outcome in group if outcome.result["psnr"] <= RECOVERED]
        share = 1 - len(lost) / len(group)
        times = [outcome.result["fit_seconds"] for outcome in group]
        found = f"{len(group) - len(lost)} of {len(group)} ({share:.0%})"
        rows.append((solver, seed, found, median(times), max(times)))
        shares.setdefault(solver, {})[str(seed)] = round(share, 4)
        missed.setdefault(solver, []).extend(
            {
                "m": outcome.cell["hidden"],
                "s": outcome.cell["budget"],
                "seed": seed,
                "psnr": outcome.result["psnr"],
            }
            for outcome in lost
        )
    table = Table(
        f"Recovery: planted networks (m, s) found again, above {RECOVERED:.0f} dB",
        ("solver", "seed", "recovered", "median s", "longest s"),
        tuple(rows),
        "cells whose labels are all zero are left out; summary.json lists the cells that were missed",
    )
    return Summary((table,) if rows else (), {"share": shares, "missed": missed})


RECOVERY = Experiment(
    "recovery",
    "Which planted networks are found again (figure 1, left)",
    _cells,
    fingerprint,
    _measure,
    _summarise,
    varies=("solver", "hidden", "budget"),
    takes=("rows", "m", "s", "methods"),
    methods=SOLVERS,
    cost=lambda cell: planted_cost(cell, cell["solver"], cell["parameters"]["max_iter"]),
)
