"""IDX files are read whole or refused with the reason; the paper's splits of MNIST are reproduced."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest

from thresher.data import mnist
from thresher.errors import DataFileError, ParameterError

SHAPE = (3, 4, 5)


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def write_gzip(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, mtime=0))
    return path


@pytest.fixture
def array() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, size=SHAPE).astype(np.uint8)


def test_idx_round_trip(array: np.ndarray, tmp_path: Path) -> None:
    for part in (array, array[:, 0, 0]):
        read = mnist.read_idx(write_gzip(tmp_path / "whole.gz", idx_bytes(part)), part.shape)
        assert read.dtype == np.uint8
        np.testing.assert_array_equal(read, part)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: b"\x00\x00\x0d\x03" + content[4:], "starts with the bytes 00 00 0d 03"),
        (lambda content: content[:3] + b"\x01" + content[4:], "with 3 axes starts with 00 00 08 03"),
        (lambda content: b"", "an empty file"),
        (lambda content: content[:9], "ends inside its header"),
        (lambda content: content[:-1], "holds only 59 values where its header announces 60"),
        (lambda content: content + b"\x00", "holds more values"),
        (lambda content: content[:4] + b"\xff" * 4 + content[8:], r"shape \(4294967295, 4, 5\)"),
    ],
)
def test_wrong_content_is_refused(damage, reason: str, array: np.ndarray, tmp_path: Path) -> None:
    path = write_gzip(tmp_path / "damaged.gz", damage(idx_bytes(array)))
    with pytest.raises(DataFileError, match=reason) as caught:
        mnist.read_idx(path, SHAPE)
    assert str(path) in str(caught.value)
    assert "Replace it" in str(caught.value)


def flip_a_value(packed: bytes) -> bytes:
    # Stored, not deflated: the values stay readable and only the checksum can tell.
    stored = bytearray(gzip.compress(gzip.decompress(packed), compresslevel=0))
    stored[-20] ^= 1
    return bytes(stored)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda packed: packed[: len(packed) // 2], "cut short"),
        (lambda packed: packed[:-4], "cut short"),
        (gzip.decompress, "not a whole gzip file"),
        (flip_a_value, "not a whole gzip file .*CRC"),
        (lambda packed: packed[:10] + b"\xff" + packed[11:], "not a whole gzip file .*block type"),
    ],
)
def test_wrong_compression_is_refused(damage, reason: str, array: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "damaged.gz"
    path.write_bytes(damage(gzip.compress(idx_bytes(array), mtime=0)))
    with pytest.raises(DataFileError, match=reason) as caught:
        mnist.read_idx(path, SHAPE)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"nothing\.gz cannot be read"):
        mnist.read_idx(tmp_path / "nothing.gz", SHAPE)
    with pytest.raises(DataFileError, match="cannot be read"):
        mnist.read_idx(tmp_path, SHAPE)


def test_all_missing_files_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / mnist.TEST_LABELS.name).touch()
    with pytest.raises(DataFileError) as caught:
        mnist.load_mnist(tmp_path)
    message = str(caught.value)
    for file in (mnist.TRAIN_IMAGES, mnist.TRAIN_LABELS, mnist.TEST_IMAGES):
        assert file.name in message
    assert mnist.TEST_LABELS.name not in message
    assert str(tmp_path / "mnist") in message


@pytest.mark.parametrize("digits", [(), (0, 0), (0, 10), (-1,), (0.5, 1), "01", 3])
def test_digits_that_are_none_are_refused_before_any_file_is_read(digits, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="digits="):
        mnist.paper_split(digits, tmp_path)


@pytest.fixture
def tiny_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four small files under the names of MNIST, of which five images of a digit train and the next two test.

    The training file holds six images of each digit and the test file two, so that a test set takes from
    both. Each image is filled with the number of its row.
    """
    rng = np.random.default_rng(0)
    labels = [rng.permutation(np.repeat(np.arange(10), count)) for count in (6, 2)]
    numbers = np.split(np.arange(80), [60])
    images = [np.broadcast_to(part[:, None, None], (len(part), 28, 28)) for part in numbers]
    files = []
    for file, content in zip(mnist.FILES, (images[0], labels[0], images[1], labels[1]), strict=True):
        packed = write_gzip(tmp_path / file.name, idx_bytes(content)).read_bytes()
        files.append(mnist.IdxFile(file.name, content.shape, hashlib.md5(packed).hexdigest()))
    for name, file in zip(("TRAIN_IMAGES", "TRAIN_LABELS", "TEST_IMAGES", "TEST_LABELS"), files, strict=True):
        monkeypatch.setattr(mnist, name, file)
    monkeypatch.setattr(mnist, "FILES", tuple(files))
    monkeypatch.setattr(mnist, "TRAIN_PER_DIGIT", 5)
    monkeypatch.setattr(mnist, "TEST_PER_DIGIT", 2)
    monkeypatch.setattr(mnist, "IMAGE_NUMBER", 2)
    return tmp_path


def test_loading_keeps_file_order_train_then_test(tiny_mnist: Path) -> None:
    X, y = mnist.load_mnist(tiny_mnist)
    assert (X.shape, X.dtype, y.dtype) == ((80, 784), np.uint8, np.int64)
    np.testing.assert_array_equal(X[:, 0], np.arange(80))
    np.testing.assert_array_equal(np.bincount(y[:60]), np.full(10, 6))


def test_split_equals_the_order_of_mnist_original(tiny_mnist: Path) -> None:
    y = mnist.load_mnist(tiny_mnist)[1]
    order = np.concatenate([np.argsort(y[:60], kind="stable"), 60 + np.argsort(y[60:], kind="stable")])
    split = mnist.paper_split(folder=tiny_mnist)
    for digit in range(10):
        expected = [number for number in order if y[number] == digit]
        assert list(split.X_train[split.y_train == digit, 0]) == expected[:5]
        assert list(split.X_test[split.y_test == digit, 0]) == expected[5:7]
        assert expected[5] < 60 <= expected[6]
    np.testing.assert_array_equal(split.y_train, np.repeat(np.arange(10), 5))
    np.testing.assert_array_equal(mnist.image(tiny_mnist), split.X_test[2].reshape(28, 28))


def test_digits_come_smallest_first_in_any_order_of_asking(tiny_mnist: Path) -> None:
    first, second = mnist.paper_split((7, 2), tiny_mnist), mnist.paper_split(np.array([2, 7]), tiny_mnist)
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left, right)
    assert list(first.y_test) == [2, 2, 7, 7]


def test_files_in_the_mnist_folder_come_before_those_beside_it(tiny_mnist: Path) -> None:
    (tiny_mnist / "mnist").mkdir()
    (tiny_mnist / "mnist" / mnist.TEST_LABELS.name).touch()
    with pytest.raises(DataFileError, match=r"mnist.t10k-labels-idx1-ubyte\.gz"):
        mnist.load_mnist(tiny_mnist)


def test_a_sound_file_of_other_data_is_refused(tiny_mnist: Path) -> None:
    shape = mnist.TRAIN_IMAGES.shape
    write_gzip(tiny_mnist / mnist.TRAIN_IMAGES.name, idx_bytes(np.zeros(shape, dtype=np.uint8)))
    with pytest.raises(DataFileError, match=r"train-images.*is not the original file.*md5"):
        mnist.load_mnist(tiny_mnist)


@pytest.mark.mnist
def test_binary_split_of_the_real_files(mnist_folder: Path) -> None:
    split = mnist.paper_split((0, 1), mnist_folder)
    assert split.X_train.shape == (10_000, 784)
    assert split.X_test.shape == (2_000, 784)
    np.testing.assert_array_equal(np.bincount(split.y_train), [5_000, 5_000])
    np.testing.assert_array_equal(np.bincount(split.y_test), [1_000, 1_000])
    np.testing.assert_array_equal(mnist.image(mnist_folder).ravel(), split.X_test[1_000])
    assert split.y_test[999] == 0
    assert split.y_test[1_000] == 1


@pytest.mark.mnist
def test_one_weight_gets_the_accuracy_of_the_paper(mnist_folder: Path) -> None:
    X, y, X_test, y_test = mnist.paper_split((0, 1), mnist_folder)
    pixels = X.astype(np.float64)
    correlation = pixels.T @ y
    best = int(np.argmax(correlation))
    weight = correlation[best] / (pixels[:, best] @ pixels[:, best])
    predicted = X_test[:, best] * weight >= 0.5
    assert np.mean(predicted == y_test) == 0.9885


@pytest.mark.mnist
def test_all_digits_of_the_real_files(mnist_folder: Path) -> None:
    X, y = mnist.load_mnist(mnist_folder)
    assert X.shape == (70_000, 784)
    np.testing.assert_array_equal(y[:5], [5, 0, 4, 1, 9])
    np.testing.assert_array_equal(y[60_000:60_005], [7, 2, 1, 0, 4])
    split = mnist.paper_split(folder=mnist_folder)
    np.testing.assert_array_equal(np.bincount(split.y_train), np.full(10, 5_000))
    np.testing.assert_array_equal(np.bincount(split.y_test), np.full(10, 1_000))
