"""What the machine is that measured a cell: its processor, cores, memory, threads and versions."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

from thresher.memory import machine_memory
from thresher.versions import versions

# The versions that a number can depend on; those of all packages go into the record of the sweep.
DECISIVE = ("python", "numpy", "torch")


def cores() -> int:
    """Count the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@cache
def machine() -> dict[str, Any]:
    """Describe the machine, without naming it.

    Examples
    --------
    >>> sorted(machine())
    ['cores', 'memory_bytes', 'processor', 'system']
    """
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_bytes": machine_memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


@cache
def decisive_versions() -> dict[str, str]:
    """Give the versions that a number can depend on."""
    found = versions()
    return {name: found[name] for name in DECISIVE}


def environment() -> dict[str, Any]:
    """Describe what a cell ran with: threads, versions, processor."""
    import torch

    here = machine()
    return {
        "threads": torch.get_num_threads(),
        **decisive_versions(),
        "processor": here["processor"],
        "cores": here["cores"],
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"
