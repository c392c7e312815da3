"""CIFAR-10's test images from its binary file, and the image of the paper's implicit representation."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thresher.data.folder import data_folder
from thresher.errors import DataFileError

SIDE, CHANNELS = 32, 3
PIXELS = CHANNELS * SIDE * SIDE
COUNT = 10_000
FOLDER, NAME = "cifar-10-batches-bin", "test_batch.bin"
MD5 = "803d5f7f4d78ea53de84dbe85f74fb6d"
IMAGE_LABELS, IMAGE_NUMBER = (0, 1), 1_000


def load_cifar10_test(
    folder: str | os.PathLike[str] | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read the 10,000 test images, in file order.

    Parameters
    ----------
    folder : path, optional
        The data folder, which holds `test_batch.bin` of CIFAR-10's binary version or a folder
        `cifar-10-batches-bin` with it; see :func:`thresher.data.folder.data_folder`.

    Returns
    -------
    images : uint8 array of shape (10000, 32, 32, 3)
        Pixels from 0 to 255: row, column, then red, green, blue.
    labels : int64 array of shape (10000,)
        Classes from 0 to 9.

    Raises
    ------
    DataFileError
        If the file is missing, damaged, or not the original.
    """
    path = _find(data_folder(folder))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataFileError(
            f"{path} cannot be read ({error.strerror or error}). Check its permissions, or replace it with a "
            "fresh copy."
        ) from error
    size = COUNT * (1 + PIXELS)
    if len(content) != size:
        raise DataFileError(
            f"{path} holds {len(content):,} bytes, where {size:,} are due: one byte of label and {PIXELS:,} "
            f"of pixels for each of {COUNT:,} images. Replace it with a fresh copy of {NAME} from CIFAR-10's "
            "binary version."
        )
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != MD5:
        raise DataFileError(
            f"{path} is not the original file of CIFAR-10: its md5 is {md5}, the original's {MD5}. Replace "
            f"it with a fresh copy of {NAME} from CIFAR-10's binary version."
        )
    return unpack(content)


def image(folder: str | os.PathLike[str] | None = None) -> NDArray[np.uint8]:
    """Give the image of the paper's implicit representation: number 1000 of those with label 0 or 1.

    Parameters
    ----------
    folder : path, optional
        The data folder; see :func:`thresher.data.folder.data_folder`.

    Returns
    -------
    uint8 array of shape (32, 32, 3)
        Pixels from 0 to 255.
    """
    images, labels = load_cifar10_test(folder)
    chosen: NDArray[np.uint8] = images[np.isin(labels, IMAGE_LABELS)][IMAGE_NUMBER]
    return chosen


def unpack(content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Take rows of the binary version apart: a label, then the red, the green and the blue plane.

    Examples
    --------
    >>> images, labels = unpack(bytes([7]) + bytes(range(256)) * 12)
    >>> labels, images.shape, images[0, 0, 5]
    (array([7]), (1, 32, 32, 3), array([5, 5, 5], dtype=uint8))
    """
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, 1 + PIXELS)
    planes = rows[:, 1:].reshape(-1, CHANNELS, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), rows[:, 0].astype(np.int64)


def _find(folder: Path) -> Path:
    places = (folder / FOLDER, folder)
    for place in places:
        if (place / NAME).is_file():
            return place / NAME
    raise DataFileError(
        f"CIFAR-10 is not there: neither {places[0]} nor {places[1]} holds {NAME}. Put {NAME} of CIFAR-10's "
        "binary version there, or set THRESHER_DATA to the folder that has it. Where the machine is online, "
        "thresher.data.fetch.fetch_cifar10(folder) gets it from OpenML."
    )
