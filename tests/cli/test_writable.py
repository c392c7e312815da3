"""Asking whether results can be written leaves every folder as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from thresher.cli.writable import check_file, check_folder
from thresher.errors import DataFileError


def test_nothing_is_left_behind_and_nothing_is_lost(tmp_path: Path) -> None:
    for name in (".thresher", ".model.thresher.probe", "model.thresher"):
        (tmp_path / name).write_text("mine")
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    check_folder(tmp_path)
    check_file(tmp_path / "model.thresher")
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before


def test_a_folder_is_made_but_not_that_of_a_file(tmp_path: Path) -> None:
    check_folder(tmp_path / "new" / "deep")
    assert (tmp_path / "new" / "deep").is_dir()
    with pytest.raises(DataFileError, match=r"other does not exist\. Make it"):
        check_file(tmp_path / "other" / "model.thresher")
    assert not (tmp_path / "other").exists()


def test_what_is_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(DataFileError, match=r"taken cannot be written to .* Use --out with another folder"):
        check_folder(tmp_path / "taken")
    with pytest.raises(DataFileError, match="is a folder"):
        check_file(tmp_path)
