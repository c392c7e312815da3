"""Networks close to a planted one, and wrong: what no certificate may take for the planted one.

Some of them are the same function on all inputs, written otherwise; those are the hard ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher.network import Layer, Network

if TYPE_CHECKING:
    from numpy.random import Generator

Weights = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spoilt:
    """The network ``X -> relu(X U) V + c`` that is to be spoiled, with rows and labels."""

    U: Weights  # (features, neurons)
    V: Weights  # (neurons, outputs)
    c: Weights  # (outputs,)
    X: Weights  # (n, features)
    y: Weights  # (n, outputs)


def variants(
    U: Weights,  # (features, neurons)
    V: Weights,  # (neurons,) or (neurons, outputs)
    X: Weights,
    y: Weights,
    rng: Generator,
    c: Weights | None = None,  # (outputs,)
) -> Iterator[tuple[str, Network]]:
    """Give spoiled versions of the network ``relu(X U) V + c``, each with what was done to it."""
    V = V.reshape(U.shape[1], -1)
    c = np.zeros(V.shape[1]) if c is None else c
    for name, spoil in SPOILERS.items():
        made = spoil(Spoilt(U.copy(), V.copy(), c.copy(), X, y.reshape(len(X), -1)), rng)
        if made is not None:
            yield name, network(made.U, made.V, made.c)


def network(U: Weights, V: Weights, c: Weights | None = None) -> Network:
    """Make a network with any output weights, of one output or several."""
    V = V.reshape(U.shape[1], -1)
    return Network((Layer(U, np.zeros(U.shape[1])), Layer(V, np.zeros(V.shape[1]) if c is None else c)))


def shuffled(U: Weights, V: Weights, rng: Generator, c: Weights | None = None) -> Network:
    """Give the same network with neurons in another order, and factors moved between layers."""
    V = V.reshape(U.shape[1], -1)
    order, factors = rng.permutation(len(V)), np.exp(rng.standard_normal(len(V)))
    return network((U * factors)[:, order], (V / factors[:, None])[order], c)


def _perturbed(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Move every weight by a random share, from thirty millionths to a tenth."""
    share = 10 ** rng.uniform(-4.5, -1) * rng.standard_normal(given.U.shape)
    return replace(given, U=given.U * (1 + share))


def _moved(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Move one weight alone, by a share from a ten-millionth to a tenth."""
    place = rng.choice(np.argwhere(given.U))
    given.U[tuple(place)] *= 1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-7, -1)
    return given


def _faintest(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Move the weight that matters least, by a tenth to four fifths: what larger ones could hide."""
    place = np.unravel_index(_effects(given).argmin(), given.U.shape)
    given.U[place] *= 1 + rng.choice([-1, 1]) * rng.uniform(0.1, 0.8)
    return given


def _shifted(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Move an output bias by a share from a ten-millionth to a thousandth."""
    if not given.c.any():
        return None
    return replace(given, c=given.c * (1 + 10 ** rng.uniform(-7, -3)))


def _truncated(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Drop the weight that matters least, and fit the rest again."""
    if np.count_nonzero(given.U) < 2:
        return None
    given.U[np.unravel_index(_effects(given).argmin(), given.U.shape)] = 0.0
    return _fitted_again(given)


def _misplaced(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Move one weight to another feature of its neuron, and fit again."""
    feature, neuron = rng.choice(np.argwhere(given.U))
    free = np.flatnonzero(given.U[:, neuron] == 0)
    if not len(free):
        return None
    given.U[rng.choice(free), neuron] = given.U[feature, neuron]
    given.U[feature, neuron] = 0.0
    return _fitted_again(given)


def _flipped(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Turn one neuron to the other side, and fit again."""
    given.U[:, int(rng.integers(len(given.V)))] *= -1
    return _fitted_again(given)


def _turned_over(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Turn all neurons over whose v_i u_i sum to zero: the same function. Planted triples come last."""
    if len(given.V) < 3:
        return None
    paths = given.U[:, -3:, None] * given.V[-3:]
    if np.abs(paths.sum(axis=1)).max() > 1e-9 * np.abs(given.U).max() * np.abs(given.V).max():
        return None
    given.U[:, -3:] *= -1
    return given


def _two_sided(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Add linear parts to lines so that they sum to zero: the same function, two neurons to a line."""
    _, sizes, directions = np.linalg.svd(given.U)
    if len(sizes) == len(given.V) and sizes[-1] > 1e-9 * sizes[0]:
        return None
    shift = (directions[-1] * rng.uniform(0.1, 1.0))[:, None] * rng.choice([0.5, 1.0], given.V.shape[1])
    used = np.abs(shift).max(axis=1) > 1e-12
    U, V = np.hstack([given.U, -given.U[:, used]]), np.vstack([given.V + shift, -shift[used]])
    return replace(given, U=U, V=V)


def _padded(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Add a neuron far below rounding: nearly the same function, with one neuron too many."""
    extra = np.zeros((len(given.U), 1))
    extra[int(rng.integers(len(given.U)))] = rng.choice([-1.0, 1.0])
    weight = np.full((1, given.V.shape[1]), 1e-13 * np.abs(given.V).max())
    return replace(given, U=np.hstack([given.U, extra]), V=np.vstack([given.V, weight]))


def _swapped(given: Spoilt, rng: Generator) -> Spoilt | None:
    """Let one neuron feed its outputs in another order, and fit again."""
    if given.V.shape[1] == 1:
        return None
    neuron = int(rng.integers(len(given.V)))
    given.V[neuron] = np.roll(given.V[neuron], 1)
    return _fitted_again(given)


def _effects(given: Spoilt) -> Weights:
    """Give what every weight adds to the answers, as a norm over the rows; infinity where there is none."""
    gates = given.X @ given.U > 0
    norms = np.sqrt(np.square(given.X).T @ gates) * np.linalg.norm(given.V, axis=1)
    return np.where(given.U != 0, np.abs(given.U) * norms, np.inf)


def _fitted_again(given: Spoilt) -> Spoilt:
    c = given.c if given.c.any() else None
    U, _, c = _refitted_with(given.U, given.V, given.X, given.y, c)
    return replace(given, U=U, c=given.c if c is None else c)


def _refitted(U: Weights, V: Weights, X: Weights, y: Weights) -> tuple[Weights, Weights]:
    """Fit the nonzeros of hidden weights by least squares, gates following for a few rounds."""
    return _refitted_with(U, V, X, y, None)[:2]


def _refitted_with(
    U: Weights, V: Weights, X: Weights, y: Weights, c: Weights | None
) -> tuple[Weights, Weights, Weights | None]:
    """Fit the nonzeros of hidden weights, and output biases where there are any."""
    neurons, features = np.nonzero(U.T)
    wide = V.reshape(U.shape[1], -1)
    outputs = wide.shape[1]
    target = y.reshape(len(X), outputs).T.ravel()
    for _ in range(5):
        gates = X @ U > 0
        single = X[:, features] * gates[:, neurons]
        columns = np.vstack([single * wide[neurons, output] for output in range(outputs)])
        if c is not None:
            columns = np.hstack([columns, np.kron(np.eye(outputs), np.ones((len(X), 1)))])
        sizes = np.linalg.norm(columns, axis=0)
        sizes[sizes == 0] = 1.0
        found = np.linalg.lstsq(columns / sizes, target, rcond=None)[0] / sizes
        U = np.zeros_like(U)
        U[features, neurons] = found[: len(features)]
        c = None if c is None else found[len(features) :]
    return U, V, c


SPOILERS: dict[str, Callable[[Spoilt, Generator], Spoilt | None]] = {
    "perturbed": _perturbed,
    "one weight moved": _moved,
    "faintest moved": _faintest,
    "bias moved": _shifted,
    "truncated": _truncated,
    "misplaced": _misplaced,
    "flipped": _flipped,
    "swapped": _swapped,
    "turned over": _turned_over,
    "two-sided": _two_sided,
    "padded": _padded,
}
