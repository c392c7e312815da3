"""The smallest Hamming distance among activation patterns: exactly where that can be, else between bounds.

With p patterns there are p^2 / 2 pairs, five thousand million for a hundred thousand patterns. Small sets are
compared pair by pair, in matrix products. Large ones go by the pigeonhole: once a pair at distance g is
known, the rows are cut into g blocks, and any closer pair must agree on all of one block. Patterns that agree
on a block are found by sorting, and only those are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError
from thresher.theory.patterns import Patterns

# Multiply-adds of all pairs that are still done pair by pair: some ten seconds on one core.
PAIRWISE_WORK = 4e11

# Pairs that agree on a block and are compared, in all: beyond this the search ends with bounds.
COMPARISONS = 30_000_000

# Rows in the smallest block that is tried: on fewer, unrelated patterns agree too often.
SMALLEST_BLOCK = 18

# Pairs compared at a time.
BATCH = 2**16


@dataclass(frozen=True)
class Separation:
    """The smallest Hamming distance of two distinct patterns, gamma times the rows.

    Attributes
    ----------
    lower, upper : int
        No two patterns are closer than `lower`; two of them are `upper` apart. Equal where exact.
    pair : tuple of int
        Two patterns at distance `upper`.
    rows : int
    patterns : int
        Distinct patterns compared.
    repeated : int
        Patterns that came more than once and were dropped: gamma is about distinct ones.
    """

    lower: int
    upper: int
    pair: tuple[int, int]
    rows: int
    patterns: int
    repeated: int

    @property
    def exact(self) -> bool:
        """Whether the distance is known and not only bounded."""
        return self.lower == self.upper

    @property
    def gamma(self) -> float:
        """Give the largest gamma that is proved: `lower` over the rows."""
        return self.lower / self.rows


def separation(patterns: Patterns, comparisons: int = COMPARISONS) -> Separation:
    """Find the smallest Hamming distance among distinct patterns (gamma of assumption 2.2, times n).

    Parameters
    ----------
    patterns : Patterns
    comparisons : int
        The most pairs to compare in full, for sets too large to compare all.

    Examples
    --------
    >>> from thresher.theory.patterns import pack
    >>> gates = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]], dtype=bool)
    >>> found = separation(pack(gates))
    >>> found.upper, found.pair, found.gamma
    (1, (0, 2), 0.25)
    """
    distinct = patterns.distinct()
    repeated = patterns.count - distinct.count
    if distinct.count < 2:
        raise DataError(
            f"{distinct.count} distinct pattern, but a distance needs two. Use more generators or rows."
        )
    # A whole number of words, so that distances are counted eight bytes at a time.
    words = _words(distinct)
    if distinct.count**2 / 2 * distinct.rows <= PAIRWISE_WORK:
        upper, pair = _pairwise(distinct)
        lower = upper
    else:
        upper, pair = _close_pair(words)
        lower, upper, pair = _pigeonhole(distinct, words, upper, pair, comparisons)
    return Separation(lower, upper, pair, distinct.rows, distinct.count, repeated)


def _words(patterns: Patterns) -> NDArray[np.uint64]:
    width = -(-patterns.bits.shape[1] // 8) * 8
    padded = np.zeros((patterns.count, width), dtype=np.uint8)
    padded[:, : patterns.bits.shape[1]] = patterns.bits
    return padded.view(np.uint64)


def _distances(
    words: NDArray[np.uint64], one: NDArray[np.int64], two: NDArray[np.int64]
) -> NDArray[np.int64]:
    return np.bitwise_count(words[one] ^ words[two]).sum(axis=1, dtype=np.int64)


def _pairwise(patterns: Patterns) -> tuple[int, tuple[int, int]]:
    """Compare all pairs: with gates as -1 and 1, distance is (n - product) / 2, exact in float32."""
    block = max(1, min(2048, 2**24 // patterns.rows))
    best, pair = patterns.rows + 1, (0, 1)
    for first in range(0, patterns.count, block):
        left = 2 * patterns.gates(first, first + block).astype(np.float32) - 1
        for second in range(first, patterns.count, block):
            right = 2 * patterns.gates(second, second + block).astype(np.float32) - 1
            product = left @ right.T
            if first == second:
                np.fill_diagonal(product, -np.inf)
            place = np.unravel_index(product.argmax(), product.shape)
            distance = round((patterns.rows - float(product[place])) / 2)
            if distance < best:
                best, pair = distance, (first + int(place[0]), second + int(place[1]))
    return best, (min(pair), max(pair))


def _close_pair(words: NDArray[np.uint64], tries: int = 24, idle: int = 6) -> tuple[int, tuple[int, int]]:
    """Find some close pair to start from: neighbours when patterns are sorted by a random word of them.

    So many tries are made at most, and so many without a closer pair end them.
    """
    rng = np.random.default_rng(0)
    best, pair = 2**62, (0, 1)
    since = 0
    for _ in range(tries):
        order = np.argsort(words[:, int(rng.integers(words.shape[1]))])
        distances = _distances(words, order[:-1], order[1:])
        nearest = int(distances.argmin())
        since += 1
        if distances[nearest] < best:
            best, since = int(distances[nearest]), 0
            pair = (int(order[nearest]), int(order[nearest + 1]))
        if best == 1 or since == idle:
            break
    return best, (min(pair), max(pair))


def _pigeonhole(
    patterns: Patterns, words: NDArray[np.uint64], upper: int, pair: tuple[int, int], comparisons: int
) -> tuple[int, int, tuple[int, int]]:
    """Raise the proved distance by ever more blocks, and lower the one found, until they meet."""
    lower, left, target = 1, comparisons, 8
    while lower < upper:
        # No pair closer than `target` is missed with `target` blocks.
        target = min(target, upper)
        if patterns.rows // target < SMALLEST_BLOCK:
            break
        upper, pair, left = _blocks(patterns, words, target, upper, pair, left)
        if left <= 0:
            break
        lower = min(target, upper)
        target = max(target + 1, min(4 * target, patterns.rows // SMALLEST_BLOCK))
    return lower, upper, pair


def _blocks(
    patterns: Patterns, words: NDArray[np.uint64], blocks: int, upper: int, pair: tuple[int, int], left: int
) -> tuple[int, tuple[int, int], int]:
    """Compare all pairs that agree on one of so many blocks of rows; the comparisons left say if it ended."""
    edges = np.linspace(0, patterns.rows, blocks + 1).astype(int)
    for start, stop in pairwise(edges):
        keys = _keys(patterns, int(start), int(stop))
        order = np.argsort(keys)
        same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        # Within a group of equal keys, every pattern is compared with the next one, the one after it, ...
        ahead = 1
        while len(same):
            left -= len(same)
            if left <= 0:
                return upper, pair, 0
            for part in range(0, len(same), BATCH):
                one, two = order[same[part : part + BATCH]], order[same[part : part + BATCH] + ahead]
                distances = _distances(words, one, two)
                nearest = int(distances.argmin())
                if distances[nearest] < upper:
                    upper = int(distances[nearest])
                    pair = (int(min(one[nearest], two[nearest])), int(max(one[nearest], two[nearest])))
            ahead += 1
            same = same[same + ahead < len(order)]
            same = same[keys[order[same + ahead]] == keys[order[same]]]
    return upper, pair, left


def _keys(patterns: Patterns, start: int, stop: int) -> NDArray[np.uint64]:
    """Give a number for each pattern that is equal for patterns equal on these rows.

    Blocks of more than 64 rows are hashed: different blocks with one number only cost a comparison.
    """
    first, last = start // 8, -(-stop // 8)
    part = patterns.bits[:, first:last].copy()
    part[:, 0] &= 0xFF >> (start % 8)
    if stop % 8:
        part[:, -1] &= (0xFF << (8 - stop % 8)) & 0xFF
    width = -(-part.shape[1] // 8) * 8
    padded = np.zeros((len(part), width), dtype=np.uint8)
    padded[:, : part.shape[1]] = part
    keys = np.zeros(len(part), dtype=np.uint64)
    for word in padded.view(np.uint64).T:
        # An odd multiplier and a rotation, so that no word cancels another.
        keys = (keys ^ word) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys
