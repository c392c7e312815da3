"""Rows on disk: what is read is what was written, in any order; what is wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from thresher.data import open_rows, rows, shards
from thresher.errors import DataError, DataFileError

ROWS, WIDTH = 300, 7


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((ROWS, WIDTH)).round(3)
    X[random.random(X.shape) < 0.5] = 0.0
    return X, random.standard_normal(ROWS).round(3)


def write_npy(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    np.save(path.with_suffix(".npy"), np.column_stack([X, y]))


def write_npz(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    np.savez(path.with_suffix(".npz"), X=X, y=y)


def write_parts(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    one = scipy.sparse.csr_array(X)
    parts = {"data": one.data, "indices": one.indices, "indptr": one.indptr, "shape": one.shape}
    np.savez(path.with_suffix(".npz"), **parts, y=y)


def write_parquet(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    frame = pd.DataFrame(X, columns=[f"c{place}" for place in range(X.shape[1])]).assign(y=y)
    frame.to_parquet(path.with_suffix(".parquet"), row_group_size=30)


def write_svmlight(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    pairs = [" ".join(f"{at}:{row[at]}" for at in np.flatnonzero(row)) for row in X]
    lines = [f"{label} {pair}" for label, pair in zip(y, pairs, strict=True)]
    path.with_suffix(".svm").write_text("\n".join(lines) + "\n")


KINDS: dict[str, tuple[Callable[..., None], Any]] = {
    "npy": (write_npy, -1),
    "npz": (write_npz, "y"),
    "parts": (write_parts, "y"),
    "parquet": (write_parquet, "y"),
    "svmlight": (write_svmlight, "label"),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks and buffers so small that there are many."""
    monkeypatch.setattr(shards, "BLOCK_BYTES", 1500)
    monkeypatch.setattr(rows, "SHUFFLED_BYTES", 4000)


@pytest.fixture(params=list(KINDS))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> rows.OnDisk:
    """Three shards of one kind."""
    write, target = KINDS[request.param]
    X, y = table()
    for number, part in enumerate(np.array_split(np.arange(ROWS), 3)):
        write(tmp_path / f"part-{number}", X[part], y[part])
    return open_rows(tmp_path, target)


def dense(part: Any) -> np.ndarray:
    return part.toarray() if scipy.sparse.issparse(part) else part


def test_slices_and_numbers_give_the_rows_written(written: rows.OnDisk) -> None:
    X, y = table()
    assert written.shape == X.shape
    assert np.array_equal(written.target, y)
    for first, last in ((0, ROWS), (3, 4), (95, 207), (299, 300), (250, 1000), (ROWS, ROWS), (7, 7)):
        assert np.array_equal(dense(written[first:last]), X[first:last])
    random = np.random.default_rng(1)
    for some in (np.arange(ROWS), random.permutation(ROWS), random.choice(ROWS, 40), np.array([], dtype=int)):
        assert np.array_equal(dense(written[some]), X[some])


def test_some_rows_and_columns_stay_on_disk(written: rows.OnDisk) -> None:
    X, y = table()
    kept, columns = np.array([0, 5, 99, 100, 101, 250, 299]), np.array([1, 2, 6])
    part = written.take(kept).only(columns)
    assert np.array_equal(dense(part[:]), X[kept][:, columns])
    assert np.array_equal(part.target, y[kept])
    again = part.take(np.array([1, 6])).only(np.array([2]))
    assert np.array_equal(dense(again[:]), X[[5, 299]][:, [6]])


def test_an_order_has_every_row_once_and_reads_every_block_once(written: rows.OnDisk) -> None:
    order = written.order(np.random.default_rng(3))
    assert np.array_equal(np.sort(order), np.arange(ROWS))
    assert np.array_equal(order, written.order(np.random.default_rng(3)))
    assert not np.array_equal(order, written.order(np.random.default_rng(4)))
    fresh, read = written.take(np.arange(ROWS)), []
    order = fresh.order(np.random.default_rng(3))
    whole = fresh._read
    fresh._read = lambda place: (read.append(place), whole(place))[1]  # type: ignore[method-assign]
    for start in range(0, ROWS, 10):
        assert np.array_equal(dense(fresh[order[start : start + 10]]), table()[0][order[start : start + 10]])
    assert sorted(read) == list(range(len(fresh.blocks)))


def test_what_is_held_is_bounded(written: rows.OnDisk) -> None:
    for start in range(0, ROWS, 10):
        written[start : start + 10]
        held = sum(written.blocks[place].rows for place in written._held)
        assert len(written._held) <= 2 or held <= written._held_rows


def test_some_rows_are_drawn_from_a_few_blocks(written: rows.OnDisk) -> None:
    some = written.some(20, np.random.default_rng(0))
    assert len(np.unique(some)) == 20
    assert (np.diff(some) > 0).all()


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_is_named_by_file_and_row(tmp_path: Path, kind: str, value: float) -> None:
    write, target = KINDS[kind]
    X, y = table()
    write(tmp_path / "a", X, y)
    X[217, 3] = value
    write(tmp_path / "b", X, y)
    with pytest.raises(DataError, match=r"row 218 of .*b\.\w+ holds (nan|inf|nothing) in column '?c?3"):
        open_rows(tmp_path, target).largest()


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_a_shard_of_another_width_is_named(tmp_path: Path, kind: str) -> None:
    write, target = KINDS[kind]
    X, y = table()
    write(tmp_path / "a", X, y)
    write(tmp_path / "b", X[:, 1:], y)
    with pytest.raises(DataFileError, match=r"b\.\w+ has columns 6, but .*a\.\w+ has columns 7"):
        open_rows(tmp_path, target)


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_a_shard_of_another_type_is_named(tmp_path: Path, kind: str) -> None:
    write, target = KINDS[kind]
    X, y = table()
    write(tmp_path / "a", X, y)
    write(tmp_path / "b", X.astype(np.float32), y.astype(np.float32))
    with pytest.raises(DataFileError, match=r"b\.\w+ is of type float32, but .*float64"):
        open_rows(tmp_path, target)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_shard_that_is_cut_is_named(tmp_path: Path, kind: str) -> None:
    write, target = KINDS[kind]
    X, y = table()
    write(tmp_path / "a", X, y)
    write(tmp_path / "b", X, y)
    cut = next(tmp_path.glob("b.*"))
    content = cut.read_bytes()
    cut.write_bytes(content[: len(content) - 333] + (b"7:" if kind == "svmlight" else b""))
    with pytest.raises(DataFileError, match=cut.name):
        open_rows(tmp_path, target).largest()


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_shard_that_is_lost_or_cut_after_opening_is_named(tmp_path: Path, kind: str) -> None:
    write, target = KINDS[kind]
    write(tmp_path / "a", *table())
    found = open_rows(tmp_path, target)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataFileError, match=file.name):
        found[:]
    file.unlink()
    with pytest.raises(DataFileError, match=rf"{file.name} is missing"):
        found[:]
    file.write_bytes(content)
    assert np.array_equal(dense(found[:]), table()[0])


def test_what_cannot_be_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="does not exist"):
        open_rows(tmp_path / "none")
    with pytest.raises(DataFileError, match="folder without files"):
        open_rows(tmp_path)
    (tmp_path / "a.txt").write_text("1")
    with pytest.raises(DataFileError, match=r"a\.txt .*does not end in"):
        open_rows(tmp_path)
    for name, array, message in (
        ("text", np.array([["a", "b"]]), "numbers"),
        ("flat", np.arange(3.0), "shape"),
        ("turned", np.asfortranarray(np.ones((3, 2))), "Fortran"),
        ("empty", np.empty((0, 2)), "no rows"),
    ):
        np.save(tmp_path / f"{name}.npy", array)
        with pytest.raises((DataError, DataFileError), match=message):
            open_rows(tmp_path / f"{name}.npy")
    with pytest.raises(DataError, match="number of one"):
        write_npy(tmp_path / "a", *table())
        open_rows(tmp_path / "a.npy", "price")


def test_parquet_columns_are_numbers_with_names(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 1.5], "city": ["x", "y", "x"]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"column 'city' of .*a\.parquet"):
        open_rows(tmp_path / "a.parquet", "a")
    with pytest.raises(DataError, match=r"row 2 of .*a\.parquet holds nothing in column 'b'"):
        open_rows(tmp_path / "a.parquet", "city")[:]
    with pytest.raises(DataError, match=r"no columns called 'citty'.*city"):
        open_rows(tmp_path / "a.parquet", "citty")
    found = open_rows(tmp_path / "a.parquet", "city", columns=["a"])
    assert found.columns == ("a",)
    assert found.target.tolist() == ["x", "y", "x"]


def test_svmlight_files_may_be_told_how_wide_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 0:2.5 3:1\n0 1:1\n")
    assert open_rows(tmp_path, "y", columns=9).shape == (2, 9)
    with pytest.raises(DataError, match="columns=3"):
        open_rows(tmp_path, "y", columns=3)
    (tmp_path / "b.svm").write_text(f"1 {2**63}:1\n")
    with pytest.raises(DataFileError, match=r"b\.svm"):
        open_rows(tmp_path, "y")
