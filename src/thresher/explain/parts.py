"""A network as a sum of parts that share no more inputs than they must: a constant, linear parts, neurons.

Inputs are numbered among those that the network reads, so that a million others cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from thresher.errors import DataError
from thresher.network.forward import checked, outputs
from thresher.network.layer import Layer, columns_of, live, narrowed
from thresher.network.structure import Structure


@dataclass(frozen=True, eq=False)
class Neuron:
    """A neuron of the one hidden layer, and what it adds to the outputs.

    Attributes
    ----------
    places : int array
        The inputs that it reads, ascending.
    weights : array
        What each of them weighs.
    bias : float
    gives : array of shape (outputs,)
        What each output gets of its value.
    """

    places: np.ndarray
    weights: np.ndarray
    bias: float
    gives: np.ndarray

    def sums(self, X: np.ndarray) -> np.ndarray:  # (n, inputs read) -> (n,)
        """Give what the neuron is the positive part of."""
        return X[:, self.places] @ self.weights + self.bias


@dataclass(frozen=True, eq=False)
class Deep:
    """Several hidden layers, which come apart no further.

    Attributes
    ----------
    layers : sequence of Layer
    places : int array
        The inputs that matter to them.
    """

    layers: Sequence[Layer]
    places: np.ndarray

    def values(self, X: np.ndarray) -> np.ndarray:  # (n, inputs read) -> (n, outputs)
        """Give what neurons and biases add to the outputs."""
        return outputs(self.layers, X)


@dataclass(frozen=True, eq=False)
class Parts:
    """What the outputs of a network are the sum of.

    Attributes
    ----------
    read : int array
        The inputs that the network reads, ascending; all other numbers of inputs are places in this.
    constant : array of shape (outputs,)
    linear : dict
        From an input to what each output gets for one unit of it.
    neurons : tuple of Neuron
        Those that are alive, where there is one hidden layer.
    deep : Deep, optional
        What several hidden layers give, the constant included.
    """

    read: np.ndarray
    constant: np.ndarray
    linear: dict[int, np.ndarray]
    neurons: tuple[Neuron, ...] = ()
    deep: Deep | None = None

    @property
    def interacting(self) -> set[int]:
        """Give the inputs whose effect depends on others."""
        groups = [neuron.places for neuron in self.neurons]
        groups += [] if self.deep is None else [self.deep.places]
        return {int(place) for group in groups if len(group) > 1 for place in group}

    def reading(self, place: int) -> Parts:
        """Give the parts that read an input, without the constant."""
        linear = {place: self.linear[place]} if place in self.linear else {}
        neurons = tuple(neuron for neuron in self.neurons if place in neuron.places)
        deep = None if self.deep is None or place not in self.deep.places else self.deep
        return Parts(self.read, np.zeros_like(self.constant), linear, neurons, deep)

    def values(self, X: np.ndarray) -> np.ndarray:  # (n, inputs read) -> (n, outputs)
        """Give the outputs."""
        total = np.tile(self.constant, (len(X), 1))
        for place, slopes in self.linear.items():
            total += X[:, place, None] * slopes
        for neuron in self.neurons:
            total += np.maximum(neuron.sums(X), 0.0)[:, None] * neuron.gives
        return total if self.deep is None else total + self.deep.values(X)


def parts_of(network: Structure) -> Parts:
    """Take a network apart."""
    columns, layers, direct = narrowed(network.layers, network.direct)
    used = live(layers, direct)[0]
    if not used.any():
        return Parts(columns[used], outputs(layers, np.zeros((1, len(columns))))[0], {})
    first = Layer(layers[0].weights[used], layers[0].bias)
    read, layers = columns[used], [first, *layers[1:]]
    linear = {} if direct is None else _rows(direct[used])
    zero = np.zeros(network.outputs)
    if len(layers) > 2:
        return Parts(read, zero, linear, deep=Deep(layers, np.flatnonzero(live(layers)[0])))
    constant = layers[-1].bias.astype(np.float64)
    if len(layers) == 1:
        own = _rows(layers[0].weights)
        both = {place: linear.get(place, zero) + own.get(place, zero) for place in {**own, **linear}}
        return Parts(read, constant, dict(sorted(both.items())))
    neurons, extra = _neurons(layers)
    return Parts(read, constant + extra, linear, neurons)


def _rows(weights: sparse.csr_array) -> dict[int, np.ndarray]:
    """Give the rows that hold anything."""
    held = np.flatnonzero(np.diff(weights.indptr)).tolist()
    return {place: weights[[place]].toarray()[0].astype(np.float64) for place in held}


def _neurons(layers: Sequence[Layer]) -> tuple[tuple[Neuron, ...], np.ndarray]:
    """Give the neurons that are alive, and what those that read nothing add to the outputs."""
    alive = live(layers)[1]
    columns, gives = layers[0].weights.tocsc(), layers[1].weights.toarray().astype(np.float64)
    neurons, extra = [], np.zeros(gives.shape[1])
    for place in np.flatnonzero(alive).tolist():
        part = slice(columns.indptr[place], columns.indptr[place + 1])
        bias = float(layers[0].bias[place])
        if part.stop == part.start:
            extra += max(bias, 0.0) * gives[place]
            continue
        order = np.argsort(columns.indices[part])
        weights = columns.data[part][order].astype(np.float64)
        neurons.append(Neuron(columns.indices[part][order].astype(np.int64), weights, bias, gives[place]))
    return tuple(neurons), extra


def rows_read(network: Structure, X: Any, most: int | None = None) -> np.ndarray:  # (n, inputs read)
    """Give rows as float64, of the inputs that are read alone: `most` of them where there are more.

    Raises
    ------
    DataError
        When X has no rows, columns of other names or numbers, or holds what is no finite number.
    """
    X = checked(X, network.inputs, network.features)
    if X.shape[0] == 0:
        raise DataError("X has no rows, but at least one is needed to see what a network does with them.")
    kept = kept_rows(X.shape[0], most)
    rows, used = X[kept] if len(kept) < X.shape[0] else X[:], network.inputs_used()
    rows = columns_of(rows, used).toarray() if sparse.issparse(rows) else np.asarray(rows)[:, used]
    try:
        rows = rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X holds what is not a number ({error}): convert or encode it.") from error
    if not np.isfinite(rows).all():
        raise DataError("X holds NaN or infinity: drop those rows, or fill them in (SimpleImputer can).")
    return rows


def kept_rows(rows: int, most: int | None) -> np.ndarray:
    """Give the rows to look at where there are more than `most`: evenly spread ones."""
    most = rows if most is None else min(rows, most)
    return np.unique(np.linspace(0, rows - 1, most).astype(np.int64))
