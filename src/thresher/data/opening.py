"""From a path to rows on disk: which files there are, and whether they go together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.parquet import Footers, open_parquet
from thresher.data.room import Room
from thresher.data.rows import Block, OnDisk
from thresher.data.shards import Shard, open_npy, open_npz, open_svmlight
from thresher.data.tables import KINDS
from thresher.errors import DataError, DataFileError, ParameterError

ROW_KINDS = {".npy": "npy", **{end: kind for end, kind in KINDS.items() if kind not in ("csv", "tsv")}}
ENDINGS = ", ".join(ROW_KINDS)
SPARSE_TEXT = frozenset(end for end, kind in ROW_KINDS.items() if kind == "svmlight")


def open_rows(
    path: str | os.PathLike[str],
    target: str | int | Sequence[str] | None = None,
    *,
    columns: Sequence[str] | int | None = None,
) -> OnDisk:
    """Open rows on disk to train on or to predict from, without reading them into memory.

    Parameters
    ----------
    path : str or path
        A file, or a folder of files of one kind, taken in the order of their names:

        - ``.npy``: an array of two dimensions, its rows one after the other;
        - ``.npz``: ``X`` of two dimensions, or the parts of a CSR array (``data``, ``indices``, ``indptr``,
          ``shape``); a file is read at once;
        - ``.parquet``: columns of numbers; a row group is read at once (needs pyarrow);
        - ``.svmlight``, ``.svm``, ``.libsvm``: lines of a label and ``index:value`` pairs.
    target : str, int or sequence of str, optional
        What to predict: the name of a Parquet column, or several; the name of an array in NPZ files; the
        number of a column of ``.npy`` files. Labels of svmlight files are taken whatever is named. It is read
        into memory when the rows are opened, and is no input. Without it, give targets to `fit`.
    columns : sequence of str or int, optional
        Names of the Parquet columns to read, in this order; all but the target by default. For svmlight
        files, how many columns there are, if it is more than any line shows.

    Returns
    -------
    OnDisk

    Raises
    ------
    DataFileError
        When a file is missing, damaged, cut, or unlike the others.
    DataError
        When columns hold what is no number, or there are no rows.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in range(3):
    ...         np.save(f"{folder}/part-{part}.npy", np.arange(8.0).reshape(4, 2))
    ...     rows = open_rows(folder, target=1)
    ...     rows.shape, rows.target.shape, rows[3:5].tolist()
    ((12, 1), (12,), [[6.0], [0.0]])
    """
    room, footers = Room(), Footers()
    opened = partial(_opened, target=target, columns=columns, room=room, footers=footers)
    shards = list(room.thread.map(opened, files_of(Path(path))))
    first = shards[0]
    if first.sparse and columns is not None and not isinstance(columns, int):
        raise ParameterError(f"columns={columns!r}, but the columns of {first.path} have no names.")
    width = max(shard.width for shard in shards) if first.path.suffix in SPARSE_TEXT else first.width
    if isinstance(columns, int):
        width = _widened(width, columns, first)
    _refuse_unlike(shards, width)
    blocks = [
        Block(shard, number, end - rows, rows)
        for shard in shards
        for number, (rows, end) in enumerate(zip(shard.rows, accumulate(shard.rows), strict=True))
        if rows
    ]
    for count, what in ((len(blocks), "rows"), (width, "columns besides the target")):
        if not count:
            raise DataError(f"{path} holds no {what}, but one or more are needed.")
    labels = [shard.target for shard in shards if shard.target is not None]
    target_of_all = np.concatenate(labels) if labels else None
    return OnDisk(blocks, width, first.dtype, first.names, target_of_all, room=room)


def files_of(path: Path) -> list[Path]:
    """Give the files behind a path, in the order of their names."""
    if not path.exists():
        raise DataFileError(f"{path} does not exist. Give a file or a folder of {ENDINGS} files.")
    if not path.is_dir():
        return [path]
    # Markers of a finished job, checksums and files being written begin like this.
    files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] not in "._")
    if not files:
        raise DataFileError(f"{path} is a folder without files, but {ENDINGS} files are needed.")
    return files


def _opened(
    path: Path, target: Any, columns: Sequence[str] | int | None, room: Room, footers: Footers
) -> Shard:
    """Open one file by its ending."""
    kind = ROW_KINDS.get(path.suffix.lower())
    if kind == "parquet":
        if isinstance(columns, int):
            raise ParameterError(f"columns={columns}, but the columns of {path} have names: give these.")
        names = () if target is None else (target,) if isinstance(target, (str, int)) else tuple(target)
        return open_parquet(path, names, columns, room, footers)
    if kind == "npy":
        return open_npy(path, target, room)
    if kind == "npz":
        return open_npz(path, target)
    if kind == "svmlight":
        return open_svmlight(path, target is not None)
    raise DataFileError(
        f"{path} cannot be read as rows on disk, for it does not end in one of {ENDINGS}. Move it elsewhere, "
        "or convert it."
    )


def _widened(width: int, columns: int, first: Shard) -> int:
    """Give svmlight rows more columns than they show."""
    if first.path.suffix.lower() not in SPARSE_TEXT or columns < width:
        raise DataError(
            f"columns={columns:,}, but {first.path.parent} has {width:,}. Only svmlight files may have more "
            "than their lines show."
        )
    return columns


def _refuse_unlike(shards: Sequence[Shard], width: int) -> None:
    """Refuse a file that does not continue the first."""
    first = shards[0]
    for other in shards[1:]:
        text = first.path.suffix.lower() in SPARSE_TEXT
        for what, one, two in (
            ("is", "sparse" if first.sparse else "dense", "sparse" if other.sparse else "dense"),
            ("has columns", None if text else first.width, None if text else other.width),
            ("is of type", first.dtype, other.dtype),
            ("has the columns", first.names, other.names),
            ("has a target of", _label_kind(first), _label_kind(other)),
        ):
            if one != two:
                raise DataFileError(
                    f"{other.path} {what} {two}, but {first.path} {what} {one}: all files of a "
                    "folder must be alike."
                )


def _label_kind(shard: Shard) -> str:
    """Say what targets are: numbers or text, and how many there are for each row."""
    if shard.target is None:
        return "nothing"
    kind = "numbers" if shard.target.dtype.kind in "biuf" else "text"
    return f"{kind} of shape {('rows', *shard.target.shape[1:])}"
