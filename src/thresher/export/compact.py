"""A network without the parts that can do nothing, as every export starts from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from thresher.errors import ParameterError
from thresher.network.layer import live, narrowed
from thresher.network.structure import Structure


@dataclass(frozen=True)
class CompactLayer:
    """The live neurons of a layer, each with its weights one after the other; or direct connections.

    Attributes
    ----------
    start : ndarray of shape (neurons + 1,)
        Where the weights of each neuron begin.
    index : ndarray of shape (nonzeros,)
        Which input each weight multiplies, as live ones are numbered; columns of X in the first layer where
        `compact` was asked to keep them.
    value : ndarray of shape (nonzeros,)
    bias : ndarray of shape (neurons,)
    inputs : int
        How many inputs there are to choose from.
    signs_only : bool
    """

    start: np.ndarray
    index: np.ndarray
    value: np.ndarray
    bias: np.ndarray
    inputs: int
    signs_only: bool

    @property
    def neurons(self) -> int:
        """How many numbers come out."""
        return int(self.bias.size)

    @property
    def nonzeros(self) -> int:
        """How many weights there are."""
        return int(self.value.size)


class Compact(NamedTuple):
    """The columns in use, the live part of every layer, and direct connections as a layer without bias."""

    used: np.ndarray
    layers: list[CompactLayer]
    direct: CompactLayer | None


def compact(network: Structure, *, all_inputs: bool, dtype: type[np.floating] | None = None) -> Compact:
    """Return the columns in use, the live part of every layer, and the direct connections.

    Parameters
    ----------
    network : Network
    all_inputs : bool
        Whether the first layer and direct connections count all inputs rather than those in use.
    dtype : type, optional
        What values become, by default what they are.

    Raises
    ------
    ParameterError
        When a value is too large for that type.
    """
    read, all_layers, linear = narrowed(network.layers, network.direct)
    masks = live(all_layers, linear)
    used = read[masks[0]]
    if all_inputs:
        masks[0] = np.ones_like(masks[0])
    layers = [
        _by_neuron(layer.weights[before][:, after], layer.bias[after], dtype, bool(layer.signs_only))
        for layer, (before, after) in zip(all_layers, pairwise(masks), strict=True)
    ]
    direct = None
    if linear is not None:
        direct = _by_neuron(linear[masks[0]], np.zeros(network.outputs), dtype, False)
    if all_inputs:
        layers[0] = replace(layers[0], index=read[layers[0].index], inputs=network.inputs)
        if direct is not None:
            direct = replace(direct, index=read[direct.index], inputs=network.inputs)
    return Compact(used, layers, direct)


def _by_neuron(
    weights: sparse.csr_array, bias: np.ndarray, dtype: type[np.floating] | None, signs_only: bool
) -> CompactLayer:
    columns = weights.tocsc()
    columns.sort_indices()
    wanted = weights.dtype if dtype is None else np.dtype(dtype)
    with np.errstate(over="ignore"):
        value, bias = columns.data.astype(wanted), bias.astype(wanted)
    if not (np.isfinite(value).all() and np.isfinite(bias).all()):
        raise ParameterError(
            f"a weight or bias exceeds {np.finfo(wanted).max:.2g}, the largest {wanted}, which this "
            "format uses: divide that column, or the target, by a power of ten and fit again."
        )
    return CompactLayer(columns.indptr, columns.indices, value, bias, int(weights.shape[0]), signs_only)
