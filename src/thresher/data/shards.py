"""Files of rows: what one holds is told on opening, and its rows are read a block at a time.

`.npy`, `.npz` and svmlight files; :mod:`thresher.data.parquet` has Parquet.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from thresher.data.arrays import CSR_PARTS
from thresher.data.room import Room
from thresher.errors import DataError, DataFileError, ThresherError

# Bytes of a block where a file can be read from anywhere.
BLOCK_BYTES = 2**20

# Types of numbers that are read as they are; others become float64.
KEPT = frozenset(("float64", "float32", "float16", "uint8", "int8", "int16", "int32", "int64", "bool"))


@dataclass(frozen=True, eq=False)
class Shard:
    """One file of rows.

    Attributes
    ----------
    path : Path
    rows : tuple of int
        Rows of each block.
    width : int
        Columns, without the target.
    dtype : dtype
        What its numbers are read as.
    reader : callable
        Reads a block by its number: (rows, width) dense or CSR, or some columns of it.
    target : array of shape (n,) or (n, targets), or None
    names : tuple of str or None
        Names of the columns.
    sparse : bool
        Whether blocks are CSR arrays.
    nnz : int
        The numbers in sparse rows.
    """

    path: Path
    rows: tuple[int, ...]
    width: int
    dtype: np.dtype[Any]
    reader: Callable[[int, np.ndarray | None], Any]
    target: np.ndarray | None = None
    names: tuple[str, ...] | None = None
    sparse: bool = False
    nnz: int = 0

    def read(self, number: int, columns: np.ndarray | None = None) -> Any:
        """Read a block, of all columns or those chosen."""
        with reading(self.path):
            values = self.reader(number, columns)
        if values.shape[0] != self.rows[number]:
            raise DataFileError(
                f"{self.path} is cut: block {number + 1} holds {values.shape[0]:,} rows, but "
                f"{self.rows[number]:,} were there when it was opened. Write it again."
            )
        return values


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file that cannot be read."""
    try:
        yield
    except ThresherError:
        raise
    except FileNotFoundError as error:
        raise DataFileError(f"{path} is missing: no such file. Put it back, or open the others.") from error
    except OSError as error:
        raise DataFileError(f"{path} cannot be read ({error.strerror or error}).") from error
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, OverflowError) as error:
        raise DataFileError(f"{path} is damaged, or not what its ending says: {error}") from error


def kept(dtype: np.dtype[Any], path: Path) -> np.dtype[Any]:
    """Give the type that numbers of a type are read as, and refuse what is no number."""
    if dtype.kind not in "biuf":
        raise DataError(f"{path} holds values of type {dtype}, but a network computes with numbers.")
    return dtype.newbyteorder("=") if dtype.name in KEPT else np.dtype(np.float64)


def open_npy(path: Path, target: str | int | None, room: Room) -> Shard:
    """Open an array of two dimensions, of which one column may be the target."""
    with reading(path):
        # The map tells where the numbers begin, and refuses a file that is cut. Rows are read, not mapped:
        # what is mapped counts as resident until memory is short.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.memmap):
            raise DataFileError(f"{path} holds no array.")
    if array.ndim != 2 or not array.flags.c_contiguous:
        raise DataFileError(
            f"{path} holds an array of shape {array.shape}{' in Fortran order' * (array.ndim == 2)}, but "
            "rows that stand one after the other are needed: save np.ascontiguousarray(X)."
        )
    (count, width), raw, offset = array.shape, array.dtype, array.offset
    dtype, each = kept(raw, path), width * raw.itemsize
    del array
    step = max(1, BLOCK_BYTES // max(1, each))

    def read_whole(number: int) -> np.ndarray:
        values = room.empty(min(step, count - number * step), width, raw)
        with path.open("rb", buffering=0) as file:
            file.seek(offset + number * step * each)
            read = file.readinto(values.data) or 0
        return values[: read // each]

    rows = tuple(min(step, count - first) for first in range(0, count, step)) if width else ()
    if target is None:

        def read(number: int, columns: np.ndarray | None) -> np.ndarray:
            values = read_whole(number)
            return values if columns is None else values[:, columns]

        return Shard(path, rows, width, dtype, read)
    place = _column(path, target, width)
    inputs = np.delete(np.arange(width), place)
    # Columns beside a target at the edge are a part of the block and not a copy.
    every = {0: slice(1, None), width - 1: slice(width - 1)}.get(place, inputs)

    def read_inputs(number: int, columns: np.ndarray | None) -> np.ndarray:
        return read_whole(number)[:, every if columns is None else inputs[columns]]

    with reading(path):
        parts = [read_whole(number)[:, place].copy() for number in range(len(rows))]
    labels = np.concatenate(parts) if parts else np.empty(0, raw)
    return Shard(path, rows, width - 1, dtype, read_inputs, labels)


def _column(path: Path, target: str | int, width: int) -> int:
    """Give the number of the column that is the target."""
    try:
        place = int(target)
    except (TypeError, ValueError):
        place = width
    if not -width <= place < width:
        raise DataError(
            f"target={target!r}, but the {width:,} columns of {path} have no names: give the number of one, "
            "such as 0 or -1."
        )
    return place % width


def open_npz(path: Path, target: str | int | None) -> Shard:
    """Open X, or the parts of a CSR array, beside which the target may stand."""
    with reading(path), zipfile.ZipFile(path) as archive:
        held = {name.removesuffix(".npy"): _header(archive, name) for name in archive.namelist()}
        parts = held.keys() >= CSR_PARTS
        if target is not None and target not in held:
            raise DataError(f"target={target!r}, but {path} holds {', '.join(held) or 'nothing'}.")
        wanted = [*(["shape"] if parts else []), *([] if target is None else [str(target)])]
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            small = {name: arrays[name] for name in wanted}
    shape = tuple(small["shape"].tolist()) if parts else held.get("X", ((), None))[0]
    if len(shape) != 2:
        raise DataFileError(
            f"{path} holds {', '.join(held) or 'nothing'}, but rows are X of two dimensions, or the parts of "
            "a CSR array: data, indices, indptr and shape."
        )
    labels = None if target is None else small[str(target)]
    if labels is not None and (labels.ndim not in (1, 2) or len(labels) != shape[0]):
        raise DataFileError(f"{path} holds {target} of shape {labels.shape}, but it has {shape[0]:,} rows.")

    def read_parts(number: int, columns: np.ndarray | None) -> scipy.sparse.csr_array:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
        X = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
        X.check_format(full_check=True)
        return X

    def read_dense(number: int, columns: np.ndarray | None) -> np.ndarray:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            X = arrays["X"]
        return X if columns is None else X[:, columns]

    if parts:
        (nnz, *_), raw = held["data"]
        dtype = kept(raw, path)
        return Shard(path, (shape[0],), shape[1], dtype, read_parts, labels, sparse=True, nnz=nnz)
    return Shard(path, (shape[0],), shape[1], kept(held["X"][1], path), read_dense, labels)


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], Any]:
    """Read shape and type of an array without reading the array."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        of_version = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, _, dtype = of_version[version != (1, 0)](file)
    return shape, dtype


def open_svmlight(path: Path, labelled: bool) -> Shard:
    """Open lines of a label and index:value pairs; all of them are read once to find where rows begin."""
    starts, width, nnz = [0], 0, 0
    rows, labels = list[int](), list[np.ndarray]()
    with reading(path), path.open("rb") as file:
        while lines := file.readlines(BLOCK_BYTES):
            content = b"".join(lines)
            try:
                X, y = _parsed(content)
            except (ValueError, OverflowError):
                _refuse_line(path, lines, sum(rows))
                raise
            starts.append(starts[-1] + len(content))
            rows.append(X.shape[0])
            labels.append(y)
            width, nnz = max(width, X.shape[1]), nnz + X.nnz

    def read(number: int, columns: np.ndarray | None) -> scipy.sparse.csr_array:
        with path.open("rb") as file:
            file.seek(starts[number])
            return _parsed(file.read(starts[number + 1] - starts[number]))[0]

    target = np.concatenate([np.empty(0), *labels]) if labelled else None
    return Shard(path, tuple(rows), width, np.dtype(np.float64), read, target, sparse=True, nnz=nnz)


def _refuse_line(path: Path, lines: list[bytes], before: int) -> None:
    """Name the first line that cannot be read."""
    for number, line in enumerate(lines):
        try:
            _parsed(line)
        except (ValueError, OverflowError) as error:
            raise DataFileError(
                f"row {before + number + 1:,} of {path} cannot be read: {error} Lines of a label and "
                "index:value pairs are needed, of finite numbers."
            ) from error


def _parsed(content: bytes) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    # Indices are kept as they are, since whether they begin at 0 or 1 cannot be told from a part.
    X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    return scipy.sparse.csr_array(X), y
