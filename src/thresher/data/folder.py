"""Where data files are: the folder that was passed, or the one that ``THRESHER_DATA`` names."""

from __future__ import annotations

import os
from pathlib import Path

from thresher.errors import DataFileError

VARIABLE = "THRESHER_DATA"

LAYOUT = (
    "A data folder holds `mnist/` with the four MNIST files train-images-idx3-ubyte.gz, "
    "train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, and "
    "`cifar-10-batches-bin/` with test_batch.bin of CIFAR-10's binary version; each only for what uses it."
)


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder that holds the data files.

    Parameters
    ----------
    folder : path, optional
        The folder to use. Without it, the environment variable ``THRESHER_DATA`` names the folder.

    Returns
    -------
    Path
        A folder that exists; what it holds is not looked at.

    Raises
    ------
    DataFileError
        If neither names a folder, or the one named does not exist.
    """
    if folder is not None:
        given, source = os.fspath(folder), "folder"
    else:
        given, source = os.environ.get(VARIABLE, ""), VARIABLE
    # Path("") is the working directory: an empty setting must not be read as one.
    if not given:
        raise DataFileError(
            f"No data folder: {source} is {'empty' if folder is not None else 'not set'}. "
            f"Set the environment variable {VARIABLE} to a folder, or pass folder=. {LAYOUT}"
        )
    path = Path(given).expanduser()
    if not path.is_dir():
        found = "is a file, not a folder" if path.exists() else "does not exist"
        raise DataFileError(
            f"{source}={given!r} {found}. Point {VARIABLE}, or folder=, to an existing folder. {LAYOUT}"
        )
    return path
