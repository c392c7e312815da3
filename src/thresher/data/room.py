"""Where blocks of rows are read: by one thread, into memory that is used again."""

from __future__ import annotations

import mmap
import weakref
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from thresher.memory import own_pages

# Bytes of the pieces that are kept for later, and of the smallest piece that is worth it.
SPARE_BYTES, LEAST_BYTES = 4 * 2**20, 2**17


class Room:
    """A thread that reads, and memory in pieces of its own, of which a few are kept for what comes next.

    Blocks come and go by the thousand: in the heap they would leave gaps, and new pages from the system cost
    several times as much as what is read into them.

    Attributes
    ----------
    thread : ThreadPoolExecutor
        Everything is read in it, since what a thread has freed is kept for that thread.
    """

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "rows")
        self._held: OrderedDict[int, Future[Any]] = OrderedDict()
        self._source: Callable[[], object] = object
        self._spare: list[mmap.mmap] = []

    def held(self, source: object) -> OrderedDict[int, Future[Any]]:
        """Give the blocks of a source that are there, read or being read, by their numbers.

        Some rows or columns of a source are sources of their own, and are read in its place: only the one
        that was read last keeps blocks.
        """
        if self._source() is not source:
            self._source, self._held = weakref.ref(source), OrderedDict()
        return self._held

    def empty(self, rows: int, width: int, dtype: np.dtype[Any]) -> np.ndarray:  # (rows, width)
        """Make room for a block. Its memory is free again when neither it nor a part of it is in use."""
        size = rows * width * dtype.itemsize
        if size < LEAST_BYTES:
            return np.empty((rows, width), dtype)
        memory = self._piece(size)
        # Whatever shows a part of it refers to this array.
        whole = np.frombuffer(memory, dtype, rows * width)
        weakref.finalize(whole, self._keep, memory).atexit = False
        return whole.reshape(rows, width)

    def _piece(self, size: int) -> mmap.mmap:
        for memory in list(self._spare):
            if size <= len(memory) <= 2 * size:
                try:
                    self._spare.remove(memory)
                except ValueError:
                    # Another thread took it.
                    continue
                return memory
        return own_pages(size)

    def _keep(self, memory: mmap.mmap) -> None:
        if sum(map(len, self._spare)) + len(memory) <= SPARE_BYTES:
            self._spare.append(memory)
