"""Sampling activation patterns where they cannot be enumerated: the scheme of the paper's appendix E."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError
from thresher.theory.patterns import MEMORY_LIMIT, Patterns, checked_rows, patterns_of, refuse_too_many


def draws_needed(
    rows: int, largest: int, neurons: int = 1, tolerance: float = 0.05, constant: float = 1.0
) -> int:
    """Give the paper's number of draws, ``T = (log(2n) / c)^k log(2m / tolerance)``.

    Parameters
    ----------
    rows, largest, neurons : int
        n rows, at most k nonzeros in a neuron, m planted neurons.
    tolerance : float
        The probability of missing one, between 0 and 1.
    constant : float
        The paper's c, an absolute constant it does not name.

    Notes
    -----
    T counts draws on the right support: that a draw hits one of ``C(d, k)`` supports is left out. And no
    constant serves all n: in a plane the 2n patterns of n rows have an average chance of 1/(2n) each, not
    1/log(n)^2. Measure what a sample covers (`covered`) rather than rely on T.

    Examples
    --------
    >>> draws_needed(rows=1000, largest=2, neurons=3)
    277
    """
    if rows < 1 or largest < 1 or neurons < 1 or not 0 < tolerance < 1 or constant <= 0:
        raise ParameterError(
            f"rows={rows}, largest={largest}, neurons={neurons}, tolerance={tolerance}, constant={constant}: "
            "use whole numbers of 1 or more, a tolerance between 0 and 1, and a positive constant."
        )
    return math.ceil((math.log(2 * rows) / constant) ** largest * math.log(2 * neurons / tolerance))


def sample_generators(
    features: int, draws: int, smallest: int, largest: int, seed: int = 0
) -> NDArray[np.float64]:
    """Draw generators as appendix E does: a support of any allowed size, uniformly, and normal values on it.

    Parameters
    ----------
    features, draws : int
    smallest, largest : int
        The fewest and the most nonzeros of a generator.
    seed : int

    Returns
    -------
    array of shape (draws, features)
    """
    largest = min(largest, features)
    if draws < 1 or not 1 <= smallest <= largest:
        raise ParameterError(
            f"draws={draws}, smallest={smallest}, largest={largest}: use one draw or more, and sizes from 1 "
            f"to {features} with smallest <= largest."
        )
    rng = np.random.default_rng(seed)
    sizes = np.arange(smallest, largest + 1)
    # Uniform over supports means that a size comes as often as there are supports of it.
    shares = np.array([math.comb(features, int(size)) for size in sizes], dtype=float)
    chosen = rng.choice(sizes, draws, p=shares / shares.sum())
    order = rng.random((draws, features)).argsort(axis=1).argsort(axis=1)
    return np.where(order < chosen[:, None], rng.standard_normal((draws, features)), 0.0)


def sample_patterns(
    X: object, draws: int, smallest: int, largest: int, seed: int = 0, memory_limit: int = MEMORY_LIMIT
) -> Patterns:
    """Sample distinct activation patterns of sparse generators, with the generators.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((50, 6))
    >>> sample_patterns(X, draws=40, smallest=1, largest=3).count <= 40
    True
    """
    rows = checked_rows(X)
    refuse_too_many(draws, len(rows), rows.shape[1], memory_limit)
    return patterns_of(rows, sample_generators(rows.shape[1], draws, smallest, largest, seed)).distinct()


def covered(patterns: Patterns, wanted: Patterns) -> float:
    """Measure the share of wanted patterns that a set holds."""
    held = {row.tobytes() for row in patterns.bits}
    return sum(row.tobytes() in held for row in wanted.bits) / wanted.count
