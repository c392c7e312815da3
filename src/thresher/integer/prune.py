"""What rounding left idle taken out: inputs and neurons that nothing reads, neurons that are never on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from thresher.integer.coding import InputCoding
from thresher.integer.network import IntegerLayer, IntegerNetwork


def without_idle(network: IntegerNetwork) -> IntegerNetwork:
    """Return a network that computes the same by the inputs and neurons that take part."""
    layers, active = list(network.layers), network.ranges.layers
    masks = [np.ones(network.used.size, dtype=bool)]
    masks += [np.array(layer.activation > 0, dtype=bool) for layer in active[:-1]]
    for number in range(len(layers) - 1, 0, -1):
        following = (
            np.ones(layers[number].neurons, dtype=bool) if number == len(layers) - 1 else masks[number + 1]
        )
        masks[number] &= np.asarray(np.abs(layers[number].weights[:, following]).sum(axis=1) > 0)
    if not all(mask.any() for mask in masks[1:]):
        return _constant(network)
    after = masks[1] if len(layers) > 1 else np.ones(network.outputs, dtype=bool)
    read = np.asarray(np.abs(layers[0].weights[:, after]).sum(axis=1) > 0)
    if network.direct is not None:
        read |= np.asarray(np.abs(network.direct).sum(axis=1) > 0)
    masks[0] = _one_at_least(read)
    masks.append(np.ones(network.outputs, dtype=bool))
    found = replace(
        network,
        layers=tuple(
            IntegerLayer(
                layer.weights[before][:, behind], layer.bias[behind], layer.shift[behind], layer.signs_only
            )
            for layer, before, behind in zip(layers, masks, masks[1:], strict=False)
        ),
        used=network.used[masks[0]],
        coding=_restricted(network.coding, masks[0]),
        direct=None if network.direct is None else network.direct[masks[0]],
    )
    return found if all(mask.all() for mask in masks) else without_idle(found)


def _constant(network: IntegerNetwork) -> IntegerNetwork:
    """Return a network whose hidden part is constant as its outputs alone."""
    zeros = np.zeros((1, network.layers[0].inputs), dtype=np.int64)
    plain = replace(network, direct=None)
    constant = plain.run(zeros)[0]
    read = np.zeros(network.used.size, dtype=bool)
    if network.direct is not None:
        read = np.asarray(np.abs(network.direct).sum(axis=1) > 0)
    read = _one_at_least(read)
    layer = IntegerLayer(
        sparse.csc_array((int(read.sum()), network.outputs), dtype=np.int64),
        constant,
        np.zeros(network.outputs, dtype=np.int64),
    )
    return replace(
        network,
        layers=(layer,),
        used=network.used[read],
        coding=_restricted(network.coding, read),
        direct=None if network.direct is None else network.direct[read],
    )


def _one_at_least(read: np.ndarray) -> np.ndarray:
    """Return a mask that keeps the first input where nothing is read: tables of nothing are no C."""
    return read if read.any() else np.arange(read.size) == 0


def _restricted(coding: InputCoding, mask: np.ndarray) -> InputCoding:
    return coding.restricted(np.flatnonzero(mask))
