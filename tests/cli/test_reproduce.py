"""`thresher reproduce`: one JSON document, exit codes, and a sweep that survives whatever ends it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.errors import DataError
from thresher.experiments import EXPERIMENTS
from thresher.experiments.record import Cell, CellFile
from thresher.experiments.settings import read_settings

SMALL = ("--rows", "60", "--seeds", "0", "--k", "1,2,3,4,5,6")
# Enough work for a signal to meet it.
LONGER = ("--rows", "400", "--seeds", "0", "--k", "1,2,3,4,5,6", "--jobs", "1")
SHORTER = ("--rows", "150", *LONGER[2:])
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


def invoke_toy(*args: str) -> Result:
    """Run in this process, where table-1 measures nothing."""
    return invoke(*args, "--jobs", "1")


@contextmanager
def started(out: Path, *options: str, name: str = "table-1") -> Iterator[subprocess.Popen[str]]:
    """Start a sweep in a process of its own, which does not outlive the test."""
    command = [sys.executable, "-m", "thresher", "reproduce", name, "--out", str(out), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # Tests that run in the background of a shell ignore Ctrl-C, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
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


def lines(out: Path, name: str = "table-1") -> list[str]:
    path = out / name / "cells.jsonl"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.mark.usefixtures("toy")
def test_what_is_done_is_shown_and_written(tmp_path: Path) -> None:
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "1,2", "--seeds", "0,1")
    assert result.exit_code == 0
    assert "Table 1" in result.stdout
    names = ["cells.jsonl", "summary.json", "table-1.png", "table-1.svg"]
    found = sorted(path.name for path in (tmp_path / "table-1").iterdir())
    assert found == sorted([*names, "settings.json"])
    assert all(f"wrote {tmp_path / 'table-1' / name}" in result.stdout for name in names)
    summary = json.loads((tmp_path / "table-1" / "summary.json").read_text())
    assert summary["counts"] == {"cells": 4, "done": 4, "failed": 0}
    assert len(summary["tables"][0]["rows"]) == 2


@pytest.mark.usefixtures("toy")
def test_a_part_adds_to_what_is_there(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    runs = [
        (whole, "0,1", "1,2,4", 6),
        (parts, "1", "4,1", 2),
        (parts, "0", "1,2,4", 3),
        (parts, "1", "2", 1),
    ]
    for out, seeds, ks, count in runs:
        result = invoke_toy("table-1", "--out", str(out), "--k", ks, "--seeds", seeds, "--json")
        assert result.exit_code == 0, result.stderr
        # The document is about the cells that were asked for.
        told = json.loads(result.stdout)
        assert told["counts"]["cells"] == len(told["cells"]) == count
    names = ("summary.json", "table-1.png", "table-1.svg")
    once, added = [[(out / "table-1" / name).read_bytes() for name in names] for out in (whole, parts)]
    assert once == added
    assert json.loads(once[0])["counts"] == {"cells": 6, "done": 6, "failed": 0}
    kept = [one["choices"] for one in read_settings(parts / "table-1")]
    assert [(one["k"], one["seeds"]) for one in kept] == [([4, 1], [1]), ([1, 2, 4], [0]), ([2], [1])]


@pytest.mark.usefixtures("toy")
def test_what_is_smaller_or_older_or_of_other_data_is_left_out(tmp_path: Path) -> None:
    options = ("table-1", "--out", str(tmp_path), "--seeds", "0", "--k")
    assert invoke_toy(*options, "1").exit_code == 0
    whole = (tmp_path / "table-1" / "summary.json").read_bytes()
    file = CellFile(tmp_path / "table-1" / "cells.jsonl")
    (one,) = file.read().values()
    other = replace(one.cell, configuration={**one.cell.configuration, "k": 2})
    file.append(replace(one, cell=other, version="0.0.1"))
    file.append(replace(one, cell=other, data="drawn otherwise"))
    result = invoke_toy(*options, "4", "--rows", "60")
    assert "1 cells of smaller runs" in result.stderr
    assert (tmp_path / "table-1" / "summary.json").read_bytes() == whole


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("flags", [("--json",), ("--json", "--quiet"), ("--json", "--dry-run")])
def test_standard_output_is_one_json_document(flags: tuple[str, ...], tmp_path: Path) -> None:
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "1", "--seeds", "0", *flags)
    document = json.loads(result.stdout)
    assert document["experiment"] == "table-1"
    if "--dry-run" in flags:
        assert (document["done"], document["pending"]) == ([], ["k=1, seed=0"])
    else:
        assert document["cells"][0]["result"]["psnr"] == 160.0
        assert all(Path(path).exists() for path in document["files"])


@pytest.mark.usefixtures("toy")
def test_quiet_is_quiet(tmp_path: Path) -> None:
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "1", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.usefixtures("toy")
def test_failed_cells_are_recorded_and_told(tmp_path: Path) -> None:
    options = ("table-1", "--out", str(tmp_path), "--k", "4,5,6", "--seeds", "0")
    result = invoke_toy(*options)
    assert result.exit_code == 1
    assert "failed: k=5, seed=0: DataError: five is too much" in result.stderr
    assert [json.loads(line)["status"] for line in lines(tmp_path)] == ["done", "failed", "done"]
    assert "4" in result.stdout
    assert invoke_toy(*options).exit_code == 1
    assert [json.loads(line)["status"] for line in lines(tmp_path)][3:] == ["failed"]


@pytest.mark.usefixtures("toy")
def test_nothing_but_failures_is_still_reported(tmp_path: Path) -> None:
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "5", "--seeds", "0", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["counts"] == {"cells": 1, "done": 0, "failed": 1}


@pytest.mark.usefixtures("toy")
def test_debug_shows_where_it_failed(tmp_path: Path) -> None:
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "5", "--debug")
    assert isinstance(result.exception, DataError)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = invoke("recovery", "--out", str(tmp_path / "new"), "--quick", "--dry-run")
    assert result.exit_code == 0
    assert "0 done, 18 to run; about " in result.stdout
    assert "GB of memory" in result.stdout
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    result = invoke("table-1", "--out", str(tmp_path / "taken"), "--quick")
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "--out" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
@pytest.mark.usefixtures("toy")
def test_a_folder_without_permission_is_bad_input(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "1")
    tmp_path.chmod(0o700)
    assert result.exit_code == 2
    assert "cannot be written (Permission denied)" in result.stderr


@pytest.mark.usefixtures("toy")
def test_a_damaged_file_of_cells_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "table-1").mkdir()
    (tmp_path / "table-1" / "cells.jsonl").write_text("nonsense\n")
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "1")
    assert result.exit_code == 2
    assert "line 1 of" in result.stderr


def test_a_killed_sweep_is_resumed(tmp_path: Path) -> None:
    with started(tmp_path, *SHORTER):
        wait_until(lambda: len(lines(tmp_path)) >= 2)
    kept = lines(tmp_path)
    # Cut the last line as a power failure might.
    path = tmp_path / "table-1" / "cells.jsonl"
    path.write_text("".join(f"{line}\n" for line in kept[:-1]) + kept[-1][:20])
    result = invoke("table-1", "--out", str(tmp_path), *SHORTER, "--json")
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


FIGURE = ("--parts", "left", "--methods", "paper,gmp", "--m", "1,2", "--s", "2,5", "--rows", "300")


def found_in(out: Path) -> dict[str, Any]:
    """Give what was measured in each cell, without what depends on the machine's mood."""
    outcomes = CellFile(out / "figure-1" / "cells.jsonl").read()
    moods = ("fit_seconds", "processor_seconds", "peak_bytes")
    return {
        key: {name: value for name, value in outcome.result.items() if name not in moods}
        for key, outcome in outcomes.items()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the figure in one go, in this process."""
    out = tmp_path_factory.mktemp("whole")
    assert invoke("figure-1", "--out", str(out), *FIGURE, "--seeds", "0", "--jobs", "1").exit_code == 0
    return out


def kill_after(out: Path, cells: int, seconds: float) -> None:
    """Kill a sweep some time after it has finished a number of cells."""
    with started(out, *FIGURE, "--seeds", "0", "--jobs", "1", name="figure-1") as process:
        wait_until(lambda: process.poll() is not None or len(lines(out, "figure-1")) >= cells)
        time.sleep(seconds)
        process.kill()


def test_a_sweep_killed_at_random_moments_comes_out_the_same(whole: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    moments = random.Random(20)
    for _ in range(2):
        kill_after(killed, len(lines(killed, "figure-1")) + moments.randint(1, 2), moments.uniform(0, 0.05))
    result = invoke("figure-1", "--out", str(killed), *FIGURE, "--seeds", "0", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert found_in(killed) == found_in(whole)
    # Nothing that was finished is computed twice.
    assert len(lines(killed, "figure-1")) == len(lines(whole, "figure-1")) == 2 * 2 * 2


def test_processes_find_what_one_finds_and_leave_nobody_behind(whole: Path, tmp_path: Path) -> None:
    several = tmp_path / "several"
    with started(several, *FIGURE, "--jobs", "2", name="figure-1") as process:
        wait_until(lambda: process.poll() is not None or len(lines(several, "figure-1")) >= 2)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=WAIT)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "Go on with:\n  python -m thresher reproduce figure-1" in stderr
    wait_until(lambda: not any(worker.is_running() for worker in workers))
    result = invoke("figure-1", "--out", str(several), *FIGURE, "--jobs", "2", "--seeds", "0")
    assert result.exit_code == 0, result.stderr
    both = found_in(several)
    assert {key: both[key] for key in found_in(whole)} == found_in(whole)


def test_a_disk_that_is_full_loses_nothing(tmp_path: Path) -> None:
    options = (*SMALL, "--jobs", "1")
    # A limit on the size of files stops a write half way, as a full disk does.
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))\n"
        f"sys.argv = ['thresher', 'reproduce', 'table-1', '--out', {str(tmp_path)!r}, *{options!r}]\n"
        "from thresher.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "cells.jsonl cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    path = tmp_path / "table-1" / "cells.jsonl"
    content = path.read_bytes()
    kept = content[: content.rfind(b"\n") + 1]
    assert len(content) == 1500 > len(kept) > 0
    assert invoke("table-1", "--out", str(tmp_path), *options).exit_code == 0
    assert path.read_bytes().startswith(kept)
    assert len(lines(tmp_path)) == 6


@pytest.mark.usefixtures("toy")
def test_a_foreign_folder_is_bad_input_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "table-1").mkdir()
    (tmp_path / "table-1" / "summary.json").write_text("mine")
    result = invoke_toy("table-1", "--out", str(tmp_path), "--k", "1")
    assert result.exit_code == 2
    assert "it holds summary.json but no cells.jsonl" in result.stderr
    assert (tmp_path / "table-1" / "summary.json").read_text() == "mine"


def test_missing_data_is_bad_input_before_any_work(tmp_path: Path) -> None:
    result = invoke("figure-3", "--quick", "--out", str(tmp_path / "out"), "--data", str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "none" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("toy")
def test_the_command_is_kept_beside_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["thresher", "reproduce", "table-1", "--k", "1"])
    assert invoke_toy("table-1", "--out", str(tmp_path), "--k", "1", "--seeds", "0").exit_code == 0
    (kept,) = read_settings(tmp_path / "table-1")
    assert kept["command"] == "thresher reproduce table-1 --k 1"
    assert kept["choices"] == {"k": [1], "seeds": [0]}
    assert kept["jobs"] == 1


def pretended(cell: Cell) -> dict[str, Any]:
    """Stand in for any measurement of a figure, and let one method fail."""
    if cell["method"] == "gmp":
        raise DataError("not today")
    cost = {"fit_seconds": 0.1, "peak_bytes": 1000, "nonzeros": 1, "passes": 1, "status": "done"}
    return {"score": 0.5, **cost, "cut": []}


@pytest.fixture
def two_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two experiments that measure nothing."""
    # Cells of a path would be measured together, for real.
    figure = replace(EXPERIMENTS["figure-3"], measure=pretended, check=None, path=None)
    table = replace(EXPERIMENTS["table-1"], measure=measure)
    # Another dict: taking entries out of the one there is and back again would change its order.
    monkeypatch.setattr("thresher.experiments.EXPERIMENTS", {"figure-3": figure, "table-1": table})


@pytest.mark.usefixtures("two_experiments")
def test_all_runs_everything_and_writes_the_page(tmp_path: Path) -> None:
    # --k means nothing to a figure, nor --m to a table: each takes what it knows.
    options = ("all", "--quick", "--out", str(tmp_path), "--k", "1,2", "--m", "10", "--jobs", "1")
    plan = invoke(*options, "--dry-run")
    assert plan.exit_code == 0
    assert "table-1: 0 done, 2 to run" in plan.stdout
    assert "all together about" in plan.stdout
    assert not any(tmp_path.iterdir())
    result = invoke(*options, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [each["experiment"] for each in document["experiments"]] == ["figure-3", "table-1"]
    assert document["experiments"][1]["counts"] == {"cells": 2, "done": 2, "failed": 0}
    counts = document["experiments"][0]["counts"]
    assert counts["failed"] == counts["cells"] / 5
    assert "failed: figure-3: part=left, method=gmp" in result.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert document["files"] == [str(tmp_path / "report.html")]
    assert 'id="figure-3"' in page
    assert 'id="table-1"' in page
    assert (tmp_path / "figure-3" / "figure-3-right-curves.svg").exists()
