"""Forms of one network: fused or split, gated or ReLU, on raw or whitened data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.planted import PlantedProblem
from thresher.errors import DataError, ParameterError
from thresher.network import Layer, Network
from thresher.theory.patterns import checked_rows


def network_of(problem: PlantedProblem) -> Network:
    """Make a Network of a planted problem's weights, in float64.

    Examples
    --------
    >>> from thresher.data.planted import planted
    >>> problem = planted(n=20, d=5, hidden=3, budget=6)
    >>> network = network_of(problem)
    >>> network.nonzeros, bool(np.allclose(network.predict(problem.X), problem.y))
    (6, True)
    """
    layers = [layer.astype(np.float64) for layer in problem.weights]
    if problem.signs is not None and len(layers) == 1:
        return Network.fused(layers[0], None, problem.signs)
    made = [Layer(layer, np.zeros(layer.shape[1])) for layer in layers]
    if problem.signs is not None:
        made.append(Layer(problem.signs[:, None].astype(np.float64), np.zeros(1), signs_only=True))
    return Network(tuple(made))


@dataclass(frozen=True, eq=False)
class Split:
    """A gated network as ReLU neurons ``sum_i v_i relu(X u_i)``, equal on the rows it was made for.

    Attributes
    ----------
    U : array of shape (features, neurons)
    v : array of shape (neurons,)
        Signs, +1 or -1.
    source : int array of shape (neurons,)
        Which gate each neuron comes from.
    doubled : int array
        Gates whose weights lie in no cone, and took two neurons.
    """

    U: NDArray[np.float64]
    v: NDArray[np.float64]
    source: NDArray[np.int64]
    doubled: NDArray[np.int64]

    def network(self) -> Network:
        """Give the ReLU network."""
        return Network.fused(self.U, None, self.v)


def split(
    w: ArrayLike,  # (gates, features)
    generators: ArrayLike,  # (gates, features)
    X: object,  # (n, features)
) -> Split:
    """Turn fused weights under given gates into ReLU neurons, by the cone constraints of the convex form.

    The gated neuron ``D X w`` is ``relu(X w)`` where ``(2D - I) X w >= 0``, and ``-relu(-X w)`` where that is
    ``<= 0``. Elsewhere w is a difference of two vectors of the cone, ``w = (w + t h) - t h`` with the
    smallest t that serves, and becomes two neurons, as wide in support as w and h together.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, -1.0]])
    >>> made = split(w=[[0.0, 1.0]], generators=[[1.0, 0.0]], X=X)
    >>> made.doubled.tolist(), made.network().predict(X).tolist()
    ([0], [2.0, -1.0])
    """
    rows = checked_rows(X)
    weights, given = np.atleast_2d(np.asarray(w, float)), np.atleast_2d(np.asarray(generators, float))
    if weights.shape != given.shape or weights.shape[1] != rows.shape[1]:
        raise DataError(
            f"w has shape {weights.shape} and generators {given.shape}, but both need one row for each gate "
            f"and {rows.shape[1]} columns, as X has."
        )
    U: list[NDArray[np.float64]] = []
    v: list[float] = []
    source: list[int] = []
    doubled: list[int] = []
    for gate, (weight, generator) in enumerate(zip(weights, given, strict=True)):
        if not weight.any():
            continue
        side = np.where(rows @ generator > 0, 1.0, -1.0)
        inside = side * (rows @ weight)
        if (inside >= 0).all():
            parts = [(weight, 1.0)]
        elif (inside <= 0).all():
            parts = [(-weight, -1.0)]
        else:
            anchor = _reach(side, rows @ generator, inside) * generator
            parts = [(weight + anchor, 1.0), (anchor, -1.0)]
            doubled.append(gate)
        for vector, sign in parts:
            U.append(vector)
            v.append(sign)
            source.append(gate)
    columns = np.array(U).T if U else np.zeros((rows.shape[1], 1))
    return Split(columns, np.array(v or [1.0]), np.array(source or [0]), np.array(doubled, dtype=np.int64))


def _reach(side: NDArray[np.float64], along: NDArray[np.float64], inside: NDArray[np.float64]) -> float:
    """Give the smallest t for which ``w + t h`` lies in the cone of h, and a hair more."""
    margin = side * along
    stuck = (margin <= 0) & (inside < 0)
    if stuck.any():
        raise ParameterError(
            f"the generator is perpendicular to {int(stuck.sum())} rows on which the weights are not, so its "
            f"cone has no room there. Use a generator that is perpendicular to no row."
        )
    outside = inside < 0
    return float((-inside[outside] / margin[outside]).max()) * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class Whitening:
    """A linear map that makes the columns of data orthonormal up to scale: ``Z = X T`` with ``Z'Z = n I``.

    Attributes
    ----------
    transform : array of shape (features, features)
        T. Nothing is subtracted, so a network without biases stays one.
    """

    transform: NDArray[np.float64]

    def apply(self, X: Any) -> NDArray[np.float64]:
        """Whiten rows."""
        return checked_rows(X) @ self.transform

    def back(self, U: ArrayLike) -> NDArray[np.float64]:
        """Turn weights (features, neurons) for whitened data into weights for the data as it was.

        They are the same functions; their nonzeros are not the same, since a feature of whitened data is a
        mix.
        """
        return self.transform @ np.asarray(U, dtype=np.float64)


def whiten(X: object) -> Whitening:
    """Find the symmetric whitening of data, the one that changes it least.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((50, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]])
    >>> Z = whiten(X).apply(X)
    >>> bool(np.allclose(Z.T @ Z / 50, np.eye(2)))
    True
    """
    rows = checked_rows(X)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    if values[0] <= 1e-12 * values[-1] or values[-1] <= 0:
        raise DataError(
            "the columns of X are linearly dependent, and cannot be whitened. Drop a column that others "
            "determine, or use more rows than columns."
        )
    return Whitening((vectors / np.sqrt(values)) @ vectors.T)
