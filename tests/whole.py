"""Integer networks of every kind, which several tests share."""

from __future__ import annotations

import numpy as np
from networks import NETWORKS, rows_for

from thresher.integer import IntegerNetwork

# How to round, by name: few bits and many, powers of two, what saturates, narrow and signed inputs.
ROUNDINGS: dict[str, dict[str, object]] = {
    "int8": {"bits": 8},
    "int4, narrow": {"weights": "int4", "activation_bits": 6, "bias_bits": 8, "inputs": "uint8"},
    "pow2": {"weights": "pow2", "activation_bits": 8, "inputs": "int8"},
    "int16, wide": {"bits": 16, "activation_bits": 32},
    "int2, saturated": {"bits": 2, "activation_bits": 2, "inputs": "uint2"},
}

# One for each kind of network; the rest are of the same kinds.
CHOSEN = (
    "fused",
    "fused, named",
    "linear, many outputs",
    "deep, many outputs",
    "logistic, deep",
    "squared error, two classes",
    "softmax, deep, floats",
    "zero",
    "constant",
    "constant classes",
    "direct, deep, many outputs",
    "direct, softmax",
    "direct alone",
    "log, direct",
    "sparse and wide",
)


def whole(name: str, how: str) -> IntegerNetwork:
    """Round one of the shared networks."""
    network = NETWORKS[name]
    return network.quantise(rows_for(network, 200), **ROUNDINGS[how])  # type: ignore[arg-type]


def rows(network: IntegerNetwork, count: int = 40, seed: int = 5) -> np.ndarray:
    """Rows, some of which lie beyond those that ranges were chosen on."""
    return np.random.default_rng(seed).normal(scale=3.0, size=(count, network.columns))
