"""If-then tables add up to the network, and effects are its own functions where inputs stand alone."""

from __future__ import annotations

import numpy as np
import pytest
from networks import NETWORKS, random_network, rows_for

from thresher.errors import ParameterError
from thresher.explain import effects, rules
from thresher.network import Network


def additive(outputs=1, seed=0):
    """A network whose neurons read one input each, two inputs of which are linear as well."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((4, 6))
    weights[[0, 0, 1, 1, 2, 3], range(6)] = rng.normal(size=6)
    bias = rng.normal(size=6)
    if outputs == 1:
        direct = [1.5, 0.0, -0.5, 0.0]
        return Network.fused(weights, bias, [1, -1, 1, 1, -1, 1], direct=direct, output_bias=0.5)
    network = random_network((4, 6, outputs), seed=seed, density=1.1)
    from thresher.network import Layer

    return Network((Layer(weights, bias), network.layers[1]))


@pytest.mark.parametrize("outputs", [1, 3])
def test_rules_add_up_to_the_outputs(outputs):
    network = additive(outputs)
    X = np.random.default_rng(1).normal(size=(200, 4)) * 3
    found = rules(network, X)
    total = np.zeros((200, outputs))
    for rule in found:
        x = X[:, rule.column]
        inside = (x > rule.low) & (x <= rule.high)
        total[inside, rule.output] += rule.value + rule.slope * (x[inside] - rule.start)
        assert rule.rows == inside.sum()
    # All but a constant for each output.
    assert np.allclose(np.ptp(network.forward(X) - total, axis=0), 0.0, atol=1e-10)


def test_rules_in_words():
    network = Network.fused(
        [[0.5, -1.0]], [-50.0, 30.0], [1, -1], direct=[0.25], features=["temperature [K]"]
    )
    told = [(rule.condition, rule.then) for rule in rules(network)]
    assert told == [
        ("temperature up to 30 K", "7.5 + 1.25*(temperature - 30)"),
        ("temperature from 30 to 100 K", "0.25*temperature"),
        ("temperature above 100 K", "25 + 0.75*(temperature - 100)"),
    ]
    flat = rules(Network.fused([[1.0]], [1.0], [1]))
    assert [(rule.condition, rule.then) for rule in flat] == [
        ("x0 up to -1", "0"),
        ("x0 above -1", "(x0 + 1)"),
    ]


def test_inputs_that_are_read_together_are_named():
    with pytest.raises(ParameterError, match="x0, x1 are read together"):
        rules(Network.fused([[1.0], [2.0], [0.0]], [0.5], [1], direct=[0.0, 0.0, 1.0]))


def test_an_effect_is_the_networks_own_function():
    network = additive()
    X = np.random.default_rng(1).normal(size=(100, 4)) * 3
    for effect in effects(network, X):
        rows = np.tile(X[:1], (len(effect.grid), 1))
        rows[:, effect.column] = effect.grid
        assert effect.alone
        assert np.allclose(np.ptp(network.forward(rows) - effect.values, axis=0), 0.0, atol=1e-10)
        assert set(effect.kinks) <= set(effect.grid)


@pytest.mark.parametrize("name", NETWORKS)
def test_partial_dependence_is_the_mean_over_rows(name):
    network = NETWORKS[name]
    X = rows_for(network, 20).astype(float)
    found = effects(network, X)
    assert sorted(effect.column for effect in found) == network.inputs_used().tolist()
    assert [effect.size for effect in found] == sorted((effect.size for effect in found), reverse=True)
    for effect in found[:2]:
        mean = []
        for value in effect.grid[::9]:
            mixed = X.copy()
            mixed[:, effect.column] = value
            mean.append(network.forward(mixed).mean(axis=0))
        assert np.allclose(np.ptp(np.array(mean) - effect.values[::9], axis=0), 0.0, atol=1e-9)
        assert (effect.low <= effect.high + 1e-12).all()


def test_without_rows_only_inputs_that_stand_alone_are_shown():
    found = effects(Network.fused([[1.0]], [-2.0], [1], details={"spread": [5.0]}))[0]
    assert found.grid[0], found.grid[-1] == (-8.0, 12.0)
    with pytest.raises(ParameterError, match="give X"):
        effects(Network.fused([[1.0], [1.0]], None, [1]))
    binary = effects(Network.fused([[2.0]], [-1.0], [1]), [[0.0], [1.0], [1.0]])[0]
    assert (binary.binary, binary.grid.tolist(), np.ptp(binary.values)) == (True, [0.0, 1.0], 1.0)
