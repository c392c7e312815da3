"""Programs of others that compile, simulate and synthesise: found, run, and named with what brings them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from thresher.errors import MissingToolError, ThresherError

# What brings each program on Debian and its kin.
PACKAGES = {
    "gcc": "gcc",
    "avr-gcc": "gcc-avr and avr-libc",
    "avr-nm": "binutils-avr",
    "avr-size": "binutils-avr",
    "simavr": "simavr and libsimavr-dev",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi",
    "arm-none-eabi-size": "binutils-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
    "yosys": "yosys",
    "nextpnr-ice40": "nextpnr-ice40",
    "iverilog": "iverilog",
    "vvp": "iverilog",
}


class ToolError(ThresherError, RuntimeError):
    """A program that failed at what it was asked for."""


def missing(programs: Sequence[str]) -> list[str]:
    """Return those programs that are not installed."""
    return [program for program in programs if shutil.which(program) is None]


def need(programs: Sequence[str], purpose: str) -> None:
    """Refuse to go on where a program is missing, and say what brings it."""
    absent = missing(programs)
    if absent:
        packages = sorted({PACKAGES[program] for program in absent})
        raise MissingToolError(
            f"{purpose} needs {', '.join(absent)}, which is not installed here: the Debian package "
            f"{', '.join(packages)} brings it (apt-get install)."
        )


def run(
    command: Sequence[str | Path], folder: Path, *, given: bytes | None = None, ends: Sequence[int] = (0,)
) -> tuple[bytes, str]:
    """Run a program in a folder; return what it wrote to standard output and to standard error.

    Parameters
    ----------
    command : sequence of str or path
    folder : path
    given : bytes, optional
        Standard input.
    ends : sequence of int
        Exit codes that are no failure.
    """
    done = subprocess.run(list(map(str, command)), cwd=folder, input=given, capture_output=True, check=False)
    told = done.stderr.decode(errors="replace")
    if done.returncode not in ends:
        last = "\n".join((told or done.stdout.decode(errors="replace")).strip().splitlines()[-8:])
        raise ToolError(f"{command[0]} ended with {done.returncode}:\n{last}")
    return done.stdout, told
