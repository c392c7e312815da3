"""CIFAR-10's test batch is read whole or refused with the reason; the paper's image is found in it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from thresher.data import cifar
from thresher.errors import DataFileError


@pytest.fixture(scope="session")
def cifar_folder() -> Path:
    """Give the data folder (it holds ``cifar-10-batches-bin/``), or skip the test and say what is missing."""
    folder = Path(os.environ.get("THRESHER_DATA", "")).expanduser()
    if not (folder / cifar.FOLDER / cifar.NAME).is_file():
        pytest.skip(f"needs CIFAR-10: set THRESHER_DATA to a folder that holds {cifar.FOLDER}/{cifar.NAME}")
    return folder


@pytest.fixture
def tiny_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test batch of 12 images with labels 0, 1, 2, 0, 1, 2, ..., of which number 5 of those with 0 or 1."""
    rows = np.random.default_rng(0).integers(0, 256, size=(12, 1 + cifar.PIXELS)).astype(np.uint8)
    rows[:, 0] = np.arange(12) % 3
    (tmp_path / cifar.NAME).write_bytes(rows.tobytes())
    monkeypatch.setattr(cifar, "COUNT", 12)
    monkeypatch.setattr(cifar, "MD5", hashlib.md5(rows.tobytes()).hexdigest())
    monkeypatch.setattr(cifar, "IMAGE_NUMBER", 5)
    return tmp_path


def test_planes_become_channels(tiny_cifar: Path) -> None:
    images, labels = cifar.load_cifar10_test(tiny_cifar)
    assert (images.shape, images.dtype, labels.dtype) == ((12, 32, 32, 3), np.uint8, np.int64)
    content = (tiny_cifar / cifar.NAME).read_bytes()
    for number, row, column, channel in [(0, 0, 0, 0), (3, 31, 0, 1), (11, 5, 30, 2)]:
        place = number * 3073 + 1 + channel * 1024 + row * 32 + column
        assert images[number, row, column, channel] == content[place]
    np.testing.assert_array_equal(labels, np.arange(12) % 3)


def test_the_image_counts_only_labels_0_and_1(tiny_cifar: Path) -> None:
    images, labels = cifar.load_cifar10_test(tiny_cifar)
    # Those with label 0 or 1 are 0, 1, 3, 4, 6, 7, ...; number 5, counted from 0, is 7.
    assert labels[7] == 1
    np.testing.assert_array_equal(cifar.image(tiny_cifar), images[7])


def test_a_folder_of_its_own_comes_first(tiny_cifar: Path) -> None:
    (tiny_cifar / cifar.FOLDER).mkdir()
    (tiny_cifar / cifar.FOLDER / cifar.NAME).write_bytes(b"short")
    with pytest.raises(DataFileError, match=r"holds 5 bytes, where 36,876 are due"):
        cifar.load_cifar10_test(tiny_cifar)


def test_other_content_of_the_right_length_is_refused(tiny_cifar: Path) -> None:
    path = tiny_cifar / cifar.NAME
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"is not the original file.*md5") as caught:
        cifar.load_cifar10_test(tiny_cifar)
    assert str(path) in str(caught.value)


def test_a_missing_file_says_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DataFileError) as caught:
        cifar.load_cifar10_test(tmp_path)
    for part in (str(tmp_path / cifar.FOLDER), cifar.NAME, "THRESHER_DATA", "fetch_cifar10"):
        assert part in str(caught.value)


def test_the_real_file(cifar_folder: Path) -> None:
    images, labels = cifar.load_cifar10_test(cifar_folder)
    np.testing.assert_array_equal(np.bincount(labels), np.full(10, 1_000))
    np.testing.assert_array_equal(labels[:5], [3, 8, 8, 0, 6])
    image = cifar.image(cifar_folder)
    assert image.shape == (32, 32, 3)
    number = np.flatnonzero(labels < 2)[1_000]
    np.testing.assert_array_equal(image, images[number])
