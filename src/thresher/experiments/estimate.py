"""How long a sweep will take and what memory it needs, before it runs: rough, and corrected by what is done.

A cell's cost is counted in multiplications and turned into seconds by rates measured on one core of a laptop.
Cells of the same method that are done already correct the rate, by their median ratio of measured to
expected.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from thresher.experiments.experiment import Cost, Experiment
from thresher.experiments.record import Cell, Outcome

# Seconds for a multiplication: in a dense product over all weights, and in refinement over those kept.
DENSE, KEPT = 4e-11, 3e-8
# The default solver: seconds for a fit of 50,000 rows, at least and for each weight of the budget.
AUTO_LEAST, AUTO_WEIGHT = 1.5, 0.035
# Training a dense network: forward, two products backward, and Adam; and what a step costs anyhow.
TRAINING, STEP = 6 / 8e10, 7e-4
# A process with torch and scikit-learn, before it holds any data.
PROCESS = 350 * 2**20
PRUNED, PRUNING = 0.1, ("imp-paper", "imp")


@dataclass(frozen=True)
class Estimate:
    """What remains of a sweep: hours and minutes as seconds, and bytes for all processes together."""

    seconds: float
    memory: float
    measured: bool

    def text(self) -> str:
        """Say it in words.

        Examples
        --------
        >>> Estimate(5400.0, 2.0 * 2**30, measured=False).text()
        'about 1.5 hours and 2.0 GB of memory, by a rough count of operations'
        """
        basis = "by the cells that are done" if self.measured else "by a rough count of operations"
        return f"about {duration(self.seconds)} and {self.memory / 2**30:.1f} GB of memory, {basis}"


def duration(seconds: float) -> str:
    """Write a time so that people can plan with it.

    Examples
    --------
    >>> duration(0.4), duration(45), duration(600), duration(9000)
    ('1 second', '45 seconds', '10 minutes', '2.5 hours')
    """
    if seconds < 90:
        whole = max(1, round(seconds))
        return f"{whole} second{'s' if whole > 1 else ''}"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def estimate(experiment: Experiment, pending: Sequence[Cell], done: Sequence[Outcome], jobs: int) -> Estimate:
    """Estimate what the cells that are not done will take.

    Parameters
    ----------
    experiment : Experiment
    pending : sequence of Cell
    done : sequence of Outcome
        What was measured before, of this experiment.
    jobs : int
        Processes at a time.
    """
    seconds_of = {outcome.cell.key(""): outcome.seconds for outcome in done}
    ratios: dict[str | None, list[float]] = {}
    for run in experiment.runs(outcome.cell for outcome in done):
        took = sum(seconds_of[cell.key("")] for cell in run)
        ratios.setdefault(method_of(run[0]), []).append(took / _cost(experiment, run).seconds)
    rate = {method: statistics.median(found) for method, found in ratios.items()}
    costs = [(run[0], _cost(experiment, run)) for run in experiment.runs(pending)]
    jobs = 1 if experiment.alone else max(1, min(jobs, len(costs)))
    times = [cost.seconds * rate.get(method_of(cell), 1.0) for cell, cost in costs]
    seconds = max(sum(times) / jobs, max(times, default=0.0))
    # The largest cells may be under way at once.
    largest = sorted((cost.memory for _, cost in costs), reverse=True)[:jobs]
    return Estimate(seconds, sum(PROCESS + memory for memory in largest), bool(rate))


def _cost(experiment: Experiment, run: Sequence[Cell]) -> Cost:
    """Expect the cost of one run: cells of a path take about as long as the longest of them."""
    costs = [experiment.cost(cell) for cell in run]
    return Cost(max(cost.seconds for cost in costs), max(cost.memory for cost in costs))


def method_of(cell: Cell) -> str | None:
    """Name the method of a cell, whatever its experiment calls it."""
    return cell.configuration.get("method", cell.configuration.get("solver"))


def planted_cost(cell: Cell, method: str, passes: int) -> Cost:
    """Expect the cost of fitting a cell with `n`, `d`, `hidden`, `budget`, by a method.

    Parameters
    ----------
    cell : Cell
    method : str
        A solver or a baseline.
    passes : int
        Passes over the data, of one training.
    """
    of = cell.configuration
    n, kept = cell["n"], min(cell["budget"], weights_of(cell))
    weights = weights_of(cell)
    batch = of.get("batch_size") or n
    steps = passes * math.ceil(n / batch)
    data = 4.0 * n * (cell["d"] + of.get("outputs", 1))
    if method == "auto":
        seconds = n / 50_000 * (AUTO_LEAST + AUTO_WEIGHT * kept) * of.get("layers", 1)
        return Cost(min(seconds, of.get("seconds", math.inf)) + 0.5, 3 * data + 2e3 * kept)
    if method == "paper":
        seconds = steps * batch * (DENSE * weights + KEPT * kept)
        return Cost(seconds + 0.5, 2 * data + 64 * 2**20)
    rounds = 1 + (_prunings(weights, kept) if method in PRUNING else int(method == "one-shot"))
    seconds = rounds * steps * (batch * weights * TRAINING + STEP)
    return Cost(seconds + 0.5, 2 * data + 40.0 * weights + 16.0 * batch * cell["hidden"])


def weights_of(cell: Cell) -> int:
    """Count all weights that a network of this shape has; one output needs none of its own.

    Examples
    --------
    >>> weights_of(Cell("", {"d": 100, "hidden": 10}, 0))
    1000
    >>> weights_of(Cell("", {"d": 100, "hidden": 10, "layers": 2, "outputs": 3}, 0))
    1130
    """
    of = cell.configuration
    m, outputs = cell["hidden"], of.get("outputs", 1)
    between = (of.get("layers", 1) - 1) * m * m
    return cell["d"] * m + between + (m * outputs if outputs > 1 else 0)


def _prunings(weights: int, kept: int) -> int:
    """Count the rounds in which a tenth of the active weights is pruned, at least one."""
    rounds, active = 0, weights
    while active > kept:
        active -= max(1, min(int(PRUNED * active), active - kept))
        rounds += 1
    return rounds
