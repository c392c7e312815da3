"""Refits keep the support and find the optimum; intervals hold what they should."""

from __future__ import annotations

import numpy as np
import pytest
from networks import NETWORKS, random_network
from sklearn.linear_model import LinearRegression, LogisticRegression

from thresher.errors import DataError, ParameterError
from thresher.network import Network
from thresher.stability.intervals import bootstrap_intervals
from thresher.stability.quantities import numbers, quantities
from thresher.stability.refitting import Refitter


def rows_and_targets(network, rows=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, network.inputs)) * 3 + 20 * (rng.random(network.inputs) < 0.5)
    X = X * (0.1 if network.link == "log" else 1.0)
    y = network.predict(X)
    if network.link == "log":
        return X, rng.poisson(np.minimum(y, 1e3)).astype(float)
    if network.classes is not None:
        y[:20] = rng.choice(network.classes, 20)
        return X, y
    return X, y + 0.1 * y.std(axis=0) * rng.normal(size=y.shape)


KINDS = (
    "fused",
    "logistic",
    "direct",
    "direct, deep, many outputs",
    "log, no hidden layer",
    "linear, many outputs",
)


@pytest.mark.parametrize("name", KINDS)
def test_the_support_stays_and_the_loss_falls(name):
    network = NETWORKS[name]
    X, y = rows_and_targets(network)
    refitter = Refitter.of(network, X, y)
    found = refitter.refit()
    assert [each.weights.indices.tolist() for each in found.layers] == [
        each.weights.indices.tolist() for each in network.layers
    ]
    assert [np.flatnonzero(each.bias).tolist() for each in found.layers] == [
        np.flatnonzero(each.bias).tolist() for each in network.layers
    ]
    again = Refitter.of(found, X, y).refit()
    assert np.allclose(
        again.forward(X), found.forward(X), rtol=1e-3, atol=1e-3 * np.abs(found.forward(X)).max()
    )


def test_weights_of_rows_are_copies_of_rows():
    network = NETWORKS["direct"]
    X, y = rows_and_targets(network)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    copied = Refitter.of(network, np.repeat(X, weight, axis=0), np.repeat(y, weight)).refit()
    weighted = Refitter.of(network, X, y).refit(weight.astype(float))
    assert np.allclose(copied.predict(X), weighted.predict(X), rtol=1e-4, atol=1e-4 * np.abs(y).max())


def test_linear_models_are_those_of_least_squares_and_of_maximum_likelihood():
    X = np.random.default_rng(0).normal(size=(300, 3)) + 50
    y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).normal(size=300)
    network = Network.fused(np.zeros((3, 1)), None, [1], direct=[0.1, 0.1, 0.1], output_bias=1.0)
    assert np.allclose(Refitter.of(network, X, y).refit().predict(X), LinearRegression().fit(X, y).predict(X))
    labels = np.where(y + 3 * np.random.default_rng(2).normal(size=300) > np.median(y), "yes", "no")
    network = Network.fused(
        np.zeros((3, 1)), None, [1], direct=[0.1] * 3, output_bias=1.0, classes=["no", "yes"], link="logistic"
    )
    found = Refitter.of(network, X, labels).refit().predict_proba(X)
    known = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X - 50, labels).predict_proba(X - 50)
    assert np.allclose(found, known, atol=1e-3)


@pytest.mark.parametrize("name", ["direct", "softmax", "linear, many outputs", "one hidden layer"])
def test_every_quantity_has_a_number(name):
    network = NETWORKS[name]
    assert len(quantities(network)) == len(numbers(network))
    # A factor that moves between layers changes none of them.
    assert len({(each.kind, each.name) for each in quantities(network)}) == len(quantities(network))


def test_thresholds_and_slopes_are_those_of_the_network():
    network = Network.fused(
        [[2.0, 0.0], [0.0, -4.0]],
        [-6.0, 10.0],
        [-1, 1],
        direct=[0.5, 0.0],
        output_bias=3.0,
        features=["t [K]", "p"],
    )
    told = {
        (each.kind, each.name): value
        for each, value in zip(quantities(network), numbers(network), strict=True)
    }
    assert told == {
        ("slope", "t"): 0.5,
        ("threshold", "t"): 3.0,
        ("slope", "t above it"): -2.0,
        ("threshold", "p"): 2.5,
        ("slope", "p below it"): 4.0,
        ("bias", "constant"): 3.0,
    }


def test_intervals_hold_nine_times_of_ten():
    held = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 2)) * 3 + 50
        y = 2 * np.maximum(X[:, 0] - 50.5, 0) + 0.8 * X[:, 1] + rng.normal(size=150)
        network = Network.fused([[2.0], [0.0]], [-101.0], [1], direct=[0.0, 0.8], output_bias=0.01)
        found = {each.kind + each.name: each for each in bootstrap_intervals(network, X, y, resamples=30)}
        for name, truth in (("thresholdx0", 50.5), ("slopex0 above it", 2.0), ("slopex1", 0.8)):
            held.append(found[name].low <= truth <= found[name].high)
            assert found[name].low <= found[name].value <= found[name].high
    assert np.mean(held) >= 0.7


def test_intervals_that_cannot_be_are_refused():
    network = NETWORKS["direct"]
    X, y = rows_and_targets(network)
    for given, message in (({"coverage": 1.5}, "coverage"), ({"resamples": 3}, "20 or more")):
        with pytest.raises(ParameterError, match=message):
            bootstrap_intervals(network, X, y, **given)
    with pytest.raises(DataError, match="20 rows came for a network of 18"):
        bootstrap_intervals(network, X[:20], y[:20])
    with pytest.raises(ParameterError, match="one hidden layer"):
        bootstrap_intervals(random_network((3, 2, 2, 1)), X[:, :3], y)
