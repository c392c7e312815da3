"""Images become regression problems: the features are those of the formula, the pixels those of the image."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from thresher.data import cifar, images, mnist
from thresher.errors import DataError, ParameterError


def test_features_are_sines_and_cosines_of_normal_frequencies() -> None:
    places = np.array([[3, 5], [27, 0]])
    features = images.fourier_features(places, sigma=2.0, rows=4, seed=7)
    frequencies = 2 * np.random.default_rng(7).standard_normal((4, 2))
    for point, row in zip(places, features, strict=True):
        for number, (one, two) in enumerate(frequencies):
            angle = 2 * math.pi * (one * point[0] + two * point[1])
            assert row[number] == pytest.approx(math.sin(angle), abs=1e-6)
            assert row[4 + number] == pytest.approx(math.cos(angle), abs=1e-6)


def test_each_axis_may_have_its_own_sigma() -> None:
    one = images.fourier_features(np.eye(3), sigma=(2.0, 2.0, 0.05), rows=5, seed=1)
    other = images.fourier_features(np.diag([1.0, 1.0, 0.05 / 2]), sigma=2.0, rows=5, seed=1)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_same_seed_same_bits_whatever_the_points() -> None:
    places = np.arange(20).reshape(10, 2)
    whole = images.fourier_features(places, 2.0, rows=6, seed=3)
    np.testing.assert_allclose(images.fourier_features(places[4:], 2.0, rows=6, seed=3), whole[4:], atol=1e-6)
    np.testing.assert_array_equal(images.fourier_features(places, 2.0, rows=6, seed=3), whole)
    assert not np.array_equal(images.fourier_features(places, 2.0, rows=6, seed=4), whole)


def test_rows_follow_the_array_of_the_image() -> None:
    pixels = load_sample_image("china.jpg")[:6, :9]
    X, y = images.image_problem(pixels, sigma=5.0, rows=10, seed=2)
    assert (X.shape, X.dtype, y.dtype) == ((162, 20), np.float32, np.float32)
    np.testing.assert_allclose(y.reshape(6, 9, 3), pixels / 255, atol=1e-7)
    place = np.ravel_multi_index((4, 7, 2), (6, 9, 3))
    expected = images.fourier_features([[4, 7, 2]], (5.0, 5.0, 0.05), rows=10, seed=2)[0]
    np.testing.assert_allclose(X[place], expected, atol=1e-6)


def test_grey_images_have_two_coordinates() -> None:
    X, y = images.image_problem(np.full((3, 4), 0.25), sigma=2.0, rows=5)
    np.testing.assert_array_equal(y, np.full(12, 0.25, dtype=np.float32))
    np.testing.assert_allclose(X[5], images.fourier_features([[1, 1]], 2.0, rows=5)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: images.fourier_features(np.zeros(3), 1.0), DataError),
        (lambda: images.fourier_features(np.zeros((0, 2)), 1.0), DataError),
        (lambda: images.fourier_features(np.zeros((3, 2)), 0.0), ParameterError),
        (lambda: images.fourier_features(np.zeros((3, 2)), (1.0, 2.0, 3.0)), ParameterError),
        (lambda: images.fourier_features(np.zeros((3, 2)), math.inf), ParameterError),
        (lambda: images.fourier_features(np.zeros((3, 2)), 1.0, rows=0), ParameterError),
        (lambda: images.fourier_features(np.zeros((3, 2)), 1.0, rows=2.5), ParameterError),
        (lambda: images.image_problem(np.zeros(5), 1.0), DataError),
    ],
)
def test_what_makes_no_features_is_refused(call, error) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.mnist
def test_the_papers_mnist_image(mnist_folder: Path) -> None:
    X, y = images.mnist_image(mnist_folder)
    assert X.shape == (784, 1_500)
    assert (y.min(), y.max()) == (0, 1)
    np.testing.assert_allclose(y.reshape(28, 28), mnist.image(mnist_folder) / 255, atol=1e-7)


def test_the_papers_cifar_image() -> None:
    folder = Path(os.environ.get("THRESHER_DATA", ""))
    if not (folder / cifar.FOLDER / cifar.NAME).is_file():
        pytest.skip(f"needs CIFAR-10: set THRESHER_DATA to a folder that holds {cifar.FOLDER}/{cifar.NAME}")
    X, y = images.cifar_image(folder)
    assert X.shape == (3_072, 1_500)
    np.testing.assert_allclose(y.reshape(32, 32, 3), cifar.image(folder) / 255, atol=1e-7)
