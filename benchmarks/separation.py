"""Epsilon and gamma of a hundred thousand patterns on five thousand rows: seconds, and memory of the process.

Each set of patterns is measured in a process of its own, whose highest resident memory counts whole, with the
interpreter and the data. Sparse generators have close pairs, and gamma is exact; patterns of dense ones are
all far apart, and gamma is only bounded.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from measuring import Measurement, Options

COUNT, ROWS, FEATURES = 100_000, 5_000, 100
SECONDS_BAR, MEGABYTES_BAR = 60.0, 1024.0
# Nonzeros of a generator; the last stands for dense ones.
SIZES = {"pairs": 2, "triples": 3, "ten nonzeros": 10, "dense": FEATURES}


def measure(options: Options) -> list[Measurement]:
    """Measure every kind of generator; the quick version takes triples alone."""
    rows = []
    for name in ("triples",) if options.quick else SIZES:
        done = subprocess.run(
            [sys.executable, str(Path(__file__)), name], capture_output=True, text=True, check=True
        )
        found = json.loads(done.stdout)
        answer = "exact" if found["lower"] == found["upper"] else f"{found['lower']} to {found['upper']} rows"
        what = f"epsilon and gamma, {COUNT:,} patterns x {ROWS:,} rows, {name} ({answer})"
        rows.append(Measurement(what, found["seconds"], SECONDS_BAR, "s", detail=found))
        rows.append(Measurement(f"  memory of the process, {name}", found["megabytes"], MEGABYTES_BAR, "MB"))
    return rows


def run(name: str) -> dict[str, float]:
    """Draw the patterns of one kind and measure them in this process."""
    import numpy as np

    from thresher.theory.assumptions import measure as measured
    from thresher.theory.patterns import Patterns, patterns_of
    from thresher.theory.sampling import sample_generators

    X = np.random.default_rng(0).standard_normal((ROWS, FEATURES))
    bits = patterns_of(X, sample_generators(FEATURES, COUNT, SIZES[name], SIZES[name])).bits
    began, cpu = time.perf_counter(), time.process_time()
    found = measured(Patterns(bits, ROWS))
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "epsilon": found.epsilon,
        "lower": found.separation.lower,
        "upper": found.separation.upper,
        "patterns": found.separation.patterns,
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
