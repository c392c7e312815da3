"""Peers of a sparse network on the same rows: a constant, a linear model, a dense network, boosting."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from thresher.experiments.scores import Values, class_values, number_values

NEURONS = 100

# Left to run to their end, dense networks overfit few rows of a regression badly; where there are fewer than
# this none can be set aside to stop them by.
PASSES, ROWS_TO_STOP = 500, 30

# Sparse rows that are larger than this when written out (numbers) are too many for boosting.
WRITTEN_OUT = 2e7


@dataclass(frozen=True)
class Peer:
    """What a model scored.

    Attributes
    ----------
    model : str
    numbers : int, optional
        Weights and biases that are not zero; None where a model has something else.
    score : float, optional
        On rows it was not fitted to: accuracy, or R2. None where it could not be fitted or measured.
    seconds : float
        What the fit took.
    measures : dict
        Everything that was measured, the score included.
    problem : str, optional
        Why it could not be fitted.
    """

    model: str
    numbers: int | None
    score: float | None
    seconds: float
    measures: Values = field(default_factory=dict)
    problem: str | None = None


def peer_models(classification: bool, X: Any, seed: int) -> dict[str, Any]:
    """Make the models, untrained; inputs are scaled where a model needs it.

    Parameters
    ----------
    classification : bool
    X : array or sparse array of shape (n, d)
        What they are to be fitted to.
    seed : int
    """
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

    sparse = scipy.sparse.issparse(X)
    scaler = MaxAbsScaler if sparse else StandardScaler
    boosting = HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor
    boosted: Any = boosting(random_state=seed)
    if sparse:
        boosted = make_pipeline(FunctionTransformer(_written_out, accept_sparse=True), boosted)
    dense = f"dense network, {NEURONS} neurons"
    if classification:
        return {
            "the most frequent class": DummyClassifier(strategy="prior"),
            "logistic regression": make_pipeline(scaler(), LogisticRegression(max_iter=1000)),
            dense: make_pipeline(scaler(), MLPClassifier((NEURONS,), random_state=seed)),
            "boosted trees": boosted,
        }
    network = MLPRegressor(
        hidden_layer_sizes=(NEURONS,),
        early_stopping=X.shape[0] >= ROWS_TO_STOP,
        max_iter=PASSES,
        random_state=seed,
    )
    return {
        "the mean": DummyRegressor(),
        "ridge regression": make_pipeline(scaler(), Ridge()),
        dense: TransformedTargetRegressor(make_pipeline(scaler(), network), transformer=StandardScaler()),
        "boosted trees": boosted,
    }


def _written_out(X: Any) -> np.ndarray:
    if X.shape[0] * X.shape[1] > WRITTEN_OUT:
        raise ValueError(f"{X.shape[0]:,} x {X.shape[1]:,} sparse rows are too many to be written out")
    return X.toarray()


def fit_peer(name: str, model: Any, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> Peer:
    """Fit a model and measure it; one that cannot be fitted says why, and breaks nothing."""
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            # What a peer warns of, such as passes that are spent, is no business of whoever fits a network.
            warnings.simplefilter("ignore")
            model.fit(X, y)
            seconds = round(time.perf_counter() - began, 3)
            values = measured(model, X_test, y_test)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        return Peer(name, None, None, round(time.perf_counter() - began, 3), {}, problem)
    rounded = {measure: _rounded(value) for measure, value in values.items()}
    return Peer(name, count_numbers(model), next(iter(rounded.values())), seconds, rounded)


def measured(model: Any, X: Any, y: np.ndarray) -> Values:
    """Measure a fitted model, whose classes tell that it is a classifier; the score comes first."""
    if hasattr(model, "classes_"):
        return class_values(model.classes_, y, model.predict(X), model.predict_proba(X))
    return number_values(y, model.predict(X))


def _rounded(value: float | None) -> float | None:
    """Round to four digits after the point, or to as many in all where a number is small."""
    if value is None:
        return None
    return round(value, 4) if abs(value) >= 0.1 else float(f"{value:.4g}")


def count_numbers(model: Any) -> int | None:
    """Count the weights and biases of a fitted network or linear model that are not zero."""
    last = getattr(model, "regressor_", model)
    last = last[-1] if hasattr(last, "steps") else last
    if hasattr(last, "coefs_"):
        parts = [*last.coefs_, *last.intercepts_]
    elif hasattr(last, "coef_"):
        parts = [last.coef_, np.asarray(last.intercept_)]
    else:
        return None
    return sum(part.nnz if scipy.sparse.issparse(part) else int(np.count_nonzero(part)) for part in parts)
