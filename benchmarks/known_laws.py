"""Laws that a sparse network should find from few rows, most of them with offsets that real columns have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

ROWS, FRESH_ROWS = 700, 2000

# Changes when what a law draws does, so that fits to other data are not taken for fits to this.
DRAWN = "1"

Drawn = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Law:
    """A law: how rows and their targets are drawn, and what kind of law it is."""

    draw: Callable[[int, int], Drawn]  # from rows and a seed
    piecewise_linear: bool = False
    classes: bool = False


def law(
    columns: Callable[[np.random.Generator, int], np.ndarray],
    target: Callable[..., np.ndarray],
    **kind: bool,
) -> Law:
    """Make a law of how rows are drawn and of a function of their columns."""

    def draw(rows: int, seed: int) -> Drawn:
        X = columns(np.random.default_rng(seed), rows)
        return X, target(*X.T)

    return Law(draw, **kind)


def uniform(*bounds: tuple[float, float]) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Make a drawer of independent uniform columns."""
    low, high = np.transpose(bounds)
    return lambda draw, rows: draw.uniform(low, high, size=(rows, len(bounds)))


def bill(minutes: np.ndarray, messages: np.ndarray, photos: np.ndarray) -> np.ndarray:
    """Give the bill of the README, which photos do not enter."""
    return 9 + 0.2 * np.maximum(minutes - 100, 0) + 0.5 * np.maximum(messages - 20, 0)


def weather(kelvin: np.ndarray, hectopascal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give both as deviations from their middles, between -1 and 1."""
    return (kelvin - 293) / 10, (hectopascal - 1013) / 20


def xor(kelvin: np.ndarray, hectopascal: np.ndarray) -> np.ndarray:
    """Give |a - b| - |a + b| of the deviations a and b.

    That is 2 min(|a|, |b|) where their signs differ, and -2 min(|a|, |b|) where they do not: continuous and
    piecewise linear, with the signs of XOR.
    """
    a, b = weather(kelvin, hectopascal)
    return np.abs(a - b) - np.abs(a + b)


def xor_class(kelvin: np.ndarray, hectopascal: np.ndarray) -> np.ndarray:
    """Give 1 where one is above its middle and the other below, and else 0."""
    a, b = weather(kelvin, hectopascal)
    return (a * b < 0).astype(int)


def linear(*columns: np.ndarray) -> np.ndarray:
    """Give 7 + x1 - 2 x2 + 3 x3 - ... of as many columns as there are."""
    return 7 + sum((-1) ** j * (j + 1) * column for j, column in enumerate(columns))


WEATHER = uniform((283, 303), (993, 1033))
LAWS = {
    "cone": law(uniform((-2, 2), (-2, 2)), lambda x, z: 30 - 10 * np.hypot(x, z)),
    "product": law(uniform((-1.5, 1.5), (-1.5, 1.5)), lambda x, z: 10 + 3 * x * z),
    "sine": law(uniform((-2, 2)), lambda x: np.sin(3 * x)),
    "friedman1": Law(lambda rows, seed: make_friedman1(rows, random_state=seed)),
    "friedman2": Law(lambda rows, seed: make_friedman2(rows, random_state=seed)),
    "friedman3": Law(lambda rows, seed: make_friedman3(rows, random_state=seed)),
    "capped": law(uniform((0, 10)), lambda t: np.minimum(2 * t, 10) + 3, piecewise_linear=True),
    "bill": law(
        uniform((0, 300), (0, 60), (0, 40)), lambda *usage: 200 - bill(*usage), piecewise_linear=True
    ),
    "kelvin": law(uniform((250, 350)), lambda kelvin: np.maximum(kelvin - 300, 0), piecewise_linear=True),
    "tent": law(
        lambda draw, rows: draw.integers(1980, 2021, size=(rows, 1)).astype(float),
        lambda year: 20 - np.abs(year - 2000),
        piecewise_linear=True,
    ),
    "xor": law(WEATHER, xor, piecewise_linear=True),
    "xor-class": law(WEATHER, xor_class, classes=True),
    "linear": law(lambda draw, rows: draw.standard_normal((rows, 10)), linear, piecewise_linear=True),
}


def problem(known: Law, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw the rows to fit, and fresh ones without noise."""
    X, y = known.draw(ROWS + FRESH_ROWS, seed)
    draw = np.random.default_rng([seed, 1])
    clean, fresh = y[:ROWS], y[ROWS:]
    if known.classes:
        noisy = np.where(draw.random(ROWS) < noise, 1 - clean, clean)
    else:
        noisy = clean + noise * clean.std() * draw.standard_normal(ROWS)
    return X[:ROWS], noisy, X[ROWS:], fresh
