"""The problems of the paper's figures: planted networks, MNIST's digits, and images as functions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data import cifar
from thresher.data.images import cifar_image, mnist_image
from thresher.data.mnist import FILES, paper_split
from thresher.data.planted import psnr
from thresher.experiments.fits import decibels, fingerprint, plant
from thresher.experiments.record import Cell

PLANTED, BINARY, DIGITS, MNIST_IMAGE, CIFAR_IMAGE = (
    "planted",
    "binary",
    "digits",
    "mnist-image",
    "cifar-image",
)
CLASSES = {BINARY: 2, DIGITS: 10}
IMAGES = {MNIST_IMAGE: mnist_image, CIFAR_IMAGE: cifar_image}

# Rows and inputs of the data that comes from files.
SHAPES = {BINARY: (10_000, 784), DIGITS: (50_000, 784), MNIST_IMAGE: (784, 1500), CIFAR_IMAGE: (3072, 1500)}


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to fit and rows to be judged on: for images and planted networks they are the same.

    Attributes
    ----------
    kind : {"regression", "classification"}
    X, y : arrays
        What is fitted.
    X_test, y_test : arrays
        What is judged.
    """

    kind: str
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    X_test: Any = field(repr=False)
    y_test: Any = field(repr=False)

    @property
    def empty(self) -> bool:
        """Whether all labels are zero, so that there is nothing to find."""
        return self.kind == "regression" and not np.any(self.y)

    def score(self, model: Any) -> float:
        """Judge a fitted model: PSNR in dB, or the share of rows that are classified right."""
        guess = model.predict(self.X_test)
        if self.kind == "classification":
            return round(float(np.mean(guess == self.y_test)), 5)
        return decibels(psnr(self.y_test, np.asarray(guess).reshape(np.shape(self.y_test))))


def load(cell: Cell, folder: Path | None) -> Problem:
    """Draw or read the problem of a cell; `data`, `n` and the shape of its network decide which."""
    kind = cell["data"]
    if kind == PLANTED:
        planted = plant(cell)
        return Problem("regression", planted.X, planted.y, planted.X, planted.y)
    if kind in CLASSES:
        return _digits(CLASSES[kind], cell["n"], folder)
    X, y = _image(kind, folder, cell.seed)
    return Problem("regression", X, y, X, y)


def print_of(cell: Cell) -> str:
    """Give a short text that changes with the data of a cell.

    Files are compared with their checksums whenever they are read, so that naming those is enough.
    """
    kind = cell["data"]
    if kind == PLANTED:
        return fingerprint(cell)
    sums = [cifar.MD5] if kind == CIFAR_IMAGE else [file.md5 for file in FILES]
    content = [kind, cell["n"], cell["d"], *sums]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def check(cells: Sequence[Cell], folder: Path | None) -> None:
    """Read all data files that cells need, so that a missing or damaged one is told before any work."""
    for kind in dict.fromkeys(cell["data"] for cell in cells):
        if kind in CLASSES:
            _digits(CLASSES[kind], SHAPES[kind][0], folder)
        elif kind in IMAGES:
            _image(kind, folder, 0)


# Processes measure many cells of the same data.
@lru_cache(maxsize=2)
def _digits(classes: int, rows: int, folder: Path | None) -> Problem:
    split = paper_split(range(classes), folder)
    # Rows are grouped by digit: of each the first ones.
    kept = np.concatenate(
        [np.flatnonzero(split.y_train == digit)[: rows // classes] for digit in range(classes)]
    )
    return Problem("classification", split.X_train[kept], split.y_train[kept], split.X_test, split.y_test)


# The seed draws the frequencies, so that all methods of a trial see the same features.
@lru_cache(maxsize=2)
def _image(kind: str, folder: Path | None, seed: int) -> tuple[Any, Any]:
    X, y = IMAGES[kind](folder, seed=seed)
    return X, y
