"""Tables from files: five kinds give the same frame, and what is no table is refused in words."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from thresher.data.tables import open_table, read_table
from thresher.errors import DataFileError

FRAME = pd.DataFrame({"a": [1.5, 2.0, 3.25], "b": ["red", "blue, dark", "red"], "y": [0, 1, 1]})


class Piped:
    """Stand in for standard input."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "CSV", "parquet"])
def test_every_kind_gives_the_same_frame(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    pd.testing.assert_frame_equal(read_table(path), FRAME)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_seen(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    FRAME.assign(b=["r", "b", "r"]).to_csv(path, sep=mark, index=False)
    assert read_table(path).columns.tolist() == ["a", "b", "y"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "npz"])
def test_standard_input_is_told_by_its_content(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"table.{kind}"
    if kind == "npz":
        np.savez(path, a=FRAME["a"], y=FRAME["y"])
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    monkeypatch.setattr(sys, "stdin", Piped(path.read_bytes()))
    assert read_table("-")["y"].tolist() == [0, 1, 1]


def test_dense_arrays_become_numbered_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "table.npz", X=np.arange(6.0).reshape(3, 2), y=[1, 2, 3])
    frame = read_table(tmp_path / "table.npz")
    assert frame.columns.tolist() == ["x0", "x1", "y"]
    assert frame["x1"].tolist() == [1.0, 3.0, 5.0]


def test_several_targets_are_several_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "table.npz", X=np.ones((3, 1)), y=np.arange(6.0).reshape(3, 2))
    frame = read_table(tmp_path / "table.npz")
    assert frame.columns.tolist() == ["x0", "y0", "y1"]
    assert frame["y1"].tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize("kind", ["npz", "svmlight"])
def test_sparse_files_stay_sparse(kind: str, tmp_path: Path) -> None:
    X = scipy.sparse.random_array((7, 50), density=0.1, rng=np.random.default_rng(0), format="csr")
    y = np.array([1, -1, 1, 1, -1, -1, 1])
    path = tmp_path / f"table.{kind}"
    if kind == "npz":
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    else:
        dump_svmlight_file(scipy.sparse.csr_matrix(X), y, str(path), zero_based=True)
    frame = read_table(path)
    assert frame["y"].tolist() == y.tolist()
    inputs = frame.drop(columns="y")
    assert all(isinstance(dtype, pd.SparseDtype) for dtype in inputs.dtypes)
    assert inputs.sparse.to_coo().toarray() == pytest.approx(X.toarray()[:, : inputs.shape[1]])


def test_svmlight_inputs_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "table.svmlight").write_text("1 3:0.5 7:2\n-1 7:1\n")
    frame = read_table(tmp_path / "table.svmlight")
    assert frame["x7"].tolist() == [2.0, 1.0]
    assert frame["x3"].tolist() == [0.5, 0.0]


def test_cells_are_given_back_to_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,b\n1.50,"x, y"\n\n007,"two\nlines"\n')
    assert list(open_table(path).rows()) == [["a", "b"], ["1.50", "x, y"], ["007", "two\nlines"]]


def test_names_may_be_numbers(tmp_path: Path) -> None:
    pd.DataFrame(np.ones((2, 3))).to_csv(tmp_path / "table.csv", index=False)
    assert read_table(tmp_path / "table.csv").columns.tolist() == ["0", "1", "2"]


BAD = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n  \n", "is empty"),
    "header.csv": (b"a,b\n", "holds 2 columns and 0 rows"),
    "numbers.csv": (b"1.5,2,2\n3,4,5\n", "no header"),
    "long.csv": (b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
    "wide.csv": (b"a,b\n1,2,3\n4,5,6\n", "more cells than its header has names"),
    "bytes.csv": (b"a,b\n1,\0\0\0\n", "not text: it holds bytes that are zero"),
    "table.xls": (b"whatever", "ends in '.xls', but tables are read from"),
    "table": (b"a,b\n1,2\n", "has no ending"),
    "broken.npz": (b"PK\x03\x04 not an archive", "not an NPZ file"),
    "plain.npz": (b"hello", "not an NPZ file"),
    "empty.svmlight": (b"", "svmlight"),
    "bad.svmlight": (b"1 a:b\n", "not an svmlight file"),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20], "cut short|not a table|cannot be read"),
    "damaged.csv.xz": (lzma.compress(b"a,b\n" + b"1,2\n" * 1000)[:-30] + b"x" * 30, "damaged|not a table"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_table_is_refused(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=message):
        read_table(tmp_path / name)


def test_a_broken_parquet_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "table.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataFileError, match="not a Parquet file"):
        read_table(tmp_path / "table.parquet")


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataFileError, match="pip install pyarrow"):
        read_table(tmp_path / "table.parquet")


def test_a_missing_file_is_named_with_one_like_it(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").write_text("a\n1\n")
    with pytest.raises(DataFileError, match=r"does not exist\. Did you mean .*houses\.csv"):
        read_table(tmp_path / "house.csv")
    with pytest.raises(DataFileError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((2, 2)), "y": np.ones(3)}, "y of shape"),
        ({"a": np.ones(2), "b": np.ones(3)}, "but a table is X"),
        ({"a": np.array([{}], dtype=object)}, "plain arrays"),
        ({"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 3]}, "make no sparse array"),
        ({"X": np.ones((0, 3))}, "3 columns and 0 rows"),
    ],
)
def test_arrays_that_make_no_table_are_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "table.npz", **arrays)
    with pytest.raises(DataFileError, match=message):
        read_table(tmp_path / "table.npz")


def test_an_array_that_claims_more_than_the_file_is_refused_at_once(tmp_path: Path) -> None:
    header = io.BytesIO()
    claim = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(tmp_path / "table.npz", "w") as file:
        file.writestr("X.npy", header.getvalue() + bytes(100))
    with pytest.raises(DataFileError, match="'X' claims 17,592,186,044,416 bytes, and the file holds 228"):
        read_table(tmp_path / "table.npz")


@pytest.mark.parametrize(
    ("index", "message"), [(2_000_000_000, "input 2,000,000,000"), (5_000_000_000, "not an svmlight file")]
)
def test_an_index_beyond_all_tables_is_refused_at_once(index: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "table.svmlight").write_text(f"1 1:1 {index}:2\n-1 3:1\n")
    with pytest.raises(DataFileError, match=message):
        read_table(tmp_path / "table.svmlight")


def test_a_tilde_may_begin_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~foo.csv").write_text("a,y\n1,2\n")
    assert read_table("~foo.csv").columns.tolist() == ["a", "y"]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_table("~/~foo.csv").columns.tolist() == ["a", "y"]
