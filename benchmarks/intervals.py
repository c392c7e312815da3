"""Intervals at 90 % on nine UCI tables: how many test targets they hold, and how wide they are.

    python benchmarks/intervals.py                               all of it, hours
    python benchmarks/intervals.py --data boston --splits 0-9    a part of it
    python benchmarks/intervals.py --methods ours,folds          ours, on rows of their own and across folds
    python benchmarks/intervals.py --table                       what is kept, without fitting

The folder that THRESHER_DATA names holds ``uci/``, as for tables.py. Ours has default settings, 50 neurons
and 60 nonzeros; "ours" is calibrated on a fifth of the training rows, which the fit does not see, "folds"
across five folds of all of them. Boosting fits the quantiles 5 and 95 %. The width of MC dropout's intervals
is not published; what stands in its place is that of a normal distribution with its published RMSE as spread.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from comparing import Results, configuration, markdown, mean, paired, share, verdict
from fits import data_file, file_print, timed_fit
from kept import LongBenchmark, numbers, words
from measuring import Measurement
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from tables import HIDDEN, SPLITS, table

from thresher import SparseMLPRegressor
from thresher.experiments.record import Cell

METHODS = ("ours", "folds", "boosting")
USUAL = ("ours", "boosting")
COVERAGE, BUDGET, FOLDS, SHARE = 0.9, 60, 5, 0.2
LEAST, MOST = 0.88, 0.92
# How many spreads of a normal distribution hold that share.
NORMAL = 2 * 1.644854


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    parser.add_argument("--data", type=words(SPLITS), default=tuple(SPLITS), help="data sets; all by default")
    parser.add_argument("--splits", type=numbers(0, 19), default=tuple(range(20)), help="such as 0-4,7")
    parser.add_argument("--methods", type=words(METHODS), default=USUAL, help=f"of {', '.join(METHODS)}")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the fits, split after split; splits that a table does not have are left out."""
    return [
        Cell("intervals", configuration(data, method, None if method == "boosting" else BUDGET), seed=split)
        for data in given.data
        for split in given.splits
        if split < SPLITS[data]
        for method in given.methods
    ]


def fingerprint(cell: Cell) -> str:
    """Tell one state of the files from another."""
    return file_print(data_file("uci", f"{cell['data']}.npz"))


def fit(cell: Cell) -> dict[str, Any]:
    """Fit and calibrate on the training rows of one split; give coverage and mean width on the test rows."""
    arrays = table(cell["data"])
    X, y, test = arrays["X"], arrays["y"], arrays[f"test_{cell.seed}"]
    train = np.setdiff1d(np.arange(len(y)), test)
    began = time.process_time()
    if cell["method"] == "boosting":
        ends, spent = _quantiles(X[train], y[train], X[test], cell.seed), {"nonzeros": None}
    else:
        ends, spent = _calibrated(cell, X[train], y[train], X[test])
    held = (ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])
    width = float(np.mean(ends[:, 1] - ends[:, 0]))
    cpu = round(time.process_time() - began, 4)
    return {"coverage": float(held.mean()), "width": width, "rows": len(test), **spent, "cpu": cpu}


def _quantiles(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    ends = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    models = [
        HistGradientBoostingRegressor(loss="quantile", quantile=end, random_state=seed).fit(X, y)
        for end in ends
    ]
    return np.sort(np.column_stack([model.predict(X_test) for model in models]), axis=1)


def _calibrated(
    cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray
) -> tuple[np.ndarray, dict[str, Any]]:
    model = SparseMLPRegressor(cell["budget"], HIDDEN, random_state=cell.seed)
    if cell["method"] == "folds":
        spent = timed_fit(model, X, y)
        model.calibrate(X, y, cv=FOLDS)
    else:
        seen, kept, y_seen, y_kept = train_test_split(X, y, test_size=SHARE, random_state=cell.seed)
        spent = timed_fit(model, seen, y_seen)
        model.calibrate(kept, y_kept)
    return model.predict_interval(X_test, COVERAGE), spent


def _covers(results: Results, data: str, method: str) -> tuple[float, bool] | None:
    held = results.of("coverage", **configuration(data, method, BUDGET))
    if not held:
        return None
    value = float(np.mean(list(held.values())))
    return value, LEAST <= round(value, 4) <= MOST


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write coverage and width beside those of the peers, widths on the splits that all have."""
    published = json.loads(data_file("uci", "published.json").read_text(encoding="utf-8"))
    rows = []
    for data in given.data:
        for method in ("ours", "folds"):
            found = _covers(results, data, method)
            if found is None:
                continue
            held = results.of("coverage", **configuration(data, method, BUDGET))
            width = results.of("width", **configuration(data, method, BUDGET))
            boosting = configuration(data, "boosting")
            dropout = {split: NORMAL * published[data]["mc_rmse"][split] for split in held}
            mine, trees, normal = paired(width, results.of("width", **boosting) or width, dropout)
            has_trees = bool(results.of("width", **boosting))
            rows.append(
                (
                    data,
                    method,
                    len(held),
                    mean(held.values()),
                    verdict(found[1]),
                    f"{mine.mean():.4g}",
                    f"{trees.mean():.4g}" if has_trees else "",
                    mean(results.of("coverage", **boosting).values()),
                    f"{normal.mean():.4g}",
                )
            )
    heads = ("data", "method", "splits", "coverage", f"{LEAST} to {MOST}", "width", "boosting's width")
    heads += ("boosting's coverage", "normal, published RMSE")
    return [markdown(heads, rows, f"Intervals of coverage {COVERAGE}: means over splits")]


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Measure against the bar."""
    found = []
    for method in ("ours", "folds"):
        covers = [_covers(results, data, method) for data in given.data]
        met, of = share(one and one[1] for one in covers)
        if of:
            what = f"{method}: mean coverage between {LEAST:.0%} and {MOST:.0%}"
            found.append(Measurement(what, met, of, f"of {of} tables", at_least=True))
    return found


BENCHMARK = LongBenchmark(
    "intervals",
    options,
    cells,
    fingerprint,
    fit,
    tables,
    bars,
    shown={"methods": METHODS},
    quick=("--data", "boston", "--splits", "0-2"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
