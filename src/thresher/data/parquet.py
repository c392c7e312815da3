"""Parquet files of numbers, a row group at a time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.columns import did_you_mean
from thresher.data.room import Room
from thresher.data.shards import Shard, kept, reading
from thresher.errors import DataError, MissingExtraError

# Columns that are written into the rows at once: 16 numbers are a line of the processor's cache or two.
TOGETHER = 16


class Footers:
    """What files say of themselves, kept for the one that was read last.

    The footer of a file tells of every column of every row group: with many of both, those of all files take
    more memory than the rows that are held.
    """

    def __init__(self) -> None:
        self._last: tuple[Path, Any] | None = None

    def of(self, path: Path) -> Any:
        """Give what a file says of itself."""
        import pyarrow.parquet as pq

        last = self._last
        if last is None or last[0] != path:
            # The one before goes first, so that both are never there.
            last = self._last = None
            last = self._last = (path, pq.read_metadata(path))
        return last[1]


def open_parquet(
    path: Path, target: Sequence[str], columns: Sequence[str] | None, room: Room, footers: Footers
) -> Shard:
    """Open a file, of which all columns but the targets are inputs, or those that are named.

    Parameters
    ----------
    path : Path
    target : sequence of str
        Names of the targets; with a single one they are an array of one dimension.
    columns : sequence of str, optional
    room : Room
        Where blocks are read into.
    footers : Footers
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: to read Parquet the package pyarrow is needed, and is not installed: "
            "pip install 'thresher[parquet]'."
        ) from error
    with reading(path), pq.ParquetFile(path, metadata=footers.of(path)) as file:
        schema, metadata = file.schema_arrow, file.metadata
        groups = tuple(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
        wanted = [name for name in schema.names if name not in target] if columns is None else list(columns)
        # All files of a folder have the same names.
        wanted = list(map(sys.intern, wanted))
        for name in (*target, *wanted):
            if schema.names.count(name) != 1:
                raise DataError(
                    f"{path} holds {schema.names.count(name) or 'no'} columns called {name!r}, but one is "
                    f"needed{did_you_mean(name, schema.names)}."
                )
        types = [_number_type(path, name, schema.field(name).type) for name in wanted]
        labels = [_label(path, name, file.read(columns=[name]).column(name)) for name in target]
    dtype = kept(np.result_type(*types), path) if types else np.dtype(np.float64)
    # What is read from now on must not keep the footer.
    del file, metadata

    def read(number: int, chosen: np.ndarray | None) -> np.ndarray:
        names = wanted if chosen is None else [wanted[place] for place in chosen]
        metadata = footers.of(path)
        if number >= metadata.num_row_groups:
            return np.empty((0, len(names)), dtype)
        with pq.ParquetFile(path, metadata=metadata) as file:
            table = file.read_row_group(number, columns=names, use_threads=False)
        out = room.empty(table.num_rows, len(names), dtype)
        for first in range(0, len(names), TOGETHER):
            part = names[first : first + TOGETHER]
            before = sum(groups[:number])
            out[:, first : first + len(part)] = np.stack(
                [_complete(path, name, table.column(name), before).to_numpy() for name in part]
            ).T
        # Its own store of memory grows to several times what is read.
        del table
        pa.default_memory_pool().release_unused()
        return out

    answer = None if not labels else labels[0] if len(labels) == 1 else np.column_stack(labels)
    return Shard(path, groups, len(wanted), dtype, read, answer, tuple(wanted))


def _number_type(path: Path, name: str, kind: Any) -> np.dtype[Any]:
    import pyarrow as pa

    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"column {name!r} of {path} holds values of type {kind}, but a network computes with numbers. "
            "Name the columns to read, or encode it before."
        )
    return np.dtype(kind.to_pandas_dtype())


def _complete(path: Path, name: str, column: Any, before: int) -> Any:
    """Refuse a column in which values are missing, naming the first."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(
            f"row {before + row + 1:,} of {path} holds nothing in column {name!r}, but every value is "
            "needed: drop that row, or fill it in."
        )
    return column


def _label(path: Path, name: str, column: Any) -> np.ndarray:
    """Read a target: numbers, or labels as text."""
    import pyarrow as pa

    column, kind = _complete(path, name, column, 0), column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.to_numpy()
    if not (pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"the target {name!r} of {path} is of type {kind}, but numbers or text are needed.")
    # Every text is made once, not once for each row.
    coded = column.combine_chunks()
    coded = coded if pa.types.is_dictionary(kind) else coded.dictionary_encode()
    return np.array(coded.dictionary.to_pylist())[coded.indices.to_numpy()]
