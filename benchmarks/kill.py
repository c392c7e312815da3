"""Kill fits at random moments, let them go on from their checkpoints, and compare the bits at the end.

    python benchmarks/kill.py                          every kind of rows, 20 kills each
    python benchmarks/kill.py --kinds sparse --kills 5

A life of a fit is a process of its own, or two that share the rows ("ranks"), of which one is killed at a
time. It ends by SIGKILL a random time after its first checkpoint, and the next one goes on; a fit that ends
first is compared with one that nobody killed, and another begins.
"""

from __future__ import annotations

import argparse
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from thresher import SparseMLPClassifier
from thresher.data import open_rows
from thresher.objective.ranks import meeting

ROWS, COLUMNS, CLASSES = 3_000, 100, 4
# Processes of a fit by ranks, and the seconds within which those that are left end with one that is killed.
COUNT, ENDS = 2, 60.0


def main() -> int:
    """Kill fits to rows of every kind, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}; all by default")
    parser.add_argument("--kills", type=int, default=20, help="for each kind (default 20)")
    parser.add_argument("--every", default="20", help="steps or time between checkpoints (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--fit", metavar="PATH", help=argparse.SUPPRESS)
    parser.add_argument("--rank", nargs=2, metavar=("NUMBER", "ADDRESS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    every = int(chosen.every) if chosen.every.isdecimal() else chosen.every
    if chosen.fit is not None and chosen.rank is None:
        print(fitted(chosen.kinds, chosen.fit, every))
        return 0
    if chosen.fit is not None:
        number, address = int(chosen.rank[0]), chosen.rank[1]
        with meeting(address, number, COUNT):
            print(fitted(chosen.kinds, chosen.fit, every, slice(number, None, COUNT)))
        return 0
    wrong = sum(killed(kind, chosen.kills, chosen.every, chosen.seed) for kind in chosen.kinds.split(","))
    return 1 if wrong else 0


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Draw counts, and classes that depend on a few of them."""
    draw = np.random.default_rng(0)
    X = draw.poisson(0.3, (ROWS, COLUMNS))
    sums = np.stack([X[:, 3 * one] - X[:, 3 * one + 1] * X[:, 3 * one + 2] for one in range(CLASSES)], 1)
    return X, (sums + 0.3 * draw.standard_normal(sums.shape)).argmax(1)


def memory_map(X: np.ndarray) -> np.ndarray:
    """Write rows to a file and map it."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, X.astype(np.float64))
        file.flush()
        found: np.ndarray = np.load(file.name, mmap_mode="r")
        return found


def on_disk(X: np.ndarray) -> Any:
    """Write rows to a folder of shards, which is gone with the process, and open it."""
    SHARDS.append(tempfile.TemporaryDirectory())
    for number, part in enumerate(np.array_split(X.astype(np.float64), 5)):
        np.save(Path(SHARDS[-1].name, f"{number}.npy"), part)
    return open_rows(SHARDS[-1].name)


# Folders that last as long as the process.
SHARDS: list[tempfile.TemporaryDirectory[str]] = []
KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda X: X.astype(np.float64),
    "integers": lambda X: X.astype(np.int16),
    "map": memory_map,
    "disk": on_disk,
    "sparse": lambda X: scipy.sparse.csr_array(X.astype(np.float32)),
    "ranks": lambda X: X.astype(np.float64),
}


def fitted(kind: str, path: str | None, every: str | int, part: slice = slice(None)) -> str:
    """Fit to some rows, and give a digest of the network and of its history, the seconds left out."""
    X, y = (every_row[part] for every_row in rows())
    model = SparseMLPClassifier(
        300,
        (60, 20),
        max_iter=12,
        random_state=0,
        memory_limit="500KB",
        checkpoint=path,
        checkpoint_every=every,
    ).fit(KINDS[kind](X), y)
    parts = [layer.weights.toarray().tobytes() + layer.bias.tobytes() for layer in model.network_.layers]
    told = [{name: one for name, one in record.items() if name != "seconds"} for record in model.history_]
    return sha256(b"".join([*parts, repr(told).encode()])).hexdigest()


def killed(kind: str, kills: int, every: str, seed: int) -> int:
    """Kill fits to rows of a kind so many times; gives how many ended with other bits."""
    moments, wrong, done, fits, slowest = random.Random(seed), 0, 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.checkpoint"
        began = time.monotonic()
        truth = life(kind, path, every)
        print(f"{kind}: {truth.seconds:.1f} s from the first checkpoint to the end", flush=True)
        path.unlink()
        while done < kills:
            found = life(kind, path, every, moments.uniform(0, truth.seconds / 2), done)
            slowest = max(slowest, found.outlived)
            if found.told is None:
                done += 1
                continue
            fits, wrong = fits + 1, wrong + (found.told != truth.told)
            path.unlink()
        # The last one, which was killed, is let to its end.
        found = life(kind, path, every)
        fits, wrong = fits + 1, wrong + (found.told != truth.told)
    seconds = time.monotonic() - began
    outlived = f"; the rank that was left ended within {slowest:.1f} s" if kind == "ranks" else ""
    what = f"{kind}: killed {done} times; of {fits} fits {wrong} ended with other bits{outlived}"
    print(f"{what} ({seconds:.0f} s)", flush=True)
    return wrong + (slowest > ENDS)


@dataclass(frozen=True)
class Life:
    """What came of a fit.

    Attributes
    ----------
    told : str or None
        What it printed, the same for each of its processes; None where it did not come to its end.
    seconds : float
        From its first checkpoint on.
    outlived : float
        Seconds by which another process outlived the one that was killed.
    """

    told: str | None
    seconds: float
    outlived: float = 0.0


def life(kind: str, path: Path, every: str, wait: float | None = None, victim: int = 0) -> Life:
    """Fit in processes of their own, of which one is killed a while after the first checkpoint, if `wait`."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    processes = started(kind, path, every)
    while processes[0].poll() is None and (not path.exists() or path.stat().st_mtime_ns == before):
        time.sleep(0.005)
    began, outlived = time.monotonic(), 0.0
    if wait is not None:
        try:
            processes[0].wait(wait)
        except subprocess.TimeoutExpired:
            processes[victim % len(processes)].kill()
            killed_at = time.monotonic()
            for process in processes:
                process.wait(2 * ENDS)
            outlived = time.monotonic() - killed_at
    told = {process.communicate()[0].strip() for process in processes}
    ended = all(process.returncode == 0 for process in processes)
    seconds = time.monotonic() - began
    return Life(" and ".join(sorted(told)) if ended else None, seconds, outlived)


def started(kind: str, path: Path, every: str) -> list[subprocess.Popen[str]]:
    """Start the processes of a fit."""
    command = [sys.executable, __file__, "--kinds", kind, "--every", every, "--fit", str(path)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    commands = [[*command, "--rank", str(number), address] for number in range(COUNT)]
    return [
        # What a rank says of one that is killed is no news here.
        subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for one in (commands if kind == "ranks" else [command])
    ]


if __name__ == "__main__":
    sys.exit(main())
