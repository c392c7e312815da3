"""Assumption 2, measured, and the probabilities with which the paper derives it from assumption 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.errors import DataError, ParameterError
from thresher.theory.patterns import CHUNK_BITS, Patterns
from thresher.theory.separation import COMPARISONS, Separation, separation


@dataclass(frozen=True)
class Measured:
    """Epsilon and gamma of a set of patterns on given data.

    Attributes
    ----------
    epsilon : float
        The smallest active fraction of rows.
    separation : Separation
        The smallest Hamming distance; `separation.gamma` is what is proved of gamma.
    """

    epsilon: float
    separation: Separation


def measure(patterns: Patterns, comparisons: int = COMPARISONS) -> Measured:
    """Measure assumption 2: epsilon and gamma of a set of patterns, whatever the data.

    Examples
    --------
    >>> from thresher.theory.enumeration import enumerate_patterns
    >>> X = np.random.default_rng(0).standard_normal((40, 5))
    >>> found = measure(enumerate_patterns(X, 1))
    >>> found.epsilon, found.separation.gamma, found.separation.exact
    (0.425, 0.4, True)
    """
    return Measured(epsilon(patterns), separation(patterns, comparisons))


def epsilon(patterns: Patterns) -> float:
    """Give the smallest share of rows on which a pattern is active."""
    return int(patterns.active().min()) / patterns.rows


def binary_entropy(share: float) -> float:
    """Give ``-p ln p - (1 - p) ln(1 - p)``."""
    if share <= 0 or share >= 1:
        return 0.0
    return -share * math.log(share) - (1 - share) * math.log(1 - share)


def activity_probability(rows: int, patterns: int, epsilon: float, largest: int) -> float:
    """Bound the probability of assumption 2.1: ``1 - p exp(-n ((1 - epsilon) / 128 - H(epsilon)))``.

    It needs ``n >= 4 k`` and is 0, promising nothing, unless ``H(epsilon) < (1 - epsilon) / 128``, which no
    epsilon above 0.001 meets.

    Parameters
    ----------
    rows, patterns : int
    epsilon : float
    largest : int
        The most nonzeros k of a generator.
    """
    if rows < 4 * largest:
        return 0.0
    exponent = rows * ((1 - epsilon) / 128 - binary_entropy(epsilon))
    return max(0.0, 1 - math.exp(min(700.0, math.log(patterns) - exponent)))


def separation_probability(rows: int, delta: float, constant: float = 1.0) -> float:
    """Bound the probability of assumption 2.2, ``1 - 2 exp(-c delta^2 n)``, with c as given."""
    return max(0.0, 1 - 2 * math.exp(-constant * delta**2 * rows))


def separation_allowed(largest: int, gamma: float, delta: float) -> bool:
    """Say whether assumption 1(a) with k nonzeros serves gamma: ``k <= 0.69 / (pi (gamma + delta))``."""
    return largest <= 0.69 / (math.pi * (gamma + delta))


def rows_needed(largest: int, delta: float, width: float, constant: float = 1.0) -> int:
    """Give the rows that the remark on sample complexity asks for, ``max(4 k, C delta^-6 w(K)^2)``.

    The remark has w(K) and the corollary it rests on w(K)^2; this is the corollary's. C is not named.

    Examples
    --------
    >>> rows_needed(largest=3, delta=0.5, width=3.0)
    576
    """
    if delta <= 0 or width < 0 or constant <= 0:
        raise ParameterError(
            f"delta={delta}, width={width}, constant={constant}: use positive numbers, and a width of 0 or "
            "more."
        )
    return math.ceil(max(4 * largest, constant * delta**-6 * width**2))


def mean_width(features: int, largest: int, kind: str = "b", draws: int = 4000, seed: int = 0) -> float:
    """Estimate the normalised Gaussian mean width w(K) of the neurons that assumption 1 allows.

    For 1(a), signs on k of d features, ``sup |<g, x>|`` is the sum of the k largest ``|g_j|`` over sqrt(k);
    for 1(b), any values on at most k features, it is their Euclidean norm. The expectation is a mean over
    draws.

    Parameters
    ----------
    features, largest : int
        d and k.
    kind : {"a", "b"}
    draws, seed : int

    Examples
    --------
    >>> round(mean_width(100, 1), 1), mean_width(100, 5, "a") < mean_width(100, 5, "b")
    (2.7, True)
    """
    if kind not in ("a", "b") or not 1 <= largest <= features:
        raise ParameterError(
            f"kind={kind!r} and largest={largest}, but kind is 'a' or 'b' and largest from 1 to {features}."
        )
    sizes = np.abs(np.random.default_rng(seed).standard_normal((draws, features)))
    top = np.partition(sizes, features - largest, axis=1)[:, features - largest :]
    reached = top.sum(axis=1) / math.sqrt(largest) if kind == "a" else np.linalg.norm(top, axis=1)
    return float(reached.mean())


def geodesic_separation(generators: ArrayLike) -> float:
    """Give the smallest normalised geodesic distance ``arccos(<u, v>) / pi`` among generators.

    Parameters
    ----------
    generators : array of shape (count, features)
        Without zero rows; lengths do not matter.

    Examples
    --------
    >>> round(geodesic_separation([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]), 12)
    0.5
    """
    vectors = np.asarray(generators, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1) if vectors.ndim == 2 else np.zeros(1)
    if len(vectors) < 2 or not (lengths > 0).all():
        raise DataError("a distance needs two generators or more, none of them zero.")
    units = vectors / lengths[:, None]
    step = max(1, CHUNK_BITS // len(units))
    nearest = math.inf
    for start in range(0, len(units), step):
        part = units[start : start + step]
        product = part @ units.T
        product[np.arange(len(part)), np.arange(start, start + len(part))] = -np.inf
        one, two = np.divmod(int(product.argmax()), len(units))
        # arccos loses half the digits near 1; the chord does not.
        chord = float(np.linalg.norm(part[one] - units[two]))
        nearest = min(nearest, 2 * math.asin(min(1.0, chord / 2)) / math.pi)
    return nearest


def discrete_separation(largest: int) -> float:
    """Bound the geodesic distance of two neurons of assumption 1(a) from below: ``0.69 / (pi k)``."""
    return 0.69 / (math.pi * largest)


def packing_separation(chord: float) -> float:
    """Bound the geodesic distance of unit vectors a chord apart from below: ``0.69 chord^2 / pi``."""
    return 0.69 * chord**2 / math.pi


def departure_from_gaussian(X: NDArray[np.float64]) -> float:
    """Measure how far data is from independent standard normal entries, in standard errors.

    The largest, over columns and pairs of columns, of how many standard errors mean, variance, skewness,
    fourth moment and correlation are off. Data that is standard normal gives a few; no value proves it.
    """
    n, d = X.shape
    if n < 2:
        return math.inf
    centred = [
        X.mean(axis=0) * math.sqrt(n),
        ((X**2).mean(axis=0) - 1) * math.sqrt(n / 2),
        (X**3).mean(axis=0) * math.sqrt(n / 15),
        ((X**4).mean(axis=0) - 3) * math.sqrt(n / 96),
    ]
    correlation = X.T @ X / math.sqrt(n)
    centred.append(correlation[np.triu_indices(d, 1)])
    return float(max(np.abs(part).max(initial=0.0) for part in centred))
