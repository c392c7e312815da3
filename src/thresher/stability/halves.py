"""Pairs of half-samples that have no row in common, and networks fitted to each of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from thresher.errors import DataError, InterruptedFitWarning
from thresher.estimators.inputs import part_of
from thresher.estimators.requiring import numbered
from thresher.network import Network

# Rows of a half-sample that a fit needs at least, and of each class there.
LEAST_ROWS, LEAST_OF_CLASS = 10, 2


def complementary_pairs(
    rows: int, pairs: int, seed: int, labels: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw pairs of half-samples of equal size without common rows; classes have equal shares in both.

    Examples
    --------
    >>> one, two = next(complementary_pairs(5, 1, 0))
    >>> len(one), len(two), set(one.tolist()) & set(two.tolist())
    (2, 2, set())
    """
    rng = np.random.default_rng(seed)
    codes = np.zeros(rows, dtype=np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    groups = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    for _ in range(pairs):
        halves: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for group in groups:
            order = rng.permutation(group)
            half = len(group) // 2
            halves[0].append(order[:half])
            halves[1].append(order[half : 2 * half])
        yield np.sort(np.concatenate(halves[0])), np.sort(np.concatenate(halves[1]))


def check_halves(y: np.ndarray, classes: bool) -> None:
    """Refuse rows that are too few to be halved."""
    if len(y) < 2 * LEAST_ROWS:
        raise DataError(
            f"{len(y):,} rows came, but half-samples need {2 * LEAST_ROWS} or more. Use more rows."
        )
    if classes:
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < 2 * LEAST_OF_CLASS:
            rare = labels.tolist()[counts.argmin()]
            raise DataError(
                f"class {rare!r} has {counts.min()} rows, but half-samples need {2 * LEAST_OF_CLASS} or more "
                "of each class. Leave it out, or use more rows."
            )


def fit_halves(
    estimator: Any, X: Any, y: np.ndarray, pairs: int, seed: int, each: Callable[[int], object] | None = None
) -> Iterator[Network]:
    """Fit an estimator to both halves of every pair, and give the networks.

    Raises
    ------
    KeyboardInterrupt
        When a fit was stopped by Ctrl-C.
    """
    classes = y.dtype.kind in "OUSb" or hasattr(estimator, "class_weight")
    labels = y if classes else None
    number = 0
    for pair in complementary_pairs(len(y), pairs, seed, labels):
        for rows in pair:
            yield fitted(estimator, X, y, rows, seed + number).network_
            number += 1
            if each is not None:
                each(number)


def fitted(estimator: Any, X: Any, y: np.ndarray, rows: np.ndarray, seed: int) -> Any:
    """Fit a copy of an estimator to some rows, without its callback, checkpoint and voice."""
    model = clone(estimator)
    quiet = {
        "callback": None,
        "checkpoint": None,
        "verbose": False,
        "warm_start": False,
        "random_state": seed,
    }
    model.set_params(**{name: value for name, value in quiet.items() if name in model.get_params()})
    model.set_params(**numbered(estimator))
    part, chosen = part_of(X, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            return model.fit(part, y[chosen])
        except InterruptedFitWarning:
            raise KeyboardInterrupt from None
