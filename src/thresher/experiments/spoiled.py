"""Networks close to a planted one, and wrong: what no certificate may take for the planted one.

Some of them are the same function on all inputs, written otherwise; those are the hard ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher.network import Layer, Network

if TYPE_CHECKING:
    from numpy.random import Generator

Weights = NDArray[np.float64]


def variants(
    U: Weights,  # (features, neurons)
    v: Weights,  # (neurons,)
    X: Weights,
    y: Weights,
    rng: Generator,
) -> Iterator[tuple[str, Network]]:
    """Give spoiled versions of the network ``sum_i v_i relu(x . u_i)``, each with what was done to it."""
    for name, spoil in SPOILERS.items():
        made = spoil(U.copy(), v.copy(), X, y, rng)
        if made is not None:
            yield name, network(*made)


def network(U: Weights, v: Weights) -> Network:
    """Make a network with any output weights."""
    return Network((Layer(U, np.zeros(U.shape[1])), Layer(v[:, None], np.zeros(1))))


def shuffled(U: Weights, v: Weights, rng: Generator) -> Network:
    """Give the same network with neurons in another order, and factors moved between layers."""
    order, factors = rng.permutation(len(v)), np.exp(rng.standard_normal(len(v)))
    return network((U * factors)[:, order], (v / factors)[order])


Made = tuple[Weights, Weights] | None


def _perturbed(U: Weights, v: Weights, X: Weights, y: Weights, rng: Generator) -> Made:
    """Move every weight by a random share, from thirty millionths to a tenth."""
    return U * (1 + 10 ** rng.uniform(-4.5, -1) * rng.standard_normal(U.shape)), v


def _truncated(U: Weights, v: Weights, X: Weights, y: Weights, rng: Generator) -> Made:
    """Drop the weight that matters least, and fit the rest again."""
    if np.count_nonzero(U) < 2:
        return None
    sizes = np.where(U != 0, np.abs(U * v), np.inf)
    U[np.unravel_index(sizes.argmin(), U.shape)] = 0.0
    return _refitted(U, v, X, y)


def _misplaced(U: Weights, v: Weights, X: Weights, y: Weights, rng: Generator) -> Made:
    """Move one weight to another feature of its neuron, and fit again."""
    features, neurons = np.nonzero(U)
    pick = int(rng.integers(len(features)))
    free = np.flatnonzero(U[:, neurons[pick]] == 0)
    if not len(free):
        return None
    U[rng.choice(free), neurons[pick]] = U[features[pick], neurons[pick]]
    U[features[pick], neurons[pick]] = 0.0
    return _refitted(U, v, X, y)


def _flipped(U: Weights, v: Weights, X: Weights, y: Weights, rng: Generator) -> Made:
    """Turn one neuron to the other side, and fit again."""
    U[:, int(rng.integers(len(v)))] *= -1
    return _refitted(U, v, X, y)


def _turned_over(U: Weights, v: Weights, X: Weights, y: Weights, rng: Generator) -> Made:
    """Turn all neurons over whose v_i u_i sum to zero: the same function. Planted triples come last."""
    if len(v) < 3 or np.abs((U * v)[:, -3:].sum(axis=1)).max() > 1e-9 * np.abs(U).max():
        return None
    U[:, -3:] *= -1
    return U, v


def _two_sided(U: Weights, v: Weights, X: Weights, y: Weights, rng: Generator) -> Made:
    """Add linear parts to lines so that they sum to zero: the same function, two neurons to a line."""
    _, sizes, directions = np.linalg.svd(U)
    if len(sizes) == len(v) and sizes[-1] > 1e-9 * sizes[0]:
        return None
    shift = directions[-1] * rng.uniform(0.1, 1.0)
    used = np.abs(shift) > 1e-12
    return np.hstack([U, -U[:, used]]), np.concatenate([v + shift, -shift[used]])


def _padded(U: Weights, v: Weights, X: Weights, y: Weights, rng: Generator) -> Made:
    """Add a neuron far below rounding: nearly the same function, with one neuron too many."""
    extra = np.zeros((len(U), 1))
    extra[int(rng.integers(len(U)))] = rng.choice([-1.0, 1.0])
    return np.hstack([U, extra]), np.append(v, 1e-13 * np.abs(v).max())


def _refitted(U: Weights, v: Weights, X: Weights, y: Weights) -> tuple[Weights, Weights]:
    """Fit the nonzeros by least squares, gates following for a few rounds."""
    neurons, features = np.nonzero(U.T)
    for _ in range(5):
        gates = X @ U > 0
        columns = X[:, features] * gates[:, neurons]
        fused = np.linalg.lstsq(columns, y, rcond=None)[0]
        U = np.zeros_like(U)
        U[features, neurons] = fused / v[neurons]
    return U, v


SPOILERS: dict[str, Callable[[Weights, Weights, Weights, Weights, Generator], Made]] = {
    "perturbed": _perturbed,
    "truncated": _truncated,
    "misplaced": _misplaced,
    "flipped": _flipped,
    "turned over": _turned_over,
    "two-sided": _two_sided,
    "padded": _padded,
}
