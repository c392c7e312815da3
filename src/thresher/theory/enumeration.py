"""All activation patterns of sparse generators, exactly: one, two or three nonzeros.

Every pattern of generators that are perpendicular to no row is found. (A generator exactly perpendicular to
several rows at once may make others; no open set of weights has them.)
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError
from thresher.theory.counting import sparse_count
from thresher.theory.patterns import (
    MEMORY_LIMIT,
    Patterns,
    checked_rows,
    joined,
    pack,
    patterns_of,
    refuse_too_many,
)

# Rows count as perpendicular to a direction below this share of the product of lengths.
PERPENDICULAR = 1e-12


def enumerate_patterns(X: object, nonzeros: int, memory_limit: int = MEMORY_LIMIT) -> Patterns:
    """Enumerate the activation patterns of all generators with at most `nonzeros` nonzeros.

    Parameters
    ----------
    X : array of shape (n, features)
    nonzeros : {1, 2, 3}
        One: the two signs of every feature. Two: a generator turns through the plane of each pair of
        features. Three: every pattern of a triple touches a direction that is perpendicular to two rows; with
        n rows that are n^2 directions for each triple, so this is for small n.
    memory_limit : int
        Bytes that bits and generators may take; more is refused before anything is made.

    Returns
    -------
    Patterns
        Distinct, with a generator for each.

    Examples
    --------
    >>> X = np.array([[1.0, 0.2], [-0.3, 1.0], [0.5, 0.5]])
    >>> enumerate_patterns(X, 1).count, enumerate_patterns(X, 2).count
    (4, 6)
    """
    rows = checked_rows(X)
    features = rows.shape[1]
    if nonzeros not in (1, 2, 3):
        raise ParameterError(
            f"nonzeros={nonzeros!r}, but patterns are enumerated for 1, 2 or 3. Use sample_patterns beyond "
            "that."
        )
    refuse_too_many(
        sparse_count(len(rows), features, min(nonzeros, features)), len(rows), features, memory_limit
    )
    signed = np.concatenate([np.eye(features), -np.eye(features)])
    parts = [patterns_of(rows, signed)]
    for size, directions in ((2, plane_cells), (3, space_cells)):
        if size > min(nonzeros, features):
            break
        for chosen in combinations(range(features), size):
            gates, inner = directions(rows[:, chosen])
            generators = np.zeros((len(inner), features))
            generators[:, chosen] = inner
            parts.append(pack(gates, generators))
    return joined(*parts)


def plane_cells(plane: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Turn a generator through the plane and give the pattern of every arc between two changes.

    Parameters
    ----------
    plane : array of shape (n, 2)

    Returns
    -------
    gates : boolean array of shape (arcs, n)
    generators : array of shape (arcs, 2)
        The middle of each arc.
    """
    some = (plane != 0).any(axis=1)
    if not some.any():
        return np.zeros((1, len(plane)), dtype=np.bool_), np.array([[1.0, 0.0]])
    rows = plane[some]
    # Opposite rows turn a gate at the same angle: brought into one half-plane they have equal bits.
    below = (rows[:, 1] < 0) | ((rows[:, 1] == 0) & (rows[:, 0] < 0))
    half = np.where(below[:, None], -rows, rows)
    angles, place = np.unique(np.arctan2(half[:, 1], half[:, 0]), return_inverse=True)
    count = len(angles)
    # A row of the half-plane at the k-th angle opens at edge k + count (its angle + 3 pi / 2) and closes at
    # edge k (its angle + pi / 2): arc a lies between edges a and a + 1.
    arc = np.arange(2 * count)[:, None]
    closed = (arc >= place) & (arc < place + count)
    gates = np.zeros((2 * count, len(plane)), dtype=np.bool_)
    gates[:, some] = np.where(below, closed, ~closed)
    edges = np.concatenate([angles + np.pi / 2, angles + 3 * np.pi / 2])
    middles = edges + np.diff(edges, append=edges[0] + 2 * np.pi) / 2
    return gates, np.column_stack([np.cos(middles), np.sin(middles)])


def space_cells(space: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Give the pattern of every cell that rows of three numbers cut space into.

    Each cell touches a direction r perpendicular to two independent rows. Around r only the rows that are
    perpendicular to it change, and they do so as in the plane perpendicular to r.
    """
    lengths = np.linalg.norm(space, axis=1)
    rows = space[lengths > 0]
    basis = np.linalg.svd(rows, full_matrices=False)[2] if len(rows) else np.zeros((0, 3))
    spread = np.linalg.svd(rows, compute_uv=False) if len(rows) else np.zeros(0)
    if len(spread) < 3 or spread[-1] <= PERPENDICULAR * spread[0]:
        # All rows lie in one plane: only what a generator does within it matters.
        two = np.zeros((2, 3))
        two[: min(2, len(basis))] = basis[:2]
        gates, inner = plane_cells(space @ two.T)
        return gates, inner @ two
    parts = [_around(space, lengths, direction) for direction in _directions(rows)]
    gates = np.concatenate([part[0] for part in parts])
    generators = np.concatenate([part[1] for part in parts])
    _, first = np.unique(np.packbits(gates, axis=1), axis=0, return_index=True)
    return gates[first], generators[first]


def _directions(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give both directions perpendicular to every two independent rows, each one once or a few times."""
    one, two = np.triu_indices(len(rows), 1)
    units = rows / np.linalg.norm(rows, axis=1)[:, None]
    crossed = np.cross(units[one], units[two])
    lengths = np.linalg.norm(crossed, axis=1)
    crossed = crossed[lengths > PERPENDICULAR] / lengths[lengths > PERPENDICULAR, None]
    return np.concatenate([crossed, -crossed])


def _around(
    space: NDArray[np.float64], lengths: NDArray[np.float64], direction: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Give the cells that touch one direction, and a generator inside each."""
    product = space @ direction
    flat = np.abs(product) <= PERPENDICULAR * lengths
    plane = np.linalg.svd(direction[None])[2][1:]  # (2, 3), perpendicular to the direction
    turning, inner = plane_cells(space[flat] @ plane.T)
    gates = np.repeat((product > 0)[None], len(turning), axis=0)
    gates[:, flat] = turning
    aside = inner @ plane  # (cells, 3)
    # Far enough along the direction that the rows it decides stay decided.
    steep, across = np.abs(product[~flat]), np.abs(space[~flat] @ aside.T)
    reach = 1.0 if not len(steep) else np.maximum(1.0, 2 * (across / steep[:, None]).max(axis=0))[:, None]
    return gates, reach * direction + aside
