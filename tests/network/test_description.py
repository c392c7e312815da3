"""A description tells the truth: what there is, what is used, and how much it matters."""

from __future__ import annotations

import json

import numpy as np
import pytest
from networks import NETWORKS, ODD_NAMES, fused, random_network, rows_for
from scipy import sparse

from thresher.errors import DataError
from thresher.network import Network
from thresher.network.description import directions, summary


@pytest.mark.parametrize("name", NETWORKS)
def test_importance_bounds_what_one_unit_can_do(name):
    network = NETWORKS[name]
    bound = network.importance()
    assert np.array_equal(bound > 0, network.support())
    X = rows_for(network).astype(float)
    for column in range(min(network.inputs, 12)):
        moved = X.copy()
        moved[:, column] += 1.0
        change = np.abs(network.forward(moved) - network.forward(X)).sum(axis=1)
        assert change.max() <= bound[column] * (1 + 1e-9) + 1e-12


def test_importance_of_a_linear_network_is_its_weights():
    network = random_network((5, 1), density=0.7)
    weights = np.abs(network.coefs[0][:, 0])
    assert np.allclose(network.importance(), weights)
    X = np.random.default_rng(0).normal(size=(500, 5)) * [1, 10, 100, 0, 3]
    assert np.allclose(network.importance(X), weights * X.std(axis=0))
    assert np.allclose(network.importance(sparse.csr_array(X)), network.importance(X))
    spread = Network(network.layers, details={"spread": X.std(axis=0).tolist()})
    assert np.allclose(spread.importance(), network.importance(X))
    assert "standard deviation" in spread.describe()
    assert "held at its mean" in network.describe(X)


def test_importance_adds_both_parts_and_measures_them_together():
    network = Network.fused([[1.0], [0.0], [1.0]], None, [1], direct=[2.0, -3.0, -1.0], output_bias=5.0)
    assert network.importance().tolist() == [3.0, 3.0, 2.0]
    X = np.abs(np.random.default_rng(0).normal(size=(500, 3))) * [1.0, 10.0, 5.0]
    # On positive rows it is the line 3 x0 - 3 x1 + 0 x2.
    assert np.allclose(network.importance(X), [3.0, 3.0, 0.0] * X.std(axis=0))
    assert np.allclose(network.importance(sparse.csr_array(X)), network.importance(X))


@pytest.mark.parametrize("spread", [[1.0], "x", [1, 2, None, 3, 4], [-1.0] * 5, [True] * 5])
def test_a_spread_that_does_not_fit_is_left_alone(spread):
    network = random_network((5, 1), details={"spread": spread})
    assert np.array_equal(network.importance(), random_network((5, 1)).importance())


def test_importance_needs_rows_of_the_right_width():
    with pytest.raises(DataError, match="no rows"):
        fused().importance(np.zeros((0, 10)))
    with pytest.raises(DataError, match="10"):
        fused().describe(np.zeros((3, 4)))


@pytest.mark.parametrize("seed", range(8))
def test_directions_are_right(seed):
    network = random_network((6, 3, 3, 1), seed, density=0.3, direct=0.2 if seed % 2 else None)
    X = np.random.default_rng(seed).normal(size=(200, 6))
    ways = directions(network)
    for column, way in enumerate(ways.get(i, "") for i in range(6)):
        moved = X.copy()
        moved[:, column] += 0.5
        change = (network.forward(moved) - network.forward(X))[:, 0]
        if way == "+":
            assert change.min() >= -1e-12
        elif way == "-":
            assert change.max() <= 1e-12
        assert (way == "") == (not network.support()[column])


def test_directions_see_both_ways():
    network = Network.fused([[1.0, -1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], None, [1, 1, 1])
    assert directions(network) == {0: "+-", 1: "+", 2: "+"}
    assert set(directions(random_network((3, 2))).values()) == {""}
    beside = Network.fused([[1.0], [1.0], [0.0]], None, [1], direct=[2.0, -1.0, -1.0])
    assert directions(beside) == {0: "+", 1: "+-", 2: "-"}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_summary_is_plain_and_agrees_with_the_network(name):
    network = NETWORKS[name]
    found = summary(network)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["nonzeros"], found["size"]) == (network.nonzeros, network.size)
    assert found["widths"] == [network.inputs, *network.hidden, network.outputs]
    assert [layer["alive"] for layer in found["layers"][:-1]] == list(network.live_neurons)
    counted = sum((not part["signs_only"]) * part["weights"] + part["biases"] for part in found["layers"])
    direct = found["direct"] or {"inputs": 0, "weights": 0}
    assert counted + direct["weights"] == network.nonzeros
    assert direct["inputs"] == network.direct_coef.any(axis=1).sum()
    assert sorted(each["column"] for each in found["inputs"]) == np.flatnonzero(network.support()).tolist()
    matters = [each["importance"] for each in found["inputs"]]
    assert matters == sorted(matters, reverse=True)


def test_a_description_reads_well():
    network = Network.fused(
        [[2.0, 0.0], [0.0, 0.0], [0.5, -1.0]],
        [0.0, 1.0],
        [1, -1],
        features=["age", "sex", "bmi"],
        details={"target": "risk"},
    )
    assert network.describe().splitlines() == [
        "ReLU network   3 -> 2 -> 1, regression of risk",
        "nonzeros       4 of 9 (44.44%)",
        "layer 1        3 -> 2: 3 weights, 1 bias, 2 of 2 neurons alive",
        "layer 2        2 -> 1: 2 signs (free), 0 biases",
        "inputs used    2 of 3, by how far the outputs move at most for one unit of each:",
        "  age                   2  +",
        "  bmi                 1.5  +",
        "formula        risk = relu(2*age + 0.5*bmi) - (bmi below 1)",
    ]
    assert str(network) == network.describe()
    direct = Network.fused([[2.0], [0.0]], None, [1], direct=[1.0, -0.5], link="log")
    assert direct.describe().splitlines() == [
        "ReLU network   2 -> 1 -> 1, regression, log link",
        "nonzeros       3 of 6 (50.00%)",
        "layer 1        2 -> 1: 1 weight, 0 biases, 1 of 1 neurons alive",
        "layer 2        1 -> 1: 1 sign (free), 0 biases",
        "direct         linear part: 2 inputs, 2 weights",
        "inputs used    2 of 2, by how far the outputs move at most for one unit of each:",
        "  x0                    3  +",
        "  x1                  0.5  -",
        "formula        y = exp(2*(x0 above 0) + x0 - 0.5*x1)",
    ]


def test_a_description_stays_short():
    wide = random_network(
        (500, 3, 2), density=1.0, features=[f"a rather long name {i} " * 5 for i in range(500)]
    )
    lines = wide.describe().splitlines()
    assert len(lines) < 25
    assert max(map(len, lines)) < 110
    assert lines[-1] == "  and 488 more"
    assert "formula" not in wide.describe()
    # No file holds half a character, but a network in memory may.
    names = ["half \ud800", *ODD_NAMES[1:]]
    odd = fused(features=names, classes=list("ab"), link="logistic").describe()
    assert "line\n" not in odd
    assert "\x1b" not in odd
    odd.encode("utf-8")  # a surrogate on its own could not be printed
    many = random_network((3, 30), classes=range(30), link="softmax").describe()
    assert "30 classes: 0, 1, 2, 3, 4, 5, 6, 7, 8, ..., 29" in many


def test_weights_of_any_size_are_described():
    huge = Network.fused([[1e300]], None, [1])
    huge = Network((*huge.layers[:1], huge.layers[0], huge.layers[0]))
    assert np.isfinite(huge.importance()).all()
    json.dumps(summary(huge), allow_nan=False)
