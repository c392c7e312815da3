"""Choosing the budget: processor time of a path over that of a single fit, on five tables.

    python benchmarks/path_time.py                    all of it, minutes
    python benchmarks/path_time.py --data diabetes    one table
    python benchmarks/path_time.py --table            what is kept, without fitting

A path has the default budgets on five folds. The single fit has the default budget and all rows. Two tables
are scikit-learn's, three are those of tables.py in the folder that THRESHER_DATA names.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from comparing import Results, configuration, markdown, share, verdict
from fits import data_file, file_print, timed_fit
from kept import LongBenchmark, words
from measuring import Measurement
from sklearn.datasets import load_breast_cancer, load_diabetes
from tables import table

from thresher import SparseMLPClassifier, SparseMLPClassifierCV, SparseMLPRegressor, SparseMLPRegressorCV
from thresher.experiments.record import Cell

LOADERS = {"diabetes": load_diabetes, "cancer": load_breast_cancer}
DATA = (*LOADERS, "boston", "concrete", "energy")
METHODS = ("single", "path")
BAR = 10.0


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    parser.add_argument("--data", type=words(DATA), default=DATA, help=f"of {', '.join(DATA)}")
    parser.add_argument("--methods", type=words(METHODS), default=METHODS, help=f"of {', '.join(METHODS)}")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the fits."""
    return [
        Cell("path_time", configuration(data, method), seed=0)
        for data in given.data
        for method in given.methods
    ]


def fingerprint(cell: Cell) -> str:
    """Tell one state of the data from another."""
    data = cell["data"]
    return "scikit-learn" if data in LOADERS else file_print(data_file("uci", f"{data}.npz"))


def fit(cell: Cell) -> dict[str, Any]:
    """Fit a single network or a path, and give its processor time."""
    data, path = cell["data"], cell["method"] == "path"
    if data in LOADERS:
        X, y = LOADERS[data](return_X_y=True)
    else:
        X, y = table(data)["X"], table(data)["y"]
    if data == "cancer":
        model: Any = SparseMLPClassifierCV(random_state=0) if path else SparseMLPClassifier(random_state=0)
    else:
        model = SparseMLPRegressorCV(random_state=0) if path else SparseMLPRegressor(random_state=0)
    spent = timed_fit(model, X, y)
    if not path:
        return spent
    best = float(model.mean_scores_.max())
    return {**spent, "budget": model.budget_, "best_budget": model.best_budget_, "best_score": best}


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write both times and their ratio."""
    rows = []
    for data in given.data:
        times = results.times(configuration(data, "path"), configuration(data, "single"))
        if times is None:
            continue
        one, path = (results.of("cpu", **configuration(data, method))[0] for method in METHODS)
        chosen = results.of("budget", **configuration(data, "path"))[0]
        score = results.of("best_score", **configuration(data, "path"))[0]
        told = (f"{one:.1f}", f"{path:.1f}", f"{times:.1f}", verdict(times <= BAR), chosen, f"{score:.3f}")
        rows.append((data, *told))
    heads = ("data", "single fit, s", "path, s", "times", f"<= {BAR:g}", "budget chosen", "best mean score")
    return [markdown(heads, rows, "Processor time of a path of budgets")]


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Measure against the bar."""
    found = [results.times(configuration(data, "path"), configuration(data, "single")) for data in given.data]
    met, of = share(None if one is None else one <= BAR for one in found)
    if not of:
        return []
    return [
        Measurement(f"paths of at most {BAR:g} times a single fit", met, of, f"of {of} tables", at_least=True)
    ]


BENCHMARK = LongBenchmark(
    "path_time",
    options,
    cells,
    fingerprint,
    fit,
    tables,
    bars,
    shown={"methods": METHODS},
    quick=("--data", "diabetes"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
