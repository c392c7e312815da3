"""`thresher fit` and `thresher predict` on rows that stay on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from thresher import Network
from thresher.cli.app import app
from thresher.data import open_rows

ROWS = 400


def run(*words: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, list(words))
    return found.exit_code, found.stdout, found.stderr


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two .npy files, whose last column is a class."""
    folder = tmp_path / "shards"
    folder.mkdir()
    X = np.random.default_rng(0).standard_normal((ROWS, 4))
    table = np.column_stack([X, X[:, 0] > X[:, 1]])
    for number, part in enumerate(np.array_split(table, 2)):
        np.save(folder / f"{number}.npy", part)
    return folder


def test_a_folder_is_fitted_and_predicted(shards: Path, tmp_path: Path) -> None:
    model, out = str(tmp_path / "m.thresher"), tmp_path / "out.csv"
    code, told, error = run(
        "fit", str(shards), "--target=-1", "--budget", "4", "--out", model, "--json", "--quiet"
    )
    assert code == 0, error
    document = json.loads(told)
    assert document["rows"] == {"train": 320, "test": 80, "dropped": 0}
    assert document["score"] > 0.95
    assert document["peers"] == []
    code, _, error = run("predict", model, str(shards), "--out", str(out), "--probabilities", "--quiet")
    assert code == 0, error
    written = pd.read_csv(out)
    assert written.columns.tolist() == ["prediction", "P(0)", "P(1)"]
    expected = Network.load(model).predict(open_rows(shards, -1))
    assert np.array_equal(written["prediction"], expected)
    code, told, _ = run("predict", model, str(shards), "--json")
    assert code == 0
    assert json.loads(told)["predictions"]["prediction"] == expected.tolist()


def test_other_files_stay_on_disk_where_that_is_asked_for(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((ROWS, 3)), columns=list("abc"))
    frame.assign(y=2 * frame["a"]).to_parquet(tmp_path / "t.parquet", row_group_size=90)
    model, data = str(tmp_path / "m.thresher"), str(tmp_path / "t.parquet")
    code, _, error = run("fit", data, "--on-disk", "--budget", "2", "--out", model, "--quiet")
    assert code == 0, error
    assert Network.load(model).features == ("a", "b", "c")
    disk, memory = (run("predict", model, data, "--json", *more)[1] for more in ((), ("--on-disk",)))
    assert json.loads(disk)["predictions"] == json.loads(memory)["predictions"]


def test_what_rows_on_disk_cannot_have_is_refused(shards: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "m.thresher")
    code, _, error = run("fit", str(shards), "--target", "-1", "--missing", "mean", "--out", out)
    assert code == 2
    assert "--missing came" in error
    code, _, error = run("fit", str(shards), "--target", "price", "--out", out)
    assert code == 2
    assert "number of one" in error
