"""What can be certified: networks, and fitted estimators, searches and pipelines that hold one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import thresher
from thresher import SparseMLPRegressor
from thresher.errors import ParameterError
from thresher.network import Network
from thresher.theory.levels import ON_SUPPORT


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 3)), columns=list("abc"))
    y = 2 * np.maximum(X["a"] - X["b"], 0) - np.maximum(X["c"], 0)
    return X, y.to_numpy()


def model() -> SparseMLPRegressor:
    return SparseMLPRegressor(budget=3, hidden=2, bias=False, random_state=0)


@pytest.mark.parametrize("kind", ["estimator", "pipeline", "search"])
def test_an_estimator_is_certified_as_its_network(table: tuple[pd.DataFrame, np.ndarray], kind: str) -> None:
    X, y = table
    made: Any = {
        "estimator": model,
        "pipeline": lambda: make_pipeline(
            StandardScaler(with_mean=False).set_output(transform="pandas"), model()
        ),
        "search": lambda: GridSearchCV(make_pipeline(model()), {"sparsemlpregressor__budget": [3]}, cv=2),
    }[kind]().fit(X, y)
    found = thresher.certify(made, X[:200], y[:200], held_out=(X[200:], y[200:]))
    assert found["fits"].holds and found["held out"].holds
    assert found.levels[ON_SUPPORT] == "holds"
    if kind == "estimator":
        network: Network = made.network_
        assert thresher.certify(network, X[:200], y[:200]).levels == found.levels


@pytest.mark.parametrize("what", [SparseMLPRegressor(), StandardScaler(), "model.thresher"])
def test_what_holds_no_network_is_refused(table: tuple[pd.DataFrame, np.ndarray], what: Any) -> None:
    with pytest.raises(ParameterError, match=f"a {type(what).__name__} came that holds no network"):
        thresher.certify(what, *table)
