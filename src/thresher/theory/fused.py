"""A network with one output as weights under its own gates: ``f(X) = A_S w`` with one column for each
nonzero.

Column (i, j) is ``D_i X_j``, with D_i the rows on which neuron i is active and X_j a feature, or the constant
1 for the neuron's bias. An output bias is one more column of ones that no gate closes. Direct connections are
one more neuron, whose gate is open on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from thresher.network import Network
from thresher.theory.distinct import groups_of
from thresher.theory.patterns import Patterns, pack
from thresher.theory.spectra import ROUNDOFF


@dataclass(frozen=True, eq=False)
class Fused:
    """The nonzeros of a network with one hidden layer and one output, under its own gates.

    Attributes
    ----------
    inputs : array of shape (n, width)
        The rows, with a last column of ones where the network has hidden biases.
    gates : boolean array of shape (neurons, n)
        Rows on which each live neuron is active, ``X u_i + b_i > 0``; all of them, in a last row, where there
        are direct connections.
    neuron, feature : int arrays of shape (s,)
        Where each nonzero is; the output bias has neuron -1.
    weights : array of shape (s,)
        ``v_i u_ij``, biases likewise, and the output bias last.
    idle : int
        Nonzeros that take no part in the output, since nothing leads from their neuron to it.
    undecided : int
        Pairs of row and neuron whose side float64 cannot tell.
    constant : float
        The output bias.
    biased : bool
        Whether the last column of `inputs` is the ones that hidden biases multiply.
    spread : array of shape (n,)
        The sum of the sizes of all that is added up on each row: what rounding is relative to.
    """

    inputs: NDArray[np.float64]
    gates: NDArray[np.bool_]
    neuron: NDArray[np.int64]
    feature: NDArray[np.int64]
    weights: NDArray[np.float64]
    idle: int
    undecided: int
    constant: float
    biased: bool
    spread: NDArray[np.float64]

    @property
    def size(self) -> int:
        """How many nonzeros take part."""
        return len(self.weights)

    @cached_property
    def raw(self) -> NDArray[np.float64]:
        """Write out the columns, (n, s)."""
        columns = np.empty((len(self.inputs), self.size))
        for place, (neuron, feature) in enumerate(zip(self.neuron, self.feature, strict=True)):
            columns[:, place] = 1.0 if neuron < 0 else self.inputs[:, feature] * self.gates[neuron]
        return columns

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """Give the norms of the columns."""
        return np.linalg.norm(self.raw, axis=0)

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """Give the columns with unit norm; zero ones stay zero."""
        return self.raw / np.where(self.norms > 0, self.norms, 1.0)

    @property
    def unit_weights(self) -> NDArray[np.float64]:
        """Give the weights of the unit columns."""
        return self.weights * self.norms

    @property
    def output(self) -> NDArray[np.float64]:
        """Give the network's answer on every row."""
        return self.raw @ self.weights

    @cached_property
    def patterns(self) -> Patterns:
        """Give the distinct gates as patterns."""
        return pack(self.gates).distinct()

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """Number the groups of rows that are the same in all inputs that the support uses."""
        return groups_of(self.inputs[:, np.unique(self.feature[self.feature >= 0])])

    @cached_property
    def alike(self) -> NDArray[np.int64]:
        """Number the groups of rows that are the same in all columns of the support.

        The network answers them alike, so their labels are rounded alike: those on which all gates are
        closed, for one. What counts is how far a column ranges over the rows on which its gate is open: the
        zeros of the others lie far off where inputs are far from zero.
        """
        open_ = self.raw != 0
        most = np.where(open_, self.raw, -np.inf).max(axis=0, initial=-np.inf)
        least = np.where(open_, self.raw, np.inf).min(axis=0, initial=np.inf)
        ranges = np.where(most > least, most - least, np.abs(self.raw).max(axis=0, initial=0.0))
        return groups_of(self.raw, ranges)

    def taken(self) -> NDArray[np.bool_]:
        """Mark, for each distinct gate and each column of `inputs`, what the support holds."""
        held = {row.tobytes(): place for place, row in enumerate(self.patterns.bits)}
        which = [held[row.tobytes()] for row in pack(self.gates).bits]
        taken = np.zeros((self.patterns.count, self.inputs.shape[1]), dtype=np.bool_)
        for neuron, feature in zip(self.neuron, self.feature, strict=True):
            if neuron >= 0:
                taken[which[neuron], feature] = True
        return taken


def fused_of(network: Network, X: NDArray[np.float64], biased: bool = False) -> Fused:
    """Fuse a network with one hidden layer and one output, on given rows.

    With `biased` the constant is an input even where no neuron has a bias.
    """
    hidden, last = network.layers
    U = hidden.weights.toarray().astype(np.float64)  # (d, m)
    bias, v = hidden.bias.astype(np.float64), last.weights.toarray()[:, 0].astype(np.float64)
    live = (v != 0) & ((U != 0).any(axis=0) | (bias != 0))
    idle = int(np.count_nonzero(U[:, ~live]) + np.count_nonzero(bias[~live]))
    if not last.signs_only:
        idle += int(np.count_nonzero(v[~live]))
    U, bias, v = U[:, live], bias[live], v[live]
    biased = biased or bool(bias.any())
    inputs = np.column_stack([X, np.ones(len(X))]) if biased else X
    stacked = np.vstack([U, bias]) if biased else U
    before = inputs @ stacked
    sizes = np.abs(inputs) @ np.abs(stacked)
    terms = np.count_nonzero(stacked, axis=0) + 2
    undecided = int(((np.abs(before) <= 2 * ROUNDOFF * terms * sizes) & (sizes > 0)).sum())
    gates = (before > 0).T
    if network.direct is not None:
        column = np.zeros((len(stacked), 1))
        column[: network.inputs] = network.direct_coef
        stacked, v = np.hstack([stacked, column]), np.append(v, 1.0)
        sizes = np.hstack([sizes, np.abs(inputs) @ np.abs(column)])
        gates = np.vstack([gates, np.ones((1, len(X)), dtype=np.bool_)])
    feature, neuron = np.nonzero(stacked)
    order = np.lexsort((feature, neuron))
    feature, neuron = feature[order], neuron[order]
    weights = stacked[feature, neuron] * v[neuron]
    constant = float(last.bias[0])
    if constant != 0:
        feature, neuron = np.append(feature, -1), np.append(neuron, -1)
        weights = np.append(weights, constant)
    spread = (sizes * gates.T) @ np.abs(v) + abs(constant)
    return Fused(inputs, gates, neuron, feature, weights, idle, undecided, constant, biased, spread)
