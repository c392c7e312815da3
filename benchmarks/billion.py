"""A billion features: all words of 15 letters, and a label that no linear model can state.

    python benchmarks/billion.py

Sequences of 150 letters over an alphabet of four are seen as the 15-letter words they hold, 4^15 columns;
with 100 neurons that makes 10^11 possible weights. Two words are planted, each in 40 % of the rows; the label
is whether exactly one of them is there, and 10 % of the labels are turned round. Beside it is a linear model
on hashed words: scikit-learn's SGD, with as many buckets as ten times the memory of our fit holds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from measuring import Measurement, Options
from memory import MEGABYTE, peak_during

ROWS, TEST_ROWS, LETTERS, WORD = 50_000, 10_000, 150, 15
SHARE, TURNED = 0.4, 0.1
HIDDEN, BUDGET = 100, 20
ACCURACY_BAR, MEMORY_BAR = 2.0, 200.0
# Strengths of the linear model's penalty, of which the one best on the test rows counts.
STRENGTHS = (1e-6, 1e-5, 1e-4)


def measure(options: Options) -> list[Measurement]:
    """Fit both kinds of model, each in a process of its own."""
    ours = fitted_apart("ours", 0)
    buckets = 1 << int(np.log2(10 * ours["peak"] * MEGABYTE / 8))
    linear = fitted_apart("linear", buckets)
    detail = {"ours": ours, "linear": linear, "buckets": buckets}
    best = 100 * (1 - TURNED)
    return [
        Measurement(
            f"what {best:.0f} % exceed the accuracy by, {ROWS:,} rows, 4^{WORD} columns x {HIDDEN} neurons",
            best - ours["accuracy"],
            ACCURACY_BAR,
            "points",
            detail=detail,
        ),
        Measurement("planted words among the two that matter most", ours["found"], 2, "words", True),
        Measurement("peak memory beyond the data", ours["peak"], MEMORY_BAR, "MB"),
        Measurement(f"accuracy of a linear model on {buckets:,} buckets", linear["accuracy"], None, "%"),
        Measurement("its peak memory beyond the data", linear["peak"], None, "MB"),
        Measurement("processor time", ours["seconds"], None, "s"),
        Measurement("that of the linear model", linear["seconds"], None, "s"),
    ]


def fitted_apart(kind: str, buckets: int) -> dict[str, Any]:
    """Fit in a fresh process."""
    command = [sys.executable, str(Path(__file__)), kind, str(buckets)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"the fit of {kind} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def sequences(rows: int, seed: int) -> tuple[scipy.sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Draw sequences as rows of words, their labels, and the columns of the planted words."""
    draw = np.random.default_rng(seed)
    letters = draw.integers(0, 4, (rows, LETTERS), dtype=np.int8)
    planted = np.random.default_rng(99).integers(0, 4, (2, WORD), dtype=np.int8)
    holds = draw.random((2, rows)) < SHARE
    # One in the first half of a sequence and one in the second, so that they never overlap.
    for word, where, first in zip(planted, holds, (0, LETTERS // 2), strict=True):
        starts = draw.integers(first, first + LETTERS // 2 - WORD, rows)
        places = starts[where, None] + np.arange(WORD)
        letters[np.flatnonzero(where)[:, None], places] = word
    label = (holds[0] ^ holds[1] ^ (draw.random(rows) < TURNED)).astype(np.int64)
    each = LETTERS - WORD + 1
    words = np.zeros((rows, each), dtype=np.int32)
    for place in range(WORD):
        words = 4 * words + letters[:, place : place + each]
    parts = np.ones(rows * each, dtype=np.int8), words.reshape(-1), np.arange(0, rows * each + 1, each)
    columns = planted.astype(np.int64) @ 4 ** np.arange(WORD - 1, -1, -1)
    return scipy.sparse.csr_matrix(parts, shape=(rows, 4**WORD)), label, columns


def ours() -> dict[str, Any]:
    """Fit a network to all words, and look for those that were planted."""
    from thresher import SparseMLPClassifier

    X, y, columns = sequences(ROWS, 0)
    X_test, y_test, _ = sequences(TEST_ROWS, 1)
    # What is loaded at first use is not the fit's.
    SparseMLPClassifier(budget=5, hidden=2, max_iter=1, random_state=0).fit(X[:200], y[:200])
    model = SparseMLPClassifier(budget=BUDGET, hidden=HIDDEN, random_state=0)
    began = time.process_time()
    peak = peak_during(lambda: model.fit(X, y))
    seconds = time.process_time() - began
    named = [int(line.split()[0][1:]) for line in model.network_.describe().splitlines() if line[:3] == "  x"]
    return {
        "accuracy": 100 * float(np.mean(model.predict(X_test) == y_test)),
        "found": len(set(named[:2]) & set(columns.tolist())),
        "nonzeros": model.nonzeros_,
        "peak": peak / MEGABYTE,
        "seconds": seconds,
    }


def linear(buckets: int) -> dict[str, Any]:
    """Fit a linear model to words hashed to so many buckets."""
    from sklearn.linear_model import SGDClassifier

    (X, y, _), (X_test, y_test, _) = sequences(ROWS, 0), sequences(TEST_ROWS, 1)
    X, X_test = hashed(X, buckets), hashed(X_test, buckets)
    found = []
    for strength in STRENGTHS:
        model = SGDClassifier(loss="log_loss", alpha=strength, max_iter=20, random_state=0)
        began = time.process_time()
        peak = peak_during(lambda model=model: model.fit(X, y)) / MEGABYTE
        accuracy = 100 * float(model.score(X_test, y_test))
        found.append({"accuracy": accuracy, "peak": peak, "seconds": time.process_time() - began})
        del model
    return {**max(found, key=lambda one: one["accuracy"]), "peak": found[0]["peak"]}


def hashed(X: scipy.sparse.csr_matrix, buckets: int) -> scipy.sparse.csr_matrix:
    """Hash columns by Knuth's multiplication."""
    places = (X.indices.astype(np.uint32) * np.uint32(2654435761)) >> np.uint32(33 - buckets.bit_length())
    parts = X.data.astype(np.float64), places.astype(np.int32), X.indptr
    return scipy.sparse.csr_matrix(parts, shape=(X.shape[0], buckets))


def main() -> None:
    """Print the table, or fit once and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=("ours", "linear"), help="fit once; used by the table")
    parser.add_argument("buckets", nargs="?", type=int, default=0)
    given = parser.parse_args()
    if given.kind:
        print(json.dumps(ours() if given.kind == "ours" else linear(given.buckets)))
        return
    for row in measure(Options()):
        bar = "" if row.bar is None else f"  ({'at least' if row.at_least else 'at most'} {row.bar:g})"
        print(f"{row.what}: {row.value:.2f} {row.unit}{bar}", flush=True)


if __name__ == "__main__":
    main()
