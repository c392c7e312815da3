"""Planted problems for certificates: plain ones, and those where a certificate is easily wrong.

Networks are planted by assumption 1(a), 1(b), as in the paper's section 5, or with three neurons that sum to
zero. Rows and labels are plain, or far from zero, or of widely different scales, or a few rows repeated, or
on a grid so that labels are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.data.assumed import assumed
from thresher.data.planted import planted
from thresher.theory.rounding import ROUNDOFF, ROUNDOFF_32

Array = NDArray[np.float64]

KINDS = ("1(a)", "1(b)", "section 5", "triple")
DATA = ("plain", "offset", "scales", "repeated", "exact")


@dataclass(frozen=True, eq=False)
class Problem:
    """A planted network ``relu(X U) V + c`` with rows and labels.

    Attributes
    ----------
    kind, data : str
        Which network, and which rows and labels.
    U, V, c : arrays of shape (features, neurons), (neurons, outputs), (outputs,)
    X, y : arrays of shape (n, features), (n, outputs)
    hidden_by : array of shape (n, outputs)
        How far each label may be rounded, which is known here.
    """

    kind: str
    data: str
    U: Array
    V: Array
    c: Array
    X: Array
    y: Array
    hidden_by: Array

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the hidden layer, and output biases."""
        return int(np.count_nonzero(self.U) + np.count_nonzero(self.c))

    @property
    def target(self) -> Array:
        """Labels as a network with as many outputs is fitted to them."""
        return self.y[:, 0] if self.y.shape[1] == 1 else self.y


def problem_of(rows: int, seed: int, number: int, outputs: int) -> Problem:
    """Draw a problem.

    Parameters
    ----------
    rows : int
        The most rows.
    seed, number : int
        The batch, and the number in it: 20 in a row are all pairs of network and data.
    outputs : int
        1, or the most outputs of one with several.
    """
    rng = np.random.default_rng([17, outputs, seed, number])
    kind, data = KINDS[number % len(KINDS)], DATA[number // len(KINDS) % len(DATA)]
    U, signs, X = _planted(kind, rows, 1000 * seed + number, rng)
    V = signs[:, None] if outputs == 1 else _fed(U, signs, kind, int(rng.integers(2, outputs + 1)), rng)
    c = np.zeros(V.shape[1])
    single = bool(rng.integers(2))  # whether labels are rounded to float32
    if data == "offset":
        c = rng.choice([-1.0, 1.0], len(c)) * 10 ** rng.uniform(2, 6, len(c))
    elif data == "scales":
        factors = 10 ** rng.uniform(-3, 3, len(U))
        U, X = U / factors[:, None], X * factors
        if kind != "triple":
            V = V * 10 ** rng.uniform(-3, 3, (len(V), 1))
    elif data == "repeated":
        different = int(rng.integers(max(2, np.count_nonzero(U) // 2), 6 * np.count_nonzero(U) + 3))
        X = X[rng.integers(min(different, len(X)), size=len(X))]
    elif data == "exact":
        # No row is on the edge of a neuron whose weights are an odd number of eighths in all.
        X, U, V = (np.floor(16 * X) + 0.5) / 16, _on_grid(U, 8), _on_grid(V, 4)
        if kind != "triple":
            first, even = (U != 0).argmax(axis=0), np.abs(U).sum(axis=0) * 8 % 2 == 0
            place = first[even], np.flatnonzero(even)
            U[place] += np.sign(U[place]) / 8
        c = np.round(rng.choice([0.0, 1.0]) * rng.uniform(-4000, 4000, len(c)))
    elif data == "plain":
        single = True
    y = np.maximum(X @ U, 0) @ V + c
    if data == "exact":
        return Problem(kind, data, U, V, c, X, y, np.zeros_like(y))
    if single:
        y = y.astype(np.float32).astype(np.float64)
    return Problem(kind, data, U, V, c, X, y, (ROUNDOFF_32 if single else ROUNDOFF) * np.abs(y))


def _planted(kind: str, rows: int, seed: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Draw hidden weights, signs and rows."""
    d, neurons, largest = int(rng.integers(5, 13)), int(rng.integers(1, 8)), int(rng.integers(1, 4))
    n = int(rng.integers(rows // 3, rows + 1))
    if kind == "section 5":
        drawn = planted(n, d, neurons, max(neurons, 2 * neurons), negative=0.4, seed=seed)
    else:
        neurons = min(neurons, d)
        drawn = assumed(n, d, neurons, largest, "a" if kind == "1(a)" else "b", seed=seed)
    assert drawn.signs is not None
    U, signs = drawn.weights[0].toarray().astype(np.float64), drawn.signs.astype(np.float64)
    live = (U != 0).any(axis=0)
    U, signs = U[:, live], signs[live]
    if kind == "triple":
        pair = np.zeros((d, 2))
        for column in range(2):
            pair[rng.choice(d, 2, replace=False), column] = np.round(8 * rng.standard_normal(2) + 0.5) / 8
        U, signs = np.hstack([U, pair, -pair.sum(axis=1, keepdims=True)]), np.append(signs, [1.0, 1.0, 1.0])
        live = (U != 0).any(axis=0)
        U, signs = U[:, live], signs[live]
    return U, signs, drawn.X.astype(np.float64)


def _fed(U: Array, signs: Array, kind: str, outputs: int, rng: np.random.Generator) -> Array:
    """Let every neuron feed one to all outputs, and every output be fed."""
    V = rng.standard_normal((U.shape[1], outputs)) * (rng.random((U.shape[1], outputs)) < 0.6)
    for neuron in np.flatnonzero(~V.any(axis=1)):
        V[neuron, rng.integers(outputs)] = signs[neuron]
    if kind == "triple":
        V[-3:] = V[-1]
    for output in np.flatnonzero(~V.any(axis=0)):
        V[:, output] = signs
    return V


def _on_grid(weights: Array, parts: int) -> Array:
    """Round weights to so many parts of one, none to zero."""
    rounded = np.round(parts * weights) / parts
    return np.where((rounded == 0) & (weights != 0), np.sign(weights) / parts, rounded)
