"""Speed against a literal implementation of the paper's appendix A, on the same data and generators.

The literal one is float64 NumPy: one masked copy of the data for each neuron, and a copy of the columns on
the support. Both sides may use the same number of threads.
"""

from __future__ import annotations

import contextlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from measuring import Measurement, Options, seconds
from threadpoolctl import threadpool_limits

from thresher import SparseMLPRegressor
from thresher.data.planted import PlantedProblem, label_floor, planted, psnr
from thresher.objective.gates import DenseRandom

ROWS, FEATURES, SEED = 50_000, 100, 0
EXACT = 100.0  # dB; a network with a wrong support stays far below
SAME_STEPS, SAME_STEPS_BAR = 15, 60.0
MOST_STEPS, RECOVERY_BAR = 100, 80.0
# The paper's table 1: the support of its (10, 500) network settles near this step.
SETTLES_NEAR = 45
QUICK_STEPS = 5


def measure(options: Options) -> list[Measurement]:
    """Compare the same steps, then the time to exact recovery."""
    torch.set_num_threads(options.threads)
    with threadpool_limits(options.threads):
        return [*same_steps(options), *exact_recovery(options)]


def same_steps(options: Options) -> list[Measurement]:
    """Let both take the paper's steps at (100, 200)."""
    problem = planted(n=ROWS, d=FEATURES, hidden=100, budget=200, seed=SEED)

    def fit() -> SparseMLPRegressor:
        return SparseMLPRegressor(
            budget=200, hidden=100, solver="paper", max_iter=SAME_STEPS, dtype="float32", random_state=SEED
        ).fit(problem.X, problem.y)

    ours, model = timed(fit, options.repeats)
    run = run_literal(problem, QUICK_STEPS if options.quick else SAME_STEPS)
    theirs, note = run.extrapolated(SAME_STEPS)
    fitted = psnr(problem.y, model.predict(problem.X))
    what = f"{SAME_STEPS} steps at (100, 200): literal{note} / solver='paper'"
    detail = {"literal_seconds": theirs, "seconds": ours, "literal_dB": run.decibels[-1], "dB": fitted}
    rows = [Measurement(what, theirs / ours, SAME_STEPS_BAR, at_least=True, detail=detail)]
    if not options.quick:
        better = f"{SAME_STEPS} steps at (100, 200): PSNR of solver='paper' less that of the literal"
        rows.append(Measurement(better, fitted - run.decibels[-1], 0.0, "dB", at_least=True, detail=detail))
    return rows


def exact_recovery(options: Options) -> list[Measurement]:
    """Compare the time the literal takes to become exact with a whole fit of the default solver."""
    problem = planted(n=ROWS, d=FEATURES, hidden=10, budget=500, seed=SEED)
    floor = label_floor(problem)

    def fit() -> SparseMLPRegressor:
        return SparseMLPRegressor(
            budget=500, hidden=10, bias=False, scale=False, solver="auto", random_state=SEED
        ).fit(problem.X, problem.y)

    ours, model = timed(fit, options.repeats)
    fitted = psnr(problem.y, model.predict(problem.X))
    run = run_literal(problem, QUICK_STEPS if options.quick else MOST_STEPS, until=EXACT)
    reached = next((step for step, dB in enumerate(run.decibels, 1) if dB > EXACT), None)
    theirs, note = run.extrapolated(SETTLES_NEAR if options.quick else reached or MOST_STEPS)
    if reached is None and not options.quick:
        note = f" (not exact after {MOST_STEPS} steps)"
    detail = {
        "literal_seconds": theirs,
        "seconds": ours,
        "literal_steps": reached,
        "literal_dB": run.decibels[-1],
        "dB": fitted,
        "label_floor_dB": floor,
    }
    what = f"time to exact recovery at (10, 500): literal{note} / solver='auto'"
    return [
        Measurement(what, theirs / ours, RECOVERY_BAR, at_least=True, detail=detail),
        Measurement("(10, 500): PSNR of solver='auto'", fitted, EXACT, "dB", at_least=True, detail=detail),
        Measurement("(10, 500): label floor less that PSNR", floor - fitted, 1.0, "dB", detail=detail),
    ]


def timed(fit: Callable[[], SparseMLPRegressor], repeats: int) -> tuple[float, SparseMLPRegressor]:
    """Give the median seconds of a fit, after one that warms up, and what it fitted."""
    model = fit()
    return statistics.median(seconds(fit) for _ in range(repeats)), model


@dataclass
class LiteralRun:
    """How long each step of a literal run took, and how good the network was after it."""

    seconds: list[float] = field(default_factory=list)
    decibels: list[float] = field(default_factory=list)

    def extrapolated(self, steps: int) -> tuple[float, str]:
        """Give the seconds of the first steps, and words that say so where some were not taken."""
        taken = self.seconds[:steps]
        if len(taken) == steps:
            return sum(taken), ""
        # The first step starts from nothing and is cheaper than the rest.
        rest = statistics.mean(taken[1:]) * (steps - len(taken))
        return sum(taken) + rest, f" (extrapolated from {len(taken)} steps to {steps})"


class _ExactError(Exception):
    """Ends a literal run that is exact."""


def run_literal(problem: PlantedProblem, steps: int, until: float = np.inf) -> LiteralRun:
    """Run the literal implementation until it is as good as asked, keeping the evaluation off the clock."""
    oracle = load_oracle()
    hidden, budget = problem.settings.hidden[0], problem.settings.budget
    run = LiteralRun()
    began = time.perf_counter()

    def after(record: dict[str, Any], weights: np.ndarray) -> None:
        nonlocal began
        run.seconds.append(time.perf_counter() - began)
        run.decibels.append(psnr(problem.y, oracle.predict(problem.X, weights)))
        if run.decibels[-1] > until:
            raise _ExactError
        began = time.perf_counter()

    generators = DenseRandom(FEATURES, hidden, SEED).columns(0, hidden, torch.float64)[1].numpy()
    with contextlib.suppress(_ExactError):
        oracle.run(problem.X, problem.y, hidden, budget, steps, generators=generators, callback=after)
    return run


def load_oracle() -> ModuleType:
    """Load the tests' oracle, whose module has the name of this one."""
    path = Path(__file__).parents[1] / "tests" / "literal.py"
    specification = importlib.util.spec_from_file_location("oracle", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["oracle"] = module
    specification.loader.exec_module(module)
    return module
