"""Peak memory of a fit where one dense gradient alone would take 400 MB.

Each fit runs in a process of its own. What counts is its highest resident memory less what was resident just
before `fit`, when the data is there and everything is imported.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import Measurement, Options

ROWS, FEATURES = 2_000, 20_000
HIDDEN, BUDGET = 5_000, 1_000
BAR = 100.0
# A dense gradient grows with d x m; what a fit needs may grow by this share of that, for m small vectors.
WIDTH_BAR = 0.2
PASSES = 3
MEGABYTE = 2**20
DENSE_GROWTH = 4 * FEATURES * (HIDDEN - HIDDEN // 2) / MEGABYTE


def measure(options: Options) -> list[Measurement]:
    """Fit with both solvers, at half the width, and at twice the budget."""
    rows = []
    for solver in ("auto", "paper"):
        peak = peak_of(solver, HIDDEN, BUDGET, options)
        narrow = peak_of(solver, HIDDEN // 2, BUDGET, options)
        rich = peak_of(solver, HIDDEN, 2 * BUDGET, options)
        detail = {f"({HIDDEN}, {BUDGET})": peak, f"({HIDDEN // 2}, {BUDGET})": narrow}
        detail[f"({HIDDEN}, {2 * BUDGET})"] = rich
        cell = f"solver={solver!r}, d = {FEATURES:,}"
        rows += [
            Measurement(f"peak memory at ({HIDDEN:,}, {BUDGET:,}), {cell}", peak, BAR, "MB", detail=detail),
            Measurement(
                f"its growth from half that width / growth of one dense {FEATURES:,} x m matrix",
                (peak - narrow) / DENSE_GROWTH,
                WIDTH_BAR,
                detail=detail,
            ),
            Measurement(
                f"peak at ({HIDDEN:,}, {2 * BUDGET:,}), twice that budget / the same",
                rich / peak,
                None,
                detail=detail,
            ),
        ]
    return rows


def peak_of(solver: str, hidden: int, budget: int, options: Options) -> float:
    """Fit in a fresh process and give the peak in MB."""
    command = [sys.executable, str(Path(__file__)), solver, str(hidden), str(budget), str(options.threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the fit with solver={solver!r} failed:\n{done.stderr}")
    return float(json.loads(done.stdout)["peak"])


def fit_here(solver: str, hidden: int, budget: int, threads: int) -> dict[str, Any]:
    """Fit in this process and say how much memory that took beyond what was there."""
    import torch

    from thresher import SparseMLPRegressor
    from thresher.data.planted import planted

    torch.set_num_threads(threads)
    problem = planted(n=ROWS, d=FEATURES, hidden=hidden, budget=budget, seed=0)
    model = SparseMLPRegressor(budget=budget, hidden=hidden, solver=solver, max_iter=PASSES, random_state=0)
    peak = peak_during(lambda: model.fit(problem.X, problem.y))
    return {"peak": peak / MEGABYTE, "nonzeros": model.nonzeros_, "status": str(model.status_)}


def peak_during(work: Callable[[], object]) -> float:
    """Give the bytes by which resident memory rises, at its highest, while some work is done."""
    try:
        # Linux keeps the highest resident memory itself, and forgets it when told to.
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _sampled_peak(work)
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def _sampled_peak(work: Callable[[], object]) -> float:
    """Look at resident memory every few milliseconds, where the system does not keep its peak."""
    import psutil

    process, done, highest = psutil.Process(), threading.Event(), 0
    before = process.memory_info().rss

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.005):
            highest = max(highest, process.memory_info().rss)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return float(max(highest, process.memory_info().rss) - before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit once and print the peak memory; run.py calls this.")
    parser.add_argument("solver")
    parser.add_argument("hidden", type=int)
    parser.add_argument("budget", type=int)
    parser.add_argument("threads", type=int)
    print(json.dumps(fit_here(**vars(parser.parse_args()))))
