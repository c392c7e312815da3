"""Images as regression problems: Fourier features of a pixel's place in, its brightness out.

The paper's implicit representations. A pixel's coordinates x are raw whole numbers; its features are
``sin(2 pi B x)`` and ``cos(2 pi B x)``, where the rows of B are frequencies drawn at random. A colour image
has a third coordinate, the channel, and one row of data for each pixel and channel.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data import cifar, mnist
from thresher.errors import DataError, ParameterError

ROWS = 750
MNIST_SIGMA, CIFAR_SIGMA, CHANNEL_SIGMA = 2.0, 5.0, 0.05


class ImageProblem(NamedTuple):
    """An image to be fitted: a row for each pixel (and channel), in the order of the image's array."""

    X: NDArray[np.float32]  # (pixels, 2 * rows), sines before cosines
    y: NDArray[np.float32]  # (pixels,), from 0 to 1


def fourier_features(
    coordinates: ArrayLike,  # (points, axes)
    sigma: float | tuple[float, ...],
    *,
    rows: int = ROWS,
    seed: int = 0,
) -> NDArray[np.float32]:
    """Give the sines and cosines of random frequencies at some points.

    Parameters
    ----------
    coordinates : array of shape (points, axes)
        Where.
    sigma : float or tuple of float
        Standard deviation of the frequencies, one for all axes or one for each.
    rows : int
        How many frequencies.
    seed : int
        Seed of the frequencies. The same seed draws the same, whatever the points.

    Returns
    -------
    float32 array of shape (points, 2 * rows)
        ``[sin(2 pi B x), cos(2 pi B x)]``, computed in float64.

    References
    ----------
    M. Tancik et al., "Fourier features let networks learn high frequency functions in low dimensional
    domains", NeurIPS 2020.

    Examples
    --------
    >>> fourier_features([[0, 0], [0, 1]], sigma=2.0, rows=3).shape
    (2, 6)
    >>> fourier_features([[0, 0]], sigma=2.0, rows=2)
    array([[0., 0., 1., 1.]], dtype=float32)
    """
    places = np.asarray(coordinates, dtype=np.float64)
    if places.ndim != 2 or 0 in places.shape:
        raise DataError(f"coordinates have shape {places.shape}, but (points, axes) is needed, some of each.")
    spread = np.asarray(sigma, dtype=np.float64)
    if spread.shape not in ((), (1,), (places.shape[1],)) or not (np.isfinite(spread) & (spread > 0)).all():
        raise ParameterError(
            f"sigma={sigma!r}, but it must be one number above 0, or one for each of {places.shape[1]} axes."
        )
    if not isinstance(rows, (int, np.integer)) or isinstance(rows, bool) or rows < 1:
        raise ParameterError(f"rows={rows!r}, but it must be a whole number of frequencies, 1 or more.")
    frequencies = np.random.default_rng(seed).standard_normal((rows, places.shape[1])) * spread
    angles = 2 * np.pi * (places @ frequencies.T)
    return np.hstack([np.sin(angles), np.cos(angles)]).astype(np.float32)


def image_problem(
    pixels: ArrayLike,  # (height, width) or (height, width, channels)
    sigma: float,
    *,
    channel_sigma: float = CHANNEL_SIGMA,
    rows: int = ROWS,
    seed: int = 0,
) -> ImageProblem:
    """Turn any image into a regression problem.

    Parameters
    ----------
    pixels : array of shape (height, width) or (height, width, channels)
        Whole numbers are taken to be from 0 to 255 and divided by 255; other numbers stay as they are.
    sigma : float
        Standard deviation of the frequencies along rows and columns.
    channel_sigma : float
        The same along the channels.
    rows, seed : int
        As in :func:`fourier_features`.

    Returns
    -------
    ImageProblem

    Examples
    --------
    >>> X, y = image_problem(np.eye(4) * 0.5, sigma=2.0, rows=10)
    >>> X.shape, y[:5].tolist()
    ((16, 20), [0.5, 0.0, 0.0, 0.0, 0.0])
    """
    image = np.asarray(pixels)
    if image.ndim not in (2, 3) or 0 in image.shape:
        raise DataError(
            f"the image has shape {image.shape}, but (height, width) or (height, width, channels) is needed."
        )
    coordinates = np.indices(image.shape).reshape(image.ndim, -1).T
    spread = (sigma, sigma, channel_sigma)[: image.ndim]
    brightness = image / 255 if image.dtype.kind in "iu" else image
    features = fourier_features(coordinates, spread, rows=rows, seed=seed)
    return ImageProblem(features, brightness.reshape(-1).astype(np.float32))


def mnist_image(
    folder: str | os.PathLike[str] | None = None,
    *,
    sigma: float = MNIST_SIGMA,
    rows: int = ROWS,
    seed: int = 0,
) -> ImageProblem:
    """Give the paper's MNIST image as a problem of 784 rows: the first `1` of the test set.

    Parameters
    ----------
    folder : path, optional
        The data folder; see :func:`thresher.data.folder.data_folder`.
    sigma, rows, seed
        As in :func:`image_problem`.
    """
    return image_problem(mnist.image(folder), sigma, rows=rows, seed=seed)


def cifar_image(
    folder: str | os.PathLike[str] | None = None,
    *,
    sigma: float = CIFAR_SIGMA,
    rows: int = ROWS,
    seed: int = 0,
) -> ImageProblem:
    """Give the paper's CIFAR-10 image as a problem of 3,072 rows, one for each pixel and channel.

    Parameters are those of :func:`mnist_image`.
    """
    return image_problem(cifar.image(folder), sigma, rows=rows, seed=seed)
