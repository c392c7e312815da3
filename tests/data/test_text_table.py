"""Text tables: any letters, packing and separator give the same frame, and names stay apart."""

from __future__ import annotations

import bz2
import gzip
import lzma
import time
from pathlib import Path

import pandas as pd
import pytest

from thresher.data.tables import open_table, read_table
from thresher.data.text_table import separator_of, unique_names
from thresher.errors import DataFileError, ParameterError

FRAME = pd.DataFrame({"Größe": [1.5, 2.0, 3.25], "b": ["Zürich", "x, y", "“z”"], "y": [0, 1, 1]})
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
def test_any_letters_and_separator_give_the_same_frame(encoding: str, mark: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, sep=mark, index=False, encoding=encoding)
    pd.testing.assert_frame_equal(read_table(path), FRAME)
    pd.testing.assert_frame_equal(read_table(path, encoding), FRAME)


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("said", PACK)
def test_packed_files_are_told_by_what_they_hold(ending: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.csv{said}"
    path.write_bytes(PACK[ending](FRAME.to_csv(index=False).encode()))
    pd.testing.assert_frame_equal(read_table(path), FRAME)


def test_letters_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(FRAME.to_csv(index=False).encode("cp1252"))
    with pytest.raises(DataFileError, match="not written in utf-8"):
        read_table(path, "utf-8")
    with pytest.raises(ParameterError, match="--encoding 'klingon' is not known"):
        read_table(path, "klingon")


def test_a_separator_stands_in_every_line_alike() -> None:
    assert separator_of(['"a, b";c', '"1, 2";3']) == ";"
    assert separator_of(["price, EUR;size", "1,5;2", "3;4"]) == ";"
    assert separator_of(["a,b;c", "1,2;3"]) == ","
    assert separator_of(["alone", "1"]) == ","


def test_spreadsheets_say_what_separates_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(
        b"sep=;\r\n" + FRAME.to_csv(index=False, sep=";", lineterminator="\r\n").encode("cp1252")
    )
    pd.testing.assert_frame_equal(read_table(path), FRAME)
    assert next(iter(open_table(path).written(["b"])["b"])) == "Zürich"


def test_what_stands_above_a_header_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Sales of 2021\n\n" + FRAME.to_csv(index=False), encoding="utf-8")
    with pytest.raises(DataFileError, match="take away what stands above it, such as a title"):
        read_table(path)


def test_names_are_told_apart() -> None:
    assert unique_names(["a", "a", "a (2)", " a", ""]) == (
        ("a", "a (3)", "a (2)", "a (4)", "Unnamed: 4"),
        ("a",),
    )


def test_a_hundred_thousand_names_take_no_time() -> None:
    began = time.process_time()
    names, repeated = unique_names([f"c{place}" for place in range(50_000)] + ["c0"] * 50_000)
    # Comparing each name with all others took minutes.
    assert time.process_time() - began < 2
    assert (len(set(names)), repeated) == (100_000, ("c0",))


def test_columns_can_be_read_to_the_letter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("code,code,x\n01,1.50,1\n1,,2\n")
    table = open_table(tmp_path / "t.csv")
    frame = table.frame(as_written=("code", "not there"))
    assert frame["code"].tolist() == ["01", "1"]
    assert frame["code (2)"].tolist()[0] == 1.5
    assert table.written(["code (2)"])["code (2)"].tolist()[0] == "1.50"
    assert list(table.rows()) == [["code", "code", "x"], ["01", "1.50", "1"], ["1", "", "2"]]


def test_lines_of_spaces_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('  \na, b\n1, "x, y"\n   \n\n2, z\n')
    table = open_table(tmp_path / "t.csv")
    assert table.frame()["b"].tolist() == ["x, y", "z"]
    assert list(table.rows()) == [["a", "b"], ["1", "x, y"], ["2", "z"]]


def test_cells_may_be_of_any_length(tmp_path: Path) -> None:
    long = "x" * 200_000
    (tmp_path / "t.csv").write_text(f"{long},b\n{long},1\n")
    table = open_table(tmp_path / "t.csv")
    assert table.frame().columns.tolist() == [long, "b"]
    assert list(table.rows())[1] == [long, "1"]
