"""What an integer network computes is what its definition says, in any order of any sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from whole import CHOSEN, ROUNDINGS, rows, whole

from thresher.errors import ParameterError, SaturationWarning
from thresher.integer import InputCoding, IntegerLayer, IntegerNetwork
from thresher.integer.ranges import signed_bits


def by_hand(network: IntegerNetwork, codes: list[int]) -> tuple[list[int], list[list[int]]]:
    """Compute outputs with Python's numbers of any size, and every partial sum on the way."""
    values, seen = codes, []
    for number, layer in enumerate(network.layers):
        dense, sums = layer.weights.toarray(), []
        for neuron in range(layer.neurons):
            total = 0
            parts = []
            last = number == len(network.layers) - 1
            up = network.hidden_shift if last else 0
            for value, weight in zip(values, dense[:, neuron].tolist(), strict=True):
                total += value * weight << up
                parts.append(total)
            if last and network.direct is not None:
                for value, weight in zip(codes, network.direct.toarray()[:, neuron].tolist(), strict=True):
                    total += value * weight << network.direct_shift
                    parts.append(total)
            total += int(layer.bias[neuron])
            sums.append(total)
            seen.append([number, *parts, total])
        if number < len(network.layers) - 1:
            limit = 2**network.activation_bits - 1
            values = [min(max(s, 0) >> int(by), limit) for s, by in zip(sums, layer.shift, strict=True)]
    return sums, seen


@pytest.mark.parametrize("how", ROUNDINGS)
@pytest.mark.parametrize("name", CHOSEN)
def test_outputs_are_those_of_the_definition_and_within_proved_widths(name: str, how: str) -> None:
    network = whole(name, how)
    low, high = network.coding.range
    rng = np.random.default_rng(1)
    codes = rng.integers(low, high, size=(20, network.used.size), endpoint=True)
    # Ends of the range are where sums are largest.
    codes[:10] = rng.choice([low, high], size=(10, network.used.size))
    found = network.run(codes)
    for row, outputs in zip(codes.tolist(), found.tolist(), strict=True):
        expected, seen = by_hand(network, row)
        assert outputs == expected
        for number, *parts in seen:
            assert signed_bits(min(parts), max(parts)) <= network.ranges.layers[number].bits


@pytest.mark.parametrize("name", CHOSEN)
def test_predictions_follow_from_outputs(name: str) -> None:
    network = whole(name, "int8")
    X = network.codes(rows(network)) * 0 + 0.0
    X = rows(network, 30) / 2
    with np.errstate(all="ignore"):
        outputs = network.run(network.codes(X))
    assert (network.forward(X) == outputs).all() if not network.saturation(X)["inputs"] else True
    if network.classes is None:
        return
    numbers = network.class_numbers(outputs)
    if network.outputs > 1:
        assert all(outputs[i, n] == outputs[i].max() for i, n in enumerate(numbers))
        assert all((outputs[i, :n] < outputs[i, n]).all() for i, n in enumerate(numbers))
    else:
        assert ((outputs[:, 0] > network.threshold) == numbers.astype(bool)).all()


def small(**parts: object) -> IntegerNetwork:
    layer = IntegerLayer(sparse.csc_array([[1, 0], [0, -2]]), np.array([3, 0]), np.array([0, 1]))
    last = IntegerLayer(sparse.csc_array([[1], [1]]), np.array([0]), np.array([0]), signs_only=True)
    given = {
        "layers": (layer, last),
        "columns": 5,
        "used": [1, 4],
        "coding": InputCoding("int8"),
        "activation_bits": 4,
        "output_scale": [0.5],
    }
    return IntegerNetwork(**{**given, **parts})  # type: ignore[arg-type]


def test_a_network_by_hand() -> None:
    network = small()
    X = np.zeros((3, 5))
    X[:, 1], X[:, 4] = [2, 100, -50], [-3, 5, -100]
    assert network.forward(X).ravel().tolist() == [5 + 3, 15 + 0, 0 + 15]
    assert network.predict(X).tolist() == [4.0, 7.5, 7.5]
    assert network.nonzeros == 3
    assert network.saturation(X) == {"rows": 3, "inputs": 0, "neurons": 2}


def test_rows_beyond_the_inputs_are_kept_to_the_range_and_counted() -> None:
    network, X = small(), np.zeros((2, 5))
    X[0, 1] = 1000.0
    with pytest.warns(SaturationWarning, match="1 numbers of X are beyond int8 inputs"):
        found = network.forward(X)
    assert (found == network.forward(np.minimum(X, 127))).all()
    assert network.saturation(X)["inputs"] == 1


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"used": [4, 1]}, "ascending"),
        ({"used": [1, 5]}, "ascending"),
        ({"used": [1]}, "one column for each input"),
        ({"activation_bits": 40}, "activation_bits=40, but it is a whole number from 1 to 32"),
        ({"output_scale": [0.0]}, "above zero"),
        ({"output_scale": [1.0, 1.0]}, "for each output"),
        ({"direct": sparse.csc_array(np.ones((3, 1)))}, "direct should have"),
        ({"hidden_shift": 70}, "0 to 62"),
        ({"hidden_shift": 62}, "use fewer bits"),
        ({"classes": ["a", "b", "c"]}, "do not fit"),
        ({"layers": ()}, "one or more"),
        ({"coding": InputCoding("int8", np.ones(3))}, "for each column in use"),
    ],
)
def test_networks_that_cannot_be_are_refused(parts: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        small(**parts)


def test_wide_sums_are_proved_to_fit_or_refused() -> None:
    layer = IntegerLayer(sparse.csc_array(np.full((2, 1), 2**46)), np.array([0]), np.array([0]))
    network = small(layers=(layer,), coding=InputCoding("uint16"))
    assert network.ranges.layers[0].bits == 64
    with pytest.raises(ParameterError, match="sums of layer 0 need 65 bits, and 64 is the most"):
        replace(network, layers=(replace(layer, weights=layer.weights * 2),))


def test_shapes_of_layers_are_checked() -> None:
    with pytest.raises(ParameterError, match="bias should be a whole number for each of 2 neurons"):
        IntegerLayer(sparse.csc_array(np.ones((2, 2))), np.array([1]), np.array([0, 0]))
    with pytest.raises(ParameterError, match="a shift should be 0 to 62"):
        IntegerLayer(sparse.csc_array(np.ones((2, 1))), np.array([1]), np.array([63]))
    with pytest.raises(ParameterError, match=r"not \+1 or -1"):
        IntegerLayer(sparse.csc_array([[2]]), np.array([1]), np.array([0]), signs_only=True)


def test_it_describes_itself() -> None:
    told = str(small())
    assert "integer network 2 -> 2 -> 1, 3 nonzeros" in told
    assert "inputs: 2 of 5 columns as int8" in told
    assert repr(small()) == "<IntegerNetwork 2 -> 2 -> 1, 3 nonzeros, int8>"


def test_a_float_network_can_be_kept_beside(tmp_path) -> None:
    network = small()
    network.save(tmp_path / "a")
    assert IntegerNetwork.load(tmp_path / "a").equals(network)
