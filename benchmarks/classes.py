"""Tables with classes: accuracy of 60 nonzeros beside a dense network and a logistic regression.

    python benchmarks/classes.py                                  all of it, five repeats of five folds
    python benchmarks/classes.py --data mammo --repeats 0 --folds 0-1
    python benchmarks/classes.py --fresh --methods ours           ours once more, after a change
    python benchmarks/classes.py --variant raw,shifted --methods ours
    python benchmarks/classes.py --table                          what is kept, without fitting

The folder that THRESHER_DATA names holds ``tables/``: spambase, adult and mammo as CSV, the class first;
breast cancer and digits are scikit-learn's. Inputs are raw for ours, with default settings and 50 neurons,
and standardised for the peers. The variant "shifted", every column moved by 1,000 of its spreads, is fitted
by ours alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas
from comparing import Mean, Results, configuration, markdown, mean, paired, share, variants_table, verdict
from fits import data_file, file_print, shifted, standardised, timed_fit
from kept import LongBenchmark, numbers, words
from measuring import Measurement
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier

from thresher import SparseMLPClassifier
from thresher.experiments.record import Cell

FILES = ("spambase", "adult", "mammo")
LOADERS = {"cancer": load_breast_cancer, "digits": load_digits}
DATA = (*FILES, *LOADERS)
VARIANTS = ("raw", "shifted")
HIDDEN, REPEATS, FOLDS = 50, 5, 5

# Points below the better peer that are allowed.
SLACK = 0.5
# Accuracy in percent that the engine before this one reached with 60 nonzeros.
BEFORE = {("spambase", 60): 94.3, ("adult", 60): 82.9}

# From a budget, None for the methods that have none, and a seed to a model.
MODELS: dict[str, Callable[[Any, int], Any]] = {
    "ours": lambda budget, seed: SparseMLPClassifier(budget=budget, hidden=HIDDEN, random_state=seed),
    "dense": lambda _, seed: standardised(MLPClassifier(random_state=seed)),
    "logistic": lambda _, seed: standardised(LogisticRegression(max_iter=1000)),
}
PEERS = ("dense", "logistic")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    parser.add_argument("--data", type=words(DATA), default=DATA, help=f"of {', '.join(DATA)}")
    every = tuple(range(REPEATS)), tuple(range(FOLDS))
    parser.add_argument(
        "--repeats", type=numbers(0, REPEATS - 1), default=every[0], help="which, such as 0-4"
    )
    parser.add_argument("--folds", type=numbers(0, FOLDS - 1), default=every[1], help="which, such as 0-4")
    parser.add_argument(
        "--methods", type=words(MODELS), default=tuple(MODELS), help=f"of {', '.join(MODELS)}"
    )
    parser.add_argument("--budgets", type=numbers(1), default=(60,), help="of ours")
    parser.add_argument("--variant", type=words(VARIANTS), default=("raw",), help=f"of {', '.join(VARIANTS)}")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the fits, fold after fold; the seed counts the folds of all repeats."""
    return [
        Cell("classes", configuration(data, method, budget, variant), seed=FOLDS * repeat + fold)
        for data in given.data
        for repeat in given.repeats
        for fold in given.folds
        for variant in given.variant
        for method in given.methods
        if variant == "raw" or method == "ours"
        for budget in (given.budgets if method == "ours" else (None,))
    ]


def fingerprint(cell: Cell) -> str:
    """Tell one state of the files from another."""
    return file_print(path(cell["data"])) if cell["data"] in FILES else "scikit-learn"


def fit(cell: Cell) -> dict[str, Any]:
    """Fit one model on all folds but one, and give its accuracy on that one, in percent."""
    X, y = table(cell["data"])
    if cell["variant"] == "shifted":
        X = shifted(X)
    repeat, fold = divmod(cell.seed, FOLDS)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=repeat)
    train, test = list(folds.split(X, y))[fold]
    model = MODELS[cell["method"]](cell["budget"], cell.seed)
    spent = timed_fit(model, X[train], y[train])
    return {"accuracy": 100 * float(np.mean(model.predict(X[test]) == y[test])), **spent}


@cache
def table(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Read one table: inputs, and the class of every row."""
    if data in LOADERS:
        return LOADERS[data](return_X_y=True)
    rows = pandas.read_csv(path(data)).to_numpy(dtype=np.float64)
    return rows[:, 1:], rows[:, 0].astype(int)


def path(data: str) -> Any:
    """Find the file of a table."""
    return data_file("tables", f"{data}.csv.gz")


@dataclass(frozen=True)
class Comparison:
    """Ours at one budget on one table, beside the better peer on the same folds and what was before."""

    data: str
    budget: int
    ours: Mean
    nonzeros: float
    behind: float | None
    times: float | None

    @property
    def near_peers(self) -> bool | None:
        """Whether ours is at most half a point behind the better peer."""
        return None if self.behind is None else self.behind <= SLACK

    @property
    def before(self) -> float | None:
        """What the engine before this one reached."""
        return BEFORE.get((self.data, self.budget))

    @property
    def not_lost(self) -> bool | None:
        """Whether ours is as good as before, in tenths of a point."""
        return None if self.before is None else round(self.ours.value, 1) >= self.before


def comparisons(results: Results, given: argparse.Namespace) -> Iterator[Comparison]:
    """Compare ours at each budget on each table, wherever it was fitted."""
    for data in given.data:
        peers = [results.of("accuracy", **configuration(data, peer)) for peer in PEERS]
        for budget in given.budgets:
            ours = results.of("accuracy", **configuration(data, "ours", budget))
            if not ours:
                continue
            mine, *others = paired(ours, *peers)
            behind = float(max(other.mean() for other in others) - mine.mean()) if mine.size else None
            times = results.times(configuration(data, "ours", budget), configuration(data, "dense"))
            held = results.of("nonzeros", **configuration(data, "ours", budget))
            yield Comparison(data, budget, mean(ours.values()), mean(held.values()).value, behind, times)


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write accuracies beside the bars, and the variants."""
    rows = []
    for found in comparisons(results, given):
        peers = [results.of("accuracy", **configuration(found.data, peer)) for peer in PEERS]
        rows.append(
            (
                found.data,
                found.budget,
                found.ours.count,
                found.ours,
                f"{found.nonzeros:.1f}",
                *(mean(peer.values()) for peer in peers),
                "" if found.behind is None else f"{-found.behind:+.2f}",
                verdict(found.near_peers),
                found.before or "",
                verdict(found.not_lost),
                "" if found.times is None else f"{found.times:.2f}",
            )
        )
    heads = ("data", "budget", "folds", "ours", "nonzeros", *PEERS, "less the better", f">= -{SLACK}")
    heads += ("before", ">= before", "time / dense")
    title = "Accuracy in percent, mean over folds and its standard error; processor time"
    return [markdown(heads, rows, title), variants_table(results, "accuracy", VARIANTS, given)[0]]


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Measure against the bars."""
    found = []
    for budget in given.budgets:
        here = [comparison for comparison in comparisons(results, given) if comparison.budget == budget]
        asked = {
            f"at most {SLACK} points below the better peer": [c.near_peers for c in here],
            "no worse than before": [c.not_lost for c in here],
        }
        for what, verdicts in asked.items():
            met, of = share(verdicts)
            if of:
                found.append(
                    Measurement(f"budget {budget}, {what}", met, of, f"of {of} tables", at_least=True)
                )
    equal = variants_table(results, "accuracy", VARIANTS, given)[1]
    if equal:
        what = "scores that a shift changes by more than 0.5 %"
        found.append(Measurement(what, equal.count(False), 0, f"of {len(equal)}"))
    return found


BENCHMARK = LongBenchmark(
    "classes",
    options,
    cells,
    fingerprint,
    fit,
    tables,
    bars,
    shown={"methods": tuple(MODELS), "variant": VARIANTS},
    quick=("--repeats", "0", "--data", "cancer"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
