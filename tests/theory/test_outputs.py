"""A network of several outputs is certified as the stack of its outputs, and nothing false is said of it."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.network import Layer, Network
from thresher.theory.certificate import Certificate, certify
from thresher.theory.levels import ISOLATED, ON_SUPPORT


def wide(seed: int, outputs: int = 3, neurons: int = 5, **parts: object) -> tuple[Network, np.ndarray]:
    """Draw a network whose neurons read two of six inputs and feed two outputs each, and rows."""
    rng = np.random.default_rng([31, seed])
    U, V = np.zeros((6, neurons)), np.zeros((neurons, outputs))
    for column in U.T:
        column[rng.choice(6, 2, replace=False)] = rng.standard_normal(2)
    for neuron, row in enumerate(V):
        row[[neuron % outputs, (neuron + 1) % outputs]] = rng.standard_normal(2)
    made = Network((Layer(U, np.zeros(neurons)), Layer(V, np.zeros(outputs))), **parts)
    return made, rng.standard_normal((300, 6))


def proved(found: Certificate) -> list[str]:
    return [name for name, status in found.levels.items() if status == "holds"]


def with_weights(made: Network, U: np.ndarray, V: np.ndarray) -> Network:
    return Network((Layer(U, made.layers[0].bias), Layer(V, made.layers[1].bias)))


@pytest.mark.parametrize("seed", range(5))
def test_planted_stacks_are_certified_in_either_precision(seed: int) -> None:
    made, X = wide(seed)
    for y in (made.predict(X), made.predict(X).astype(np.float32)):
        found = certify(made, X, y)
        assert {ON_SUPPORT, ISOLATED, "unique in the dictionary (own)"} <= set(proved(found))
        assert "stack of its 3 outputs" in found.verdict
        assert len(found.eigenvalues) == len(found.weights) == 20


def test_one_output_says_the_same_whether_it_stands_alone_or_twice() -> None:
    """A stack of one output and of the same neurons twice differ in nothing but their number."""
    made, X = wide(1, outputs=2, neurons=4)
    U, V = made.layers[0].weights.toarray(), made.layers[1].weights.toarray()
    one = Network((Layer(U, np.zeros(4)), Layer(V[:, :1], np.zeros(1))))
    two = Network((Layer(U, np.zeros(4)), Layer(V[:, [0, 0]], np.zeros(2))))
    y = one.predict(X)
    alone, both = certify(one, X, y), certify(two, X, np.column_stack([y, y]))
    assert alone.levels == both.levels
    assert [found.status for found in alone.conditions] == [found.status for found in both.conditions]


@pytest.mark.parametrize("seed", range(4))
def test_one_wrong_weight_in_one_output_is_told(seed: int) -> None:
    made, X = wide(seed)
    y = made.predict(X)
    U, V = made.layers[0].weights.toarray(), made.layers[1].weights.toarray()
    V[tuple(np.argwhere(V)[seed])] *= 1 + 1e-6
    found = certify(with_weights(made, U, V), X, y)
    assert found["fits"].status == "fails"
    assert not proved(found)


def test_scales_of_outputs_hide_nothing_of_each_other() -> None:
    made, X = wide(2)
    U, V = made.layers[0].weights.toarray(), made.layers[1].weights.toarray() * [1e6, 1.0, 1e-6]
    large = with_weights(made, U, V)
    y = large.predict(X)
    assert ON_SUPPORT in proved(certify(large, X, y))
    V[:, 2] *= 1 + 1e-5
    assert not proved(certify(with_weights(made, U, V), X, y))


def test_shared_neurons_that_fit_noise_are_unknown_not_disproved() -> None:
    made, X = wide(3)
    y = made.predict(X) + 0.1 * np.random.default_rng(0).standard_normal((300, 3))
    found = certify(made, X, y)
    assert found["stationary"].status == "unknown"
    assert "share neurons" in found["stationary"].sentence
    assert found.levels[ON_SUPPORT] == "unknown"


def test_a_neuron_that_feeds_no_output_is_idle() -> None:
    made, X = wide(4)
    U, V = made.layers[0].weights.toarray(), made.layers[1].weights.toarray()
    V[0] = 0.0
    found = certify(with_weights(made, U, V), X, with_weights(made, U, V).predict(X))
    assert found["independent"].status == "fails"
    assert "2 nonzeros take no part" in found["independent"].sentence


def test_biases_and_direct_connections_of_several_outputs_take_part() -> None:
    made, X = wide(5)
    hidden, last = made.layers
    biased = Network(
        (Layer(hidden.weights, np.array([0.3, 0, -0.2, 0, 0])), Layer(last.weights, np.array([0.5, 0, 1e3])))
    )
    found = certify(biased, X, biased.predict(X), dictionary="own")
    assert len(proved(found)) == 3
    assert "a constant" in found.dictionaries[0]
    direct = Network(made.layers, direct=np.eye(6)[:, :3])
    found = certify(direct, X, direct.predict(X), dictionary="own")
    assert {ON_SUPPORT, ISOLATED} == set(proved(found))


def test_deep_networks_are_unknown_in_words() -> None:
    made, X = wide(6)
    deep = Network((*made.layers, Layer(np.ones((3, 2)), np.zeros(2))))
    found = certify(deep, X, deep.predict(X))
    assert set(found.levels.values()) == {"unknown"}
    assert "2 hidden layers" in found.verdict
