"""Memory of this process: pages that tensors reuse, and pages that go back."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from thresher import memory

COUNTED = """
import resource, sys, torch
from contextlib import nullcontext
from thresher.memory import kept_pages

torch.set_num_threads(1)
numbers = torch.ones(500_000)
with kept_pages() if sys.argv[1] == "kept" else nullcontext():
    for _ in range(20):
        (numbers * 2).sum()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        (numbers * 2).sum()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
# Of the temporary tensors of a run, at 4,096 bytes each.
PAGES = 20 * 500_000 * 4 // 4096


def faults(how: str) -> int:
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", COUNTED, how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(memory._settings() is None, reason="this C library has no mallopt to be told by")
def test_tensors_reuse_pages_where_the_environment_gives_all_of_them_back() -> None:
    assert faults("kept") < 0.05 * PAGES
    # Where this no longer holds there is nothing to be mended.
    assert faults("given back") > 0.5 * PAGES
