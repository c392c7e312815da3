"""How many threads torch may use, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Compute in one thread: small products gain nothing from more, and lose much on a busy machine."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
