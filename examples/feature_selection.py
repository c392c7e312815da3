"""Which of twenty thousand inputs matter? A sparse network answers by what it leaves out.

The data is dexter (300 texts, 20,000 word counts, two classes) if THRESHER_DATA names a folder that holds
``sparse/dexter_train.npz``. Otherwise a planted stand-in is drawn, and the output says so.

    python examples/feature_selection.py
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from thresher import SparseMLPClassifier


def dexter() -> tuple[str, scipy.sparse.csr_array, np.ndarray]:
    """Read the data, or draw some that is like it: wide, sparse, and only a few inputs matter."""
    path = Path(os.environ.get("THRESHER_DATA", "")) / "sparse" / "dexter_train.npz"
    if "THRESHER_DATA" in os.environ and path.exists():
        with np.load(path) as file:
            parts = (
                file["data"].astype(float),
                file["indices"].astype(np.int32),
                file["indptr"].astype(np.int32),
            )
            return "dexter", scipy.sparse.csr_array(parts, shape=tuple(file["shape"])), file["y"]
    draw = np.random.default_rng(0)
    X = scipy.sparse.random_array((300, 2_000), density=0.1, rng=draw, format="csr")
    weights = np.zeros(2_000)
    weights[draw.choice(2_000, size=10, replace=False)] = 1.0
    return "a planted stand-in for dexter, which is not at hand", X, np.where(X @ weights > 0.35, 1, -1)


def main() -> None:
    """Select inputs, then show that a plain model needs no others."""
    name, X, y = dexter()
    print(f"data: {name}, {X.shape[0]:,} rows and {X.shape[1]:,} inputs")
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    network = SparseMLPClassifier(budget=50, hidden=20, max_iter=50, random_state=0).fit(X_train, y_train)
    used = network.get_support(indices=True)
    print(
        f"the network holds {network.nonzeros_} nonzeros and uses {len(used)} inputs, the first: {used[:10]}"
    )
    print(f"its accuracy on held-out rows: {network.score(X_test, y_test):.3f}")
    linear = make_pipeline(MaxAbsScaler(), LogisticRegression(C=10, max_iter=1000))
    for what, columns in (("all inputs", slice(None)), ("the selected ones", used)):
        score = linear.fit(X_train[:, columns], y_train).score(X_test[:, columns], y_test)
        print(f"logistic regression on {what}: {score:.3f}")
    # The same as a step of a pipeline: inputs with a weight other than zero are kept.
    step = SelectFromModel(network, prefit=True, importance_getter=_importances, threshold=1e-12)
    print(f"SelectFromModel keeps {step.transform(X_test).shape[1]} inputs")


def _importances(model: SparseMLPClassifier) -> np.ndarray:
    return model.get_support().astype(float)


if __name__ == "__main__":
    main()
