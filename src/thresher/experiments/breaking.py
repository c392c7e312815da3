"""Attempts to break a certificate: other weights that do what it says no other weights can do.

Everything is computed anew with NumPy alone, from the network's weights and what is known of the labels, and
nothing of the certificate's own tolerances takes part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thresher.network import Network
from thresher.theory.levels import ISOLATED, ON_SUPPORT
from thresher.theory.matching import match, neurons_of

Array = NDArray[np.float64]

# Standard deviations of the labels' rounding that a better fit may be by chance.
CHANCE = 6.0

# Standard deviations of the labels' rounding within which a weight may be the planted one.
HIDDEN = 10.0

# Relative changes of one weight that are tried, in both directions.
CHANGES = tuple(10.0**-power for power in range(1, 9))

# What float64 may do to an answer, relative to the largest on any row.
ARITHMETIC = 1e-13

# The share of the squared error that is not worth speaking of.
NEGLIGIBLE = 1e-6

# Relative difference of a weight up to which it counts as the planted one, whatever labels hide.
SAME = 1e-6


def broken(
    made: Network, X: Array, y: Array, hidden_by: Array, levels: dict[str, str]
) -> list[str]:  # y, hidden_by: (n, outputs)
    """Try to break what a certificate claims; say how each attempt that succeeds did.

    Parameters
    ----------
    made : Network
        With one hidden layer, without hidden biases or direct connections.
    X, y : arrays of shape (n, features), (n, outputs)
    hidden_by : array of shape (n, outputs)
        How far each label may be rounded.
    levels : dict
        Of the certificate.
    """
    proved = [name for name, status in levels.items() if status == "holds"]
    if not proved:
        return []
    hidden, last = made.layers
    U, V, c = hidden.weights.toarray().astype(float), last.weights.toarray().astype(float), last.bias
    found = []
    for output in range(V.shape[1]):
        fed = V[:, output] != 0
        one = _Output(X, U[:, fed], V[fed, output], float(c[output]), y[:, output], hidden_by[:, output])
        if ON_SUPPORT in proved and one.better(one.columns(one.U != 0)):
            found.append("refitting its support")
        if ON_SUPPORT in proved and one.perturbed():
            found.append("moving one weight")
        if ISOLATED in proved and one.thresholded():
            found.append("a step of thresholding")
        if any("dictionary" in name for name in proved) and one.better(one.columns(np.isfinite(one.U))):
            found.append("refitting all inputs under its gates")
    return list(dict.fromkeys(found))


class _Output:
    """One output ``relu(X U) v + c`` of a network, and what is known of its labels."""

    def __init__(self, X: Array, U: Array, v: Array, c: float, y: Array, hidden_by: Array) -> None:
        self.X, self.U, self.v, self.c = X, U, v, c
        self.gates = X @ U > 0  # (n, neurons)
        self.residual = np.maximum(X @ U, 0) @ v + c - y
        # Rows that are answered alike are rounded alike.
        _, self.alike = np.unique(self._raw(U != 0), axis=0, return_inverse=True)
        self.deviation = hidden_by / np.sqrt(3)
        sizes = np.abs(X) @ np.abs(U) @ np.abs(v)
        self.arithmetic = ARITHMETIC * float(sizes.max(initial=0.0) + abs(c) + np.abs(y).max())
        self.left = float(self.residual @ self.residual)

    def _raw(self, held: NDArray[np.bool_]) -> Array:
        features, neurons = np.nonzero(held)
        columns = self.X[:, features] * self.gates[:, neurons]
        return np.column_stack([columns, np.ones(len(columns))]) if self.c else columns

    def columns(self, held: NDArray[np.bool_]) -> Array:
        """Give the unit columns of some inputs of some neurons, and of the output bias where there is one."""
        columns = self._raw(held)
        sizes = np.linalg.norm(columns, axis=0)
        return np.asarray(columns[:, sizes > 0] / sizes[sizes > 0])

    def by_chance(self, columns: Array) -> float:
        """Bound what orthonormal columns explain of the residual by rounding alone, or next to nothing."""
        sums = np.zeros((int(self.alike.max()) + 1, columns.shape[1]))
        np.add.at(sums, self.alike.ravel(), columns * self.deviation[:, None])
        arithmetic = len(self.deviation) * self.arithmetic**2
        return CHANCE**2 * float(np.square(sums).sum()) + arithmetic + NEGLIGIBLE * self.left

    def better(self, basis: Array) -> bool:
        """Say whether columns explain more of the residual than chance: whether a refit does better."""
        found = np.linalg.svd(basis, full_matrices=False)
        kept = found.U[:, found.S / found.S.max() > 1e-10]
        return float(np.square(kept.T @ self.residual).sum()) > self.by_chance(kept)

    def perturbed(self) -> bool:
        """Move one weight after the other, gates as they are; say whether the squared error falls."""
        for feature, neuron in np.argwhere(self.U):
            only = np.zeros_like(self.U, dtype=np.bool_)
            only[feature, neuron] = True
            column = self.columns(only)[:, :1]
            if not column.any():
                return True  # Any weight does where no row is on.
            allowed = self.by_chance(column)
            part = self._raw(only)[:, 0] * self.U[feature, neuron] * self.v[neuron]
            for change in (*CHANGES, *(-each for each in CHANGES)):
                residual = self.residual + change * part
                if self.left - float(residual @ residual) > allowed:
                    return True
        return False

    def thresholded(self) -> bool:
        """Take a step of thresholding over all inputs under the network's gates; say if the support moves."""
        everything = np.ones_like(self.U, dtype=np.bool_)
        held, weights = (self.U != 0).ravel(), (self.U * self.v).ravel()
        if self.c:
            held, weights = np.append(held, True), np.append(weights, self.c)
        columns = self._raw(everything)
        sizes = np.linalg.norm(columns, axis=0)
        stepped = np.abs(weights * sizes - (columns / np.where(sizes > 0, sizes, 1.0)).T @ self.residual)
        return bool(stepped[~held].max(initial=0.0) >= stepped[held].min())


def same_network(made: Network, truth: Network, X: Array, hidden_by: Array) -> bool:
    """Say whether a network is the planted one, each weight for itself, up to what labels hide of it.

    Neurons count in any order, with factors moved between layers, and merged where they share a side of a
    line.
    """
    found = match(made, truth)
    if found.missed or found.invented:
        return False
    one, two = neurons_of(truth), neurons_of(made)
    neurons = [pair[0] for pair in found.pairs]
    guess = [pair[1] for pair in found.pairs]
    gates = X @ one.inputs[neurons, :-1].T > 0
    columns = (gates[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    for output in range(one.outputs.shape[1]):
        wanted = (one.inputs[neurons, :-1] * one.outputs[neurons, output, None]).ravel()
        got = (two.inputs[guess, :-1] * two.outputs[guess, output, None]).ravel()
        error = hidden_by[:, output]
        largest = float(np.abs(columns @ wanted).max(initial=0.0) + abs(one.constant[output]))
        constant = np.array([one.constant[output]]), np.array([two.constant[output]])
        wide = np.column_stack([columns, np.ones(len(X))])
        if not _alike(wide, np.append(wanted, constant[0]), np.append(got, constant[1]), error, largest):
            return False
    return True


def _alike(columns: Array, wanted: Array, got: Array, error: Array, largest: float) -> bool:
    """Compare weights, each with what rounding of labels leaves open of it."""
    held = wanted != 0
    if not held.any():
        return not np.abs(got).any()
    _, groups = np.unique(columns[:, held], axis=0, return_inverse=True)
    sizes = np.linalg.norm(columns[:, ~held], axis=0)
    directions = np.zeros((len(wanted), len(columns)))
    directions[held] = np.linalg.pinv(columns[:, held])
    directions[~held] = (columns[:, ~held] / np.where(sizes > 0, sizes, np.inf) ** 2).T
    sums = np.zeros((int(groups.max()) + 1, len(wanted)))
    np.add.at(sums, groups.ravel(), (directions * error / np.sqrt(3)).T)
    open_ = HIDDEN * np.linalg.norm(sums, axis=0) + ARITHMETIC * largest * np.abs(directions).sum(axis=1)
    return bool((np.abs(got - wanted) <= np.maximum(SAME * np.abs(wanted), open_)).all())


def counted(attempts: Sequence[Sequence[str]]) -> dict[str, int]:
    """Count in how many certificates each attempt succeeded."""
    names = [name for each in attempts for name in each]
    return {name: names.count(name) for name in sorted(set(names))}
