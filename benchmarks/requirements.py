"""What requirements cost on three UCI tables, and whether networks keep to them on a million random rows.

    python benchmarks/requirements.py                                 all of it, an hour
    python benchmarks/requirements.py --data boston --splits 0-1      a part of it
    python benchmarks/requirements.py --table                         what is kept, without fitting

The folder that THRESHER_DATA names holds ``uci/``, as for tables.py. Ours has default settings, 50 neurons
and 60 nonzeros. Which columns are monotone was decided by what they mean, before any fit; what columns cost
is made up (1, 2, 3 and 1 again, in their order), groups are columns taken two by two. "three by L1" is the
peer of ``max_inputs=3``: the first three inputs of the L1 path of a linear model, then a fit on those.

Each network is looked at as a function that nobody has made, on rows far beyond those of the table: which
columns move its output at all, and whether it ever moves the wrong way. Inputs of neurons are counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from comparing import Results, configuration, markdown, mean, paired
from fits import data_file, file_print, timed_fit
from kept import LongBenchmark, numbers, words
from measuring import Measurement
from sklearn.linear_model import lars_path
from tables import HIDDEN, table

from thresher import Network, SparseMLPRegressor
from thresher.experiments.record import Cell

BUDGET, SPLITS = 60, 6
ROWS, CHUNK = 10**6, 10**5
# What is expected of the world: prices of houses rise with their rooms, and so on.
MONOTONE = {
    "boston": {0: -1, 5: 1, 12: -1},
    "concrete": {0: 1, 3: -1, 7: 1},
    "wine": {1: -1, 10: 1},
}
MOST_COST = 6


def _costs(inputs: int) -> dict[int, float]:
    return {column: 1.0 + column % 3 for column in range(inputs)}


def _pairs(inputs: int) -> list[list[int]]:
    return [list(range(first, min(first + 2, inputs))) for first in range(0, inputs, 2)]


REQUIRED: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "monotone": lambda data, inputs: {"monotone": MONOTONE[data]},
    "max_inputs=3": lambda data, inputs: {"max_inputs": 3},
    "max_fan_in=2": lambda data, inputs: {"max_fan_in": 2},
    "costs": lambda data, inputs: {"feature_costs": _costs(inputs), "max_cost": MOST_COST},
    "groups": lambda data, inputs: {"groups": _pairs(inputs), "max_inputs": 3},
    "all": lambda data, inputs: {
        "monotone": MONOTONE[data],
        "max_inputs": 5,
        "max_fan_in": 2,
        "feature_costs": _costs(inputs),
        "max_cost": 2 * MOST_COST,
    },
}
METHODS = ("nothing", *REQUIRED, "three by L1")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    parser.add_argument("--data", type=words(MONOTONE), default=tuple(MONOTONE), help="data sets")
    parser.add_argument("--splits", type=numbers(0, 19), default=tuple(range(SPLITS)), help="such as 0-4,7")
    parser.add_argument("--methods", type=words(METHODS), default=METHODS, help=f"of {', '.join(METHODS)}")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the fits, split after split."""
    return [
        Cell("requirements", configuration(data, method, BUDGET), seed=split)
        for split in given.splits
        for data in given.data
        for method in given.methods
    ]


def fingerprint(cell: Cell) -> str:
    """Tell one state of the files from another."""
    return file_print(data_file("uci", f"{cell['data']}.npz"))


def fit(cell: Cell) -> dict[str, Any]:
    """Fit on the training rows of one split; give the error on the test rows, and what is broken."""
    arrays = table(cell["data"])
    X, y, test = arrays["X"].astype(np.float64), arrays["y"].ravel(), arrays[f"test_{cell.seed}"]
    train = np.setdiff1d(np.arange(len(y)), test)
    required, columns = {}, np.arange(X.shape[1])
    if cell["method"] == "three by L1":
        columns = _first_of_path(X[train], y[train], 3)
    elif cell["method"] in REQUIRED:
        required = REQUIRED[cell["method"]](cell["data"], X.shape[1])
    model = SparseMLPRegressor(BUDGET, HIDDEN, random_state=cell.seed, **required)
    spent = timed_fit(model, X[np.ix_(train, columns)], y[train])
    error = model.predict(X[np.ix_(test, columns)]) - y[test]
    found = {"rmse": float(np.sqrt(np.mean(error**2))), **spent}
    return found | (broken(model.network_, X[train], required, cell.seed) if required else {})


def _first_of_path(X: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Give the inputs that are first in the L1 path of a linear model."""
    scaled = (X - X.mean(0)) / X.std(0)
    _, _, path = lars_path(scaled, y - y.mean(), method="lasso")
    held = next(part for part in path.T if np.count_nonzero(part) >= count)
    return np.sort(np.argsort(-np.abs(held))[:count])


def broken(network: Network, X: np.ndarray, required: dict[str, Any], seed: int) -> dict[str, Any]:
    """Count on random rows how often a network breaks what is required, whatever its weights say.

    Every column is moved to other values on all rows, which tells the columns that matter; a monotone one is
    moved upwards, and the output compared row by row, with no tolerance.
    """
    random, inputs = np.random.default_rng(seed), X.shape[1]
    monotone = required.get("monotone", {})
    wrong, moves = 0, np.zeros(inputs, dtype=bool)
    for _ in range(ROWS // CHUNK):
        rows = X.mean(0) + 3 * X.std(0) * random.standard_normal((CHUNK, inputs))
        before = network.predict(rows)
        for column in range(inputs):
            kept = rows[:, column].copy()
            rows[:, column] += 3 * X[:, column].std() * np.abs(random.standard_normal(CHUNK))
            change = network.predict(rows) - before
            rows[:, column] = kept
            moves[column] |= bool((change != 0).any())
            wrong += int((change * monotone.get(column, 0) < 0).sum())
    unit = np.arange(inputs)
    for group in required.get("groups", []):
        unit[group] = group[0]
    used = np.unique(unit[moves])
    fan_in = max(int(np.diff(layer.weights.tocsc().indptr).max()) for layer in network.layers[:-1])
    costs = required.get("feature_costs", {})
    cost = sum(max(costs.get(column, 0.0) for column in np.flatnonzero(unit == one)) for one in used)
    excess = sum(
        count > required.get(name, np.inf)
        for name, count in (("max_inputs", len(used)), ("max_fan_in", fan_in), ("max_cost", cost))
    )
    return {"wrong": wrong, "excess": int(excess), "inputs": len(used), "fan_in": fan_in, "cost": cost}


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write the error under each requirement beside that without."""
    rows = []
    for data in given.data:
        free = results.of("rmse", **configuration(data, "nothing", BUDGET))
        for method in given.methods:
            errors = results.of("rmse", **configuration(data, method, BUDGET))
            if not errors or not free:
                continue
            mine, other = paired(errors, free)
            names = ("inputs", "fan_in", "cost") if method in REQUIRED else ()
            counts = [results.of(name, **configuration(data, method, BUDGET)).values() for name in names]
            most = [f"{max(count):g}" for count in counts] or ["", "", ""]
            rows.append(
                (
                    data,
                    method,
                    len(errors),
                    mean(errors.values()),
                    f"{mine.mean() / other.mean() - 1:+.1%}",
                    *most,
                )
            )
    heads = ("data", "required", "splits", "RMSE", "against nothing", "inputs", "fan-in", "cost")
    return [markdown(heads, rows, "What requirements cost, and the most that any network has")]


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Count fits that break what is required, and tables where our three inputs beat those of the path."""
    fits = worse = beats = of = 0
    for data in given.data:
        for method in REQUIRED:
            each = [results.of(name, **configuration(data, method, BUDGET)) for name in ("wrong", "excess")]
            fits += len(each[0])
            worse += sum(bool(each[0][split] or each[1][split]) for split in each[0])
        ours, path = (
            results.of("rmse", **configuration(data, method, BUDGET))
            for method in ("max_inputs=3", "three by L1")
        )
        if ours and path:
            mine, theirs = paired(ours, path)
            beats, of = beats + int(mine.mean() <= theirs.mean()), of + 1
    found = []
    if fits:
        found.append(Measurement(f"of {fits} fits, broken on {ROWS:,} random rows", worse, 0, "fits"))
    if of:
        found.append(Measurement("three inputs no worse than the path's", beats, of, f"of {of} tables", True))
    return found


BENCHMARK = LongBenchmark(
    "requirements",
    options,
    cells,
    fingerprint,
    fit,
    tables,
    bars,
    shown={"methods": METHODS},
    quick=("--data", "boston", "--splits", "0"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
