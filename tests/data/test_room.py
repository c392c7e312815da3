"""Memory that blocks are read into, used again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thresher.data import open_rows
from thresher.data.room import LEAST_BYTES, SPARE_BYTES, Room
from thresher.errors import DataFileError

WIDTH = LEAST_BYTES // 8
FLOAT = np.dtype(np.float64)


def place(values: np.ndarray) -> int:
    """Where an array lies in memory."""
    return int(values.__array_interface__["data"][0])


def test_memory_is_used_again_once_no_part_of_it_is_in_use() -> None:
    room = Room()
    block = room.empty(1, WIDTH, FLOAT)
    at, part = place(block), block[:, 3:5]
    del block
    other = room.empty(1, WIDTH, FLOAT)
    assert place(other) != at
    other[:] = 1.0
    part[:] = 2.0
    assert (other == 1.0).all()
    del part
    assert place(room.empty(1, WIDTH, FLOAT)) == at


def test_what_is_spare_is_bounded() -> None:
    room = Room()
    blocks = [room.empty(1, WIDTH, FLOAT) for _ in range(2 * SPARE_BYTES // LEAST_BYTES)]
    del blocks
    assert sum(map(len, room._spare)) == SPARE_BYTES


def test_one_source_holds_blocks_at_a_time(tmp_path: Path) -> None:
    X = np.arange(40.0).reshape(20, 2)
    np.save(tmp_path / "a.npy", X)
    rows = open_rows(tmp_path)
    few = rows.only(np.array([1]))
    # In turns, each reads its own columns.
    for row in range(20):
        assert np.array_equal(rows[row : row + 1], X[row : row + 1])
        assert np.array_equal(few[row : row + 1], X[row : row + 1, 1:])
    assert few._held
    held = rows._held
    assert not held


def test_a_parquet_file_that_was_written_again_is_named(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.arange(90.0)})
    for name in ("first", "second"):
        frame.to_parquet(tmp_path / f"{name}.parquet", row_group_size=30)
    rows = open_rows(tmp_path)
    assert np.array_equal(rows[80:100].ravel(), np.r_[80.0:90.0, 0.0:10.0])
    frame[:30].to_parquet(tmp_path / "first.parquet")
    rows[100:101]
    with pytest.raises(DataFileError, match=r"first\.parquet is cut: block 2 holds 0 rows"):
        rows[30:31]
