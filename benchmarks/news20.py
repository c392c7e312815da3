"""Texts as sparse rows: a thousand neurons on tens of thousands of words, beside an L1 logistic regression.

    THRESHER_DATA=DIR python benchmarks/news20.py            20 newsgroups, dorothea and dexter
    THRESHER_DATA=DIR python benchmarks/news20.py dexter     those named

DIR/sparse holds `NAME_train.npz` (`data, indices, indptr, shape, y` of a CSR array). A fifth of the rows is
held out; rows are normalised. Every fit runs in a process of its own; time is that of the processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from measuring import Measurement, Options
from memory import MEGABYTE, peak_during

# File, neurons, budget, passes, strength of the L1 penalty that leaves about as many nonzeros as the budget.
SETS = {
    "news20": ("news20_multiclass_train", 1_000, 5_000, 15, 2.0),
    "dorothea": ("dorothea_train", 100, 100, 200, 5.0),
    "dexter": ("dexter_train", 100, 100, 200, 20.0),
}
# Of news20: accuracy that one-against-rest with 5,198 nonzeros has is 78.0 %.
ACCURACY, PEAK, TIMES = 79.0, 300.0, 5.0


def measure(options: Options, names: tuple[str, ...] = tuple(SETS)) -> list[Measurement]:
    """Fit both kinds of model to every data set."""
    rows = []
    for name in names:
        ours, theirs = (fitted_apart(name, kind, options) for kind in ("ours", "l1"))
        detail = {"ours": ours, "l1": theirs}
        bars = (ACCURACY, PEAK, TIMES) if name == "news20" else (theirs["accuracy"], None, None)
        what = f"{name}, {ours['nonzeros']:,} nonzeros (L1: {theirs['accuracy']:.1f} % with"
        what += f" {theirs['nonzeros']:,})"
        rows += [
            Measurement(f"accuracy on {what}", ours["accuracy"], bars[0], "%", True, detail),
            Measurement(f"peak memory beyond the data, {name}", ours["peak"], bars[1], "MB", detail=detail),
            Measurement(
                f"processor time / L1's, {name}", ours["seconds"] / theirs["seconds"], bars[2], detail=detail
            ),
        ]
    return rows


def fitted_apart(name: str, kind: str, options: Options) -> dict[str, Any]:
    """Fit in a fresh process."""
    command = [sys.executable, str(Path(__file__)), name, kind]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{kind} on {name} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def rows_of(name: str) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Read a data set and split it."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import normalize

    stored = np.load(Path(os.environ["THRESHER_DATA"]) / "sparse" / f"{SETS[name][0]}.npz")
    parts = stored["data"].astype(np.float64), stored["indices"], stored["indptr"]
    X = normalize(scipy.sparse.csr_matrix(parts, shape=tuple(stored["shape"])))
    return train_test_split(X, stored["y"], test_size=0.2, stratify=stored["y"], random_state=0)


def fit_here(name: str, kind: str) -> dict[str, Any]:
    """Fit in this process; say how well, how large, how long."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from thresher import SparseMLPClassifier

    _, hidden, budget, passes, strength = SETS[name]
    X, X_test, y, y_test = rows_of(name)
    if kind == "ours":
        model = SparseMLPClassifier(budget=budget, hidden=hidden, max_iter=passes, random_state=0)
        # What is loaded at first use is not the fit's.
        SparseMLPClassifier(budget=50, hidden=10, max_iter=1, random_state=0).fit(X[:200, :100], y[:200])
    else:
        logistic = LogisticRegression(penalty="l1", solver="liblinear", C=strength, random_state=0)
        model = OneVsRestClassifier(logistic)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peak = peak_during(lambda: model.fit(X, y))
    seconds = time.process_time() - began
    if kind == "ours":
        nonzeros = model.nonzeros_
    else:
        nonzeros = sum(np.count_nonzero(one.coef_) + 1 for one in model.estimators_)
    accuracy = 100 * float(model.score(X_test, y_test))
    return {
        "accuracy": accuracy, "nonzeros": int(nonzeros), "seconds": seconds, "peak": peak / MEGABYTE
    }  # fmt: skip


def main() -> None:
    """Print the table, or fit once and print what was found."""
    if sys.argv[2:] and sys.argv[2] in ("ours", "l1"):
        print(json.dumps(fit_here(*sys.argv[1:])))
        return
    for row in measure(Options(), tuple(sys.argv[1:]) or tuple(SETS)):
        bar = "" if row.bar is None else f"  ({'at least' if row.at_least else 'at most'} {row.bar:.3g})"
        print(f"{row.what}: {row.value:.1f} {row.unit}{bar}", flush=True)


if __name__ == "__main__":
    main()
