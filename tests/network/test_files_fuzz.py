"""Ten thousand damaged model files: each is refused in words or is a network, and nothing else happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import MUTATIONS

FUZZING = Path(__file__).resolve().parents[1] / "fuzzing.py"
SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits memory the way Linux does")
def test_no_damaged_file_does_anything_but_load_or_raise(tmp_path):
    # Threads map memory of their own.
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, FUZZING, tmp_path, "10000", "0"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **single},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["events"] == []
    assert found["loaded"] + found["refused"] == 10_000
    # Neither outcome is rare, or the damage would test nothing.
    assert found["loaded"] > 200
    assert found["with direct"] > 50
    assert set(found["by"]) == {mutation.__name__ for mutation in MUTATIONS}
    assert min(found["by"].values()) > 100
