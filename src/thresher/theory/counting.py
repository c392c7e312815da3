"""How many activation patterns there can be: the counting bounds of the paper's section 3, as functions."""

from __future__ import annotations

import math

from thresher.errors import ParameterError


def cover_count(rows: int, dimension: int) -> int:
    """Count the patterns of a linear threshold on rows in general position, ``2 sum_{i<r} C(n-1, i)``.

    This is exact for rows in general position and an upper bound for any rows, as long as no generator is
    exactly perpendicular to a row.

    Parameters
    ----------
    rows, dimension : int
        Rows n, and the dimension r that generators live in.

    Examples
    --------
    >>> cover_count(rows=5, dimension=2)
    10
    """
    _check(rows, dimension)
    return 2 * sum(math.comb(rows - 1, i) for i in range(dimension))


def sparse_count(rows: int, features: int, nonzeros: int) -> int:
    """Bound the patterns of generators with at most s' nonzeros: ``C(d, s') 2 sum_{i<s'} C(n-1, i)``.

    Each support of s' features adds at most what `cover_count` gives. Generators with fewer nonzeros lie on
    such a support too, and add nothing where no row is exactly perpendicular to them.

    Examples
    --------
    >>> sparse_count(rows=100, features=20, nonzeros=2)
    38000
    """
    _check(rows, nonzeros)
    nonzeros = min(nonzeros, features)
    return math.comb(features, nonzeros) * cover_count(rows, nonzeros)


def paper_bound(rows: int, features: int, nonzeros: int) -> float:
    """Give the paper's closed form for sparse generators, ``2 s' C(d, s') (n / s')^s'``.

    Its step ``sum_{i<s'} C(n-1, i) <= (n / s')^s'`` is false for few rows. With the factor s' the closed form
    is at least `sparse_count` for ``n >= s'`` when s' is 1 or 2 and for ``n >= 4`` when s' is 3, and below it
    for s' = 3 and n = 3: use `sparse_count` where it matters.
    """
    _check(rows, nonzeros)
    return 2 * nonzeros * math.comb(features, nonzeros) * (rows / nonzeros) ** nonzeros


def dense_bound(rows: int, features: int) -> float:
    """Give the paper's closed form for dense generators, ``2 d (e (n - 1) / d)^d``."""
    _check(rows, features)
    return 2 * features * (math.e * (rows - 1) / features) ** features


def _check(rows: int, dimension: int) -> None:
    if rows < 1 or dimension < 1:
        raise ParameterError(
            f"{rows} rows and {dimension} nonzeros, but counting needs whole numbers of 1 or more of each."
        )
