"""What rounding can make of the difference between a network's answers and labels, row by row.

A label is off by its own precision, a stored weight by that of its number format, and whatever is added up by
the arithmetic of float64. Each is relative to the sizes of what is added up on that row: a network that is
wrong where labels are small must not hide behind rows where they are large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.network import Network
from thresher.theory.spectra import ROUNDOFF

# Unit roundoff of float32.
ROUNDOFF_32 = 2.0**-24


@dataclass(frozen=True)
class Precision:
    """How far labels may be rounded: relative to each of them, and at least so much of any."""

    relative: float
    least: float = 0.0


@dataclass(frozen=True, eq=False)
class Rounding:
    """Bounds for every row of one output.

    Attributes
    ----------
    labels : array of shape (n,)
        Of the labels, which may have been computed in the precision that they are given in.
    arithmetic : array of shape (n,)
        Of sums in float64. Weights that were fitted in float64 are off by the largest sums there are, so
        these count on every row.
    weights : array of shape (n,)
        Of weights as they are stored.
    stored : float
        Relative precision of a stored weight.
    """

    labels: NDArray[np.float64]
    arithmetic: NDArray[np.float64]
    weights: NDArray[np.float64]
    stored: float

    @property
    def rows(self) -> NDArray[np.float64]:
        """Give all of it, row by row."""
        return self.labels + self.arithmetic + self.weights


def rounding_of(
    network: Network,
    spread: NDArray[np.float64],  # (n,)
    y: NDArray[np.float64],  # (n,)
    precision: Precision,
) -> Rounding:
    """Bound rounding on every row.

    Parameters
    ----------
    network : Network
    spread : array of shape (n,)
        The sum of the sizes of all that is added up on each row.
    y : array of shape (n,)
        Labels.
    precision : Precision
        Of the labels.
    """
    stored = max(ROUNDOFF_32 if layer.weights.dtype == np.float32 else ROUNDOFF for layer in network.layers)
    summed = [np.bincount(layer.weights.indices).max(initial=0) for layer in network.layers]
    direct = 0 if network.direct is None else np.bincount(network.direct.indices).max(initial=0)
    terms = 4 + int(max(*summed, summed[-1] + direct))
    largest = float(np.max(spread, initial=0.0))
    return Rounding(
        labels=np.maximum(precision.relative * np.maximum(np.abs(y), spread), precision.least),
        arithmetic=2 * terms * ROUNDOFF * (spread + largest),
        weights=2 * stored * spread,
        stored=stored,
    )


def label_precision(y: NDArray[np.float64], told: float | None) -> Precision:
    """Give the rounding of labels: as told, or that of float32 where all of them fit into it.

    What is told is relative to each label and to the root mean square of all, since decimals are rounded
    alike.
    """
    if told is not None:
        return Precision(told, told * float(np.sqrt(np.mean(np.square(y)))))
    with np.errstate(over="ignore"):
        narrow = y.astype(np.float32).astype(np.float64)
    return Precision(ROUNDOFF_32 if bool((narrow == y).all()) else ROUNDOFF)


def spread_of(network: Network, X: NDArray[np.float64]) -> NDArray[np.float64]:  # (n, outputs)
    """Add up the sizes of all that the network adds up on each row, whatever their signs."""
    values, sizes = X, np.abs(X)
    for number, layer in enumerate(network.layers):
        weights, bias = layer.weights.astype(np.float64), layer.bias.astype(np.float64)
        values, sizes = values @ weights + bias, sizes @ abs(weights) + np.abs(bias)
        if number < len(network.layers) - 1:
            open_ = values > 0
            values, sizes = values * open_, sizes * open_
    if network.direct is not None:
        sizes = sizes + np.abs(X) @ np.abs(network.direct_coef)
    return np.asarray(sizes)
