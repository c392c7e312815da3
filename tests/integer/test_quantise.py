"""Rounding keeps what a network answers, never adds a nonzero, and says what cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from networks import NETWORKS, fused, random_network, rows_for
from sklearn.datasets import load_digits
from whole import ROUNDINGS

from thresher import SparseMLPClassifier
from thresher.data.rows import OnDisk
from thresher.errors import DataError, ParameterError
from thresher.integer import InputCoding
from thresher.network import Network


@pytest.mark.parametrize("how", ROUNDINGS)
@pytest.mark.parametrize("name", NETWORKS)
def test_there_are_never_more_nonzeros_than_before(name: str, how: str) -> None:
    network = NETWORKS[name]
    found = network.quantise(rows_for(network, 200), **ROUNDINGS[how])
    assert found.nonzeros <= network.nonzeros
    assert set(found.used) <= set(network.inputs_used()) | {0}


@pytest.mark.parametrize("name", NETWORKS)
def test_many_bits_answer_as_floating_point_does(name: str) -> None:
    network, X = NETWORKS[name], rows_for(NETWORKS[name], 300)
    found = network.quantise(X, 16, activation_bits=24)
    assert np.allclose(
        found.forward(X) * found.output_scale,
        network.forward(X),
        atol=1e-3 * max(1.0, np.abs(network.forward(X)).max()),
    )
    if network.classes is not None:
        assert (found.predict(X) == network.predict(X)).mean() > 0.98


@pytest.mark.parametrize("name", ["fused", "softmax, deep, floats", "direct", "deep, many outputs"])
def test_more_bits_are_closer(name: str) -> None:
    network, X = NETWORKS[name], rows_for(NETWORKS[name], 400)
    errors = []
    for bits in (3, 5, 8, 12):
        found = network.quantise(X, bits, activation_bits=20)
        errors.append(np.square(found.forward(X) * found.output_scale - network.forward(X)).mean())
    assert errors[0] > 4 * errors[1] > 16 * errors[2] > 64 * errors[3]


@pytest.fixture(scope="module")
def digits() -> tuple[Network, np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    model = SparseMLPClassifier(budget=300, hidden=20, max_iter=60, random_state=0).fit(X[::2], y[::2])
    return model.network_, X, y


@pytest.mark.parametrize(("weights", "points"), [("int8", 0.5), ("int4", 1.0), ("pow2", 1.5)])
def test_digits_keep_their_accuracy(
    digits: tuple[Network, np.ndarray, np.ndarray], weights: str, points: float
) -> None:
    network, X, y = digits
    found = network.quantise(X[::2], weights=weights, inputs="uint8", activation_bits=8)
    before, after = ((one.predict(X[1::2]) == y[1::2]).mean() for one in (network, found))
    assert after > before - points / 100


def test_refitting_beats_plain_rounding(digits: tuple[Network, np.ndarray, np.ndarray]) -> None:
    network, X, _ = digits
    found = network.quantise(X[::2], weights="int4", inputs="uint8")
    plain = []
    for layer in network.layers:
        step = np.abs(layer.weights).max(axis=0).toarray().ravel() / 7
        step[step == 0] = 1.0
        plain.append(np.rint(layer.weights.toarray() / step) * step)
    hidden = np.maximum(X[1::2] @ plain[0] + network.layers[0].bias, 0)
    rounded = (hidden @ plain[1] + network.layers[1].bias).argmax(axis=1)
    before = network.forward(X[1::2]).argmax(axis=1)
    ours = found.forward(X[1::2]).argmax(axis=1)
    assert (ours != before).sum() < 0.7 * (rounded != before).sum()


def test_the_same_rows_give_the_same_network() -> None:
    network = NETWORKS["direct, softmax"]
    one, two = (network.quantise(rows_for(network, 100), 4) for _ in range(2))
    assert one.equals(two)
    assert not one.equals(network.quantise(rows_for(network, 100), 5))


def test_rows_may_be_sparse_or_a_frame_or_on_disk(tmp_path) -> None:
    import pandas
    from scipy import sparse

    from thresher.data import open_rows

    network = fused(features=[f"c{i}" for i in range(10)])
    X = np.round(rows_for(network, 50)).astype(np.int16)
    np.save(tmp_path / "x.npy", X)
    on_disk = open_rows(tmp_path / "x.npy")
    assert isinstance(on_disk, OnDisk)
    expected = network.quantise(X.astype(float), inputs="int8")
    for form in (sparse.csr_array(X), pandas.DataFrame(X, columns=network.features), on_disk):
        assert network.quantise(form, inputs="int8").equals(expected)


def test_pixels_stay_what_they_are() -> None:
    network = random_network((6, 5, 3), classes=range(3), link="softmax")
    X = np.random.default_rng(0).integers(0, 256, size=(100, 6), dtype=np.uint8)
    found = network.quantise(X)
    assert found.coding.kind == "uint8"
    assert found.coding.plain
    assert (found.codes(X) == X[:, found.used]).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bits": 1}, "bits=1, but weights have 2 to 16 bits"),
        ({"bits": 17}, "2 to 16 bits"),
        ({"bits": True}, "2 to 16 bits"),
        ({"weights": "int7"}, "weights='int7', but they are one of int8, int4, pow2"),
        ({"activation_bits": 0}, "activation_bits=0, but it is a whole number from 1 to 32"),
        ({"activation_bits": 33}, "from 1 to 32"),
        ({"bias_bits": 2}, "bias_bits=2, but it is a whole number from 4 to 32"),
        ({"inputs": "uint99"}, "inputs='uint99', but a device sees uint1 to uint16"),
        ({"inputs": InputCoding("uint8", np.ones(3))}, "scale of the inputs has 3 numbers, but there are 6"),
        (
            {"inputs": InputCoding("uint8", 1.0, -3.0)},
            "has an offset, and a neuron that reads it has no bias",
        ),
    ],
)
def test_what_cannot_be_is_said(given: dict[str, object], message: str) -> None:
    network = Network.fused(np.ones((6, 2)), None, [1, -1])
    with pytest.raises(ParameterError, match=message):
        network.quantise(rows_for(network), **given)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 6)), "X has no rows"),
        (np.zeros((3, 5)), "X has 5 columns, but the network takes 6"),
        (np.full((3, 6), np.nan), "NaN"),
    ],
)
def test_calibration_rows_that_do_not_fit_are_refused(X: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        random_network((6, 5, 2)).quantise(X)


def test_offsets_cost_nothing_where_there_are_biases() -> None:
    rng = np.random.default_rng(0)
    network = Network.fused(rng.normal(size=(3, 4)), rng.normal(size=4) + 1, [1, -1, 1, -1], output_bias=0.2)
    X = 1000.0 + rng.random((200, 3))
    found = network.quantise(X, 12, inputs="uint8")
    assert (found.coding.offset > 900).all()
    assert found.nonzeros <= network.nonzeros
    spread = network.predict(X).std()
    assert np.abs(found.predict(X) - network.predict(X)).max() < 0.1 * spread
