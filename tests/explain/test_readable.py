"""What is written for people computes what the network does, to as many digits as matter."""

from __future__ import annotations

import json

import numpy as np
import pytest
from networks import NETWORKS, random_network, rows_for

from thresher.errors import ParameterError
from thresher.explain import explain
from thresher.explain.naming import named_inputs
from thresher.explain.parts import parts_of, rows_read
from thresher.explain.readable import _sums
from thresher.explain.rounding import significant
from thresher.network import Network


@pytest.mark.parametrize("name", [name for name in NETWORKS if "deep" not in name and "layers" not in name])
@pytest.mark.parametrize("known", [False, True])
def test_terms_add_up_to_the_outputs(name, known):
    network = NETWORKS[name]
    X = rows_for(network).astype(float)
    X[:, 0] = X[:, 0] > 0  # an indicator
    parts, rows = parts_of(network), rows_read(network, X)
    sums = _sums(network, parts, rows if known else None, named_inputs(network))
    assert np.allclose(np.column_stack([each.values(rows) for each in sums]), network.forward(X), atol=1e-10)
    for each in sums:
        if known:
            moves = [term.values(rows).std() for term in each.terms]
            assert moves == sorted(moves, reverse=True)
            assert all(
                moved > 0 or term.on(rows).any() for moved, term in zip(moves, each.terms, strict=True)
            )


def test_a_formula_in_the_units_of_the_user():
    network = Network.fused(
        [[0.25, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 1.0]],
        [-75.0410, 40.0, -3.0],
        [1, -1, 1],
        direct=[0.0, 0.0, 0.5],
        output_bias=9.0,
        features=["temperature [K]", "pressure (hPa)", "age"],
    )
    found = explain(network)
    assert found.formula == (
        "y = -2*(pressure below 20 hPa) + (age above 3) + 0.5*age + 0.25*(temperature above 300.2 K) + 9"
    )
    assert "(x above t) is how far x is above t" in str(found)
    # Units stay where two columns are the same without them.
    both = Network.fused([[1.0], [0.0]], [-2.0], [1], direct=[0.0, 1.0], features=["t [K]", "t [C]"])
    assert explain(both).formula == "y = [t [C]] + ([t [K]] above 2)"


def test_neurons_that_are_the_same_on_all_rows_are_said_so():
    network = Network.fused(
        [[1.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0]], [10.0, -10.0, -1.0, 0.0], [1, 1, 1, 1]
    )
    X = np.random.default_rng(0).uniform(-2, 2, size=(50, 2))
    found = explain(network, X, digits=17)
    # One is on for all rows, one for none, of the others each is a term.
    assert found.formula == "y = x0 + 2*(x0 above 0.5) + (x1 above 0) + 10"
    assert "1 neuron is never on" in str(found)
    assert "1 neuron is on for all of them" in str(found)
    assert len(found.terms) == 3


def test_equal_terms_are_one_and_two_sides_of_a_line_are_linear():
    network = Network.fused(
        [[2.0, 1.0, 1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 3.0], [0.0, 0.0, 0.0, 0.0, 1.0, 3.0]],
        [-2.0, -1.0, -5.0, 5.0, 1.0, 3.0],
        [1, 1, 1, -1, 1, 1],
    )
    # relu(x0 - 5) - relu(5 - x0) is x0 - 5.
    assert explain(network).formula == "y = relu(4*x1 + 4*x2 + 4) + 3*(x0 above 1) + x0 - 5"


def test_a_column_of_text_is_what_it_says():
    table = {"columns": [{"name": "colour", "values": ["blue", "red"]}, {"name": "size"}], "missing": "error"}
    network = Network.fused(
        [[0.0], [2.0], [0.0]],
        [-1.0],
        [1],
        direct=[0.0, 0.0, 3.0],
        features=["colour=blue", "colour=red", "size"],
        details={"table": table},
    )
    assert explain(network).formula == "y = 3*size + (colour is red)"
    assert explain(network, names=["a", "b", "c"]).formula == "y = 3*c + 2*(b above 0.5)"


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_digits_are_those_that_the_rows_can_tell(noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(250, 350, size=(400, 2))
    network = Network.fused(
        [[0.123456789], [0.0]], [-37.0370367], [1], direct=[0.0, 0.0100200300], output_bias=1.2345
    )
    y = network.predict(X) + noise * rng.normal(size=400)
    found = explain(network, X, y)
    assert found.measure == "R2"
    errors = ((network.predict(X) - y) ** 2).sum()
    # The mean loss of one row, which is what one more parameter gains by chance.
    assert (found.exact - found.written) * ((y - y.mean()) ** 2).sum() <= 1.02 * max(
        errors / 400, 1e-6 * ((y - y.mean()) ** 2).sum()
    )
    assert found.digits < 8
    assert len(found.formula) < len(explain(network, digits=8).formula)


def test_less_noise_tells_more_digits():
    rng = np.random.default_rng(1)
    X = rng.uniform(250, 350, size=(400, 1))
    network = Network.fused([[0.123456789]], [-37.0370367], [1])
    lengths = [
        len(explain(network, X, network.predict(X) + noise * rng.normal(size=400)).formula)
        for noise in (3.0, 0.1)
    ]
    assert lengths[0] < lengths[1]


@pytest.mark.parametrize("name", ["two hidden layers", "logistic, deep", "direct, deep, many outputs"])
def test_deep_networks_are_nested_with_digits_that_matter(name):
    network = NETWORKS[name]
    X = rows_for(network).astype(float)
    found = explain(network, X, network.predict(X))
    assert found.formula == network.formula(digits=found.digits)
    assert found.measure in ("R2", "accuracy")
    assert found.terms == ()


@pytest.mark.parametrize("name", NETWORKS)
def test_all_of_it_is_plain(name):
    network = NETWORKS[name]
    X = rows_for(network).astype(float)
    found = explain(network, X)
    assert json.loads(json.dumps(found.plain(), allow_nan=False))["formula"] == found.formula
    assert len(found.formula.splitlines()) == network.outputs
    assert "\x1b" not in str(found)


def test_what_cannot_be_written_is_refused():
    with pytest.raises(ParameterError, match="too long to read"):
        explain(random_network((60, 20, 1), density=0.9))
    with pytest.raises(ParameterError, match="digits=0"):
        explain(NETWORKS["fused"], digits=0)
    with pytest.raises(ParameterError, match="without X"):
        explain(NETWORKS["fused"], y=[1.0])
    with pytest.raises(ParameterError, match="one for each"):
        explain(NETWORKS["fused"], np.ones((3, 10)), [1.0])


def test_significant_digits():
    assert [significant(value, 3) for value in (0.0, 123456.0, -0.00123456)] == [0.0, 123000.0, -0.00123]


def test_some_of_many_rows_are_said_to_be_some():
    network = Network.fused([[1.0]], [-0.5], [1])
    X = np.linspace(0, 1, 6000)[:, None]
    assert explain(network, X, network.predict(X)).notes[-1].endswith("on 5,000 of 6,000 rows.")
    assert explain(network, X[:50], network.predict(X[:50])).notes[-1].endswith("on 50 rows.")
