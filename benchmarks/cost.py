"""What a fit costs: time, memory and traffic as functions of its size, with constants that are measured here.

    python benchmarks/cost.py                    measure, fit the constants, check them, print the tables
    python benchmarks/cost.py --table            print the tables of what is kept
    python benchmarks/cost.py --only dense-check --repeats 1
                                                 measure this fit once more; the least time counts
    python benchmarks/cost.py --fresh            forget what is kept first, after a change
    python benchmarks/cost.py --table --page     put the tables of what is kept into docs/scale.md

A time is a sum of counts, each times a constant. The counts follow from the sizes of a problem and the
tuning of the solver; `docs/scale.md` says what they are. The constants of a kind of fit come from small fits
by least squares that leave none negative; fits of other sizes check them. Seconds are processor time of one
thread, the least of several fits in turns, since whatever else a machine does only adds to it. What was
measured is kept in ``results/benchmarks/cost.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from comparing import markdown
from cost_model import GPU_MEMORY, KINDS, SPARSE, THRESHOLDING, TRAINING, Job
from fits import warm_up
from kept import positive
from measuring import Measurement, Options
from memory import MEGABYTE, peak_during
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.atomic import write_whole
from thresher.experiments.machine import environment
from thresher.memory import give_back

FILE = Path(__file__).parents[1] / "results" / "benchmarks" / "cost.json"
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
# A check is met within this factor, up or down.
FACTOR = 2.0
# Of each fit: seconds, peak memory, nonzeros.
Measured = Mapping[str, Mapping[str, float]]

FITTED = {
    "paper-small": Job(THRESHOLDING, 4_000, 100, 100, 500, passes=10),
    "paper-rows": Job(THRESHOLDING, 16_000, 100, 100, 500, passes=5),
    "paper-columns": Job(THRESHOLDING, 4_000, 800, 50, 500, passes=5),
    "paper-neurons": Job(THRESHOLDING, 4_000, 50, 800, 500, passes=5),
    "paper-budget": Job(THRESHOLDING, 4_000, 200, 100, 6_000, passes=5),
    "paper-wide": Job(THRESHOLDING, 4_000, 400, 400, 1_000, passes=5),
    "paper-steps": Job(THRESHOLDING, 1_000, 100, 50, 200, passes=60),
    "paper-more": Job(THRESHOLDING, 12_000, 300, 200, 2_000, passes=12),
    "dense-small": Job(TRAINING, 20_000, 100, 200, 1_600, passes=5),
    "dense-rows": Job(TRAINING, 60_000, 50, 100, 1_600, passes=3),
    "dense-columns": Job(TRAINING, 10_000, 800, 100, 2_000, passes=5),
    "dense-neurons": Job(TRAINING, 10_000, 100, 1_000, 20_000, passes=4),
    "dense-budget": Job(TRAINING, 10_000, 600, 1_000, 10_000, passes=3),
    "dense-batch": Job(TRAINING, 40_000, 200, 100, 2_000, passes=8, batch=1_024),
    "dense-wide": Job(TRAINING, 8_000, 1_200, 400, 4_000, passes=4),
    "dense-short": Job(TRAINING, 6_000, 60, 50, 1_600, passes=20),
    "dense-long": Job(TRAINING, 24_000, 100, 1_000, 20_000, passes=1, batch=4),
    "dense-more": Job(TRAINING, 50_000, 400, 300, 5_000, passes=3),
    "sparse-small": Job(SPARSE, 12_000, 3_000, 100, 1_600, each=20, passes=5),
    "sparse-rows": Job(SPARSE, 40_000, 3_000, 50, 1_600, each=10, passes=3),
    "sparse-columns": Job(SPARSE, 12_000, 10_000, 100, 2_000, each=20, passes=4),
    "sparse-wide": Job(SPARSE, 40_000, 39_000, 20, 1_600, each=10, passes=3),
    "sparse-nonzeros": Job(SPARSE, 12_000, 4_000, 100, 2_000, each=200, passes=3),
    "sparse-budget": Job(SPARSE, 12_000, 4_000, 300, 12_000, each=40, passes=3),
    "sparse-batch": Job(SPARSE, 40_000, 4_000, 100, 3_000, each=30, passes=6, batch=1_024),
    "sparse-neurons": Job(SPARSE, 12_000, 2_000, 400, 8_000, each=60, passes=4),
    "sparse-long": Job(SPARSE, 24_000, 2_000, 300, 12_000, each=10, passes=1, batch=4),
    "sparse-more": Job(SPARSE, 30_000, 8_000, 200, 4_000, each=50, passes=4),
}
CHECKS = {
    "paper-check": Job(THRESHOLDING, 20_000, 150, 300, 3_000, passes=15),
    "dense-check": Job(TRAINING, 80_000, 300, 400, 3_000, passes=4),
    "sparse-check": Job(SPARSE, 50_000, 6_000, 150, 2_500, each=30, passes=5),
}
# What is predicted: tables and text that no machine holds.
LARGE = {
    "10^9 rows of 100 columns, 1,000 neurons, minibatches of 128": Job(
        TRAINING, 10**9, 100, 1_000, 10_000, passes=1, ranks=100
    ),
    "the same, minibatches of 12,800": Job(
        TRAINING, 10**9, 100, 1_000, 10_000, passes=1, batch=12_800, ranks=100
    ),
    "the same by thresholding, 100 steps": Job(
        THRESHOLDING, 10**9, 100, 1_000, 10_000, passes=100, ranks=100
    ),
    "10^12 possible weights (10^7 x 10^5), 10^9 rows of 50 nonzeros, minibatches of 12,800": Job(
        SPARSE, 10**9, 10**7, 10**5, 10_000, each=50, passes=1, batch=12_800, ranks=100
    ),
    "the same, screen=0.01": Job(
        SPARSE, 10**9, 10**7, 10**5, 10_000, each=50, passes=1, batch=12_800, screen=0.01, ranks=100
    ),
}

# What is compared with a dense network on a GPU.
BESIDE = {
    "100 columns, 100 neurons": Job(TRAINING, 10**6, 100, 100, 2_000, passes=1),
    "1,000 columns, 1,000 neurons": Job(TRAINING, 10**6, 1_000, 1_000, 10_000, passes=1),
    "10^5 columns, 50 nonzeros a row, 1,000 neurons": Job(
        SPARSE, 10**6, 10**5, 1_000, 10_000, each=50, passes=1
    ),
    "10^6 columns, 50 nonzeros a row, 10,000 neurons": Job(
        SPARSE, 10**6, 10**6, 10_000, 10_000, each=50, passes=1
    ),
}


def fit(job: Job) -> dict[str, float]:
    """Run a fit of this size on random rows, and give its processor seconds and peak memory."""
    random = np.random.default_rng(0)
    if job.each is None:
        X: Any = random.standard_normal((job.rows, job.columns), dtype=np.float32)
    else:
        places = random.integers(job.columns, size=job.rows * job.each)
        values = random.standard_normal(len(places), dtype=np.float32)
        starts = np.arange(0, len(places) + 1, job.each)
        X = scipy.sparse.csr_array((values, places, starts), (job.rows, job.columns))
        X.sum_duplicates()
    some = X[:, : min(20, job.columns)]
    signal = np.abs(some @ random.standard_normal((some.shape[1], 3), dtype=np.float32)).sum(1)
    shared: dict[str, Any] = {"budget": job.budget, "hidden": job.hidden, "max_iter": job.passes}
    shared |= {"random_state": 0, "dtype": "float32"}
    if job.kind == THRESHOLDING:
        model: Any = SparseMLPRegressor(solver="paper", **shared)
        y = signal.astype(np.float32)
    else:
        model = SparseMLPClassifier(batch_size=job.batch, **shared)
        y = signal > np.median(signal)
    give_back()
    began = time.process_time()
    peak = peak_during(lambda: model.fit(X, y))
    return {"seconds": time.process_time() - began, "peak": peak, "nonzeros": float(model.nonzeros_)}


def constants_of(kind: str, measured: Measured) -> dict[str, float]:
    """Fit the constants of a kind of fit to measured seconds, each fit counting by its relative error."""
    known = {name: job for name, job in FITTED.items() if job.kind == kind}
    seconds = np.array([measured[name]["seconds"] for name in known])
    counts = [{name: sum(parts) for name, parts in job.counts().items()} for job in known.values()]
    names = list(counts[0])
    matrix = np.array([[count[name] for name in names] for count in counts]) / seconds[:, None]
    size = np.linalg.norm(matrix, axis=0)
    # Scaled first: counts differ by many orders of magnitude.
    return dict(zip(names, nnls(matrix / size, np.ones(len(seconds)))[0] / size, strict=True))


def run(names: Sequence[str], repeats: int, fresh: bool) -> Measured:
    """Measure some fits, a few times in turns, and keep the least time of each beside what is kept."""
    kept = {} if fresh else dict(read())
    torch.set_num_threads(1)
    with threadpool_limits(1):
        warm_up()
        for kind in KINDS:
            # What is loaded at first use falls on no fit that is timed.
            fit(replace(next(job for job in FITTED.values() if job.kind == kind), passes=1))
        for name in (name for _ in range(repeats) for name in names):
            new = fit((FITTED | CHECKS)[name])
            kept[name] = min(new, kept.get(name, new), key=lambda one: one["seconds"])
            print(f"{name}: {new['seconds']:.2f} s", file=sys.stderr, flush=True)
            content = {"environment": environment(), "measured": kept}
            FILE.parent.mkdir(parents=True, exist_ok=True)
            write_whole(FILE, (json.dumps(content, indent=2) + "\n").encode())
    return kept


def read() -> Measured:
    """Read what is kept; nothing where nothing is."""
    return json.loads(FILE.read_text())["measured"] if FILE.exists() else {}


def tables(measured: Measured) -> list[str]:
    """Write the constants, the checks, what is predicted of large problems, and all fits, as Markdown."""
    constants = {kind: constants_of(kind, measured) for kind in KINDS}
    nanoseconds = [
        (kind, name, f"{1e9 * value:.3g}") for kind, one in constants.items() for name, value in one.items()
    ]
    large = []
    for name, job in LARGE.items():
        alone = replace(job, ranks=1).seconds(constants[job.kind])
        each = job.seconds(constants[job.kind])
        large.append(
            (
                name,
                *(span(seconds) for seconds in (alone, each, job.waiting)),
                f"{job.sent / 1e9:,.1f}",
                f"{job.memory / MEGABYTE:,.0f}",
            )
        )
    beside = []
    for name, job in BESIDE.items():
        seconds, held = job.dense
        fits = "" if held <= GPU_MEMORY else ", does not fit"
        beside.append(
            (name, span(job.seconds(constants[job.kind])), f"{span(seconds)}{fits}", f"{held / 1e9:,.1f}")
        )
    return [
        markdown(("kind", "count", "nanoseconds"), nanoseconds),
        compared(CHECKS, measured),
        markdown(("fit", "one thread", "100 ranks compute", "and send", "GB each", "MB each"), large),
        markdown(("10^6 rows, one pass", "ours, one thread", "dense, one GPU", "dense, GB"), beside),
        compared(FITTED, measured),
    ]


def compared(jobs: Mapping[str, Job], measured: Measured) -> str:
    """Write what some fits took beside what is predicted of them, as Markdown."""
    heads = "fit", "seconds", "predicted", "predicted / measured", "MB", "MB predicted"
    constants = {kind: constants_of(kind, measured) for kind in KINDS}
    rows = []
    for name, job in jobs.items():
        seconds, peak = measured[name]["seconds"], measured[name]["peak"] / MEGABYTE
        predicted = job.seconds(constants[job.kind])
        ratio = f"{predicted / seconds:.2f}"
        memory = f"{peak:.0f}", f"{job.memory / MEGABYTE:.0f}"
        rows.append((name, f"{seconds:.2f}", f"{predicted:.2f}", ratio, *memory))
    return markdown(heads, rows)


def put_into_page(found: Sequence[str]) -> None:
    """Replace the tables of the page that have the same heads."""
    page = PAGE.read_text().split("\n\n")
    for table in found:
        heads = [head.strip() for head in table.split("\n")[0].split("|")]
        for number, part in enumerate(page):
            if [head.strip() for head in part.split("\n")[0].split("|")] == heads:
                page[number] = table
    write_whole(PAGE, "\n\n".join(page).encode())


def span(seconds: float) -> str:
    """Write a time for people."""
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1g} s"


def measure(options: Options) -> list[Measurement]:
    """Measure everything, with `quick` once only, and say how far off predictions are."""
    measured = run([*FITTED, *CHECKS], 1 if options.quick else options.repeats, fresh=True)
    rows = []
    for name, job in CHECKS.items():
        seconds = measured[name]["seconds"]
        ratio = job.seconds(constants_of(job.kind, measured)) / seconds
        detail = {"predicted / measured": ratio, "seconds": seconds}
        rows.append(
            Measurement(
                f"predicted against measured time, {name}", max(ratio, 1 / ratio), FACTOR, detail=detail
            )
        )
    return rows


def main() -> None:
    """Measure what was asked for, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="print what is kept; fit nothing")
    parser.add_argument("--only", nargs="+", choices=[*FITTED, *CHECKS], help="measure these alone")
    parser.add_argument("--repeats", type=positive, default=3, help="fits of each size (default 3)")
    parser.add_argument("--fresh", action="store_true", help="forget what is kept first")
    parser.add_argument("--page", action="store_true", help=f"put the tables into {PAGE.name} as well")
    given = parser.parse_args()
    if not given.table:
        run(given.only or [*FITTED, *CHECKS], given.repeats, given.fresh)
    measured = read()
    missing = [name for name in [*FITTED, *CHECKS] if name not in measured]
    if missing:
        parser.error(f"{', '.join(missing)} not measured yet. Run without --table and --only.")
    *shown, fitted = tables(measured)
    if given.page:
        put_into_page(shown)
    print("\n\n".join([*shown, fitted]))


if __name__ == "__main__":
    main()
