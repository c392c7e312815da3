"""How much memory there is, and giving back what is no longer in use."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any


def machine_memory() -> int | None:
    """Give the bytes of memory of this machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


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
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
