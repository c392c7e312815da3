"""Shapley values are those of the definition, and permutation importance is the mean over all pairs."""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np
import pytest
from networks import NETWORKS, random_network, rows_for

from thresher.errors import DataError, ParameterError
from thresher.explain import permutation_importance, shapley_values


def by_definition(network, X, background):
    """The mean, over all orders of inputs, of what one adds to the mean output when it becomes known."""
    found = np.zeros((len(X), network.inputs, network.outputs))
    orders = list(permutations(range(network.inputs)))
    for number, row in enumerate(X):
        for order in orders:
            mixed = background.copy()
            before = network.forward(mixed).mean(axis=0)
            for column in order:
                mixed[:, column] = row[column]
                after = network.forward(mixed).mean(axis=0)
                found[number, column] += (after - before) / len(orders)
                before = after
    return found


@pytest.mark.parametrize(
    "network",
    [
        random_network((4, 4, 1), seed=2, density=0.7, direct=0.5),
        random_network((3, 3, 2), seed=3, density=0.9),
        random_network((3, 3, 3, 2), seed=3, density=0.8, direct=0.5),
    ],
    ids=["one output", "two outputs", "deep"],
)
def test_they_are_those_of_the_definition(network):
    rng = np.random.default_rng(0)
    X, background = rng.normal(size=(2, network.inputs)), rng.normal(size=(6, network.inputs))
    expected = by_definition(network, X, background)
    found = shapley_values(network, X, background)
    assert np.allclose(found if network.outputs > 1 else found[:, :, None], expected, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NETWORKS if "wide" not in name])
def test_they_add_up_to_the_output(name):
    network = NETWORKS[name]
    X = rows_for(network).astype(float)
    found = shapley_values(network, X[:5], X)
    found = found if network.outputs > 1 else found[:, :, None]
    assert np.allclose(found.sum(axis=1), network.forward(X[:5]) - network.forward(X).mean(axis=0))
    assert not found[:, ~network.support()].any()


def test_twelve_inputs_of_one_neuron_are_exact_and_thirteen_refused():
    network = random_network((12, 1, 1), density=1.1)
    X = np.random.default_rng(0).normal(size=(200, 12))
    began = time.process_time()
    found = shapley_values(network, X)
    assert np.allclose(found.sum(axis=1), (network.forward(X) - network.forward(X).mean())[:, 0])
    assert time.process_time() - began < 10
    with pytest.raises(ParameterError, match="13 inputs"):
        shapley_values(random_network((13, 1, 1), density=1.1), np.ones((2, 13)))
    with pytest.raises(ParameterError, match="Give fewer rows"):
        shapley_values(random_network((12, 2, 2, 1), density=1.1), np.ones((400, 12)))


@pytest.mark.parametrize("name", ["direct", "logistic", "softmax", "log", "two hidden layers"])
def test_permutation_is_the_mean_over_all_pairs(name):
    network = NETWORKS[name]
    X = rows_for(network, 12).astype(float)
    y = network.predict(X)
    y = np.round(y) if network.link == "log" else y
    X[:, 0] = np.round(X[:, 0])

    def loss(rows):
        out = network.forward(rows)
        if network.link == "logistic":
            return float(np.mean(np.logaddexp(0, np.where(y == network.classes[1], -1, 1) * out[:, 0])))
        if network.link == "softmax":
            codes = [network.classes.tolist().index(label) for label in y.tolist()]
            return float(np.mean(np.log(np.exp(out).sum(axis=1)) - out[np.arange(len(y)), codes]))
        if network.link == "log":
            return float(np.mean(np.exp(out[:, 0]) - y * out[:, 0]))
        return float(np.mean((out[:, 0] - y) ** 2))

    found = permutation_importance(network, X, y)
    for column in range(network.inputs):
        total = 0.0
        for other in range(len(X)):
            mixed = X.copy()
            mixed[:, column] = X[other, column]
            total += loss(mixed) / len(X)
        assert found[column] == pytest.approx(total - loss(X), abs=1e-10)


def test_an_input_that_is_not_read_matters_nothing():
    network = NETWORKS["direct"]
    X = rows_for(network).astype(float)
    assert not permutation_importance(network, X)[~network.support()].any()
    assert (permutation_importance(network, X)[network.support()] > 0).all()
    with pytest.raises(DataError, match="one for each"):
        permutation_importance(network, X, np.ones(3))
    with pytest.raises(DataError, match="not among the classes"):
        permutation_importance(NETWORKS["logistic"], X, ["maybe"] * len(X))
