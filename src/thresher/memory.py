"""How much memory there is, and giving back what is no longer in use."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# What `mallopt` sets, as glibc numbers it: bytes at the top of the heap that are given back, and bytes of one
# piece of memory from which on it comes from the system and returns there.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
# Where neither was ever set, the second begins at the least of these and may rise to the highest.
LEAST_MAPPED, MOST_MAPPED = 2**17, 2**25


def machine_memory() -> int | None:
    """Give the bytes of memory of this machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


@contextmanager
def kept_pages() -> Iterator[None]:
    """Let tensors reuse the memory of those before them, where the environment forbids it.

    Dask has its workers give back every free page at once (MALLOC_TRIM_THRESHOLD_), so that each temporary
    tensor costs new pages, which take longer than what is computed in them.
    """
    given, settings = os.environ.get("MALLOC_TRIM_THRESHOLD_", ""), _settings()
    if settings is None or not given.isdecimal():
        yield
        return
    settings(MMAP_THRESHOLD, MOST_MAPPED)
    settings(TRIM_THRESHOLD, 2 * MOST_MAPPED)
    try:
        yield
    finally:
        settings(MMAP_THRESHOLD, LEAST_MAPPED)
        settings(TRIM_THRESHOLD, min(int(given), MOST_MAPPED))
        give_back()


def own_pages(size: int) -> mmap.mmap:
    """Give zeros in memory of their own, which goes back to the system as soon as it is let go."""
    if hasattr(mmap, "MAP_PRIVATE"):
        # Pages that could be shared with other processes take twice as long to come.
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)


def give_back() -> None:
    """Give the system what the heap holds and nobody uses, where the C library is able to.

    Small things that settle in the gaps that large tensors leave keep these from being used again, so the
    heap grows by every large tensor that no longer fits, while most of it is free.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    """Find glibc's `malloc_trim`; None where the system has another C library."""
    return _of_glibc("malloc_trim")


@cache
def _settings() -> Any:
    """Find glibc's `mallopt`; None where the system has another C library."""
    return _of_glibc("mallopt")


def _of_glibc(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
