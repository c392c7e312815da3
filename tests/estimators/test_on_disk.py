"""Estimators on rows on disk: what fits into memory gives the same bits, what does not is fitted as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from thresher import SparseMLPClassifier, SparseMLPRegressor, SparseMLPRegressorCV
from thresher.data import open_rows, rows, shards
from thresher.errors import DataError

ROWS, WIDTH = 1500, 6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BLOCK_BYTES", 5000)
    monkeypatch.setattr(rows, "SHUFFLED_BYTES", 20_000)


def law(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((ROWS, WIDTH))
    return X, np.maximum(0, X[:, 0] + X[:, 1]) - 0.5 * X[:, 2] + 0.2 * random.standard_normal(ROWS)


def saved(folder: Path, X: np.ndarray, y: np.ndarray) -> rows.OnDisk:
    for number, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        np.savez(folder / f"{number}.npz", X=X[part], y=y[part])
    return open_rows(folder, "y")


def weights(model: SparseMLPRegressor) -> list[np.ndarray]:
    return [*model.coefs_, *model.intercepts_, model.direct_coef_]


def equal(one: SparseMLPRegressor, two: SparseMLPRegressor) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(weights(one), weights(two), strict=True))


def test_small_rows_on_disk_give_the_bits_of_memory(tmp_path: Path) -> None:
    X, y = law()
    on_disk = saved(tmp_path, X, y)
    one = SparseMLPRegressor(8, 5, max_iter=3, random_state=0).fit(on_disk)
    two = SparseMLPRegressor(8, 5, max_iter=3, random_state=0).fit(X, y)
    assert equal(one, two)
    assert np.array_equal(one.predict(on_disk), one.predict(X))
    assert one.score(on_disk) == one.score(X, y)
    assert equal(one, SparseMLPRegressor(8, 5, max_iter=3, random_state=0).fit(on_disk, y))


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_rows_that_exceed_the_limit_are_fitted(tmp_path: Path, dtype: type) -> None:
    X, y = law()
    X = (10 * X).astype(dtype)
    on_disk = saved(tmp_path, X, y)
    settings = {"max_iter": 20, "memory_limit": 20_000, "random_state": 0, "batch_size": 50}
    one = SparseMLPRegressor(8, 5, **settings).fit(on_disk)
    two = SparseMLPRegressor(8, 5, **settings).fit(X, y)
    again = SparseMLPRegressor(8, 5, **settings).fit(open_rows(tmp_path, "y"))
    assert equal(one, again)
    assert one.score(on_disk) > two.score(X, y) - 0.02


def test_sparse_rows_stay_sparse(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = scipy.sparse.random_array((600, 400), density=0.05, rng=random, format="csr")
    y = np.where(X[:, :200].sum(axis=1) > X[:, 200:].sum(axis=1), "more", "less")
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez(tmp_path / "a.npz", **parts, label=y)
    on_disk = open_rows(tmp_path, "label")
    for limit in ("64MB", 200_000):
        settings = {"max_iter": 3, "memory_limit": limit, "random_state": 0}
        one = SparseMLPClassifier(20, 5, **settings).fit(on_disk)
        two = SparseMLPClassifier(20, 5, **settings).fit(X, y)
        assert one.classes_.tolist() == ["less", "more"]
        if limit == "64MB":
            assert equal(one, two)
        assert abs(one.score(on_disk) - two.score(X, y)) < 0.05


def test_what_is_held_out_stays_on_disk(tmp_path: Path) -> None:
    X, y = law()
    on_disk = saved(tmp_path, X, y)
    settings = {"max_iter": 5, "random_state": 0, "solver": "auto"}
    path = SparseMLPRegressorCV([3, 6], 4, cv=2, **settings).fit(on_disk)
    assert np.array_equal(path.scores_, SparseMLPRegressorCV([3, 6], 4, cv=2, **settings).fit(X, y).scores_)


def test_names_of_columns_are_kept_and_compared(tmp_path: Path) -> None:
    X, y = law()
    frame = pd.DataFrame(X[:200], columns=list("abcdef")).assign(y=y[:200])
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=50)
    on_disk = open_rows(tmp_path / "rows.parquet", "y")
    model = SparseMLPRegressor(5, 3, max_iter=2, random_state=0).fit(on_disk)
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert np.array_equal(model.predict(on_disk), model.predict(frame[list("abcdef")]))
    turned = open_rows(tmp_path / "rows.parquet", columns=list("bacdef"))
    with pytest.raises(ValueError, match="order"):
        model.predict(turned)
    with pytest.raises(DataError, match="'b', but that of the network is 'a'"):
        model.network_.predict(turned)
    with pytest.raises(DataError, match="without a target"):
        model.fit(turned)


def test_nan_on_disk_is_named_by_fit_and_predict(tmp_path: Path) -> None:
    X, y = law()
    model = SparseMLPRegressor(5, 3, max_iter=2, random_state=0).fit(X, y)
    X[900, 2] = np.nan
    on_disk = saved(tmp_path, X, y)
    with pytest.raises(DataError, match=r"row 401 of .*1\.npz holds nan in column 2"):
        SparseMLPRegressor(5, 3).fit(on_disk)
    with pytest.raises(DataError, match=r"row 401 of .*1\.npz holds nan in column 2"):
        model.predict(on_disk)
