"""Networks of every kind, for whatever must work with all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from thresher.network import Layer, Network

ODD_NAMES = (
    "age",
    "blood pressure [mm Hg]",
    'quote " and \\ backslash',
    "*/ int main(void) { /* ??/",
    "caf\u00e9 \u2713",
    "line\nbreak\ttab",
    "\x1b[31mred\x1b[0m",
    "relu",
    "100% {of} $x_1^2$ & ~#",
    "'''); import os; os.abort() #",
)


def in_whole_letters(network: Network) -> Network:
    """The same network with names that a file can hold: half of a character is left out."""
    if network.features is None:
        return network
    return replace(network, features=tuple(name.replace("\ud800", "") for name in network.features))


def random_network(widths: tuple[int, ...], seed: int = 0, density: float = 0.5, **parts: Any) -> Network:
    """A network with random weights and some biases; parts are those of Network, and a dtype.

    A number as `direct` is the density of random direct connections.
    """
    rng = np.random.default_rng(seed)
    dtype = parts.pop("dtype", np.float64)
    layers = []
    for inputs, neurons in pairwise(widths):
        weights = rng.normal(size=(inputs, neurons)) * (rng.random((inputs, neurons)) < density)
        bias = rng.normal(size=neurons) * (rng.random(neurons) < 0.6)
        layers.append(Layer(sparse.csr_array(weights.astype(dtype)), bias))
    if isinstance(parts.get("direct"), float):
        shape = (widths[0], widths[-1])
        parts["direct"] = rng.normal(size=shape) * (rng.random(shape) < parts["direct"])
    return Network(tuple(layers), **parts)


def fused(**parts: Any) -> Network:
    """Ten inputs, four fused neurons (one without weights), an output bias."""
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(10, 4)) * (rng.random((10, 4)) < 0.4)
    weights[:, 3] = 0.0
    return Network.fused(weights, [0.3, 0.0, -0.7, 0.0], [1, -1, 1, -1], output_bias=0.1, **parts)


# Direct connections for ten inputs, of which two feed nothing else.
LINE = (0.0, 1.5, 0.0, 0.0, -0.8, 0.0, 0.0, 0.3, 0.0, -1.0)

NETWORKS: dict[str, Network] = {
    "fused": fused(),
    "fused, named": fused(features=ODD_NAMES, details={"target": "y*/\n"}),
    "linear": random_network((4, 1), density=0.9),
    "linear, many outputs": random_network((4, 3)),
    "one hidden layer": random_network((6, 5, 1)),
    "two hidden layers": random_network((6, 5, 4, 1), seed=3),
    "deep, many outputs": random_network((5, 4, 4, 4, 3), seed=2, details={"target": ["a", "b c", "d"]}),
    "float32": random_network((6, 5, 2), dtype=np.float32),
    "logistic": fused(classes=["no", "yes"], link="logistic", details={"target": "ill"}),
    "logistic, deep": random_network((6, 4, 3, 1), seed=1, classes=[False, True], link="logistic"),
    "squared error, two classes": fused(classes=[-1, 1], link="identity"),
    "softmax": random_network((6, 5, 4), seed=4, classes=["a", "b?", "c\\", 'd"'], link="softmax"),
    "softmax, deep, floats": random_network((6, 5, 4, 3), seed=1, classes=[0.5, 1.5, 2.5], link="softmax"),
    "mixed labels": fused(classes=np.array(["no", 1], dtype=object), link="logistic", features=ODD_NAMES),
    "names that come twice": random_network((3, 3, 1), features=["a", "b", "a"]),
    "constant": Network.fused(np.zeros((3, 2)), [1.0, -1.0], [1, -1], output_bias=0.5),
    "zero": Network.fused(np.zeros((3, 2)), None, [1, -1]),
    "constant beyond a dead layer": Network(
        (
            Layer(np.zeros((3, 2)), np.zeros(2)),
            Layer(np.ones((2, 2)), np.array([2.0, 0.0])),
            Layer(np.array([[3.0, 0.0], [1.0, 0.0]]), np.array([0.0, -1.0])),
        )
    ),
    "constant classes": Network(
        (Layer(np.zeros((3, 3)), np.array([0.0, 2.0, 1.0])),), classes=[1, 2, 3], link="softmax"
    ),
    "sparse and wide": random_network((300, 40, 2), density=0.01, seed=7),
    "direct": fused(direct=LINE),
    "direct, named": fused(direct=LINE, features=ODD_NAMES, details={"target": "exp"}),
    "direct, deep, many outputs": random_network((6, 5, 4, 3), seed=1, density=0.4, direct=0.3),
    "direct, float32": random_network((6, 5, 2), dtype=np.float32, direct=0.4),
    "direct, no hidden layer": random_network((5, 2), direct=0.5),
    "direct alone": Network.fused(
        np.zeros((4, 2)), None, [1, -1], direct=[2.0, 0.0, -3.0, 0.0], output_bias=1.0
    ),
    "direct alone, no bias": Network.fused(np.zeros((3, 1)), None, [1], direct=[0.0, -1.0, 0.0]),
    "direct, sparse and wide": random_network((300, 40, 2), density=0.01, seed=8, direct=0.02),
    "direct, logistic": fused(direct=LINE, classes=["no", "yes"], link="logistic"),
    "direct, squared error, two classes": fused(direct=LINE, classes=[-1, 1]),
    "direct, softmax": random_network((6, 5, 4), seed=4, classes=range(4), link="softmax", direct=0.3),
    "log": random_network((6, 4, 1), seed=1, link="log"),
    "log, direct": random_network((6, 3, 1), seed=2, density=0.3, link="log", direct=0.3),
    "log, direct, many outputs": random_network((5, 3, 3), seed=3, density=0.2, link="log", direct=0.2),
    "log, no hidden layer": random_network((4, 1), seed=5, link="log"),
}

CLASSIFIERS = {name: network for name, network in NETWORKS.items() if network.classes is not None}
REGRESSIONS = {name: network for name, network in NETWORKS.items() if network.classes is None}


def answers(network: Network, X: np.ndarray) -> np.ndarray:
    """What a regression predicts, and the scores of a classifier, of shape (n, outputs)."""
    return np.exp(network.forward(X)) if network.link == "log" else network.forward(X)


def rows_for(network: Network, count: int = 40, seed: int = 11) -> np.ndarray:
    """Rows of float32 numbers, so that every format is given the same ones."""
    rng = np.random.default_rng(seed)
    return rng.normal(scale=2.0, size=(count, network.inputs)).astype(np.float32)
