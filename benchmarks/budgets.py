"""Large budgets: time, peak memory and score of 10,000 to 200,000 nonzeros, with a figure of both against s.

    python benchmarks/budgets.py                                     all of it
    python benchmarks/budgets.py --data planted --passes 2           a short look at the growth
    python benchmarks/budgets.py --data mnist --budgets 20000
    python benchmarks/budgets.py --ends no,yes --data narrow         with and without Newton's method
    python benchmarks/budgets.py --table                             what is kept, without fitting

Each fit runs in a process of its own. Memory is its highest resident memory less what was resident just
before `fit`; time is the processor's. "planted" has 1,000 neurons, 2,000 inputs and 20,000 nonzeros, and is
fitted with every budget; "narrow" has 100 neurons, and is fitted with its own budget; "mnist" has hidden
layers of 300 and 100 neurons, and the paper's 50,000 training and 10,000 test images.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from comparing import Results, markdown
from kept import LongBenchmark, numbers, positive, words
from measuring import Measurement
from memory import MEGABYTE, peak_during

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.data.mnist import paper_split
from thresher.data.planted import fresh_rows, planted, psnr
from thresher.experiments.record import Cell
from thresher.report.style import BLUE, ORANGE, new_figure, styled
from thresher.solvers.auto.tuning import FallingTuning, Tuning

DATA = ("planted", "narrow", "mnist")
BUDGETS = {
    "planted": (10_000, 20_000, 50_000, 100_000, 200_000),
    "narrow": (20_000,),
    "mnist": (20_000, 50_000),
}
PASSES = {"planted": 100, "narrow": 80, "mnist": 200}
INPUTS, PLANTED, FRESH = 2_000, 20_000, 5_000
HIDDEN = {"planted": 1_000, "narrow": 100, "mnist": (300, 100)}
LIMIT = 64
MEASURED = ("cpu", "peak", "nonzeros", "score", "score_fresh")
# Times the memory limit; and the power of the budget that time may grow with.
MEMORY_BAR, GROWTH_BAR = 2.0, 1.2
# Changes when what is drawn does.
DRAWN = "1"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    parser.add_argument("--data", type=words(DATA), default=DATA, help=f"of {', '.join(DATA)}")
    parser.add_argument(
        "--budgets", type=numbers(1), default=None, help="all that belong to the data by default"
    )
    parser.add_argument(
        "--rows", type=positive, default=100_000, help="of planted data (default %(default)s)"
    )
    parser.add_argument("--passes", type=positive, default=None, help="80 to 200 by default, by the data")
    parser.add_argument(
        "--ends", type=words(("yes", "no")), default=("yes",), help="by Newton's method or not"
    )


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the fits; threads belong to them, since time is a result."""
    return [
        Cell(
            "budgets",
            {
                "data": data,
                "budget": budget,
                "rows": 50_000 if data == "mnist" else given.rows,
                "passes": given.passes or PASSES[data],
                "end": end,
                "threads": given.threads,
            },
            0,
        )
        for data in given.data
        for budget in given.budgets or BUDGETS[data]
        for end in given.ends
    ]


def fit(cell: Cell) -> dict[str, Any]:
    """Fit in a fresh process."""
    text = json.dumps(cell.configuration)
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), "--here", text], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def fit_here(data: str, budget: int, rows: int, passes: int, end: str, threads: int) -> dict[str, Any]:
    """Fit in this process, and tell time, memory and scores on the rows trained on and on others."""
    import time

    import torch

    torch.set_num_threads(threads)
    tuning = Tuning(falling=FallingTuning(**({} if end == "yes" else {"kept": 0.0})))
    common = {
        "budget": budget,
        "hidden": HIDDEN[data],
        "max_iter": passes,
        "random_state": 0,
        "tuning": tuning,
    }
    model: Any
    if data == "mnist":
        X, y, X_test, y_test = paper_split()
        model = SparseMLPClassifier(**common)
    else:
        problem = planted(n=rows, d=INPUTS, hidden=HIDDEN[data], budget=PLANTED, seed=0)
        X, y = problem.X, problem.y
        X_test, y_test = fresh_rows(problem, FRESH)
        model = SparseMLPRegressor(**common, batch_size=512)
    # What is loaded at first use is not the fit's; this takes the same way on a few rows.
    few = {"max_iter": 80, "budget": 3_000, "tuning": Tuning(falling=FallingTuning(enough=40))}
    type(model)(**{**common, **few}, memory_limit="1MB").fit(X[:500], y[:500])
    began = time.process_time()
    spent = {}

    def work() -> None:
        model.fit(X, y)
        spent["cpu"] = time.process_time() - began

    peak = peak_during(work)

    def score(X: np.ndarray, y: np.ndarray) -> float:
        guess = model.predict(X)
        return 100 * float(np.mean(guess == y)) if data == "mnist" else psnr(y, guess)

    return {
        "cpu": spent["cpu"],
        "peak": peak / MEGABYTE,
        "nonzeros": model.nonzeros_,
        "score": score(X[:FRESH], y[:FRESH]) if data != "mnist" else score(X, y),
        "score_fresh": score(X_test, y_test),
    }


def found(results: Results, given: argparse.Namespace) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pair the chosen cells with their results, where there are any."""
    every = []
    for cell in cells(given):
        values = {name: results.of(name, **cell.configuration).get(cell.seed) for name in MEASURED}
        if None not in values.values():
            every.append((cell.configuration, values))
    return every


def growth(points: list[tuple[float, float]]) -> float:
    """Give the slope of a line through logarithms."""
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write what was measured, and draw time and memory of the planted data."""
    every = found(results, given)
    rows = [
        (
            each["data"],
            f"{each['budget']:,}",
            each["end"],
            each["passes"],
            f"{each['rows']:,}",
            f"{result['nonzeros']:,}",
            f"{result['cpu']:.0f} s",
            f"{result['peak']:.0f} MB",
            f"{result['score']:.2f}",
            f"{result['score_fresh']:.2f}",
        )
        for each, result in every
    ]
    heads = ("data", "budget", "Newton", "passes", "rows", "nonzeros", "processor time", "peak beyond data")
    heads += ("score, trained on", "score, fresh rows")
    line = planted_line(every)
    if len(line) > 1:
        save(line, given.out / "budgets.png")
    return [markdown(heads, rows, f"memory_limit = {LIMIT} MB; scores in dB, or % for mnist")]


def planted_line(every: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[tuple[int, float, float]]:
    """Give budget, seconds and MB of the planted data, with the end that is the default."""
    return [
        (each["budget"], result["cpu"], result["peak"])
        for each, result in every
        if each["data"] == "planted" and each["end"] == "yes"
    ]


def save(line: list[tuple[int, float, float]], path: Path) -> None:
    """Draw the figure and write it."""
    draw(line).savefig(path, dpi=150, metadata={"Software": None})


@styled
def draw(line: list[tuple[int, float, float]]) -> Any:
    """Draw time and memory against the budget."""
    budgets, seconds, peaks = (np.array(part) for part in zip(*line, strict=True))
    figure, (left, right) = new_figure(8, 3.2, 2)
    left.loglog(budgets, seconds, "o-", color=BLUE, label="measured")
    left.loglog(
        budgets,
        seconds[0] * (budgets / budgets[0]) ** GROWTH_BAR,
        "--",
        color=ORANGE,
        label=f"power {GROWTH_BAR}",
    )
    left.set(xlabel="nonzeros s", ylabel="processor seconds of a fit")
    left.legend()
    right.semilogx(budgets, peaks, "o-", color=BLUE, label="measured")
    right.axhline(MEMORY_BAR * LIMIT, color=ORANGE, linestyle="--", label="twice memory_limit")
    right.set(xlabel="nonzeros s", ylabel="peak memory beyond the data (MB)", ylim=(0, None))
    right.legend()
    return figure


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Measure against the bars."""
    every = found(results, given)
    rows = [
        Measurement(
            f"{each['data']}, {each['budget']:,} nonzeros: peak memory / memory_limit",
            result["peak"] / LIMIT,
            MEMORY_BAR,
            detail=result,
        )
        for each, result in every
    ]
    line = planted_line(every)
    if len(line) > 1:
        slope = growth([(budget, seconds) for budget, seconds, _ in line])
        rows.append(Measurement("planted: power of s that time grows with", slope, GROWTH_BAR, ""))
    return rows


BENCHMARK = LongBenchmark(
    "budgets",
    options,
    cells,
    lambda cell: DRAWN,
    fit,
    tables,
    bars,
    shown={},
    quick=("--data", "planted", "--rows", "20000", "--passes", "2"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(fit_here(**json.loads(sys.argv[2]))))
    else:
        sys.exit(BENCHMARK.main(__doc__))
