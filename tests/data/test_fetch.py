"""Fetching writes files that the loaders accept, or nothing; no test goes online."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from thresher.data import cifar, fetch, mnist
from thresher.errors import DataFileError


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Datasets of OpenML's form, 6 digits and 8 colour images, and constants that call them the originals."""
    rng = np.random.default_rng(0)
    digits = SimpleNamespace(
        data=rng.integers(0, 256, size=(6, 784)), target=np.array(list("504192"), dtype=object)
    )
    colour = SimpleNamespace(
        data=rng.integers(0, 256, size=(8, 3072)).astype(float), target=rng.integers(0, 10, 8).astype(str)
    )
    pixels, labels = digits.data.astype(np.uint8), digits.target.astype(np.uint8)
    parts = (pixels[:4].reshape(4, 28, 28), labels[:4], pixels[4:].reshape(2, 28, 28), labels[4:])
    names = ("TRAIN_IMAGES", "TRAIN_LABELS", "TEST_IMAGES", "TEST_LABELS")
    files = []
    for name, file, part in zip(names, mnist.FILES, parts, strict=True):
        files.append(mnist.IdxFile(file.name, part.shape, "another", hashlib.md5(part.tobytes()).hexdigest()))
        monkeypatch.setattr(mnist, name, files[-1])
    monkeypatch.setattr(mnist, "FILES", tuple(files))
    rows = np.column_stack([colour.target.astype(np.uint8), colour.data.astype(np.uint8)])
    monkeypatch.setattr(cifar, "COUNT", 4)
    monkeypatch.setattr(cifar, "MD5", hashlib.md5(rows[4:].tobytes()).hexdigest())
    answers = {fetch.MNIST_ID: digits, fetch.CIFAR_ID: colour}
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda data_id, as_frame: answers[data_id])
    return SimpleNamespace(digits=digits, colour=colour)


def test_fetched_digits_can_be_loaded(small: SimpleNamespace, tmp_path: Path) -> None:
    home = fetch.fetch_mnist(tmp_path / "new")
    assert home == tmp_path / "new" / "mnist"
    X, y = mnist.load_mnist(tmp_path / "new")
    np.testing.assert_array_equal(X, small.digits.data)
    np.testing.assert_array_equal(y, [5, 0, 4, 1, 9, 2])


def test_the_fetched_test_batch_can_be_loaded(small: SimpleNamespace, tmp_path: Path) -> None:
    fetch.fetch_cifar10(tmp_path)
    images, labels = cifar.load_cifar10_test(tmp_path)
    np.testing.assert_array_equal(labels, small.colour.target[4:].astype(int))
    np.testing.assert_array_equal(
        images.transpose(0, 3, 1, 2).reshape(4, -1), small.colour.data[4:].astype(np.uint8)
    )


@pytest.mark.parametrize("get", [fetch.fetch_mnist, fetch.fetch_cifar10])
def test_what_is_not_the_original_is_not_written(get, small: SimpleNamespace, tmp_path: Path) -> None:
    small.digits.data[5, 3] ^= 1
    small.colour.data[5, 3] = 255 - small.colour.data[5, 3]
    with pytest.raises(DataFileError, match="nothing was written"):
        get(tmp_path)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("get", "file"), [(fetch.fetch_mnist, "t10k-labels-idx1"), (fetch.fetch_cifar10, "test_batch.bin")]
)
def test_offline_says_which_files_to_put_where(get, file, tmp_path: Path, monkeypatch) -> None:
    def refuse(**_: object) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    with pytest.raises(DataFileError, match="no route to host") as caught:
        get(tmp_path)
    assert file in str(caught.value) and str(tmp_path) in str(caught.value)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.mnist
def test_the_originals_contents_have_the_md5s_that_are_compared_with(mnist_folder: Path) -> None:
    for file in mnist.FILES:
        array = mnist.read_idx(mnist_folder / "mnist" / file.name, file.shape)
        assert hashlib.md5(array.tobytes()).hexdigest() == file.content_md5
