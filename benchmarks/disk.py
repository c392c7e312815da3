"""A fit to rows on disk: what it keeps in memory, and its time beside that of the same rows in memory.

    python benchmarks/disk.py                      4 GB in .npy shards, and again in Parquet
    python benchmarks/disk.py --kinds npy --gigabytes 0.5
    python benchmarks/disk.py --folder DIR         write them below DIR, and leave them there for next time

Rows are generated: 1,000 columns of float32, of which a few tell the target. Each fit runs in a process of
its own, whose whole resident memory counts, imports included: these are 365 MB, so `memory_limit` is set to
what is left for a fit. Passes are few, so that it takes minutes; both fits take the same.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Measurement, Options

COLUMNS, SHARD_ROWS, GROUP_ROWS = 1_000, 8_192, 1_024
BUDGET, HIDDEN, PASSES, LIMIT = 100, 50, 2, "8MB"
KINDS = ("npy", "parquet")
GIGABYTE = 2**30
RESIDENT_BAR, TIME_BAR = 500.0, 1.5
TARGET = "y"


def measure(
    options: Options, gigabytes: float = 4.0, folder: Path | None = None, kinds: tuple[str, ...] = KINDS
) -> list[Measurement]:
    """Write rows of each kind, unless they are there, and fit to them from disk and from memory."""
    found = []
    for kind in kinds:
        place = Path(tempfile.mkdtemp(prefix="rows-")) if folder is None else folder / f"{gigabytes:g}-{kind}"
        try:
            generate(place / "train", kind, round(gigabytes * GIGABYTE / (4 * COLUMNS)), seed=0)
            generate(place / "test", kind, 50_000, seed=1)
            disk, memory = (fitted(place, kind, where, options) for where in ("disk", "memory"))
        finally:
            if folder is None:
                shutil.rmtree(place)
        what = f"{gigabytes:g} GB of {kind}"
        detail = {"disk": disk, "memory": memory}
        found += [
            Measurement(f"resident memory, {what} on disk", disk["peak"], RESIDENT_BAR, "MB", detail=detail),
            Measurement(f"time, {what}, on disk / in memory", disk["seconds"] / memory["seconds"], TIME_BAR),
            Measurement(f"processor time, {what}, likewise", disk["processor"] / memory["processor"], None),
            Measurement(f"R2 on fresh rows, {what} on disk", disk["score"], None, "R2"),
            Measurement(f"R2 on fresh rows, {what} in memory", memory["score"], None, "R2"),
        ]
    return found


def generate(folder: Path, kind: str, rows: int, seed: int) -> None:
    """Write rows of a noisy law of ten columns, a shard at a time, unless the folder is there already."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    law = np.random.default_rng(7).standard_normal((10, 4)).astype(np.float32)
    random = np.random.default_rng(seed)
    for number, start in enumerate(range(0, rows, SHARD_ROWS)):
        X = random.standard_normal((min(SHARD_ROWS, rows - start), COLUMNS), dtype=np.float32)
        y = np.maximum(X[:, :10] @ law, 0.0) @ np.array([1.0, -1.0, 0.5, 2.0], dtype=np.float32)
        y += 0.5 * random.standard_normal(len(y), dtype=np.float32)
        name = folder / f"part-{number:05}.{kind}"
        if kind == "npy":
            np.save(name, np.column_stack([X, y]))
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            columns = {f"x{place}": X[:, place] for place in range(COLUMNS)}
            # Random numbers do not compress, and dictionaries of them are of no use.
            table = pa.table({**columns, TARGET: y})
            pq.write_table(table, name, row_group_size=GROUP_ROWS, use_dictionary=False, compression="none")


def fitted(place: Path, kind: str, where: str, options: Options) -> dict[str, Any]:
    """Fit in a fresh process."""
    command = [sys.executable, str(Path(__file__)), "--fit", str(place), kind, where, str(options.threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the fit from {where} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout))


def fit_here(place: Path, kind: str, where: str, threads: int) -> dict[str, Any]:
    """Fit in this process, and give time, processor time, highest resident memory and score."""
    import torch

    from thresher import SparseMLPRegressor
    from thresher.data import open_rows

    torch.set_num_threads(threads)
    rows, test = (open_rows(place / part, -1 if kind == "npy" else TARGET) for part in ("train", "test"))
    given = (rows, None) if where == "disk" else (rows[:], rows.target)
    began, processor = time.perf_counter(), time.process_time()
    model = SparseMLPRegressor(BUDGET, HIDDEN, max_iter=PASSES, memory_limit=LIMIT, random_state=0)
    model.fit(*given)
    found = {"seconds": time.perf_counter() - began, "processor": time.process_time() - processor}
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
    return {**found, "peak": peak, "score": model.score(test), "nonzeros": model.nonzeros_}


def main() -> None:
    """Measure, and print a table."""
    from run import table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of rows (default 4)")
    parser.add_argument("--folder", type=Path, help="where to write them (default: a temporary folder)")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--threads", type=int, default=2, help="threads of matrix products (default 2)")
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        place, kind, where, threads = given.fit
        print(json.dumps(fit_here(Path(place), kind, where, int(threads))))
    else:
        settings = (Options(given.threads), given.gigabytes, given.folder, tuple(given.kinds))
        print(table({"disk": measure(*settings)}, {}))


if __name__ == "__main__":
    main()
