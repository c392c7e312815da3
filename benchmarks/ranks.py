"""One fit on two ranks against one process, each with one thread: time, support and weights.

    python benchmarks/ranks.py                      400,000 rows, both solvers, torch and Dask: ten minutes
    python benchmarks/ranks.py --rows 20000         a look
    python benchmarks/ranks.py --solvers paper --ways torch --dtype float32

Times are those of `fit`, rows read and processes met. The default solver takes minibatches of 2,048 rows: of
the usual 128, two ranks spend as long on meeting as they save. Fits are in float64 unless asked. Where others
compute on the same machine, the ratio of processor times says what a quiet one would show, at best.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Measurement, Options

from thresher.data.planted import planted

FEATURES, HIDDEN, BUDGET, ROWS = 200, 500, 200, 400_000
# Passes: of the paper's algorithm a full-batch step each; the default solver ends by itself.
PASSES = {"paper": 12, "auto": 200}
BATCH = {"paper": None, "auto": 2_048}
FASTER, CLOSE = 1.6, 1e-5


def measure(options: Options) -> list[Measurement]:
    """Measure both solvers and both ways to start ranks."""
    return measured(20_000 if options.quick else ROWS, ("paper", "auto"), ("torch", "dask"))


def measured(
    rows: int, solvers: tuple[str, ...], ways: tuple[str, ...], dtype: str = "float64"
) -> list[Measurement]:
    """Fit alone, then by two ranks in each way, and compare."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        problem = planted(n=rows, d=FEATURES, hidden=HIDDEN, budget=BUDGET, seed=0)
        np.save(Path(folder, "X.npy"), problem.X)
        np.save(Path(folder, "y.npy"), problem.y)
        del problem
        for solver in solvers:
            alone = in_processes(folder, solver, dtype, rows, 1)[0]
            for way in ways:
                together = (in_processes if way == "torch" else in_dask)(folder, solver, dtype, rows, 2)
                found += compared(f"{solver}, {way}, {rows:,} rows, {dtype}", alone, together)
    return found


def compared(name: str, alone: dict[str, Any], together: list[dict[str, Any]]) -> list[Measurement]:
    """Say how much faster two ranks are, and how far their network is from that of one process."""
    one, two = alone["weights"], together[0]["weights"]
    spent = max(rank["processor"] for rank in together)
    detail = {
        "seconds": [alone["seconds"], together[0]["seconds"]],
        "processor": [alone["processor"], spent],
        "status": [alone["status"], together[0]["status"]],
        "nonzeros": [int((one != 0).sum()), int((two != 0).sum())],
    }
    apart = int(((one != 0) != (two != 0)).sum())
    faster, lighter = alone["seconds"] / together[0]["seconds"], alone["processor"] / spent
    return [
        Measurement(f"{name}: times as fast on two ranks", faster, FASTER, at_least=True, detail=detail),
        Measurement(f"{name}: the same by processor time", lighter, None),
        Measurement(f"{name}: places of the support that differ", apart, 0, unit="places"),
        Measurement(
            f"{name}: largest difference of a weight", float(np.abs(one - two).max()), CLOSE, unit=""
        ),
    ]


def settings(solver: str, dtype: str) -> dict[str, Any]:
    """Give the settings of a fit, the same for one process and for ranks."""
    return {
        "solver": solver,
        "max_iter": PASSES[solver],
        "batch_size": BATCH[solver],
        "dtype": dtype,
        "random_state": 0,
    }


def fitted(solver: str, dtype: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit to some rows, timed."""
    from thresher import SparseMLPRegressor

    model = SparseMLPRegressor(BUDGET, HIDDEN, **settings(solver, dtype))
    began, before = time.perf_counter(), time.process_time()
    model.fit(X, y)
    return timed(model, time.perf_counter() - began, time.process_time() - before)


def timed(model: Any, seconds: float, processor: float) -> dict[str, Any]:
    """Give what a fit found, and what it took."""
    layers = [*model.coefs_, *model.intercepts_, model.direct_coef_]
    weights = np.concatenate([np.ravel(part) for part in layers])
    return {"weights": weights, "status": model.status_.name, "seconds": seconds, "processor": processor}


def in_processes(folder: str, solver: str, dtype: str, rows: int, count: int) -> list[dict[str, Any]]:
    """Fit in processes of one thread, which share the rows."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    os.environ["OMP_NUM_THREADS"] = "1"
    context, pipes = multiprocessing.get_context("spawn"), []
    for number in range(count):
        here, there = context.Pipe()
        part = slice(rows * number // count, rows * (number + 1) // count)
        context.Process(
            target=rank, args=(there, folder, solver, dtype, part, address, number, count)
        ).start()
        pipes.append(here)
    return [pipe.recv() for pipe in pipes]


def rank(
    pipe: Any, folder: str, solver: str, dtype: str, part: slice, address: str, number: int, count: int
) -> None:
    """Fit as one rank, or alone."""
    from thresher.objective.ranks import meeting

    X, y = (np.load(Path(folder, name))[part] for name in ("X.npy", "y.npy"))
    if count == 1:
        pipe.send(fitted(solver, dtype, X, y))
        return
    with meeting(address, number, count):
        pipe.send(fitted(solver, dtype, X, y))


def loaded() -> None:
    """Load what a worker loads at its first fit; a rank that torch started has done so by then."""
    import thresher.dask  # noqa: F401


def in_dask(folder: str, solver: str, dtype: str, rows: int, count: int) -> list[dict[str, Any]]:
    """Fit on a Dask cluster of workers with one thread each; the rows are with them before."""
    import dask.array
    import distributed

    from thresher.dask import SparseMLPRegressor

    cluster = distributed.LocalCluster(
        n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        X, y = (np.load(Path(folder, name), mmap_mode="r") for name in ("X.npy", "y.npy"))
        size = -(-rows // (4 * count))
        collections = client.persist(
            [dask.array.from_array(X, chunks=(size, -1)), dask.array.from_array(y, chunks=size)]
        )
        distributed.wait(collections)
        client.run(loaded)
        before, began = client.run(time.process_time), time.perf_counter()
        model = SparseMLPRegressor(BUDGET, HIDDEN, client=client, **settings(solver, dtype)).fit(*collections)
        seconds, after = time.perf_counter() - began, client.run(time.process_time)
        return [timed(model, seconds, after[worker] - before[worker]) for worker in before]


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--solvers", nargs="+", default=["paper", "auto"], choices=list(PASSES))
    parser.add_argument("--ways", nargs="+", default=["torch", "dask"], choices=["torch", "dask"])
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    chosen = parser.parse_args()
    for one in measured(chosen.rows, tuple(chosen.solvers), tuple(chosen.ways), chosen.dtype):
        bar = "" if one.bar is None else f"(bar {one.bar:g}: {'met' if one.passed else 'missed'})"
        print(f"{one.what}: {one.value:.3g} {one.unit} {bar} {one.detail or ''}", flush=True)


if __name__ == "__main__":
    main()
