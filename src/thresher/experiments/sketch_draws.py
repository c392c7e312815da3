"""How much of the paper's result for ten outputs is the draw of its count sketch.

Section 5 reports 48.67 dB for a planted network of ten outputs, 10 neurons and 10 weights after 15 full-batch
steps. Its sketch has 47 counters in each row for 1,100 weights, so that which weights share a counter decides
much. Here everything but the sketch is held fixed on three networks: rows, planted weights, first gates, and
what is lent. What one run finds is shown by one draw of everything for each of thirty networks.

A run counts with what its last step leaves, as in the paper; one whose weights grow beyond all bounds counts
as worse than anything. What the solver hands out then, the best before, is recorded beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.clock import Seconds
from thresher.data.planted import PlantedProblem, psnr
from thresher.experiments.estimate import planted_cost
from thresher.experiments.experiment import Choices, Experiment, Summary, Table
from thresher.experiments.fits import PERFECT, RECOVERED, ROWS, decibels, fingerprint, plant
from thresher.experiments.record import Cell, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "sketch-draws"
SEEDS = (0, 1, 2)
# The paper's step where the budget is small, and one that overshoots less.
STEP_SIZES = (2.0, 0.5)
DRAWS, STEPS = 30, 15
# Networks of one draw each: their own number, so that some of those above are among them.
NETWORKS = 30
QUICK_ROWS, QUICK_DRAWS = 8_000, 6

# What the paper reports, in dB.
PAPER = 48.67


def _cells(choices: Choices) -> list[Cell]:
    rows = choices.rows or (QUICK_ROWS if choices.quick else ROWS)
    shape = {"n": rows, "d": 100, "outputs": 10, "hidden": 10, "budget": 10, "steps": STEPS}
    draws = range(QUICK_DRAWS if choices.quick else DRAWS)
    seeds = choices.seeds or (SEEDS[:1] if choices.quick else SEEDS)
    drawn = [(seed, draw) for seed in seeds for draw in draws]
    if not (choices.quick or choices.seeds):
        drawn += [(seed, seed) for seed in range(NETWORKS) if seed not in seeds]
    return [
        Cell(NAME, {**shape, "step_size": step_size, "draw": draw}, seed)
        for step_size in STEP_SIZES
        for seed, draw in drawn
    ]


def _measure(cell: Cell) -> dict[str, Any]:
    problem = plant(cell)
    began = Seconds.now()
    output, nonzeros, status = _fitted(cell, problem)
    took = Seconds.since(began)
    handed_out = decibels(max(psnr(problem.y, output), -PERFECT))
    return {
        "psnr": -PERFECT if status == "diverged" else handed_out,
        "handed_out": handed_out,
        "zero": decibels(psnr(problem.y, np.zeros_like(problem.y))),
        "nonzeros": nonzeros,
        "status": status,
        "fit_seconds": round(took.wall, 3),
        "processor_seconds": round(took.processor, 3),
        "cut": [f"{cell['n']:,} of {ROWS:,} rows"] if cell["n"] < ROWS else [],
    }


def _fitted(cell: Cell, problem: PlantedProblem) -> tuple[NDArray[np.float64], int, str]:
    """Run the paper's algorithm in float32 with one sketch; give its output, nonzeros and status."""
    import torch

    from thresher.device import from_host, to_host
    from thresher.objective.data import Data
    from thresher.objective.layout import Layout
    from thresher.objective.loss import SquaredError
    from thresher.objective.relu import Relu
    from thresher.objective.running import Point
    from thresher.solvers.chain import ChainIHT
    from thresher.solvers.loop import run

    widths = cell["d"], cell["hidden"], cell["outputs"]
    data = Data(problem.X, from_host(np.array(problem.y)))
    objective = Relu(data, Layout(widths, bias=False), SquaredError())
    solver = ChainIHT(seed=cell.seed, step_size=cell["step_size"], sketch_seed=cell["draw"])
    found = run(solver, objective, cell["budget"], max_iter=cell["steps"], keep="last")
    # Weights that grow beyond all bounds would overflow in float32.
    exact = objective.to(torch.float64)
    output = (
        exact.run(Point(found.w.to(torch.float64))).forward(exact.data.inputs(slice(0, data.rows))).output
    )
    return to_host(output), found.w.nonzeros, found.status.name


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    rows, numbers = list[tuple[Any, ...]](), dict[str, Any]()
    for step_size in dict.fromkeys(outcome.cell["step_size"] for outcome in outcomes):
        chosen = [outcome for outcome in outcomes if outcome.cell["step_size"] == step_size]
        for seed, of_seed in drawn_often(chosen).items():
            zero = of_seed[0].result["zero"]
            rows.append((step_size, f"network {seed}", *_row(of_seed), zero))
        often = [outcome for of_seed in drawn_often(chosen).values() for outcome in of_seed]
        sets = {"draws of the sketch": often, "networks, one draw each": of_many(chosen)}
        for name, found in sets.items():
            if found:
                rows.append((step_size, name, *_row(found), None))
        numbers[f"{step_size:g}"] = {name: _numbers(found) for name, found in sets.items() if found}
    spread = ("lowest", "quarter", "median", "three quarters", "highest")
    table = Table(
        f"PSNR in dB over draws of the sketch; the paper reports {PAPER:g}",
        ("step", "of", "draws", *spread, f"at least {PAPER:g}", "overshot", "handed out, median", "nothing"),
        tuple(rows),
        "nothing: what the network without weights scores; a draw that ends below it has overshot, and is "
        f"counted as {-PERFECT:g} dB if weights grew beyond all bounds; handed out then: the best before",
    )
    return Summary((table,), numbers)


def drawn_often(outcomes: Sequence[Outcome]) -> dict[int, list[Outcome]]:
    """Give the networks for which the sketch was drawn more than once, with their draws."""
    seeds = sorted({outcome.cell.seed for outcome in outcomes})
    of_seed = {seed: [outcome for outcome in outcomes if outcome.cell.seed == seed] for seed in seeds}
    return {seed: found for seed, found in of_seed.items() if len(found) > 1}


def of_many(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Give one draw for each network, where there are more networks than those of many draws.

    Where all labels are zero, as the network without weights scores them, there is nothing to find.
    """
    one = [o for o in outcomes if o.cell["draw"] == o.cell.seed and o.result["zero"] > 0]
    return one if len(one) > len(drawn_often(outcomes)) else []


def _numbers(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    found = psnrs(outcomes)
    return {
        "draws": len(found),
        "reach the paper's": sum(value >= PAPER for value in found),
        "recovered": sum(value >= RECOVERED for value in found),
        "overshot": sum(_overshot(outcome) for outcome in outcomes),
        "median": float(np.median(found)),
    }


def psnrs(outcomes: Sequence[Outcome]) -> list[float]:
    """Give what each draw reached, ascending."""
    return sorted(outcome.result["psnr"] for outcome in outcomes)


def _row(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    found = psnrs(outcomes)
    spread = (round(float(value), 1) for value in np.quantile(found, (0, 0.25, 0.5, 0.75, 1)))
    reached = sum(value >= PAPER for value in found)
    handed_out = round(float(np.median([outcome.result["handed_out"] for outcome in outcomes])), 1)
    return len(found), *spread, reached, sum(_overshot(outcome) for outcome in outcomes), handed_out


def _overshot(outcome: Outcome) -> bool:
    return bool(outcome.result["psnr"] < outcome.result["zero"])


SKETCH_DRAWS = Experiment(
    NAME,
    "The paper's example of ten outputs, over draws of its count sketch (section 5)",
    _cells,
    fingerprint,
    _measure,
    _summarise,
    varies=("step_size", "draw"),
    cost=lambda cell: planted_cost(cell, "paper", cell["steps"]),
)
