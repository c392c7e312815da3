"""Tables of data from files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from thresher.errors import DataFileError


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table: CSV with a header line, or NPZ with arrays X and y; ``-`` is CSV from standard input.

    The columns of X in an NPZ file are named x0, x1, ..., and those of y are y, or y0, y1, ... where there
    are more.
    """
    try:
        if Path(path).suffix.lower() == ".npz":
            return _from_npz(Path(path))
        return pd.read_csv(sys.stdin if str(path) == "-" else path)
    except FileNotFoundError as error:
        raise DataFileError(f"{path} does not exist. Give the path of a CSV or NPZ file.") from error
    except (OSError, ValueError, KeyError) as error:
        raise DataFileError(f"{path} cannot be read as a table ({error}). Give a CSV or NPZ file.") from error


def _from_npz(path: Path) -> pd.DataFrame:
    with np.load(path, allow_pickle=False) as stored:
        X, y = stored["X"], stored["y"]
    columns = {f"x{place}": X[:, place] for place in range(X.shape[1])}
    targets = {"y": y} if y.ndim == 1 else {f"y{place}": y[:, place] for place in range(y.shape[1])}
    return pd.DataFrame({**columns, **targets})
