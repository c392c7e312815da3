"""What parts of the algorithm are worth: refinement, a first pass with fixed gates, the size of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher.data.planted import label_floor, psnr
from thresher.experiments.estimate import planted_cost
from thresher.experiments.experiment import Choices, Experiment, Summary, Table
from thresher.experiments.fits import (
    RECOVERED,
    decibels,
    fingerprint,
    median,
    plant,
    psnr_curve,
    settled_step,
)
from thresher.experiments.memory import measure_apart
from thresher.experiments.record import Cell, Outcome

if TYPE_CHECKING:
    from thresher.solvers.iht import IHT

SEEDS = (0, 1, 2)
REFINEMENTS = ("armijo", "conjugate gradients", "none")
FIRST_PASS = ("fixed", "following")
MEGABYTES = (1, 4, 16, 64, 256)
QUICK_ROWS, QUICK_MEGABYTES = 8_000, (1, 16, 256)


def _cells(choices: Choices) -> list[Cell]:
    seeds = choices.seeds or ((0,) if choices.quick else SEEDS)
    n = choices.rows or (QUICK_ROWS if choices.quick else 50_000)
    small = {"n": n, "d": 100, "hidden": 10, "budget": 500}
    # Wide enough for blocks to matter: five million weights, of which a thousand are kept.
    wide = {"n": max(1, n // 10), "d": 500, "hidden": 10_000, "budget": 1000, "steps": 3, "dtype": "float32"}
    configurations: list[dict[str, Any]] = [
        *({"part": "acceleration", "variant": variant, **small, "passes": 100} for variant in REFINEMENTS),
        # A tenth of the rows for each step, as in the paper, where a first pass is ten steps long.
        *(
            {"part": "first pass", "variant": variant, **small, "passes": 15, "batch_size": max(1, n // 10)}
            for variant in FIRST_PASS
        ),
    ]
    sizes = QUICK_MEGABYTES if choices.quick else MEGABYTES
    blocks = [
        {"part": "block", "variant": f"{size} MB", **wide, "memory_limit": size * 2**20} for size in sizes
    ]
    cells = [Cell("ablations", each, seed) for seed in seeds for each in configurations]
    # Memory and time do not depend on the draw.
    return cells + [Cell("ablations", each, seeds[0]) for each in blocks]


def _measure(cell: Cell) -> dict[str, Any]:
    if cell["part"] == "block":
        return measure_apart({**cell.configuration, "seed": cell.seed})
    return _thresholding(cell)


def _solver(cell: Cell) -> IHT:
    """Change one thing about the paper's algorithm."""
    from thresher.solvers.iht import paper_iht
    from thresher.solvers.refine import ConjugateGradients

    solver = paper_iht(batch_size=cell.configuration.get("batch_size"), seed=cell.seed)
    variants: dict[str, dict[str, Any]] = {
        "armijo": {},
        "conjugate gradients": {"refinement": ConjugateGradients()},
        "none": {"refinement": None},
        "fixed": {},
        "following": {"fixed_first_pass": False},
    }
    return replace(solver, **variants[cell["variant"]])


def _thresholding(cell: Cell) -> dict[str, Any]:
    """Fit under fixed signs in float64, and record how the fit came about."""
    import torch

    from thresher.objective.data import Data
    from thresher.objective.gated import GatedOperator
    from thresher.objective.gates import DenseRandom
    from thresher.solvers.iht import iht

    problem = plant(cell)
    generators = DenseRandom(cell["d"], cell["hidden"], cell.seed)
    operator = GatedOperator(Data(problem.X, dtype=torch.float64), generators)
    solution = iht(operator, problem.y, cell["budget"], solver=_solver(cell), max_iter=cell["passes"])
    if solution.status.name == "interrupted":
        raise KeyboardInterrupt
    network = operator.following(solution.w)
    curve = psnr_curve(problem, (record["loss"] for record in solution.history))
    return {
        "psnr": decibels(psnr(problem.y, network.forward(solution.w).numpy())),
        "floor": decibels(label_floor(problem)),
        "nonzeros": solution.w.nonzeros,
        "steps": len(solution.history),
        "settled": settled_step(solution.history),
        "recovered_at": next((step for step, value in enumerate(curve, 1) if value > RECOVERED), None),
        "fit_seconds": round(solution.history[-1]["seconds"], 3),
        "curve": curve,
    }


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    tables = [
        *_compared(outcomes, "acceleration", "Acceleration: refinement on the support after each step"),
        *_compared(outcomes, "first pass", "Gates of the first pass over the data, in minibatches"),
    ]
    blocks = [outcome for outcome in outcomes if outcome.cell["part"] == "block"]
    if blocks:
        rows = tuple(
            (
                outcome.cell["variant"],
                round(outcome.result["peak_bytes"] / 2**20, 1),
                outcome.result["step_seconds"],
            )
            for outcome in blocks
        )
        cell = blocks[0].cell
        note = (
            "peak: resident memory during the fit less that just before; float32, without refinement, "
            f"n = {cell['n']:,}, d = {cell['d']}, (m, s) = ({cell['hidden']:,}, {cell['budget']:,})"
        )
        tables.append(Table("Block size", ("memory_limit", "peak MB", "seconds a step"), rows, note))
    return Summary(tuple(tables))


def _compared(outcomes: Sequence[Outcome], part: str, title: str) -> list[Table]:
    chosen = [outcome for outcome in outcomes if outcome.cell["part"] == part]
    rows = []
    for variant in dict.fromkeys(outcome.cell["variant"] for outcome in chosen):
        results = [outcome.result for outcome in chosen if outcome.cell["variant"] == variant]
        exact = sum(result["psnr"] > RECOVERED for result in results)
        steps = [result["recovered_at"] for result in results if result["recovered_at"] is not None]
        rows.append(
            (
                variant,
                median(result["psnr"] for result in results),
                f"{exact} of {len(results)}",
                median(steps) if steps else None,
                median(result["fit_seconds"] for result in results),
            )
        )
    columns = ("variant", "median dB", "recovered", f"steps to {RECOVERED:.0f} dB", "median s")
    return [Table(title, columns, tuple(rows))] if rows else []


ABLATIONS = Experiment(
    "ablations",
    "Refinement, the first pass, and the size of blocks",
    _cells,
    fingerprint,
    _measure,
    _summarise,
    varies=("part", "variant"),
    takes=("rows",),
    cost=lambda cell: planted_cost(cell, "paper", cell.configuration.get("passes", 3)),
    # Blocks are compared by their time.
    alone=True,
)
