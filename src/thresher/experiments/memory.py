"""The memory of one fit, measured in a process of its own so that nothing that ran before counts."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from thresher.data.planted import planted
from thresher.errors import ParameterError

SECONDS_BETWEEN_LOOKS = 0.0005
STATUS = Path("/proc/self/statm")

# Linux counts the peak itself, and starts anew when told so; elsewhere a thread looks now and then.
PEAK, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measure_apart(configuration: dict[str, Any]) -> dict[str, Any]:
    """Run a few steps of thresholding, without refinement, in a new process: its peak memory and its time.

    Parameters
    ----------
    configuration : dict
        `n`, `d`, `hidden`, `budget`, `steps`, `memory_limit` (bytes), `dtype` and `seed`.

    Returns
    -------
    dict
        `peak_bytes`, the most resident memory during the fit less that just before it, and `step_seconds`.
    """
    done = subprocess.run(
        [sys.executable, "-c", "from thresher.experiments.memory import answer; answer()"],
        input=json.dumps(configuration),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        raise ParameterError(f"the process that measures memory failed: {lines[-1]}")
    return dict(json.loads(done.stdout))


def resident_bytes() -> int:
    """Give the memory of this process: what it holds now, or, where that is not told, its peak so far."""
    if STATUS.exists():
        import mmap

        return int(STATUS.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    import resource

    # The peak is in bytes on macOS and in units of 1024 bytes elsewhere.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def peak_during(work: Callable[[], Any]) -> tuple[Any, int]:
    """Run some work and watch the memory of this process meanwhile.

    Returns
    -------
    answer : Any
        What the work gave.
    peak : int
        The most memory seen, in bytes, less that just before.
    """
    _give_back()
    before = resident_bytes()
    if _reset_peak():
        answer = work()
        return answer, max(0, _counted_peak() - before)
    return _watched(work, before)


def _give_back() -> None:
    """Return what was freed to the system, so that earlier work does not hide what this work takes."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _reset_peak() -> bool:
    try:
        RESET.write_text("5", encoding="ascii")
        return _counted_peak() > 0
    except OSError:
        return False


def _counted_peak() -> int:
    for line in PEAK.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _watched(work: Callable[[], Any], before: int) -> tuple[Any, int]:
    peak = before
    over = threading.Event()

    def look() -> None:
        nonlocal peak
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            peak = max(peak, resident_bytes())

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        answer = work()
    finally:
        over.set()
        watcher.join()
    return answer, max(peak, resident_bytes()) - before


def _measure(configuration: dict[str, Any]) -> dict[str, Any]:
    import torch

    from thresher.objective.data import Data
    from thresher.objective.gated import GatedOperator
    from thresher.objective.gates import DenseRandom
    from thresher.solvers.iht import iht, paper_iht

    dtype = getattr(torch, configuration["dtype"])
    # Refinement works on the support alone, whatever the block.
    solver = replace(paper_iht(), refinement=None)

    def fit(n: int, steps: int) -> float:
        operator = GatedOperator(
            Data(problem.X[:n], dtype=dtype, memory_limit=configuration["memory_limit"]),
            DenseRandom(configuration["d"], configuration["hidden"], configuration["seed"]),
            memory_limit=configuration["memory_limit"],
        )
        began = time.perf_counter()
        iht(operator, problem.y[:n], configuration["budget"], solver=solver, max_iter=steps)
        return (time.perf_counter() - began) / steps

    problem = planted(
        configuration["n"],
        configuration["d"],
        configuration["hidden"],
        configuration["budget"],
        seed=configuration["seed"],
    )
    # What torch sets up on first use is no part of a fit.
    fit(min(64, configuration["n"]), steps=1)
    step_seconds, peak = peak_during(lambda: fit(configuration["n"], configuration["steps"]))
    return {"peak_bytes": peak, "step_seconds": round(step_seconds, 4)}


def answer() -> None:
    """Read a configuration from standard input, and write what was measured to standard output."""
    try:
        print(json.dumps(_measure(json.load(sys.stdin))))
    except KeyboardInterrupt:
        sys.exit(130)
