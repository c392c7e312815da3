"""Large tables, 70,000 x 50: time and score of 100 nonzeros beside scikit-learn's network of 30 passes.

    python benchmarks/large_tables.py                            three repeats of both tasks
    python benchmarks/large_tables.py --tasks regression --repeats 0
    python benchmarks/large_tables.py --fresh                    once more, after a change
    python benchmarks/large_tables.py --table                    what is kept, without fitting

A repeat fits ours and the peer one after the other in the same process, so that what else the machine does
falls on both; which comes first changes from one repeat to the next. It is kept as a whole. A fifth of the
rows is held out. Inputs are raw for ours, with default settings; the peer (100 neurons) sees standardised
ones, and standardised targets. Time is the clock's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from comparing import Results, markdown
from fits import standardised, timed_fit
from kept import LongBenchmark, numbers, positive, words
from measuring import Measurement
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.experiments.record import Cell

ROWS, COLUMNS, HELD_OUT = 70_000, 50, 0.2
TASKS = ("regression", "classes")
REPEATS = (0, 1, 2)
PEER = {"hidden_layer_sizes": (100,), "max_iter": 30}

TIME_BAR = 2.0  # times the clock's time of the peer
SIDES = ("ours", "dense")

# Changes when what is drawn does, so that fits to other data are not taken for fits to this.
DRAWN = "1"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    parser.add_argument("--tasks", type=words(TASKS), default=TASKS, help=f"of {', '.join(TASKS)}")
    parser.add_argument("--repeats", type=numbers(), default=REPEATS, help="which, such as 0-2")
    parser.add_argument("--budgets", type=numbers(1), default=(100,), help="of ours")
    parser.add_argument("--rows", type=positive, default=ROWS, help="fewer for a trial (default %(default)s)")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the repeats."""
    return [
        Cell("large_tables", configuration(task, budget, given), repeat)
        for task, budget, repeat in product(given.tasks, given.budgets, given.repeats)
    ]


def configuration(task: str, budget: int, given: argparse.Namespace) -> dict[str, Any]:
    """Describe a pair of fits but for the repeat; threads belong to it, since time is the result."""
    return {"task": task, "budget": budget, "rows": given.rows, "threads": given.threads}


def fit(cell: Cell) -> dict[str, Any]:
    """Fit ours and the peer to the same rows, and score both on the rows held out."""
    X, y = table(cell["task"], cell["rows"])
    X, X_test, y, y_test = train_test_split(X, y, test_size=HELD_OUT, random_state=cell.seed)
    found: dict[str, Any] = {}
    for side in SIDES if cell.seed % 2 == 0 else reversed(SIDES):
        model = make_model(side, cell["task"], cell["budget"], cell.seed)
        spent = timed_fit(model, X, y)
        found[f"{side}_score"] = float(model.score(X_test, y_test))
        found |= {f"{side}_{name}": value for name, value in spent.items()}
    return found


def make_model(side: str, task: str, budget: int, seed: int) -> Any:
    """Make ours with default settings, or the dense network."""
    if side == "ours":
        ours = SparseMLPRegressor if task == "regression" else SparseMLPClassifier
        return ours(budget=budget, random_state=seed)
    dense = MLPRegressor if task == "regression" else MLPClassifier
    return standardised(dense(**PEER, random_state=seed), target=task == "regression")


@cache
def table(task: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a table, the same for every repeat: ten columns matter, or twenty for three classes."""
    if task == "classes":
        return make_classification(rows, COLUMNS, n_informative=20, n_classes=3, random_state=0)
    draw = np.random.default_rng(0)
    X = draw.uniform(size=(rows, COLUMNS))
    return X, friedman(X[:, :5]) + friedman(X[:, 5:10]) + draw.standard_normal(rows)


def friedman(X: np.ndarray) -> np.ndarray:  # (rows, 5)
    """Give the signal of Friedman's first problem."""
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


class Comparison:
    """The medians over the repeats of one task at one budget."""

    def __init__(self, results: Results, task: str, budget: int, given: argparse.Namespace) -> None:
        def all_of(quantity: str) -> list[float]:
            return list(results.of(quantity, **configuration(task, budget, given)).values())

        self.task, self.budget = task, budget
        self.seconds = {side: all_of(f"{side}_wall") for side in SIDES}
        self.cpu = {side: all_of(f"{side}_cpu") for side in SIDES}
        self.scores = {side: all_of(f"{side}_score") for side in SIDES}
        self.nonzeros = all_of("ours_nonzeros")

    @property
    def repeats(self) -> int:
        """How many there are."""
        return len(self.nonzeros)

    @property
    def times(self) -> float:
        """The clock's time of ours over the peer's."""
        return ratio(self.seconds)

    @property
    def ahead(self) -> float:
        """By how many points ours is better."""
        return 100 * statistics.median(
            ours - dense for ours, dense in zip(*self.scores.values(), strict=True)
        )

    def row(self) -> tuple[Any, ...]:
        """Write it as a line of the table."""
        return (
            self.task,
            self.budget,
            self.repeats,
            f"{statistics.median(self.nonzeros):.0f}",
            *(f"{statistics.median(self.seconds[side]):.1f} s" for side in SIDES),
            f"{self.times:.2f}",
            f"{ratio(self.cpu):.2f}",
            *(f"{statistics.median(self.scores[side]):.4f}" for side in SIDES),
            f"{self.ahead:+.2f}",
        )


def ratio(spent: dict[str, list[float]]) -> float:
    """Take the median of ours over the peer's."""
    return statistics.median(ours / dense for ours, dense in zip(*spent.values(), strict=True))


def comparisons(results: Results, given: argparse.Namespace) -> list[Comparison]:
    """Compare each task at each budget, wherever it was fitted."""
    pairs = product(given.tasks, given.budgets)
    every = [Comparison(results, task, budget, given) for task, budget in pairs]
    return [comparison for comparison in every if comparison.repeats]


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write times and scores."""
    heads = ("task", "budget", "repeats", "nonzeros", "time of ours", "of dense", "ratio", "ratio of cpu")
    heads += ("score of ours", "of dense", "ahead, points")
    title = f"{given.rows:,} rows of {COLUMNS} columns, threads: {given.threads}; medians of R2 or accuracy"
    return [markdown(heads, [found.row() for found in comparisons(results, given)], title)]


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Measure against the bars."""
    found = []
    for each in comparisons(results, given):
        where = f"{given.rows:,} x {COLUMNS}, {each.task}, budget {each.budget}"
        detail = {"seconds": each.seconds, "scores": each.scores}
        found += [
            Measurement(f"{where}: time over the dense network's", each.times, TIME_BAR, detail=detail),
            Measurement(f"{where}: score above it", each.ahead, 0, "points", at_least=True, detail=detail),
        ]
    return found


BENCHMARK = LongBenchmark(
    "large_tables",
    options,
    cells,
    lambda cell: DRAWN,
    fit,
    tables,
    bars,
    shown={},
    quick=("--repeats", "0"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
