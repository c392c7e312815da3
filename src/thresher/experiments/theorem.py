"""Theorem 1 on a hundred draws: does its algorithm reach the planted weights, and do its bounds hold at every
step?

Networks of three neurons with one weight each label Gaussian rows; the dictionary holds one of each pair of
opposite 1-sparse gates, with every feature. The budget is what the theorem asks for, which is all columns
here. Beside it stand the eigenvalues of the whole dictionary, with both of each pair: the worst case over all
supports.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.data.assumed import assumed
from thresher.data.planted import PlantedProblem, psnr
from thresher.experiments.experiment import Choices, Experiment, Summary, Table
from thresher.experiments.fits import PERFECT
from thresher.experiments.record import Cell, Outcome

BATCHES, DRAWS = 10, 10
QUICK_BATCHES, QUICK_DRAWS = 1, 2
FEATURES, NEURONS, STEPS = 6, 3, 3000


def _cells(choices: Choices) -> list[Cell]:
    batches, draws = (QUICK_BATCHES, QUICK_DRAWS) if choices.quick else (BATCHES, DRAWS)
    problem = {"n": choices.rows or 400, "d": FEATURES, "neurons": NEURONS}
    configuration = {**problem, "draws": draws, "steps": STEPS}
    return [Cell("theorem", configuration, seed) for seed in choices.seeds or range(batches)]


def _problem(cell: Cell, draw: int) -> PlantedProblem:
    kind = "ab"[draw % 2]
    return assumed(
        cell["n"], cell["d"], cell["neurons"], 1, kind, one_sided=True, seed=1000 * cell.seed + draw
    )


def _fingerprint(cell: Cell) -> str:
    digest = hashlib.sha256(json.dumps(dict(cell.configuration), sort_keys=True).encode())
    for draw in range(2):
        digest.update(_problem(cell, draw).X[:32].astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def _measure(cell: Cell) -> dict[str, Any]:
    draws = [draw_of(cell, draw) for draw in range(cell["draws"])]
    return {"psnr": statistics.median(draw["psnr"] for draw in draws), "draws": draws}


def draw_of(cell: Cell, draw: int) -> dict[str, Any]:
    """Plant one network, run the theorem's algorithm, and give what came of it."""
    from thresher.experiments.phase_diagram import instance
    from thresher.theory.enumeration import enumerate_patterns
    from thresher.theory.guarantee import run_theorem
    from thresher.theory.spectra import dictionary_columns, spectrum, worst_support

    problem = _problem(cell, draw)
    columns, truth = instance(problem)
    run = run_theorem(columns, truth, max_iter=cell["steps"])
    plain = run_theorem(columns, truth, allowed=int(np.count_nonzero(truth)), max_iter=300)
    wide = run_theorem(columns, truth, allowed=3 * int(np.count_nonzero(truth)), max_iter=cell["steps"])
    both, _ = dictionary_columns(problem.X, enumerate_patterns(problem.X, 1))
    return {
        "reached": run.reached,
        "error": run.error,
        "psnr": min(PERFECT, psnr(columns @ truth, columns @ run.weights)),
        "steps": len(run.losses) - 1,
        "condition": run.condition if math.isfinite(run.condition) else None,
        "asked": run.asked if math.isfinite(run.asked) else None,
        "budget": run.budget,
        "allowed": run.allowed,
        "monotone": run.monotone,
        "rate": run.rate_kept,
        "distance": run.distance_kept,
        "checked": run.rate_stated,
        "monotone at s": plain.monotone,
        "reached at s": plain.reached,
        "reached at 3 s": wide.reached,
        "greedy worst alpha, size 8": spectrum(columns[:, worst_support(columns, 8)]).alpha,
        "worst alpha, both of each pair": max(0.0, spectrum(both).alpha),
    }


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    draws = [draw for outcome in outcomes for draw in outcome.result["draws"]]
    counted = [draw for draw in draws if draw["condition"] is not None and draw["allowed"]]
    numbers: dict[str, Any] = {
        "draws": len(draws),
        "condition finite and budget allowed": len(counted),
        "of these, planted weights reached": sum(draw["reached"] for draw in counted),
        "loss never grew": sum(draw["monotone"] for draw in draws),
        "bound on the loss kept at every step": sum(draw["rate"] for draw in draws),
        "bound on the distance kept at every step": sum(draw["distance"] for draw in draws),
        "steps checked": sum(draw["checked"] for draw in draws),
        "loss never grew at the planted budget": sum(draw["monotone at s"] for draw in draws),
        "reached at the planted budget": sum(draw["reached at s"] for draw in draws),
        "reached at three times that": sum(draw["reached at 3 s"] for draw in draws),
        "median condition number": statistics.median(d["condition"] for d in draws if d["condition"]),
        "median budget asked for": statistics.median(d["asked"] for d in draws if d["asked"]),
        "budget used (all columns)": max(draw["budget"] for draw in draws),
        "largest alpha with both of each pair": max(d["worst alpha, both of each pair"] for d in draws),
    }
    note = "rows: Gaussian; three neurons of one weight; one of each pair of opposite 1-sparse gates"
    table = Table("Theorem 1, run", ("what", "number"), tuple(numbers.items()), note)
    return Summary((table,), numbers)


THEOREM = Experiment(
    "theorem",
    "Theorem 1's algorithm on planted weights, with its bounds checked at every step",
    _cells,
    _fingerprint,
    _measure,
    _summarise,
    varies=("n", "draws"),
)
