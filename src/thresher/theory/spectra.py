"""Lemma 1: the paper's alpha and beta, beside the true extreme eigenvalues of ``A_S' A_S``.

The lemma bounds the smallest eigenvalue of a block by letting its vector be orthogonal to 1. That is right
when all off-diagonal entries are equal, and not in general; and the dictionary of all gates holds columns
that are exactly dependent. So nothing here takes the closed form for a certificate: spectra are computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.errors import MemoryLimitError, ParameterError
from thresher.theory.patterns import MEMORY_LIMIT, Patterns, checked_rows

# Unit roundoff of float64.
ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class LemmaBounds:
    """What lemma 1 states.

    Attributes
    ----------
    alpha, beta : float
        The stated bounds on the eigenvalues; an alpha of 0 or less bounds nothing.
    probability : float
        The stated probability, 0 where the expression is below zero.
    """

    alpha: float
    beta: float
    probability: float


def lemma_bounds(
    rows: int, size: int, epsilon: float, gamma: float, delta: float, constant: float = 1.0
) -> LemmaBounds:
    """Evaluate lemma 1 as it is stated.

    Parameters
    ----------
    rows, size : int
        n rows, and s columns in the support.
    epsilon, gamma : float
        Those of assumption 2.
    delta : float
        Any number between 0 and ``epsilon / (1 - gamma)``, and below 1.
    constant : float
        The lemma's universal c, which the paper does not name.

    Examples
    --------
    >>> bounds = lemma_bounds(rows=10**6, size=2, epsilon=0.4, gamma=0.3, delta=0.01)
    >>> round(bounds.alpha, 3), round(bounds.beta, 3)
    (0.083, 1.917)
    """
    allowed = min(1.0, epsilon / (1 - gamma)) if gamma < 1 else 1.0
    if not 0 < delta < allowed:
        raise ParameterError(f"delta={delta}, but lemma 1 takes a number between 0 and {allowed:.4g}.")
    ratio = (1 + delta) / (1 - delta) * math.sqrt(1 - gamma)
    spill = size / (rows**0.25 * (1 - delta))
    pairs = size * (size - 1)
    c, square = constant, delta**2
    failure = (
        2 * pairs * math.exp(-c * square * epsilon * math.sqrt(rows) / (1 + delta))
        + 2 * pairs * math.exp(-c * square * rows**0.75 * epsilon / (rows**0.25 + delta))
        + 8 * pairs * math.exp(-c * square * epsilon * rows / (1 + delta))
    )
    return LemmaBounds(1 - ratio - spill, 1 + (size - 1) * ratio + spill, max(0.0, 1 - failure))


def nonnegative_block_bound(largest: float, size: int) -> float:
    """Bound the smallest eigenvalue of a unit-diagonal block with other entries in [0, c]: ``1 - c s / 2``.

    This is what remains of the lemma's step for unequal entries. It is attained, for even s, by a bipartite
    block: c between two halves and 0 within each.
    """
    half = size // 2
    return 1 - largest * math.sqrt(half * (size - half))


def dictionary_columns(
    X: object, patterns: Patterns, memory_limit: int = MEMORY_LIMIT
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Write out the unit columns ``D_i X_j / ||D_i X_j||`` of a small dictionary.

    Parameters
    ----------
    X : array of shape (n, d)
    patterns : Patterns
        p patterns on the same rows.
    memory_limit : int
        Bytes the columns may take.

    Returns
    -------
    columns : array of shape (n, p * d)
        Position ``i * d + j``; columns that are zero stay zero.
    norms : array of shape (p * d,)
        Norms before scaling.
    """
    rows = checked_rows(X)
    needed = 8 * len(rows) * patterns.count * rows.shape[1]
    if needed > memory_limit:
        raise MemoryLimitError(
            f"{patterns.count:,} patterns of {rows.shape[1]:,} features on {len(rows):,} rows make columns "
            f"of {needed:,} bytes, but memory_limit is {memory_limit:,}. Use fewer patterns, or raise "
            "memory_limit."
        )
    gated = patterns.gates()[:, :, None] * rows[None]  # (p, n, d)
    columns = gated.transpose(1, 0, 2).reshape(len(rows), -1)
    norms = np.linalg.norm(columns, axis=0)
    return columns / np.where(norms > 0, norms, 1.0), norms


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of a Gram matrix of unit columns, and what rounding leaves certain of them.

    Attributes
    ----------
    eigenvalues : array, ascending
    rounding : float
        The most that computing them in float64 can have moved any of them.
    """

    eigenvalues: NDArray[np.float64]
    rounding: float

    @property
    def alpha(self) -> float:
        """Give the smallest eigenvalue."""
        return float(self.eigenvalues[0])

    @property
    def beta(self) -> float:
        """Give the largest eigenvalue."""
        return float(self.eigenvalues[-1])

    @property
    def certain(self) -> float:
        """Give what the smallest eigenvalue surely is at least: it less the rounding, and not below zero."""
        return max(0.0, self.alpha - self.rounding)

    @property
    def condition(self) -> float:
        """Give beta / alpha, infinite where rounding cannot tell alpha from zero."""
        return self.beta / self.alpha if self.certain > 0 else math.inf


def spectrum(columns: NDArray[np.float64]) -> Spectrum:
    """Compute the eigenvalues of ``A_S' A_S`` for unit columns, with a bound on their rounding.

    An entry of the Gram matrix is off by at most about n roundoffs, so a matrix of s columns by s n in norm;
    the eigenvalue routine adds a modest multiple of s roundoffs. Twice the sum is a safe bound.
    """
    n, s = columns.shape
    if s == 0:
        return Spectrum(np.ones(1), 0.0)
    gram = columns.T @ columns
    eigenvalues = np.linalg.eigvalsh(gram)
    rounding = 2 * ROUNDOFF * s * (n + 2 * s + 10) * max(1.0, float(eigenvalues[-1]) / s)
    return Spectrum(eigenvalues, rounding)


def random_supports(size: int, columns: int, draws: int, seed: int = 0) -> NDArray[np.int64]:  # (draws, size)
    """Draw supports of a given size uniformly."""
    if not 1 <= size <= columns:
        raise ParameterError(f"size={size}, but a support has from 1 to {columns} columns.")
    rng = np.random.default_rng(seed)
    return np.stack([np.sort(rng.choice(columns, size, replace=False)) for _ in range(draws)])


def worst_support(columns: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Grow a support greedily so that its columns come as close to dependent as they can.

    It starts from the two most parallel columns, and adds the one that is nearest to the span of those it
    has. Greedy, not exhaustive: the true worst support may be worse.

    Returns
    -------
    int array of shape (size,), ascending
    """
    usable = np.flatnonzero(np.linalg.norm(columns, axis=0) > 0)
    if not 2 <= size <= len(usable):
        raise ParameterError(f"size={size}, but the nonzero columns allow from 2 to {len(usable)}.")
    rest = columns[:, usable].copy()
    coherence = np.abs(rest.T @ rest)
    np.fill_diagonal(coherence, 0.0)
    first, second = np.unravel_index(coherence.argmax(), coherence.shape)
    chosen: list[int] = []
    # What is left of every column after the span of the chosen ones is taken away.
    for step in range(size):
        left = np.linalg.norm(rest, axis=0)
        left[chosen] = np.inf
        pick = (int(first), int(second))[step] if step < 2 else int(left.argmin())
        chosen.append(pick)
        length = np.linalg.norm(rest[:, pick])
        if length > 1e-12:
            unit = rest[:, pick] / length
            rest -= np.outer(unit, unit @ rest)
    return np.sort(usable[chosen])
