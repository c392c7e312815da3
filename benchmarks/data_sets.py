"""Real data at a small budget, against the models people would use instead, on the same folds.

Breast cancer at 20 nonzeros against a dense network, diabetes at 8 against a lasso of as many, dexter at 100
against an L1 logistic regression of as many (only where THRESHER_DATA names a folder that holds the file
``sparse/dexter_train.npz``). Biases count like weights. Each of ours is measured twice: with its defaults,
and with settings that a cross-validation inside the training part chose.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from measuring import Measurement, Options
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, lasso_path
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, RepeatedKFold, RepeatedStratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from thresher import SparseMLPClassifier, SparseMLPRegressor

# Settings that the cross-validation inside the training part chooses from.
CANCER_GRID = {"alpha": [0.1, 0.3, 1.0], "hidden": [4, 10]}
DIABETES_GRID = {"hidden": [1, 2, 4, 10]}
DEXTER_GRID = {"alpha": [1.0, 10.0]}

Scored = Callable[[Any, Any, Any, Any], tuple[float, int]]


def measure(options: Options) -> list[Measurement]:
    """Measure all data sets that are at hand; `quick` leaves the choice of settings out, and repeats once."""
    found = [*cancer(options), *diabetes(options)]
    folder = os.environ.get("THRESHER_DATA")
    if folder and (Path(folder) / "sparse" / "dexter_train.npz").exists():
        found += dexter(Path(folder) / "sparse" / "dexter_train.npz", options)
    return found


def cancer(options: Options) -> Iterator[Measurement]:
    """Breast cancer at 20 nonzeros, three times five folds: points of accuracy below a dense network."""
    X, y = load_breast_cancer(return_X_y=True)
    folds = list(
        RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats(3, options), random_state=1).split(X, y)
    )
    dense = compared(folds, X, y, _dense_network)
    ours = SparseMLPClassifier(budget=20, hidden=10, random_state=0)
    for how, model in versions(ours, CANCER_GRID, options):
        sparse = compared(folds, X, y, fitted(model))
        what = f"breast cancer, 20 nonzeros, {how}: points below a dense network"
        yield Measurement(what, dense["score"] - sparse["score"], 1.0, "points", detail=both(sparse, dense))


def diabetes(options: Options) -> Iterator[Measurement]:
    """Diabetes at 8 nonzeros, three times five folds: points of R2 above a lasso with as many."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    folds = list(RepeatedKFold(n_splits=5, n_repeats=repeats(3, options), random_state=1).split(X))
    lasso = compared(folds, X, y, _lasso(8))
    ours = SparseMLPRegressor(budget=8, hidden=10, random_state=0)
    for how, model in versions(ours, DIABETES_GRID, options):
        sparse = compared(folds, X, y, fitted(model))
        what = f"diabetes, 8 nonzeros, {how}: points of R2 above a lasso of 8"
        gain = sparse["score"] - lasso["score"]
        yield Measurement(what, gain, 0.0, "points", at_least=True, detail=both(sparse, lasso))


def dexter(path: Path, options: Options) -> Iterator[Measurement]:
    """Dexter at 100 nonzeros, five repeats of five folds: points above L1 logistic regression of as many."""
    with np.load(path) as file:
        parts = (
            file["data"].astype(np.float64),
            *(file[name].astype(np.int32) for name in ("indices", "indptr")),
        )
        X, y = scipy.sparse.csr_array(parts, shape=tuple(file["shape"])), file["y"]
    folds = list(
        RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats(5, options), random_state=1).split(X, y)
    )
    linear = compared(folds, X, y, _l1(100))
    ours = SparseMLPClassifier(budget=100, random_state=0)
    for how, model in versions(ours, DEXTER_GRID, options):
        sparse = compared(folds, X, y, fitted(model))
        what = f"dexter, 100 nonzeros, {how}: points above L1 logistic regression of 100"
        gain = sparse["score"] - linear["score"]
        yield Measurement(what, gain, 0.0, "points", at_least=True, detail=both(sparse, linear))


def repeats(many: int, options: Options) -> int:
    """Say how often folds are drawn anew."""
    return 1 if options.quick else many


def versions(model: Any, grid: dict[str, list[Any]], options: Options) -> Iterator[tuple[str, Any]]:
    """Give a model as it is, and one whose settings are chosen on the training rows."""
    yield "defaults", model
    if not options.quick:
        yield "settings by cross-validation", GridSearchCV(model, grid, cv=3)


def compared(folds: list[Any], X: Any, y: np.ndarray, scored: Scored) -> dict[str, Any]:
    """Score one model on every fold, in points."""
    results = [scored(X[train], y[train], X[test], y[test]) for train, test in folds]
    scores = [100 * score for score, _ in results]
    return {
        "score": float(np.mean(scores)),
        "scores": [round(score, 2) for score in scores],
        "nonzeros": float(np.mean([count for _, count in results])),
    }


def both(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Put the numbers behind a difference side by side, with the standard error of the paired difference."""
    differences = np.subtract(ours["scores"], theirs["scores"])
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return {"ours": ours, "theirs": theirs, "standard_error": round(float(error), 3)}


def fitted(model: Any) -> Scored:
    """Fit ours anew on every fold."""

    def scored(X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, int]:
        found = clone(model).fit(X, y)
        best = getattr(found, "best_estimator_", found)
        return float(found.score(X_test, y_test)), best.nonzeros_

    return scored


def _dense_network(X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make_pipeline(StandardScaler(), MLPClassifier(random_state=0)).fit(X, y)
    return float(model.score(X_test, y_test)), sum(
        part.size for part in (*model[-1].coefs_, *model[-1].intercepts_)
    )


def _lasso(budget: int) -> Scored:
    """Take the last lasso along its path that holds no more numbers than the budget, intercept counted."""

    def scored(X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, int]:
        scaler, mean = StandardScaler().fit(X), y.mean()
        rows = scaler.transform(X)
        strongest = np.abs(rows.T @ (y - mean)).max() / len(y)
        _, coefs, _ = lasso_path(rows, y - mean, alphas=np.geomspace(strongest, 1e-4 * strongest, 400))
        counts = np.count_nonzero(coefs, axis=0) + 1
        last = int(np.flatnonzero(counts <= budget)[-1])
        return float(r2_score(y_test, scaler.transform(X_test) @ coefs[:, last] + mean)), int(counts[last])

    return scored


def _l1(budget: int) -> Scored:
    """Take the weakest penalty that leaves no more numbers than the budget, the intercept counted."""

    def scored(X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, int]:
        scaler = StandardScaler(with_mean=False).fit(X)
        rows, best, count = scaler.transform(X), None, 0
        for C in np.geomspace(0.001, 100, 51):
            model = LogisticRegression(l1_ratio=1, solver="liblinear", C=C, random_state=0, max_iter=300)
            held = np.count_nonzero(model.fit(rows, y).coef_) + 1
            if held > budget:
                break
            best, count = model, held
        assert best is not None
        return float(best.score(scaler.transform(X_test), y_test)), count

    return scored
