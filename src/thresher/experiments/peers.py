"""Peers of a sparse network: a dense network and a linear model, fitted to the same rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

NEURONS = 100

# Left to run to their end, dense networks overfit few rows of a regression badly.
PASSES = 500


@dataclass(frozen=True)
class Peer:
    """What a model scored.

    Attributes
    ----------
    model : str
    numbers : int
        Weights and biases that are not zero.
    score : float
        On rows it was not fitted to: accuracy, or R2.
    seconds : float
        What the fit took.
    """

    model: str
    numbers: int
    score: float
    seconds: float


def peer_models(classification: bool, sparse: bool, seed: int) -> dict[str, Any]:
    """Make the models, untrained; inputs are scaled, since both need it."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    scaler = MaxAbsScaler if sparse else StandardScaler
    dense = f"dense network, {NEURONS} neurons"
    if classification:
        return {
            dense: make_pipeline(scaler(), MLPClassifier((NEURONS,), random_state=seed)),
            "logistic regression": make_pipeline(scaler(), LogisticRegression(max_iter=1000)),
        }
    network = MLPRegressor(
        hidden_layer_sizes=(NEURONS,), early_stopping=True, max_iter=PASSES, random_state=seed
    )
    return {
        dense: TransformedTargetRegressor(make_pipeline(scaler(), network), transformer=StandardScaler()),
        "ridge regression": make_pipeline(scaler(), Ridge()),
    }


def fit_peer(name: str, model: Any, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> Peer:
    """Fit a model and score it."""
    from sklearn.exceptions import ConvergenceWarning

    began = time.perf_counter()
    with warnings.catch_warnings():
        # A dense network that stops after its passes does as intended.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds = round(time.perf_counter() - began, 3)
    return Peer(name, count_numbers(model), round(float(model.score(X_test, y_test)), 4), seconds)


def count_numbers(model: Any) -> int:
    """Count the weights and biases of a fitted network or linear model that are not zero."""
    last = getattr(model, "regressor_", model)
    last = last[-1] if hasattr(last, "steps") else last
    if hasattr(last, "coefs_"):
        parts = [*last.coefs_, *last.intercepts_]
    else:
        parts = [last.coef_, np.asarray(last.intercept_)]
    return sum(part.nnz if scipy.sparse.issparse(part) else int(np.count_nonzero(part)) for part in parts)
