"""The examples run as they stand, and print what they promise."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# What each prints, in part: an example that quietly stops showing its point is broken.
PRINTED = {
    "budget_path": "<- chosen",
    "certify_planted": "Proved:",
    "export_to_c": "characters of C",
    "feature_selection": "a planted stand-in for dexter",
    "formula_from_data": "relu(0.2*minutes - 20)",
    "integer_on_device": "outputs of C and of Python on 597 rows: all equal",
    "own_loss": "too low on 19% of rows",
    "own_operator": "[17, 230, 771, 1404, 1999]",
    "own_solver": "10 restarts, 20 nonzeros",
    "pipeline_grid_search": "accuracy on held-out rows: 0.9",
    "raw_table": "frame=carbon",
    "recover_planted": "planted 12 weights, found 12",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THRESHER_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    out, err = capfd.readouterr()
    assert err == ""
    assert PRINTED[path.stem] in out


def test_an_example_runs_by_itself(tmp_path: Path) -> None:
    # What a fresh process imports, and what that warns of, is the same for all of them.
    path = ROOT / "examples" / "raw_table.py"
    environment = {name: value for name, value in os.environ.items() if name != "THRESHER_DATA"}
    environment |= {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert PRINTED[path.stem] in done.stdout


def test_every_example_says_how_to_run_it() -> None:
    assert len(EXAMPLES) >= 6
    for path in EXAMPLES:
        assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
