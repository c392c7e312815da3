"""Benchmarks can be run: each is loaded, and one of those that keep their fits is run on a single fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=FOLDER, env=environment, capture_output=True, text=True
    )


def test_every_benchmark_loads() -> None:
    names = ",".join(path.removesuffix(".py") for path in SCRIPTS)
    done = run("-c", f"import {names}")
    assert done.returncode == 0, done.stderr


def test_a_fit_is_kept_with_what_it_was_fitted_by(tmp_path: Path) -> None:
    chosen = ["--laws", "linear", "--noise", "0", "--seeds", "0", "--methods", "ours", "--budgets", "30"]
    first = run("laws.py", *chosen, "--out", str(tmp_path))
    (line,) = (tmp_path / "laws.jsonl").read_text().splitlines()
    outcome = json.loads(line)
    assert (outcome["status"], outcome["configuration"]["law"]) == ("done", "linear")
    assert outcome["result"]["score"] > 0.999
    assert outcome["environment"]["source"]
    again = run("laws.py", *chosen, "--out", str(tmp_path))
    # What is there is not fitted again, and the same is shown of it.
    assert again.stdout == first.stdout
    assert (tmp_path / "laws.jsonl").read_text().splitlines() == [line]
