"""MNIST from its four canonical files, and the splits of the paper's experiments."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.folder import data_folder
from thresher.errors import DataFileError, ParameterError

SIDE = 28
TRAIN_PER_DIGIT = 5_000
TEST_PER_DIGIT = 1_000
IMAGE_NUMBER = 1_000


class IdxFile(NamedTuple):
    """One file of the MNIST database: its name, the shape of its array, and the md5 of the file itself.

    A file that was compressed anew, as fetched ones are, is known by the md5 of its array's bytes.
    """

    name: str
    shape: tuple[int, ...]
    md5: str
    content_md5: str = ""


TRAIN_IMAGES = IdxFile(
    "train-images-idx3-ubyte.gz",
    (60_000, SIDE, SIDE),
    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "6510e85a72c3e9475c492d559d3770d2",
)
TRAIN_LABELS = IdxFile(
    "train-labels-idx1-ubyte.gz",
    (60_000,),
    "d53e105ee54ea40749a09fcbcd1e9432",
    "e86ee40d66677c011a9abda399ec8c4d",
)
TEST_IMAGES = IdxFile(
    "t10k-images-idx3-ubyte.gz",
    (10_000, SIDE, SIDE),
    "9fb629c4189551a2d022fa330f9573f3",
    "240610fa99e73bfa49df8e7fc24d3206",
)
TEST_LABELS = IdxFile(
    "t10k-labels-idx1-ubyte.gz",
    (10_000,),
    "ec29112dd5afa0611ce80d1b7f02629c",
    "073c3904dfbd3e141ff8aa01cfde6b15",
)
FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)


class Split(NamedTuple):
    """Rows to learn from and rows to be judged on."""

    X_train: NDArray[np.uint8]  # (rows, 784), pixels from 0 to 255
    y_train: NDArray[np.int64]  # (rows,), digits
    X_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]


def load_mnist(folder: str | os.PathLike[str] | None = None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read all 70,000 digits: the 60,000 training images, then the 10,000 test images, in file order.

    Parameters
    ----------
    folder : path, optional
        The data folder, which holds the files or a folder `mnist` with them; see
        :func:`thresher.data.folder.data_folder`.

    Returns
    -------
    X : uint8 array of shape (70000, 784)
        Pixels from 0 to 255, row by row.
    y : int64 array of shape (70000,)
        Digits from 0 to 9.

    Raises
    ------
    DataFileError
        If a file is missing, damaged, or not the canonical one.
    """
    paths = _find_files(data_folder(folder))
    arrays = {file: _read_canonical(paths[file], file) for file in FILES}
    images = np.concatenate([arrays[TRAIN_IMAGES], arrays[TEST_IMAGES]])
    labels = np.concatenate([arrays[TRAIN_LABELS], arrays[TEST_LABELS]])
    return images.reshape(len(images), SIDE * SIDE), labels.astype(np.int64)


def paper_split(digits: Iterable[int] | None = None, folder: str | os.PathLike[str] | None = None) -> Split:
    """Split MNIST as the paper does: of each digit the first 5,000 images train, the next 1,000 test.

    "First" is meant in the order of the classic `mnist-original` file: the training images sorted stably by
    label, then the test images sorted stably by label. Rows are grouped by digit, smallest first.

    Parameters
    ----------
    digits : several int, optional
        The digits to keep, all ten by default. ``(0, 1)`` is the paper's binary task.
    folder : path, optional
        The data folder; see :func:`thresher.data.folder.data_folder`.

    Returns
    -------
    Split
        5,000 training and 1,000 test rows for each digit.
    """
    kept = _check_digits(digits)
    X, y = load_mnist(folder)
    # A stable sort of each file by label keeps the file order within a digit, and the training file comes
    # first: so the n-th image of a digit in `mnist-original` is simply its n-th image in file order.
    rows_of = [np.flatnonzero(y == digit) for digit in kept]
    train = np.concatenate([rows[:TRAIN_PER_DIGIT] for rows in rows_of])
    test = np.concatenate([rows[TRAIN_PER_DIGIT : TRAIN_PER_DIGIT + TEST_PER_DIGIT] for rows in rows_of])
    return Split(X[train], y[train], X[test], y[test])


def image(folder: str | os.PathLike[str] | None = None) -> NDArray[np.uint8]:
    """Give the digit of the paper's implicit representation: number 1000 of the test set, the first `1`.

    Parameters
    ----------
    folder : path, optional
        The data folder; see :func:`thresher.data.folder.data_folder`.

    Returns
    -------
    uint8 array of shape (28, 28)
        Pixels from 0 to 255.
    """
    pixels: NDArray[np.uint8] = paper_split((0, 1), folder).X_test[IMAGE_NUMBER]
    return pixels.reshape(SIDE, SIDE)


def read_idx(path: str | os.PathLike[str], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Read a gzipped IDX file of bytes that must hold an array of the given shape.

    The header is two zero bytes, the type (8 for unsigned bytes), the number of axes, then each axis as a
    big-endian 32-bit integer. The values follow in C order.

    Parameters
    ----------
    path : path
        The file, compressed with gzip.
    shape : tuple of int
        The shape that is expected. No more than this is read, so a damaged file cannot ask for more memory
        than the array takes.

    Returns
    -------
    uint8 array of the given shape

    Raises
    ------
    DataFileError
        If the file is missing, cut short, not an IDX file of bytes, or of another shape.
    """
    size = math.prod(shape)
    try:
        with gzip.open(path, "rb") as stream:
            header = stream.read(4 + 4 * len(shape))
            # Asking for one byte more than is due shows a surplus, and makes gzip verify its checksum.
            content = stream.read(size + 1)
    except EOFError:
        raise _unusable(path, "is cut short: the compressed data ends early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _unusable(path, f"is not a whole gzip file ({error})") from None
    except OSError as error:
        raise _unusable(path, f"cannot be read ({error.strerror or error})") from error
    _check_header(path, header, shape)
    if len(content) != size:
        held = f"only {len(content):,}" if len(content) < size else "more"
        raise _unusable(path, f"holds {held} values where its header announces {size:,}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _find_files(folder: Path) -> dict[IdxFile, Path]:
    """Locate the four files in `folder/mnist` or in `folder`; name all that are missing at once."""
    places = (folder / "mnist", folder)
    found = {}
    for file in FILES:
        candidates = [place / file.name for place in places if (place / file.name).is_file()]
        if candidates:
            found[file] = candidates[0]
    missing = [file.name for file in FILES if file not in found]
    if missing:
        raise DataFileError(
            f"MNIST is not complete: neither {places[0]} nor {places[1]} holds {', '.join(missing)}. "
            "Put the original files of the MNIST database there, still gzipped, or set THRESHER_DATA to the "
            "folder that has them. Where the machine is online, thresher.data.fetch.fetch_mnist(folder) gets "
            "them from OpenML."
        )
    return found


def _read_canonical(path: Path, file: IdxFile) -> NDArray[np.uint8]:
    """Read one MNIST file and make sure that it is the original."""
    # Reading comes first, since "cut short" tells the user more than a checksum that differs.
    array = read_idx(path, file.shape)
    md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    content_md5 = hashlib.md5(array.tobytes(), usedforsecurity=False).hexdigest()
    if md5 != file.md5 and content_md5 != file.content_md5:
        raise _unusable(
            path,
            f"is not the original file of the MNIST database: its md5 is {md5}, the original's {file.md5} "
            "(Fashion-MNIST and others use the same file names), and its content differs, too",
        )
    return array


def _check_header(path: str | os.PathLike[str], header: bytes, shape: tuple[int, ...]) -> None:
    """Compare an IDX header with the one that the expected shape would have."""
    magic = bytes([0, 0, 8, len(shape)])
    if header[:4] != magic:
        raise _unusable(
            path,
            f"starts with the bytes {header[:4].hex(' ') or 'of an empty file'}, "
            f"where an IDX file of bytes with {len(shape)} axes starts with {magic.hex(' ')}",
        )
    if len(header) < 4 + 4 * len(shape):
        raise _unusable(path, "is cut short: it ends inside its header")
    found = tuple(int(axis) for axis in np.frombuffer(header, dtype=">u4", offset=4))
    if found != shape:
        raise _unusable(path, f"holds an array of shape {found}, where {shape} is expected")


def _unusable(path: str | os.PathLike[str], reason: str) -> DataFileError:
    return DataFileError(f"{os.fspath(path)} {reason}. Replace it with a fresh copy of the original file.")


def _check_digits(digits: Iterable[int] | None) -> list[int]:
    """Sort the digits that were asked for, or refuse them."""
    if digits is None:
        return list(range(10))
    chosen = list(digits) if isinstance(digits, Iterable) else []
    whole = all(isinstance(digit, (int, np.integer)) and 0 <= digit <= 9 for digit in chosen)
    if not chosen or not whole or len(set(chosen)) < len(chosen):
        raise ParameterError(
            f"digits={digits!r}, but these must be different whole numbers from 0 to 9, at least one. "
            "Use digits=(0, 1) for the paper's binary task, or leave digits out for all ten."
        )
    return sorted(int(digit) for digit in chosen)
