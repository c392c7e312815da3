"""Measure Thresher and the baselines on MNIST, ten classes, the paper's split: accuracy and time.

    python benchmarks/baselines.py                              all, about a quarter of an hour on one thread
    python benchmarks/baselines.py gmp rigl --budgets 1000      those named
    python benchmarks/baselines.py --json                       one JSON document on standard output

MNIST is found through THRESHER_DATA, or --data. Each line is also written to standard error when it is known.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from thresher import SparseMLPClassifier
from thresher.baselines import BASELINES, IterativePruning, SparseLabRigL
from thresher.data.mnist import Split, paper_split

# What gradual pruning reached in trials of 20 passes at 100 neurons; a baseline below it would be a weak one.
EXPECTED = {("gmp", 1000): 0.939, ("gmp", 2000): 0.958, ("gmp", 5000): 0.969}


def thresher(task: str, **settings: Any) -> SparseMLPClassifier:
    """Make our own classifier, whose biases count against the budget and are always allowed."""
    del task
    return SparseMLPClassifier(**{**settings, "bias": True})


# The last needs the package sparselab, so it runs only where it is named.
METHODS = {"thresher": thresher, **BASELINES, "rigl-sparselab": SparseLabRigL}
COLUMNS = ("method", "budget", "nonzeros", "accuracy", "expected", "seconds", "cpu", "peak weights", "passes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, and print it."""
    given = parse(arguments)
    torch.set_num_threads(1)
    split = paper_split(folder=given.data)
    rows = []
    for row in measure(split, given):
        rows.append(row)
        print(" ".join(f"{name}={value}" for name, value in row.items()), file=sys.stderr, flush=True)
    if given.json:
        settings = {name: value for name, value in vars(given).items() if name not in ("json", "data")}
        print(json.dumps({"settings": settings, "rows": rows}, indent=2))
    else:
        print(table(rows))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure Thresher and the baselines on MNIST, ten classes.")
    known = ", ".join(METHODS)
    parser.add_argument("methods", nargs="*", metavar="NAME", help=f"of {known}; all but the last by default")
    parser.add_argument("--budgets", type=int, nargs="+", default=[200, 1000, 2000, 5000])
    parser.add_argument("--hidden", type=int, nargs="+", default=[100], help="neurons of each hidden layer")
    parser.add_argument("--epochs", type=int, default=20, help="passes of each training run (default 20)")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--bias", action="store_true", help="with biases, which count; without by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", help="the data folder; THRESHER_DATA by default")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.methods if name not in METHODS]
    if unknown:
        parser.error(f"no baseline is called {unknown[0]!r}. Use any of {known}.")
    given.methods = given.methods or ["thresher", *BASELINES]
    return given


def measure(split: Split, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Fit each method for each budget; those that can share work between budgets do."""
    for name in given.methods:
        model = METHODS[name](
            "classification",
            hidden=tuple(given.hidden),
            max_iter=given.epochs,
            batch_size=given.batch_size,
            random_state=given.seed,
            bias=given.bias,
        )
        if isinstance(model, IterativePruning):
            for budget, fitted in model.fit_path(split.X_train, split.y_train, given.budgets):
                yield row(name, budget, fitted, split, None)
        else:
            # The budget means nothing to a dense network, so one is enough.
            for budget in given.budgets[:1] if name == "dense" else given.budgets:
                began = time.process_time()
                fitted = model.set_params(budget=budget).fit(split.X_train, split.y_train)
                yield row(name, budget, fitted, split, time.process_time() - began)


def row(name: str, budget: int, fitted: Any, split: Split, cpu: float | None) -> dict[str, Any]:
    """Write one fit as a line of the table; seconds of the processor where budgets shared nothing."""
    return {
        "method": name,
        "budget": budget,
        "nonzeros": fitted.nonzeros_,
        "accuracy": round(fitted.score(split.X_test, split.y_test), 4),
        "expected": EXPECTED.get((name, budget)),
        "seconds": round(getattr(fitted, "seconds_", None) or fitted.history_[-1]["seconds"], 1),
        "cpu": None if cpu is None else round(cpu, 1),
        "peak weights": getattr(fitted, "peak_weights_", None) or max(r["nonzeros"] for r in fitted.history_),
        "passes": fitted.n_iter_,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Write everything as one table of text."""
    lines = [COLUMNS, *(tuple("" if r[c] is None else f"{r[c]}" for c in COLUMNS) for r in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
