"""A model knows the rows that it was fitted to when it sees them again, and no others."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from thresher.data.aside import as_fitted, record
from thresher.data.prepared import prepare


def prepared(task: str, share: float, seed: int) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(60), "b": rng.choice(["x", "y"], 60)})
    frame["t"] = rng.standard_normal(60) if task == "regression" else rng.choice(["no", "yes"], 60)
    ready = prepare(frame, "t", test_share=share, seed=seed)
    return ready, json.loads(json.dumps(record(ready.X, ready.y, share, seed)))


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize(("share", "seed"), [(0.2, 0), (0.35, 7), (0.0, 0)])
def test_the_rows_of_a_fit_come_back_as_they_were_split(task: str, share: float, seed: int) -> None:
    ready, told = prepared(task, share, seed)
    whole, _ = prepared(task, 0.0, 0)
    found = as_fitted(whole.X, whole.y, task, told)
    assert found.known
    assert np.array_equal(found.X, ready.X) and np.array_equal(found.y, ready.y)
    assert (found.aside is None) == (share == 0)
    if found.aside is not None:
        assert np.array_equal(found.aside[0], ready.X_test) and np.array_equal(found.aside[1], ready.y_test)
    # The rows that were fitted alone are known as well.
    again = as_fitted(ready.X, ready.y, task, told)
    assert again.known and again.aside is None


@pytest.mark.parametrize("change", ["value", "target", "order", "row"])
def test_other_rows_are_not_taken_for_those_of_the_fit(change: str) -> None:
    _, told = prepared("regression", 0.2, 0)
    whole, _ = prepared("regression", 0.0, 0)
    X, y = whole.X.copy(), whole.y.copy()
    if change == "value":
        X[:, 0] += 1e-12
    elif change == "target":
        y *= 2
    elif change == "order":
        X, y = X[::-1], y[::-1]
    else:
        X, y = X[1:], y[1:]
    found = as_fitted(X, y, "regression", told)
    assert not found.known and found.aside is None and len(found.y) == len(y)


def test_sparse_rows_are_known_again() -> None:
    X = scipy.sparse.random_array((40, 9), density=0.3, rng=np.random.default_rng(0), format="csr")
    y = np.arange(40.0)
    assert as_fitted(X.tocsc().tocsr(), y, "regression", record(X, y, 0.0, 0)).known
    assert not as_fitted(2 * X, y, "regression", record(X, y, 0.0, 0)).known


@pytest.mark.parametrize(
    "told",
    [None, 3, {}, {"digest": 1}, {"digest": "x", "share": "a", "seed": None}, {"digest": "x", "share": 9.0}],
)
def test_what_tells_nothing_leaves_all_rows(told: Any) -> None:
    found = as_fitted(np.zeros((5, 1)), np.zeros(5), "regression", told)
    assert not found.known and len(found.y) == 5
