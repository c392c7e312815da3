"""`thresher reproduce`: one JSON document, exit codes, and a sweep that survives whatever ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.errors import DataError
from thresher.experiments import EXPERIMENTS
from thresher.experiments.record import Cell, CellFile

SMALL = ("--rows", "60", "--seeds", "0", "--k", "1,2,3,4,5,6")
# Enough work for a signal to meet it.
LONGER = ("--rows", "400", "--seeds", "0", "--k", "1,2,3,4,5,6")
WAIT = 60.0


def measure(cell: Cell) -> dict[str, Any]:
    """Stand in for a fit."""
    if cell["k"] == 5:
        raise DataError("five is too much")
    return {"psnr": 160.0 / cell["k"], "floor": 161.0, "settled": None}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let table-1 measure nothing."""
    monkeypatch.setitem(EXPERIMENTS, "table-1", replace(EXPERIMENTS["table-1"], measure=measure))


def invoke(*args: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", *args], prog_name="thresher")


@contextmanager
def started(out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Start a sweep in a process of its own, which does not outlive the test."""
    command = [sys.executable, "-m", "thresher", "reproduce", "table-1", "--out", str(out), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def lines(out: Path) -> list[str]:
    path = out / "table-1" / "cells.jsonl"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.mark.usefixtures("toy")
def test_what_is_done_is_shown_and_written(tmp_path: Path) -> None:
    result = invoke("table-1", "--out", str(tmp_path), "--k", "1,2", "--seeds", "0,1")
    assert result.exit_code == 0
    assert "Table 1" in result.stdout
    names = ["cells.jsonl", "summary.json", "table-1.png", "table-1.svg"]
    assert sorted(path.name for path in (tmp_path / "table-1").iterdir()) == names
    assert all(f"wrote {tmp_path / 'table-1' / name}" in result.stdout for name in names)
    summary = json.loads((tmp_path / "table-1" / "summary.json").read_text())
    assert summary["counts"] == {"cells": 4, "done": 4, "failed": 0}
    assert len(summary["tables"][0]["rows"]) == 2


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("flags", [("--json",), ("--json", "--quiet"), ("--json", "--dry-run")])
def test_standard_output_is_one_json_document(flags: tuple[str, ...], tmp_path: Path) -> None:
    result = invoke("table-1", "--out", str(tmp_path), "--k", "1", "--seeds", "0", *flags)
    document = json.loads(result.stdout)
    assert document["experiment"] == "table-1"
    if "--dry-run" in flags:
        assert (document["done"], document["pending"]) == ([], ["k=1, seed=0"])
    else:
        assert document["cells"][0]["result"]["psnr"] == 160.0
        assert all(Path(path).exists() for path in document["files"])


@pytest.mark.usefixtures("toy")
def test_quiet_is_quiet(tmp_path: Path) -> None:
    result = invoke("table-1", "--out", str(tmp_path), "--k", "1", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.usefixtures("toy")
def test_failed_cells_are_recorded_and_told(tmp_path: Path) -> None:
    options = ("table-1", "--out", str(tmp_path), "--k", "4,5,6", "--seeds", "0")
    result = invoke(*options)
    assert result.exit_code == 1
    assert "failed: k=5, seed=0: DataError: five is too much" in result.stderr
    assert [json.loads(line)["status"] for line in lines(tmp_path)] == ["done", "failed", "done"]
    assert "4" in result.stdout
    assert invoke(*options).exit_code == 1
    assert [json.loads(line)["status"] for line in lines(tmp_path)][3:] == ["failed"]


@pytest.mark.usefixtures("toy")
def test_nothing_but_failures_is_still_reported(tmp_path: Path) -> None:
    result = invoke("table-1", "--out", str(tmp_path), "--k", "5", "--seeds", "0", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["counts"] == {"cells": 1, "done": 0, "failed": 1}


@pytest.mark.usefixtures("toy")
def test_debug_shows_where_it_failed(tmp_path: Path) -> None:
    result = invoke("table-1", "--out", str(tmp_path), "--k", "5", "--debug")
    assert isinstance(result.exception, DataError)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = invoke("recovery", "--out", str(tmp_path / "new"), "--quick", "--dry-run")
    assert result.exit_code == 0
    assert "0 done, 18 to run" in result.stdout
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    result = invoke("table-1", "--out", str(tmp_path / "taken"), "--quick")
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "--out" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("toy")
def test_a_damaged_file_of_cells_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "table-1").mkdir()
    (tmp_path / "table-1" / "cells.jsonl").write_text("nonsense\n")
    result = invoke("table-1", "--out", str(tmp_path), "--k", "1")
    assert result.exit_code == 2
    assert "line 1 of" in result.stderr


def test_a_killed_sweep_is_resumed(tmp_path: Path) -> None:
    with started(tmp_path, *LONGER):
        wait_until(lambda: len(lines(tmp_path)) >= 2)
    kept = lines(tmp_path)
    # Cut the last line as a power failure might.
    path = tmp_path / "table-1" / "cells.jsonl"
    path.write_text("".join(f"{line}\n" for line in kept[:-1]) + kept[-1][:20])
    result = invoke("table-1", "--out", str(tmp_path), *LONGER, "--json")
    assert result.exit_code == 0, result.stderr
    assert lines(tmp_path)[: len(kept) - 1] == kept[:-1]
    assert len(lines(tmp_path)) == len(CellFile(path).read()) == 6
    assert json.loads(result.stdout)["counts"] == {"cells": 6, "done": 6, "failed": 0}
    assert f"table-1: {len(kept) - 1} of 6 done" in result.stderr


def test_an_interrupted_sweep_says_how_to_go_on(tmp_path: Path) -> None:
    with started(tmp_path, *LONGER) as process:
        wait_until(lambda: len(lines(tmp_path)) >= 1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=WAIT)
    assert process.returncode == 130
    assert stdout == ""
    assert "Traceback" not in stderr
    assert f"python -m thresher reproduce table-1 --out {tmp_path} {' '.join(LONGER)}" in stderr
    assert all(json.loads(line)["status"] == "done" for line in lines(tmp_path))
    assert 1 <= len(lines(tmp_path)) < 6


def test_a_small_sweep_runs_for_real(tmp_path: Path) -> None:
    result = invoke("table-2", "--out", str(tmp_path), *SMALL, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert [cell["status"] for cell in document["cells"]] == ["done"] * 6
