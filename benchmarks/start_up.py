"""How long `thresher --help` takes, against importing what it is written with."""

from __future__ import annotations

import subprocess
import sys

from measuring import Measurement, Options, medians

HELP = [sys.executable, "-m", "thresher", "--help"]
PEER = [sys.executable, "-c", "import typer, rich"]


def measure(options: Options) -> list[Measurement]:
    """Start both in fresh processes, in turns."""
    works = {"help": lambda: _run(HELP), "peer": lambda: _run(PEER)}
    found = medians(works, max(options.repeats, 5), warmups=2)
    ratio = found["help"] / found["peer"]
    return [Measurement("thresher --help, against importing typer and rich", ratio, 1.5, detail=found)]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
