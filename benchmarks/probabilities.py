"""Probabilities: log loss on rows held out beside a logistic regression's, ten repeats of four tables.

    python benchmarks/probabilities.py                          all of it, minutes
    python benchmarks/probabilities.py --data iris --repeats 0-2
    python benchmarks/probabilities.py --budgets 100,650        650: the numbers that digits' regression has
    python benchmarks/probabilities.py --table                  what is kept, without fitting

A fifth of the rows is held out, of every class alike. Ours has default settings and sees raw inputs; the
logistic regression sees standardised ones.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from comparing import Results, configuration, markdown, mean, paired, share, verdict
from fits import standardised, timed_fit
from kept import LongBenchmark, numbers, words
from measuring import Measurement
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from thresher import SparseMLPClassifier
from thresher.experiments.record import Cell

LOADERS = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
METHODS = ("ours", "logistic")
REPEATS, BUDGET = 10, 100


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    parser.add_argument("--data", type=words(LOADERS), default=tuple(LOADERS), help="data sets")
    parser.add_argument("--repeats", type=numbers(0, REPEATS - 1), default=tuple(range(REPEATS)), help="0-9")
    parser.add_argument("--methods", type=words(METHODS), default=METHODS, help=f"of {', '.join(METHODS)}")
    parser.add_argument("--budgets", type=numbers(1), default=(BUDGET,), help="of ours")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the fits, repeat after repeat."""
    return [
        Cell("probabilities", configuration(data, method, budget), seed=repeat)
        for data in given.data
        for repeat in given.repeats
        for method in given.methods
        for budget in (given.budgets if method == "ours" else (None,))
    ]


def fingerprint(cell: Cell) -> str:
    """Tell that the data is scikit-learn's."""
    return "scikit-learn"


def fit(cell: Cell) -> dict[str, Any]:
    """Fit one model on four fifths of the rows, and give its log loss and accuracy on the others."""
    X, y = LOADERS[cell["data"]](return_X_y=True)
    seen, held, y_seen, y_held = train_test_split(X, y, test_size=0.2, random_state=cell.seed, stratify=y)
    if cell["method"] == "ours":
        model: Any = SparseMLPClassifier(cell["budget"], random_state=cell.seed)
    else:
        model = standardised(LogisticRegression(max_iter=1000))
    spent = timed_fit(model, seen, y_seen)
    loss = log_loss(y_held, model.predict_proba(held))
    return {"loss": float(loss), "accuracy": 100 * float(np.mean(model.predict(held) == y_held)), **spent}


def _compared(results: Results, given: argparse.Namespace) -> list[tuple[str, int, np.ndarray, np.ndarray]]:
    found = []
    for data in given.data:
        theirs = results.of("loss", **configuration(data, "logistic"))
        for budget in given.budgets:
            mine, other = paired(results.of("loss", **configuration(data, "ours", budget)), theirs)
            if mine.size:
                found.append((data, budget, mine, other))
    return found


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write both losses."""
    rows = [
        (
            data,
            budget,
            len(mine),
            mean(mine),
            mean(other),
            mean(mine - other),
            verdict(bool(mine.mean() <= other.mean())),
            *(
                mean(results.of("accuracy", **configuration(data, *one)).values())
                for one in (("ours", budget), ("logistic",))
            ),
        )
        for data, budget, mine, other in _compared(results, given)
    ]
    heads = ("data", "budget", "repeats", "ours", "logistic", "difference", "no worse")
    heads += ("accuracy", "its accuracy")
    return [markdown(heads, rows, "Log loss on rows held out: mean over repeats and its standard error")]


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Measure against the bar."""
    found = []
    for budget in given.budgets:
        compared = [one for one in _compared(results, given) if one[1] == budget]
        met, of = share(bool(mine.mean() <= other.mean()) for _, _, mine, other in compared)
        if of:
            what = f"budget {budget}: log loss no worse than a logistic regression's"
            found.append(Measurement(what, met, of, f"of {of} tables", at_least=True))
    return found


BENCHMARK = LongBenchmark(
    "probabilities",
    options,
    cells,
    fingerprint,
    fit,
    tables,
    bars,
    shown={"methods": METHODS},
    quick=("--data", "iris", "--repeats", "0-2"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
