"""Sets of activation patterns, one bit for each row of the data.

A pattern is the 0/1 diagonal of ``D_i = diag(X h_i > 0)``. Millions of them are held, compared and counted as
packed bits; rows are never spread out into numbers but for a few patterns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError, MemoryLimitError, ParameterError

# What a set of patterns may take unless more is allowed: a gigabyte.
MEMORY_LIMIT = 2**30

# Bits that are spread out at a time.
CHUNK_BITS = 2**24


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct or repeated activation patterns on the same rows, as packed bits.

    Attributes
    ----------
    bits : uint8 array of shape (count, ceil(rows / 8))
        Bit r of a pattern, the highest bit of a byte first; bits beyond the last row are zero.
    rows : int
        Rows of the data.
    generators : float array of shape (count, features), or None
        A generator that makes each pattern, where one is known.
    """

    bits: NDArray[np.uint8]
    rows: int
    generators: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.bits.ndim != 2 or self.bits.shape[1] != -(-self.rows // 8) or self.rows < 1:
            raise ParameterError(
                f"bits have shape {self.bits.shape}, but {self.rows} rows need (count, "
                f"{-(-self.rows // 8)}). Use pack() to make patterns from gates."
            )

    @property
    def count(self) -> int:
        """How many patterns there are."""
        return len(self.bits)

    @property
    def nbytes(self) -> int:
        """Bytes of the bits."""
        return self.bits.nbytes

    def active(self) -> NDArray[np.int64]:
        """Count the active rows of every pattern, the trace of D_i."""
        return np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64)

    def gates(self, start: int = 0, stop: int | None = None) -> NDArray[np.bool_]:
        """Spread some patterns out, as booleans of shape (patterns, rows)."""
        return np.unpackbits(self.bits[start:stop], axis=1, count=self.rows).view(np.bool_)

    def chunks(self, numbers: int = CHUNK_BITS) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Spread all patterns out, some at a time: where each part starts, and its gates."""
        step = max(1, numbers // self.rows)
        for start in range(0, self.count, step):
            yield start, self.gates(start, start + step)

    def take(self, chosen: NDArray[np.int64]) -> Patterns:
        """Give some of the patterns, in the order asked for."""
        generators = None if self.generators is None else self.generators[chosen]
        return Patterns(self.bits[chosen], self.rows, generators)

    def distinct(self) -> Patterns:
        """Drop repeated patterns, keeping the first of each, in the order they came.

        Examples
        --------
        >>> pack(np.array([[True, False], [False, True], [True, False]])).distinct().gates().tolist()
        [[True, False], [False, True]]
        """
        keys = np.ascontiguousarray(self.bits).view(f"V{self.bits.shape[1]}").ravel()
        _, first = np.unique(keys, return_index=True)
        return self.take(np.sort(first))

    def opposite(self) -> Patterns:
        """Give every pattern's complement ``I - D_i``: what opposite generators make unless a row ties."""
        generators = None if self.generators is None else -self.generators
        return Patterns(pack(~self.gates()).bits, self.rows, generators)

    def one_of_each_pair(self) -> Patterns:
        """Keep one of each pair of complements: the one active on the first row, and nothing twice.

        Examples
        --------
        >>> both = pack(np.array([[True, False], [False, True], [True, True]]))
        >>> both.one_of_each_pair().gates().tolist()
        [[True, False], [True, True]]
        """
        flipped = self.bits[:, 0] < 128
        bits = np.where(flipped[:, None], self.opposite().bits, self.bits)
        generators = self.generators
        if generators is not None:
            generators = np.where(flipped[:, None], -generators, generators)
        return Patterns(bits, self.rows, generators).distinct()


def pack(gates: NDArray[np.bool_], generators: NDArray[np.float64] | None = None) -> Patterns:
    """Pack gates of shape (patterns, rows) into bits.

    Examples
    --------
    >>> pack(np.array([[True, False, True]])).active().tolist()
    [2]
    """
    gates = np.asarray(gates, dtype=np.bool_)
    return Patterns(np.packbits(gates, axis=1), gates.shape[1], generators)


def patterns_of(
    X: NDArray[np.float64],  # (rows, features)
    generators: NDArray[np.float64],  # (count, features)
) -> Patterns:
    """Compute the patterns ``X h_i > 0`` of given generators, repeated ones included."""
    step = max(1, CHUNK_BITS // len(X))
    parts = [
        np.packbits((X @ generators[start : start + step].T > 0).T, axis=1)
        for start in range(0, len(generators), step)
    ]
    return Patterns(np.concatenate(parts), len(X), generators)


def joined(*sets: Patterns) -> Patterns:
    """Put sets on the same rows together, repeated patterns dropped."""
    generators = [one.generators for one in sets if one.generators is not None]
    known = np.concatenate(generators) if len(generators) == len(sets) else None
    return Patterns(np.concatenate([one.bits for one in sets]), sets[0].rows, known).distinct()


def checked_rows(X: object) -> NDArray[np.float64]:
    """Take data as a finite float64 array of shape (rows, features)."""
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X holds what is not a number ({error}). Convert or encode it.") from error
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"X has shape {rows.shape}, but rows and columns are needed, at least one of each.")
    if not np.isfinite(rows).all():
        raise DataError("X holds NaN or infinity. Drop those rows, or fill them in.")
    return rows


def refuse_too_many(count: float, rows: int, features: int, limit: int = MEMORY_LIMIT) -> None:
    """Refuse a set of patterns, with a generator each, that would not fit, before anything is made."""
    needed = count * (-(-rows // 8) + 8 * features)
    if needed > limit:
        raise MemoryLimitError(
            f"up to {count:,.0f} patterns of {rows:,} rows would need {needed:,.0f} bytes, but memory_limit "
            f"is {limit:,}. Use fewer rows or features, sample patterns, or raise memory_limit."
        )
