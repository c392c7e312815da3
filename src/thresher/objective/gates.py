"""Where gates come from: random, sparse or enumerated generators, or the weights themselves.

A generator h_i makes the gate ``X h_i > 0`` of neuron i. A set of generators is never held as a dense
(features, neurons) matrix: a block of neurons asks for its columns when it needs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host
from thresher.errors import ParameterError
from thresher.linear.vector import SparseVector
from thresher.objective.sparse import places_among


class Generators(ABC):
    """A set of generators, one for each neuron."""

    features: int
    neurons: int

    @abstractmethod
    def pick(self, neurons: Tensor, dtype: torch.dtype) -> tuple[Tensor | None, Tensor]:
        """Give the generators of some neurons, ascending.

        Returns
        -------
        features : int64 tensor of shape (k,), or None for all
            The features these generators use.
        values : tensor of shape (k, len(neurons))
            Their entries on those features.
        """

    def columns(self, start: int, stop: int, dtype: torch.dtype) -> tuple[Tensor | None, Tensor]:
        """Give the generators of neurons `start` to `stop`, as `pick` does."""
        return self.pick(torch.arange(start, stop), dtype)

    def follows(self, w: SparseVector) -> bool:
        """Say whether w uses some neurons, and the generator of each is its weights in w.

        The gated network is then a ReLU network: ``X h_i`` is also what neuron i adds up before its gate.
        """
        return False


@dataclass(frozen=True)
class DenseRandom(Generators):
    """Standard normal generators, drawn anew whenever a block asks for them.

    Each neuron has its own counter-based stream, so a column is the same in whatever block it is drawn.
    """

    features: int
    neurons: int
    seed: int = 0

    def pick(self, neurons: Tensor, dtype: torch.dtype) -> tuple[None, Tensor]:
        """Draw the generators of some neurons."""
        block = np.empty((neurons.numel(), self.features), dtype=np.float32)
        for row, neuron in enumerate(neurons.tolist()):
            _stream(self.seed, neuron).standard_normal(out=block[row], dtype=np.float32)
        return None, from_host(block).to(dtype).T


@dataclass(frozen=True, eq=False)
class SparseGenerators(Generators):
    """Generators given by their nonzeros, at flat positions ``neuron * features + feature``."""

    entries: SparseVector
    features: int
    neurons: int

    def pick(self, neurons: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Give the generators of some neurons on the features they use."""
        place, chosen = places_among(neurons, self.entries.indices // self.features)
        used, feature = torch.unique(self.entries.indices[chosen] % self.features, return_inverse=True)
        block = torch.zeros(used.numel(), neurons.numel(), dtype=dtype)
        block[feature, place[chosen]] = self.entries.values[chosen].to(dtype)
        return used, block

    def follows(self, w: SparseVector) -> bool:
        """Compare the generators of the neurons that w uses with w."""
        entries, used = self.entries, torch.zeros(self.neurons, dtype=torch.bool)
        used[w.indices // self.features] = True
        chosen = used[entries.indices // self.features]
        same = torch.equal(entries.indices[chosen], w.indices)
        return w.nonzeros > 0 and same and bool((entries.values[chosen] == w.values).all())


def sparse_random(features: int, neurons: int, nonzeros: int, seed: int = 0) -> SparseGenerators:
    """Draw generators with a given number of standard normal entries at random features.

    Examples
    --------
    >>> sparse_random(features=10, neurons=4, nonzeros=3).entries.nonzeros
    12
    """
    nonzeros = min(nonzeros, features)
    indices = np.empty((neurons, nonzeros), dtype=np.int64)
    values = np.empty((neurons, nonzeros), dtype=np.float32)
    for neuron in range(neurons):
        rng = _stream(seed, neuron)
        indices[neuron] = np.sort(rng.choice(features, nonzeros, replace=False)) + neuron * features
        values[neuron] = rng.standard_normal(nonzeros)
    flat = SparseVector(from_host(indices.reshape(-1)), from_host(values.reshape(-1)), features * neurons)
    return SparseGenerators(flat, features, neurons)


def one_sparse(features: int) -> SparseGenerators:
    """Enumerate all gates of generators with one nonzero: +e_j and -e_j for every feature j.

    Examples
    --------
    >>> one_sparse(3).neurons
    6
    """
    return _from_lists([([feature], [sign]) for feature in range(features) for sign in (1.0, -1.0)], features)


def two_sparse(
    X: np.ndarray,  # (n, features)
    pairs: Iterable[tuple[int, int]] | None = None,
) -> SparseGenerators:
    """Enumerate all gates of generators with two nonzeros, at most 2n for each pair of features.

    In the plane of two features every row is a direction, and the gate changes only where the generator
    turns past the perpendicular of one; one generator from each arc between such angles makes every gate.

    Parameters
    ----------
    X : array of shape (n, features)
        The data whose gates are wanted.
    pairs : iterable of (int, int), optional
        Pairs of features; all of them by default.

    Returns
    -------
    SparseGenerators
        Distinct gates within each pair.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> two_sparse(X).neurons
    4
    """
    features = X.shape[1]
    columns = []
    for first, second in combinations(range(features), 2) if pairs is None else pairs:
        if first == second or not (0 <= first < features and 0 <= second < features):
            raise ParameterError(
                f"pair ({first}, {second}), but a pair is two different features of 0 to {features - 1}."
            )
        plane = np.asarray(X[:, [first, second]], dtype=np.float64)
        plane = plane[(plane != 0).any(axis=1)]
        # Opposite rows turn a gate at the same angle: turned into one half-plane they have equal bits.
        below = (plane[:, 1] < 0) | ((plane[:, 1] == 0) & (plane[:, 0] < 0))
        plane[below] *= -1
        angles = np.unique(np.arctan2(plane[:, 1], plane[:, 0]))
        if angles.size == 0:
            continue
        edges = np.concatenate([angles + np.pi / 2, angles + 3 * np.pi / 2])
        middles = edges + np.diff(edges, append=edges[0] + 2 * np.pi) / 2
        order = sorted((first, second))
        flip = order != [first, second]
        for angle in middles:
            pair = [float(np.cos(angle)), float(np.sin(angle))]
            columns.append((order, pair[::-1] if flip else pair))
    return _from_lists(columns, features)


def follow(
    w: SparseVector,  # (neurons * features,)
    features: int,
    fallback: SparseGenerators | None = None,
) -> SparseGenerators:
    """Let the gates follow the weights: h_i = w_i, which makes the gated network a ReLU network.

    A neuron without weights has an empty gate, and could never win one back; with a `fallback` it takes the
    generator it has there.
    """
    neurons = w.size // features
    indices, values = w.indices, w.values
    if fallback is not None:
        live = torch.zeros(neurons, dtype=torch.bool)
        live[w.indices // features] = True
        spare = ~live[fallback.entries.indices // features]
        indices = torch.cat([indices, fallback.entries.indices[spare]])
        values = torch.cat([values, fallback.entries.values[spare].to(values.dtype)])
        order = torch.argsort(indices)
        indices, values = indices[order], values[order]
    return SparseGenerators(SparseVector(indices, values, w.size), features, neurons)


def _from_lists(columns: list[tuple[list[int], list[float]]], features: int) -> SparseGenerators:
    indices = [neuron * features + j for neuron, (used, _) in enumerate(columns) for j in used]
    values = [value for _, entries in columns for value in entries]
    flat = SparseVector(
        torch.tensor(indices, dtype=torch.int64),
        torch.tensor(values, dtype=torch.float64),
        features * len(columns),
    )
    return SparseGenerators(flat, features, len(columns))


def _stream(seed: int, neuron: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, neuron]))
