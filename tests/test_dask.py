"""Estimators on a Dask cluster: partitions stay with their workers, the network comes back."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from thresher.errors import DataError, RankError

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((300, 4))
Y = X[:, 0] + 2 * np.maximum(0, X[:, 1] - X[:, 2])
PAPER = {"budget": 8, "hidden": 4, "solver": "paper", "max_iter": 10, "random_state": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        distributed.LocalCluster(**settings, silence_logs=logging.CRITICAL) as cluster,
        distributed.Client(cluster) as one,
    ):
        yield one


def test_two_workers_find_the_network_of_one_process(client: Any) -> None:
    from thresher.dask import SparseMLPRegressor

    rows, targets = da.from_array(X, chunks=(100, 2)), da.from_array(Y, chunks=100)
    weight = da.from_array(np.linspace(1, 2, 300), chunks=100)
    model = SparseMLPRegressor(**PAPER, client=client).fit(rows, targets, weight)
    alone = thresher.SparseMLPRegressor(**PAPER).fit(X, Y, np.linspace(1, 2, 300))
    assert len(client.nthreads()) == 2
    np.testing.assert_allclose(model.coefs_[0], alone.coefs_[0], atol=1e-10)
    lazy = model.predict(rows)
    assert (lazy.shape, lazy.chunks[0]) == ((300,), (100, 100, 100))
    np.testing.assert_allclose(lazy.compute(), alone.predict(X), atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.to_local().predict(X))


def test_frames_and_labels(client: Any) -> None:
    from thresher.dask import SparseMLPClassifier

    frame, labels = pd.DataFrame(X, columns=list("abcd")), pd.Series(np.where(Y > 1, "high", "low"))
    rows, classes = dd.from_pandas(frame, npartitions=2), dd.from_pandas(labels, npartitions=2)
    model = SparseMLPClassifier(**PAPER).fit(rows, classes)
    assert (model.classes_.tolist(), model.network_.features) == (["high", "low"], ("a", "b", "c", "d"))
    assert model.predict(rows).compute().tolist() == model.predict(frame).tolist()
    np.testing.assert_array_equal(model.predict_proba(rows).compute(), model.predict_proba(frame))
    np.testing.assert_array_equal(model.decision_function(rows).compute(), model.decision_function(frame))


def test_what_does_not_fit_is_refused(client: Any) -> None:
    from thresher.dask import SparseMLPRegressor

    rows, targets = da.from_array(X, chunks=(100, 4)), da.from_array(Y, chunks=150)
    with pytest.raises(DataError, match="2 and 3 partitions"):
        SparseMLPRegressor(**PAPER).fit(rows, targets)
    with pytest.raises(DataError, match=r"ndarray came, .* thresher.SparseMLPRegressor"):
        SparseMLPRegressor(**PAPER).fit(X, targets)
    with pytest.raises((DataError, RankError), match=r"a partition has 100 and 1(99)? rows"):
        SparseMLPRegressor(**PAPER).fit(rows, targets.rechunk(((100, 199, 1),)))
