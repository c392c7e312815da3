"""A flat line: peak memory of a fit against the number of possible weights, 10^7 to 10^11, at 1,000 nonzeros.

    python benchmarks/flat.py                    the table
    python benchmarks/flat.py --figure FOLDER    and flat.png, flat.svg there

The rows are the same all the time, texts of 50 words out of a million by Zipf's law, hashed to more and
more columns; the last fit has a million columns and 100,000 neurons. Two classes are told apart by twenty
words. Beside it stands what a dense network needs that Adam trains: weights, gradients and two moments, four
bytes each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse
from measuring import Measurement, Options
from memory import MEGABYTE, peak_during

ROWS, WORDS, VOCABULARY, TELLING = 20_000, 50, 1_000_000, 20
BUDGET, PASSES = 1_000, 10
BAR = 1.5
# Columns and neurons.
SIZES = ((10**5, 100), (10**6, 100), (10**7, 100), (10**8, 100), (10**9, 100), (10**6, 10**5))


def measure(options: Options) -> list[Measurement]:
    """Fit at every size, each in a process of its own."""
    peaks = {size: peak_of(*size) for size in SIZES}
    detail = {f"{columns:,} x {hidden:,}": peak for (columns, hidden), peak in peaks.items()}
    rows = [
        Measurement(
            f"peak memory beyond the data, {columns:,} columns x {hidden:,} neurons", peak, None, "MB"
        )
        for (columns, hidden), peak in peaks.items()
    ]
    first = peaks[SIZES[0]]
    largest = max(peaks[size] for size in SIZES if size[0] * size[1] == 10**11)
    return [*rows, Measurement("the larger at 10^11 / that at 10^7", largest / first, BAR, detail=detail)]


def peak_of(columns: int, hidden: int) -> float:
    """Fit in a fresh process and give the peak in MB."""
    command = [sys.executable, str(Path(__file__)), "--fit", str(columns), str(hidden)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"the fit of {columns} x {hidden} failed:\n{done.stderr}")
    return float(json.loads(done.stdout)["peak"])


def texts(columns: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Draw texts, hashed to so many columns, and their classes."""
    draw = np.random.default_rng(0)
    words = np.minimum(draw.zipf(1.2, (ROWS, WORDS)), VOCABULARY).astype(np.int64)
    telling = np.arange(5, 5 + TELLING)
    weight = np.where(np.arange(TELLING) % 2, 1.0, -1.0)
    score = ((words[:, :, None] == telling) * weight).sum((1, 2)) + 0.5 * draw.standard_normal(ROWS)
    # Hashed by multiplication with an odd number, modulo 2^63.
    places = ((words * 6364136223846793005) & (2**63 - 1)) % columns
    rows = np.repeat(np.arange(ROWS), WORDS)
    X = scipy.sparse.csr_array((np.ones(ROWS * WORDS), (rows, places.reshape(-1))), shape=(ROWS, columns))
    return X, (score > 0).astype(np.int64)


def fit_here(columns: int, hidden: int) -> dict[str, float]:
    """Fit in this process."""
    from thresher import SparseMLPClassifier

    X, y = texts(columns)
    # What is loaded at first use is not the fit's.
    SparseMLPClassifier(budget=5, hidden=2, max_iter=1, random_state=0).fit(X[:200], y[:200])
    model = SparseMLPClassifier(budget=BUDGET, hidden=hidden, max_iter=PASSES, random_state=0)
    peak = peak_during(lambda: model.fit(X, y))
    return {"peak": peak / MEGABYTE, "accuracy": float(model.score(X, y)), "nonzeros": model.nonzeros_}


def draw_figure(folder: Path, peaks: dict[tuple[int, int], float]) -> None:
    """Draw memory against possible weights, beside that of a dense network."""
    from thresher.report.figures import save
    from thresher.report.style import BLUE, GREY, new_figure, styled

    def drawn():
        figure, (axes,) = new_figure(5.5, 3.6)
        sizes = np.array([columns * hidden for columns, hidden in peaks])
        axes.loglog(sizes, 16 * sizes / MEGABYTE, "--", color=GREY, label="dense, Adam (computed)")
        axes.loglog(sizes, list(peaks.values()), "o-", color=BLUE, label="Thresher (measured)")
        axes.set_xlabel("possible weights of the first layer, columns x neurons")
        axes.set_ylabel("memory beyond the data, MB")
        axes.legend()
        return figure

    folder.mkdir(parents=True, exist_ok=True)
    for path in save(styled(drawn)(), folder, "flat"):
        print(path)


def main() -> None:
    """Print the table, or fit once and print the peak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", nargs=2, type=int, metavar=("COLUMNS", "NEURONS"), help="fit once")
    parser.add_argument("--figure", type=Path, metavar="FOLDER", help="where to draw the figure")
    given = parser.parse_args()
    if given.fit:
        print(json.dumps(fit_here(*given.fit)))
        return
    rows = measure(Options())
    for row in rows:
        bar = "" if row.bar is None else f"  (at most {row.bar:g})"
        print(f"{row.what}: {row.value:.2f} {row.unit}{bar}", flush=True)
    if given.figure:
        draw_figure(given.figure, dict(zip(SIZES, (row.value for row in rows), strict=False)))


if __name__ == "__main__":
    main()
