"""Fetch MNIST and CIFAR-10 from OpenML into a data folder: only where it is asked for by name.

Nothing else in the library goes online. What is written is checked, so that it equals the original data.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.atomic import write_whole
from thresher.data import cifar, mnist
from thresher.errors import DataFileError

MNIST_ID, CIFAR_ID = 554, 40_927


def fetch_mnist(folder: str | os.PathLike[str]) -> Path:
    """Get MNIST from OpenML and write its four files to `folder/mnist`.

    Parameters
    ----------
    folder : path
        The data folder; made if it does not exist.

    Returns
    -------
    Path
        The folder that holds the files.

    Raises
    ------
    DataFileError
        If the machine is offline, or what came is not MNIST.
    """
    home = Path(folder).expanduser() / "mnist"
    wanted = ", ".join(file.name for file in mnist.FILES)
    pixels, labels = _openml(MNIST_ID, "MNIST", f"{wanted}, the original files, still gzipped, into {home}")
    rows = mnist.TRAIN_IMAGES.shape[0]
    parts = (pixels[:rows], labels[:rows], pixels[rows:], labels[rows:])
    contents = []
    for file, part in zip(mnist.FILES, parts, strict=True):
        if hashlib.md5(part.tobytes(), usedforsecurity=False).hexdigest() != file.content_md5:
            raise _not_the_original("MNIST", f"{wanted} into {home}")
        header = bytes([0, 0, 8, len(file.shape)]) + np.array(file.shape, dtype=">u4").tobytes()
        contents.append(gzip.compress(header + part.tobytes(), mtime=0))
    for file, content in zip(mnist.FILES, contents, strict=True):
        _write(home / file.name, content)
    return home


def fetch_cifar10(folder: str | os.PathLike[str]) -> Path:
    """Get CIFAR-10 from OpenML and write its test batch to `folder/cifar-10-batches-bin`.

    Parameters
    ----------
    folder : path
        The data folder; made if it does not exist.

    Returns
    -------
    Path
        The folder that holds the file.

    Raises
    ------
    DataFileError
        If the machine is offline, or what came does not hold the test batch.
    """
    home = Path(folder).expanduser() / cifar.FOLDER
    advice = f"{cifar.NAME} of CIFAR-10's binary version into {home}"
    pixels, labels = _openml(CIFAR_ID, "CIFAR-10", advice)
    rows = np.column_stack([labels, pixels])
    for start in range(0, len(rows), cifar.COUNT):
        content = rows[start : start + cifar.COUNT].tobytes()
        if hashlib.md5(content, usedforsecurity=False).hexdigest() == cifar.MD5:
            _write(home / cifar.NAME, content)
            return home
    raise _not_the_original("CIFAR-10", advice)


def _openml(number: int, name: str, advice: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Ask OpenML for a dataset of bytes."""
    from sklearn.datasets import fetch_openml

    try:
        found: Any = fetch_openml(data_id=number, as_frame=False)
    # It reports a refused connection, a broken download and a wrong checksum as different errors.
    except (OSError, ValueError) as error:
        raise DataFileError(
            f"{name} could not be fetched from OpenML ({error}). Where this machine is offline, put {advice}."
        ) from error
    return np.asarray(found.data).astype(np.uint8), np.asarray(found.target).astype(np.uint8)


def _not_the_original(name: str, advice: str) -> DataFileError:
    return DataFileError(
        f"what OpenML sent is not {name} in its original order, and nothing was written. Put {advice}."
    )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
