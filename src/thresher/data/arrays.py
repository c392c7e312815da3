"""Arrays as tables: NPZ and svmlight files, which hold the target apart from the inputs."""

from __future__ import annotations

import math
import zipfile
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from thresher.errors import DataFileError

if TYPE_CHECKING:
    import pandas as pd

# Inputs are columns x0, x1, ..., and the target becomes a column of this name.
TARGET = "y"

# Columns of a sparse table, each of which takes some kilobytes whatever it holds.
MOST_COLUMNS = 500_000

CSR_PARTS = {"data", "indices", "indptr", "shape"}


def read_npz(source: Any, name: str) -> pd.DataFrame:
    """Read X and y, the parts of a sparse array and y, or one array for each column, from an NPZ file.

    Parameters
    ----------
    source : path or binary file
    name : str
        What to call it in messages.
    """
    try:
        # NumPy leaves a path that is no archive open.
        opened = source.open("rb") if isinstance(source, Path) else nullcontext(source)
        with opened as content, np.load(content, allow_pickle=False) as file:
            _refuse_claims(file, name)
            arrays = {key: file[key] for key in file.files}
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, AttributeError) as error:
        raise DataFileError(f"{name} is not an NPZ file of plain arrays: {error}") from error
    except MemoryError as error:
        raise DataFileError(f"{name} holds more than fits into memory: leave its rows on disk.") from error
    return _frame_of_arrays(arrays, name)


def _refuse_claims(file: Any, name: str) -> None:
    """Refuse arrays whose headers claim more than the file holds of them, before room is made for them."""
    for key in file.files:
        part = file.zip.getinfo(f"{key}.npy" if f"{key}.npy" in file.zip.namelist() else key)
        with file.zip.open(part) as content:
            version = np.lib.format.read_magic(content)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read(content)
        claimed = math.prod(shape) * dtype.itemsize
        if claimed > part.file_size:
            raise DataFileError(
                f"{name} is damaged: its array {key!r} claims {claimed:,} bytes, and the file holds "
                f"{part.file_size:,} of it."
            )


def _frame_of_arrays(arrays: dict[str, np.ndarray], name: str) -> pd.DataFrame:
    """Make a frame of sparse parts, of X and y, or of one array for each column."""
    import pandas as pd

    target = arrays.get(TARGET)
    if arrays.keys() >= CSR_PARTS:
        try:
            parts = arrays["data"], arrays["indices"], arrays["indptr"]
            X = scipy.sparse.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
            X.check_format(full_check=True)
        except (ValueError, TypeError) as error:
            raise DataFileError(f"{name} holds parts that make no sparse array: {error}") from error
        return _sparse_frame(X, target, name)
    if "X" in arrays and arrays["X"].ndim == 2:
        X = arrays["X"]
        frame = pd.DataFrame(X, columns=[f"x{column}" for column in range(X.shape[1])])
        return _with_target(frame, target, name)
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) == 1 and len(shapes.pop()) == 1:
        return pd.DataFrame(arrays)
    held = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "nothing"
    raise DataFileError(
        f"{name} holds {held}, but a table is X (rows, columns) with y (rows), the parts of a sparse array "
        "(data, indices, indptr, shape) with y, or arrays of one dimension and one length."
    )


def _with_target(frame: pd.DataFrame, target: np.ndarray | None, name: str) -> pd.DataFrame:
    """Add the target as the column y, or as y0, y1, ... where there are several."""
    if target is None:
        return frame
    if target.ndim not in (1, 2) or len(target) != len(frame):
        raise DataFileError(f"{name} holds y of shape {target.shape}, but X has {len(frame):,} rows.")
    if target.ndim == 1:
        frame[TARGET] = target
    for number in range(target.shape[1] if target.ndim == 2 else 0):
        frame[f"{TARGET}{number}"] = target[:, number]
    return frame


def read_svmlight(source: Any, name: str) -> pd.DataFrame:
    """Read lines of a label and index:value pairs.

    Parameters
    ----------
    source : path or binary file
    name : str
        What to call it in messages.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        # Indices are kept as they are, since whether they begin at 0 or 1 cannot be told from a part.
        X, y = load_svmlight_file(str(source) if isinstance(source, Path) else source, zero_based=True)
    except (ValueError, OverflowError, EOFError) as error:
        raise DataFileError(f"{name} is not an svmlight file: {error}") from error
    if X.shape[0] == 0:
        raise DataFileError(f"{name} is empty, but lines of a label and index:value pairs are needed.")
    return _sparse_frame(scipy.sparse.csr_array(X), y, name)


def _sparse_frame(X: scipy.sparse.csr_array, target: np.ndarray | None, name: str) -> pd.DataFrame:
    import pandas as pd

    if X.shape[1] > MOST_COLUMNS:
        raise DataFileError(
            f"{name} holds input {X.shape[1] - 1:,}, and a table of more than {MOST_COLUMNS:,} columns is "
            "not made: leave the rows on disk (--on-disk)."
        )
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=[f"x{column}" for column in range(X.shape[1])])
    return _with_target(frame, target, name)
