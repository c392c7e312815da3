"""How much memory there is."""

from __future__ import annotations

import os


def machine_memory() -> int | None:
    """Give the bytes of memory of this machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
