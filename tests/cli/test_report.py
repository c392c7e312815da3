"""`thresher report`: one page, or one message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.experiments.record import Cell, CellFile, Outcome

CELL = Cell("table-1", {"n": 50_000, "d": 100, "hidden": 10, "budget": 500, "k": 1, "steps": 100}, 0)


def invoke(*args: str) -> Result:
    return CliRunner().invoke(app, ["report", *args], prog_name="thresher")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "table-1"
    folder.mkdir(parents=True)
    result = {"psnr": 160.0, "floor": 161.0, "settled": 40}
    CellFile(folder / "cells.jsonl").append(Outcome(CELL, "print", "done", 1.0, result))
    return folder.parent


def test_the_page_is_written_and_named(results: Path) -> None:
    result = invoke(str(results))
    assert (result.exit_code, result.stdout) == (0, f"wrote {results / 'report.html'}\n")
    assert 'id="table-1"' in (results / "report.html").read_text(encoding="utf-8")


def test_the_page_of_one_experiment_can_go_elsewhere(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = invoke(str(results / "table-1"), "--out", str(page), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["page"] == str(page)
    assert json.loads(result.stdout)["bytes"] == page.stat().st_size
    assert not (results / "report.html").exists()


def test_quiet_is_quiet(results: Path) -> None:
    result = invoke(str(results), "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_bad_folders_are_explained(results: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder, message in ((tmp_path / "empty", "holds no results"), (tmp_path / "none", "does not exist")):
        result = invoke(str(folder))
        assert result.exit_code == 2
        assert message in result.stderr
        assert "Traceback" not in result.stderr
    result = invoke(str(results), "--out", str(tmp_path / "none" / "page.html"))
    assert result.exit_code == 2
    assert "page.html cannot be written" in result.stderr
