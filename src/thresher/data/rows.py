"""Rows on disk: a table of numbers that is read a block at a time, ahead of use, and never whole.

A source looks like an array of which rows are taken: `shape`, `dtype`, slices of rows, rows by number. What
is read is kept for a while in blocks, and one thread reads the block that comes next while the last is used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse

from thresher.data.room import Room
from thresher.data.shards import Shard
from thresher.errors import DataError
from thresher.memory import give_back

# Bytes of the rows that are shuffled among each other. Blocks come in an order of their own, so that rows
# that were written together meet rows from all over the data; twice as much is held, to read ahead.
SHUFFLED_BYTES = 6 * 2**20
# Blocks that are shuffled among each other where each is larger than that.
LEAST_SHUFFLED = 2
# Bytes that are read until what the heap holds and nobody uses goes back to the system: a few milliseconds,
# while so much is read in fifty or more.
TIDIED_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that are read at once.

    Attributes
    ----------
    shard : Shard
    number : int
        Which block of the shard it is.
    before : int
        Rows of the shard before it.
    rows : int
    picked : int64 array, ascending, optional
        Which of its rows count; all by default.
    """

    shard: Shard
    number: int
    before: int
    rows: int
    picked: np.ndarray | None = None


class OnDisk:
    """Rows of numbers in one or more files; :func:`thresher.data.open_rows` makes one.

    Attributes
    ----------
    shape : pair of int
    dtype : dtype
    columns : tuple of str or None
        Names of the columns, where the files know them.
    target : array of shape (n,) or (n, targets), or None
        What the rows are labelled with, in memory.
    sparse : bool
        Whether rows are CSR arrays.
    """

    ndim = 2

    def __init__(
        self,
        blocks: Sequence[Block],
        width: int,
        dtype: np.dtype[Any],
        columns: tuple[str, ...] | None = None,
        target: np.ndarray | None = None,
        chosen: np.ndarray | None = None,
        room: Room | None = None,
    ) -> None:
        self.blocks, self.dtype, self.columns, self.target = tuple(blocks), dtype, columns, target
        # Numbers of the columns that are read, where it is not all of them.
        self.chosen = chosen
        self._room = room or Room()
        self.starts = [0, *accumulate(block.rows for block in blocks)]
        self.shape = (self.starts[-1], width)
        self.sparse = self.blocks[0].shard.sparse
        each = dtype.itemsize * self.numbers_each
        if self.sparse:
            each += 8 * self.numbers_each
        self._shuffled_rows = max(1, SHUFFLED_BYTES // max(1, each))
        largest = max(block.rows for block in self.blocks)
        self._tidied_rows = max(1, TIDIED_BYTES // max(1, each))
        self._read_rows = 0
        self._held_rows = 2 * (max(self._shuffled_rows, (LEAST_SHUFFLED - 1) * largest) + largest)
        self._sound: dict[int, float] = {}
        # The blocks that are shuffled together in the order drawn last, and the buffer that each is in.
        self._buffers: list[list[int]] = []
        self._buffer_of: dict[int, int] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        kind = "sparse rows" if self.sparse else "rows"
        return f"<{self.shape[0]:,} {kind} of {self.shape[1]:,} {self.dtype} on disk>"

    @property
    def _held(self) -> OrderedDict[int, Future[Any]]:
        return self._room.held(self)

    @property
    def nnz(self) -> int:
        """The numbers that sparse rows hold, an estimate for some of the rows or columns."""
        return self.shape[0] * self.numbers_each

    @property
    def numbers_each(self) -> int:
        """The numbers that a row holds, in the mean."""
        if not self.blocks[0].shard.sparse:
            return self.shape[1]
        shards = {id(block.shard): block.shard for block in self.blocks}.values()
        return max(1, -(-sum(one.nnz for one in shards) // sum(sum(one.rows) for one in shards)))

    def __getitem__(self, key: Any) -> Any:
        """Read rows: a slice, or an array of row numbers; with a slice after it, of some columns only."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            if step == 1:
                return self._slice(first, max(first, last), columns)
            rows = np.arange(first, last, step)
        return self._rows(np.asarray(rows), columns)

    def take(self, rows: np.ndarray) -> OnDisk:
        """Give a source of some of the rows, ascending, without reading them."""
        edges = np.searchsorted(rows, self.starts)
        blocks = []
        for block, start, (first, last) in zip(self.blocks, self.starts, pairwise(edges), strict=False):
            if last > first:
                picked = rows[first:last] - start
                picked = picked if block.picked is None else block.picked[picked]
                blocks.append(replace(block, rows=int(last - first), picked=picked))
        target = None if self.target is None else self.target[rows]
        return OnDisk(blocks, self.shape[1], self.dtype, self.columns, target, self.chosen, self._room)

    def only(self, columns: np.ndarray) -> OnDisk:
        """Give a source of some of the columns, ascending, without reading them."""
        names = None if self.columns is None else tuple(self.columns[place] for place in columns)
        chosen = columns if self.chosen is None else self.chosen[columns]
        return OnDisk(self.blocks, len(columns), self.dtype, names, self.target, chosen, self._room)

    def order(self, random: np.random.Generator) -> np.ndarray:  # (n,)
        """Draw an order of all rows in which reading them is quick.

        Blocks are shuffled, and as many as make up a buffer are read together; their rows are shuffled among
        each other. The blocks of the next buffer are read while those of the last one are used.
        """
        buffers: list[list[int]] = [[]]
        filled = 0
        for block in random.permutation(len(self.blocks)).tolist():
            if filled >= self._shuffled_rows and len(buffers[-1]) >= LEAST_SHUFFLED:
                buffers.append([])
                filled = 0
            buffers[-1].append(block)
            filled += self.blocks[block].rows
        self._buffers = buffers
        self._buffer_of = {block: number for number, buffer in enumerate(buffers) for block in buffer}
        order = np.empty(len(self), dtype=np.int64)
        start = 0
        for buffer in buffers:
            rows = np.concatenate([np.arange(*self.starts[block : block + 2]) for block in buffer])
            order[start : start + len(rows)] = random.permutation(rows)
            start += len(rows)
        return order

    def some(self, count: int, random: np.random.Generator) -> np.ndarray:  # (count,)
        """Draw numbers of rows, ascending, from a few blocks that lie all over the data."""
        blocks = random.permutation(len(self.blocks))
        rows = np.cumsum([self.blocks[block].rows for block in blocks])
        needed = max(LEAST_SHUFFLED, int(np.searchsorted(rows, max(count, self._shuffled_rows))) + 1)
        among = np.concatenate([np.arange(*self.starts[block : block + 2]) for block in blocks[:needed]])
        return np.sort(random.choice(among, count, replace=False))

    def largest(self) -> float:
        """Give the largest size of all numbers; reads what was not read yet, and refuses NaN and infinity."""
        for place in range(len(self.blocks)):
            if place not in self._sound:
                self._block(place, place + 1)
        return max(self._sound.values())

    def chunks(self) -> Iterator[tuple[int, Any]]:
        """Read all rows in order, a block at a time, each with the number of its first row."""
        for place, start in enumerate(self.starts[:-1]):
            yield start, self._block(place, place + 1)

    def _slice(self, first: int, last: int, columns: Any) -> Any:
        place = min(bisect_right(self.starts, first), len(self.blocks)) - 1
        parts: list[Any] = []
        while not parts or (place < len(self.blocks) and self.starts[place] < last):
            start = self.starts[place]
            here = slice(max(0, first - start), last - start)
            parts.append(self._block(place, place + 1)[here, columns])
            place += 1
        if len(parts) == 1 or self.sparse:
            return stacked(parts)
        out = self._room.empty(sum(map(len, parts)), parts[0].shape[1], self.dtype)
        return np.concatenate(parts, out=out)

    def _rows(self, rows: np.ndarray, columns: Any) -> Any:
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        if not len(rows):
            return self._slice(0, 0, columns)
        place = np.searchsorted(self.starts, rows, side="right") - 1
        by_block = np.argsort(place, kind="stable")
        needed, firsts = np.unique(place[by_block], return_index=True)
        edges = [*firsts.tolist(), len(rows)]
        following = [*needed.tolist()[1:], None]
        # The rows of a minibatch come from one buffer or two; what else asks for rows does so in their order.
        drawn = sum(self.blocks[block].rows for block in needed) <= self._held_rows
        parts, out = [], None
        for number, (block, after) in enumerate(zip(needed.tolist(), following, strict=True)):
            chosen = by_block[edges[number] : edges[number + 1]]
            part = self._block(block, after)[rows[chosen] - self.starts[block]]
            part = part if columns == slice(None) else part[:, columns]
            if self.sparse:
                parts.append(part)
                continue
            if out is None:
                out = self._room.empty(len(rows), part.shape[1], self.dtype)
            out[chosen] = part
        if drawn and self._buffers:
            last = max(self._buffer_of[block] for block in needed.tolist())
            for block in chain.from_iterable(self._buffers[last : last + 2]):
                self._wanted(block)
        if not self.sparse:
            return out
        back = np.empty(len(rows), dtype=np.int64)
        back[by_block] = np.arange(len(rows))
        return stacked(parts)[back]

    def _block(self, place: int, after: int | None) -> Any:
        """Give the rows of a block, and have one that will be wanted after it read in the meantime."""
        reading = self._wanted(place)
        if after is not None:
            # After the last block another pass begins.
            self._wanted(after % len(self.blocks))
        try:
            return reading.result()
        except BaseException:
            self._held.pop(place, None)
            raise

    def _wanted(self, place: int) -> Future[Any]:
        """Ask for a block unless it is there, and let go of those that were not asked for longest."""
        known = self._held.get(place)
        # What could not be read ahead is tried again once it is wanted.
        if known is not None and not (known.done() and known.exception() is not None):
            self._held.move_to_end(place)
            return known
        reading = self._held[place] = self._room.thread.submit(self._read, place)
        rows = sum(self.blocks[held].rows for held in self._held)
        # Until an order was drawn, rows are read one block after the other: that and the next are enough.
        most = self._held_rows if self._buffers else 0
        while rows > most and len(self._held) > 2:
            gone, future = self._held.popitem(last=False)
            future.cancel()
            rows -= self.blocks[gone].rows
        return reading

    def _read(self, place: int) -> Any:
        """Read a block, and refuse it the first time if it holds what is not a finite number."""
        block = self.blocks[place]
        self._read_rows += block.rows
        if self._read_rows >= self._tidied_rows:
            self._read_rows = 0
            give_back()
        values = block.shard.read(block.number, self.chosen)
        if self.sparse:
            values = in_order(values, self.shape[1], self.chosen)
        if block.picked is not None:
            values = values[block.picked]
        if values.dtype != self.dtype:
            values = values.astype(self.dtype)
        if place not in self._sound:
            numbers = values.data if self.sparse else values
            size = max(float(numbers.max()), -float(numbers.min())) if numbers.size else 0.0
            if not np.isfinite(size):
                self._refuse(block, values)
            self._sound[place] = size
        return values

    def _refuse(self, block: Block, values: Any) -> None:
        """Name the first number that is none."""
        if self.sparse:
            entry = int(np.flatnonzero(~np.isfinite(values.data))[0])
            row, column = int(np.searchsorted(values.indptr, entry, side="right")) - 1, values.indices[entry]
            value = values.data[entry]
        else:
            row, column = (int(one[0]) for one in np.nonzero(~np.isfinite(values)))
            value = values[row, column]
        row = row if block.picked is None else int(block.picked[row])
        name = int(column) if self.columns is None else self.columns[column]
        raise DataError(
            f"row {block.before + row + 1:,} of {block.shard.path} holds {value} in column {name!r}, but "
            "finite numbers are needed: drop that row, or fill it in."
        )


def is_sparse(X: Any) -> bool:
    """Say whether rows come as sparse ones, from memory or from disk."""
    return scipy.sparse.issparse(X) or (isinstance(X, OnDisk) and X.sparse)


def stacked(parts: list[Any]) -> Any:
    """Put rows on top of each other."""
    if len(parts) == 1:
        return parts[0]
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def in_order(values: scipy.sparse.csr_array, width: int, chosen: np.ndarray | None) -> scipy.sparse.csr_array:
    """Give sparse rows so many columns, or those chosen, with every place written once, in order."""
    if chosen is not None:
        wide = scipy.sparse.csr_array(values, shape=(values.shape[0], max(values.shape[1], chosen[-1] + 1)))
        values = wide[:, chosen]
    elif values.shape[1] != width:
        parts = values.data, values.indices, values.indptr
        values = scipy.sparse.csr_array(parts, shape=(values.shape[0], width))
    values.sum_duplicates()
    return values
