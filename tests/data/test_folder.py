"""The data folder is the one passed, else the one that THRESHER_DATA names, else an error that helps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from thresher.data.folder import data_folder
from thresher.errors import DataFileError


def test_argument_wins_over_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed, named = tmp_path / "passed", tmp_path / "named"
    passed.mkdir()
    named.mkdir()
    monkeypatch.setenv("THRESHER_DATA", str(named))
    assert data_folder(passed) == passed
    assert data_folder(str(passed)) == passed
    assert data_folder() == named


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "data").mkdir()
    assert data_folder("~/data") == tmp_path / "data"


@pytest.mark.parametrize("value", [None, ""])
def test_without_any_folder_the_error_says_what_to_set_and_which_files(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv("THRESHER_DATA", raising=False)
    else:
        monkeypatch.setenv("THRESHER_DATA", value)
    with pytest.raises(DataFileError, match="THRESHER_DATA") as caught:
        data_folder()
    message = str(caught.value)
    assert "mnist/" in message
    assert "cifar-10-batches-bin/" in message and "test_batch.bin" in message
    assert "folder=" in message
    for stem in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        assert f"{stem}-ubyte.gz" in message


def test_an_empty_argument_is_not_the_working_directory() -> None:
    with pytest.raises(DataFileError, match="empty"):
        data_folder("")


def test_a_folder_that_is_missing_or_a_file_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataFileError, match=r"nowhere.*does not exist"):
        data_folder(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    monkeypatch.setenv("THRESHER_DATA", str(tmp_path / "file"))
    with pytest.raises(DataFileError, match=r"THRESHER_DATA=.*is a file"):
        data_folder()


def test_data_needs_no_torch() -> None:
    code = (
        "import sys; import thresher.data.folder, thresher.data.mnist, thresher.data.planted, "
        "thresher.data.cifar, thresher.data.images, thresher.data.fetch; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
