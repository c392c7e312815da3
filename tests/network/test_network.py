"""A network predicts what its dense twin does, counts what it holds, and says what is wrong."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from thresher.errors import DataError, ParameterError
from thresher.network import Layer, Network, description, forward

CONTAINERS = {
    "list": lambda X: X.tolist(),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "objects": lambda X: X.astype(object),
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
}


def random_network(widths, seed=0, dtype=np.float64, density=0.5, direct=0.0):
    """A network with some biases and, in every hidden layer of two or more neurons, one without weights.

    Direct connections are as dense as told.
    """
    rng = np.random.default_rng(seed)
    layers = []
    for number, (inputs, neurons) in enumerate(pairwise(widths)):
        weights = rng.normal(size=(inputs, neurons)) * (rng.random((inputs, neurons)) < density)
        weights[:, : neurons > 1 and number < len(widths) - 2] = 0.0
        bias = rng.normal(size=neurons) * (rng.random(neurons) < 0.5)
        layers.append(Layer(sparse.csr_array(weights.astype(dtype)), bias))
    shape = (widths[0], widths[-1])
    return Network(tuple(layers), direct=rng.normal(size=shape) * (rng.random(shape) < direct))


def dense_forward(network, X):
    values = np.asarray(X, dtype=np.float64)
    for number, (weights, bias) in enumerate(zip(network.coefs, network.intercepts, strict=True)):
        values = (np.maximum(values, 0) if number else values) @ weights.astype(float) + bias
    return values + np.asarray(X, dtype=np.float64) @ network.direct_coef


def classifier(link, output_bias=0.0, classes=("cat", "dog")):
    """One input x, whose score is relu(x) - relu(-x) + output_bias = x + output_bias."""
    return Network.fused([[1.0, -1.0]], None, [1, -1], output_bias=output_bias, classes=classes, link=link)


def three_classes():
    outputs = Layer(np.array([[1.0, 0.0, -1.0]]), np.zeros(3))
    return Network((outputs,), classes=[10, 20, 30], link="softmax")


@pytest.mark.parametrize("widths", [(6, 1), (6, 5, 1), (6, 5, 3), (6, 7, 4, 2), (1, 1, 1), (6, 4, 4, 4, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forward_equals_the_dense_network(widths, dtype):
    rng = np.random.default_rng(1)
    for seed in range(5):
        network = random_network(widths, seed, dtype, direct=seed / 5)
        X = rng.normal(size=(50, widths[0]))
        assert np.allclose(network.forward(X), dense_forward(network, X), rtol=1e-12, atol=1e-12)
        assert network.forward(X).dtype == np.float64


@pytest.mark.parametrize("direct", [0.0, 0.5])
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_answer(container, direct):
    network = random_network((6, 5, 2), direct=direct)
    X = np.random.default_rng(2).normal(size=(40, 6))
    X[X < 0] = 0.0
    assert np.allclose(network.forward(CONTAINERS[container](X)), network.forward(X), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint64, bool, ">f8"])
def test_every_type_of_number_is_computed_in_float64(dtype):
    network = random_network((6, 5, 1))
    X = np.random.default_rng(3).integers(0, 2, size=(30, 6)).astype(dtype)
    assert np.allclose(network.forward(X), dense_forward(network, X.astype(float)), rtol=1e-13, atol=1e-13)
    if X.dtype not in (np.float16, np.dtype(">f8")):  # SciPy's sparse arrays have no such types
        assert np.allclose(network.forward(sparse.csr_array(X)), network.forward(X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_chunks_of_rows_change_nothing(make, monkeypatch):
    network = random_network((6, 5, 2), direct=0.5)
    X = make(np.random.default_rng(4).normal(size=(23, 6)))
    whole = network.forward(X)
    for numbers in (1, 12, 40, 100):
        monkeypatch.setattr(forward, "CHUNK_NUMBERS", numbers)
        assert np.allclose(network.forward(X), whole, rtol=1e-14, atol=1e-14)


def test_no_rows_give_no_answers():
    assert random_network((6, 5, 2)).forward(np.zeros((0, 6))).shape == (0, 2)
    assert classifier("logistic").predict_proba(np.zeros((0, 1))).shape == (0, 2)


def peak_of(action):
    tracemalloc.start()
    try:
        return action(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_read_only_memory_map_is_read_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(forward, "CHUNK_NUMBERS", 2**14)
    rows, columns = 20_000, 64
    np.save(tmp_path / "X.npy", np.random.default_rng(5).normal(size=(rows, columns)).astype(np.float32))
    network = random_network((columns, 8, 1))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    answer, peak = peak_of(lambda: network.predict(X))
    assert np.allclose(answer, dense_forward(network, X)[:, 0])
    assert peak < 2e6  # all rows in float64 would be 10 MB


def test_sparse_data_is_never_made_dense():
    rows, columns = 3_000, 300_000
    X = sparse.random_array((rows, columns), density=1e-5, format="csr", rng=np.random.default_rng(6))
    weights = sparse.coo_array((np.ones(3), ([5, 7, columns - 1], [0, 1, 1])), shape=(columns, 2))
    direct = sparse.coo_array((np.ones(2), ([3, columns - 2], [0, 0])), shape=(columns, 1))
    network = Network.fused(weights, None, [1, -1], direct=direct)
    answer, peak = peak_of(lambda: network.forward(X))
    linear = (X @ direct.tocsr()).toarray()[:, 0]
    assert np.allclose(answer[:, 0], np.maximum((X @ weights).toarray(), 0) @ [1, -1] + linear)
    assert peak < 15e6  # a few vectors over the columns; a chunk of dense rows would be 16 MB by itself


def test_wrong_columns_name_both_numbers():
    network = random_network((6, 5, 1))
    for X in (np.zeros((3, 4)), sparse.csr_array((3, 4)), pd.DataFrame(np.zeros((3, 4)))):
        with pytest.raises(DataError, match=r"4 columns.* 6"):
            network.predict(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("container", CONTAINERS)
def test_nan_and_infinity_are_refused_even_in_columns_not_used(container, bad):
    network = Network.fused([[1.0], [0.0]], None, [1])
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    X[1, 1] = bad
    with pytest.raises(DataError, match="NaN or infinity"):
        network.predict(CONTAINERS[container](X))


@pytest.mark.parametrize(
    "X",
    [
        np.zeros(2),
        np.zeros((1, 2, 1)),
        np.array([["1", "2"]]),
        np.array([["a", 1.0]], dtype=object),
        np.array([[None, 1.0]], dtype=object),
        np.array([[1j, 1.0]]),
        sparse.csr_array(np.array([[1j, 1.0]])),
        np.array([["2020-01-01", "2020-01-02"]], dtype="datetime64[D]"),
        3.0,
    ],
    ids=repr,
)
def test_what_is_no_table_of_numbers_is_refused(X):
    network = Network.fused([[1.0], [0.0]], None, [1])
    if isinstance(X, np.ndarray) and X.dtype == object and X[0, 0] is None:
        # NumPy takes None for NaN.
        with pytest.raises(DataError, match=r"NaN|number"):
            network.predict(X)
    else:
        with pytest.raises(DataError, match=r"rows and columns|number"):
            network.predict(X)


def test_an_answer_that_overflows_is_an_error():
    network = Network.fused([[1e200]], None, [1])
    with pytest.raises(DataError, match="overflow"):
        network.predict([[1e200]])
    cancelling = Network.fused([[1e200]], None, [1], direct=[-1e200])
    with pytest.raises(DataError, match="overflow"):
        cancelling.predict([[1e200]])
    rate = Network.fused([[1.0]], None, [1], link="log")
    assert rate.predict([[700.0]])[0] == np.exp(700.0)
    with pytest.raises(DataError, match=r"exp\(1000\), overflows"):
        rate.predict([[1000.0]])
    assert rate.forward([[1000.0]]) == 1000


def test_a_log_link_answers_the_exponential_of_the_outputs():
    X = np.random.default_rng(1).normal(size=(20, 3))
    for outputs in (1, 2):
        network = replace(random_network((3, 4, outputs), direct=0.5), link="log")
        assert np.array_equal(network.predict(X).reshape(20, -1), np.exp(network.forward(X)))
        assert np.array_equal(network.forward(X), replace(network, link="identity").forward(X))
        with pytest.raises(ParameterError, match="regression"):
            network.predict_proba(X)


def test_regression_answers_have_one_dimension_for_one_output():
    X = np.ones((4, 3))
    assert random_network((3, 4, 1)).predict(X).shape == (4,)
    assert random_network((3, 4, 2)).predict(X).shape == (4, 2)
    assert random_network((3, 4, 2)).targets == 2
    for method in ("predict_proba", "decision_function"):
        with pytest.raises(ParameterError, match="regression"):
            getattr(random_network((3, 4, 1)), method)(X)


def test_logistic_classifier():
    network = classifier("logistic", output_bias=0.25)
    X = np.array([[-2000.0], [-1.25], [-0.25], [0.75], [2000.0]])
    score = X[:, 0] + 0.25
    assert np.array_equal(network.decision_function(X), score)
    assert network.predict(X).tolist() == ["cat", "cat", "cat", "dog", "dog"]
    proba = network.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-15)
    assert np.allclose(proba[1:4, 1], 1 / (1 + np.exp(-score[1:4])), rtol=1e-14)
    assert proba[0].tolist() == [1, 0]
    assert proba[-1].tolist() == [0, 1]
    assert network.predict_proba([[40.0]])[0, 0] > 0  # 1 - p would have rounded to zero


def test_squared_loss_classifier_compares_with_one_half():
    network = classifier("identity")
    X = np.array([[-3.0], [0.499], [0.5], [0.75], [9.0]])
    assert network.predict(X).tolist() == ["cat", "cat", "dog", "dog", "dog"]
    assert np.array_equal(network.decision_function(X) >= 0, network.predict(X) == "dog")
    assert network.predict_proba(X)[:, 1].tolist() == [0.0, 0.499, 0.5, 0.75, 1.0]
    assert np.array_equal(network.predict_proba(X).sum(axis=1), np.ones(5))


def test_softmax_classifier():
    network = three_classes()
    X = np.array([[-3.0], [1.0], [1e4]])
    assert network.predict(X).tolist() == [30, 10, 10]
    assert network.decision_function(X).shape == (3, 3)
    assert network.targets == 1
    proba = network.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-15)
    assert np.allclose(proba[1], np.exp([1, 0, -1]) / np.exp([1, 0, -1]).sum())
    assert np.array_equal(network.classes[proba.argmax(axis=1)], network.predict(X))


@pytest.mark.parametrize(
    "classes", [[False, True], [3, 7], [0.5, 1.5], ["no", "yes"], np.array(["no", "yes"], dtype=object)]
)
def test_labels_keep_their_type(classes):
    network = classifier("logistic", classes=classes)
    answer = network.predict([[-1.0], [1.0]])
    assert answer.tolist() == list(classes)
    assert answer.dtype == np.asarray(classes).dtype


def test_counts():
    network = random_network((6, 5, 4, 2))
    dense = [*network.coefs, *network.intercepts]
    assert network.nonzeros == sum(np.count_nonzero(array) for array in dense)
    assert network.size == sum(array.size for array in dense) == 6 * 5 + 5 + 5 * 4 + 4 + 4 * 2 + 2
    assert (network.inputs, network.hidden, network.outputs) == (6, (5, 4), 2)


def test_direct_weights_count_like_any():
    plain = random_network((6, 5, 2))
    direct = np.zeros((6, 2))
    direct[[0, 0, 5], [0, 1, 1]] = [1.0, -2.0, 1e-300]
    network = replace(plain, direct=direct)
    assert network.nonzeros == plain.nonzeros + 3
    assert network.size == plain.size + 12
    assert np.array_equal(network.direct_coef, direct)
    assert np.array_equal(network.support(), plain.support() | direct.any(axis=1))
    assert network.live_neurons == plain.live_neurons
    assert np.array_equal(plain.direct_coef, np.zeros((6, 2)))
    for nothing in (np.zeros((6, 2)), sparse.csr_array((6, 2)), None):
        empty = replace(plain, direct=nothing)
        assert empty.direct is None
        assert empty.equals(plain)
        assert empty.size == plain.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_direct_weights_are_canonical_copies_of_the_layers_type(dtype):
    # (0, 0) comes twice, (1, 0) is an explicit zero and (2, 0) a pair that cancels.
    given = sparse.coo_array(([1.0, 2.0, 0.0, 4.0, -4.0], ([0, 0, 1, 2, 2], [0] * 5)), shape=(3, 1))
    network = Network.fused(np.ones((3, 2), dtype=dtype), None, [1, -1], direct=given)
    assert network.direct_coef.tolist() == [[3.0], [0.0], [0.0]]
    assert (network.direct.nnz, network.direct.dtype, network.direct.format) == (1, dtype, "csr")
    given.data[:] = 9
    assert network.direct_coef.tolist() == [[3.0], [0.0], [0.0]]
    for same in ([3, 0, 0], [[3.0], [0.0], [0.0]], sparse.csr_array([[3.0], [0.0], [0.0]])):
        assert Network.fused(np.ones((3, 2), dtype=dtype), None, [1, -1], direct=same).equals(network)


def test_signs_are_free_and_an_output_bias_is_not():
    weights = [[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]
    network = Network.fused(weights, [0.0, 0.0, 4.0], [1, -1, -1])
    assert network.nonzeros == 4
    assert network.size == 2 * 3 + 3 + 1
    assert network.layers[1].signs_only
    assert network.layers[1].weights.nnz == 3  # the sign of the empty neuron stays
    assert Network.fused(weights, None, [1, -1, -1], output_bias=0.5).nonzeros == 4
    ordinary = Layer(np.array([[1.0], [-1.0], [-1.0]]), np.zeros(1))
    assert Network((network.layers[0], ordinary)).nonzeros == 7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fused_is_canonical_and_copies(dtype):
    # (0, 1) comes twice, (1, 0) is an explicit zero, (1, 1) is a pair that cancels; columns are out of order.
    data = np.array([2.0, 5.0, 3.0, 0.0, 1.0, -1.0], dtype=dtype)
    columns = np.array([1, 0, 1, 0, 1, 1])
    weights = sparse.csr_array((data, columns, np.array([0, 3, 6])), shape=(2, 2))
    network = Network.fused(weights, [0, 1], [1, -1])
    kept = network.layers[0].weights
    assert kept.toarray().tolist() == [[5.0, 5.0], [0.0, 0.0]]
    assert kept.nnz == 2
    assert kept.has_canonical_format
    assert kept.indices.tolist() == [0, 1]
    assert kept.dtype == network.layers[0].bias.dtype == network.layers[1].weights.dtype == dtype
    assert weights.nnz == 6
    assert weights.indices.tolist() == columns.tolist()
    weights.data[:] = 99
    assert network.layers[0].weights.toarray()[0].tolist() == [5.0, 5.0]


def test_other_types_of_weights_become_float64():
    for weights in (np.eye(2, dtype=np.float16), np.eye(2, dtype=int), sparse.eye_array(2, dtype=bool)):
        assert Layer(weights, np.zeros(2)).weights.dtype == np.float64


def test_support_follows_live_paths_only():
    # Input 0 feeds neuron 0, which feeds y; neuron 1 feeds nothing, 2 is constant, 3 is always 0.
    first = Layer(np.array([[1.0, 0, 0, 0], [0, 1e-300, 0, 0], [0, 0, 0, 0]]), np.array([0, 0, 0.5, -0.5]))
    second = Layer(np.array([[1e-300], [0], [1], [1]]), np.zeros(1))
    network = Network((first, second))
    assert network.support().tolist() == [True, False, False]
    assert network.live_neurons == (2,)
    assert network.forward([[1.0, 1.0, 1.0]]) == pytest.approx(0.5)
    empty = Network((Layer(np.zeros((3, 4)), np.zeros(4)), Layer(np.zeros((4, 2)), np.array([7.0, 0]))))
    assert not empty.support().any()
    assert empty.live_neurons == (0,)
    assert empty.forward(np.ones((2, 3))).tolist() == [[7.0, 0.0]] * 2


def test_inputs_outside_the_support_change_nothing():
    rng = np.random.default_rng(7)
    used = []
    for seed, direct in product(range(10), (0.0, 0.1)):
        network = random_network((8, 6, 6, 1), seed, density=0.3, direct=direct)
        X = rng.normal(size=(20, 8))
        other = np.where(network.support(), X, rng.normal(size=X.shape))
        assert np.array_equal(network.forward(X), network.forward(other))
        used.append(network.support().sum())
    assert min(used) == 0
    assert 3 < max(used) < 8


def test_permuting_features_permutes_the_support():
    order = np.random.default_rng(8).permutation(8)
    partial = 0
    for seed in range(10):
        network = random_network((8, 6, 2), seed, density=0.3, direct=0.1 * (seed % 2))
        first = Layer(network.layers[0].weights[order], network.layers[0].bias)
        permuted = Network((first, *network.layers[1:]), direct=network.direct_coef[order])
        assert np.array_equal(permuted.support(), network.support()[order])
        partial += 0 < network.support().sum() < 8
    assert partial >= 3


def evaluate(line, row):
    """The right side of a formula, as Python would compute it."""
    names = {f"x{column}": value for column, value in enumerate(row)}
    functions = {"relu": lambda value: max(value, 0.0), "sigmoid": lambda value: 1 / (1 + np.exp(-value))}
    return eval(line.split(" = ")[1], {**functions, **names})


@pytest.mark.parametrize("widths", [(4, 1), (4, 5, 1), (4, 5, 3), (4, 3, 3, 2), (4, 3, 2, 3, 1)])
def test_the_formula_computes_what_the_network_does(widths):
    rng = np.random.default_rng(9)
    for seed in range(5):
        network = random_network(widths, seed)
        X = rng.normal(size=(5, 4))
        lines = network.formula(digits=17).splitlines()
        values = [[evaluate(line, row) for line in lines] for row in X]
        assert np.allclose(values, network.forward(X), rtol=1e-12, atol=1e-12)


def test_formula_reads_well():
    weights = np.zeros((8, 3))
    weights[[1, 7], 0] = [0.3, -2.0]
    weights[0, 1] = -1.0
    network = Network.fused(weights, [0.1, 0.0, 0.0], [1, -1, 1], output_bias=-1.23456)
    assert network.formula() == "y = relu(0.3*x1 - 2*x7 + 0.1) - relu(-x0) - 1.235"
    names = ["age", "blood pressure", *"cdefgh"]
    assert network.formula(names, digits=2) == "y = relu(0.3*[blood pressure] - 2*h + 0.1) - relu(-age) - 1.2"
    named = Network(network.layers, features=tuple(names))
    assert named.formula(digits=2) == network.formula(names, digits=2)
    assert classifier("logistic").formula() == "P(dog) = sigmoid(relu(x0) - relu(-x0))"
    assert classifier("identity").formula() == "score(dog) = relu(x0) - relu(-x0)"
    assert three_classes().formula() == "score(10) = x0\nscore(20) = 0\nscore(30) = -x0"
    assert Network.fused([[0.0]], None, [1]).formula() == "y = 0"


def test_a_formula_too_long_to_read_is_refused():
    wide = Network.fused(np.ones((201, 1)), None, [1])
    with pytest.raises(ParameterError, match="201 nonzeros"):
        wide.formula()
    # Few nonzeros, but each layer doubles the text.
    square = Layer(np.ones((2, 2)), np.zeros(2))
    with pytest.raises(ParameterError, match="too long"):
        Network((square,) * 40).formula()
    for digits in (0, 18):
        with pytest.raises(ParameterError, match="digits"):
            classifier("logistic").formula(digits=digits)
    with pytest.raises(ParameterError, match="2 names came for 1"):
        classifier("logistic").formula(["a", "b"])


def test_summary_tells_the_numbers():
    network = Network.fused([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]], None, [1, -1], features=["a", "b", "c"])
    text = str(network)
    assert text == network.describe()
    for piece in ("3 -> 2 -> 1", "2 of 9 (22.22%)", "2 of 3", "1 of 2"):
        assert piece in text
    assert repr(network) == "<Network 3 -> 2 -> 1, 2 nonzeros>"


def changed(network, **change):
    return replace(network, **change)


def test_equals_sees_every_difference():
    network = classifier("logistic")
    first, last = network.layers
    nudged = first.weights.copy()
    nudged.data[0] = np.nextafter(nudged.data[0], 2)
    assert network.equals(changed(network))
    assert network.equals(pickle.loads(pickle.dumps(network)))
    others = [
        changed(network, classes=["cat", "cow"]),
        changed(network, classes=np.array(["cat", "dog"], dtype=object)),
        changed(network, classes=None, link="identity"),
        changed(network, link="identity"),
        changed(network, features=["x"]),
        changed(network, layers=(first, Layer(last.weights, last.bias))),
        changed(network, layers=(Layer(nudged, first.bias), last)),
        changed(network, layers=(Layer(first.weights, [0.0, 1.0]), last)),
        changed(network, layers=(Layer(first.weights.astype(np.float32), first.bias), last)),
        changed(network, layers=(Layer(np.ones((1, 1)), np.zeros(1)),)),
        changed(network, direct=[[1.0]]),
        "a network",
    ]
    assert not any(network.equals(other) for other in others)
    assert not any(other.equals(network) for other in others[:-1])
    direct = changed(network, direct=[[1.0]])
    assert direct.equals(pickle.loads(pickle.dumps(direct)))
    assert not direct.equals(changed(network, direct=[[np.nextafter(1.0, 2)]]))


@pytest.mark.parametrize(
    ("weights", "bias", "words"),
    [
        (np.ones(3), np.zeros(3), "shape"),
        (np.ones((0, 3)), np.zeros(3), "at least one"),
        (np.array([["a"]]), np.zeros(1), "real numbers"),
        (np.ones((2, 3)), np.zeros(2), "each of the 3 neurons"),
        (np.ones((2, 3)), np.zeros((3, 1)), "each of the 3 neurons"),
        (np.array([[np.nan]]), np.zeros(1), "NaN or infinite"),
        (np.ones((1, 1)), np.array([np.inf]), "NaN or infinite"),
        (np.ones((1, 1), dtype=np.float32), np.array([1e300]), "NaN or infinite"),
    ],
)
def test_impossible_layers_are_refused(weights, bias, words):
    with pytest.raises(ParameterError, match=words):
        Layer(weights, bias)


def test_signs_must_be_signs_of_a_last_layer():
    for weights in ([[2.0]], [[1.0, -1.0]]):
        with pytest.raises(ParameterError, match="signs_only"):
            Layer(weights, np.zeros(len(weights[0])), signs_only=True)
    signs = Layer(np.eye(2), np.zeros(2), signs_only=True)
    plain = Layer(np.eye(2), np.zeros(2))
    for layers in ((signs,), (signs, plain), (plain, signs, plain)):
        with pytest.raises(ParameterError, match="last of two or more"):
            Network(layers)
    for bad in ([1], [1, 0], [1, 2], [[1, 1]]):
        with pytest.raises(ParameterError, match="signs"):
            Network.fused(np.eye(2), None, bad)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": ()}, "one Layer or more"),
        ({"layers": (np.eye(2),)}, "one Layer or more"),
        (
            {"layers": (Layer(np.ones((1, 2)), np.zeros(2)), Layer(np.ones((3, 1)), np.zeros(1)))},
            "must be equal",
        ),
        ({"link": "probit"}, "one of identity"),
        ({"link": "log"}, "'identity' or 'logistic'"),
        ({"classes": ["a", "b", "c"], "link": "log"}, "outputs=3"),
        ({"direct": np.ones((2, 1))}, r"\(inputs, outputs\), here \(1, 1\)"),
        ({"direct": np.ones(1)}, r"shape \(1,\)"),
        ({"direct": [["a"]]}, "real numbers"),
        ({"direct": [[1j]]}, "real numbers"),
        ({"direct": [[np.nan]]}, "NaN or infinite"),
        ({"direct": [[np.inf]]}, "NaN or infinite"),
        ({"classes": None}, "needs classes"),
        ({"classes": ["a"]}, "two or more different"),
        ({"classes": ["a", "a"]}, "two or more different"),
        ({"classes": [["a", "b"]]}, "two or more different"),
        ({"classes": [0.0, np.nan]}, "NaN"),
        ({"classes": ["a", "b", "c"]}, "outputs=3"),
        ({"link": "softmax"}, "'identity' or 'logistic'"),
        ({"features": ["a", "b"]}, "2 names came for 1"),
        ({"features": [1]}, "string"),
    ],
)
def test_impossible_networks_are_refused(change, words):
    with pytest.raises(ParameterError, match=words):
        changed(classifier("logistic"), **change)


def test_networks_cannot_be_changed_through_what_made_them():
    classes = np.array(["a", "b"])
    network = classifier("logistic", classes=classes)
    classes[0] = "z"
    network.intercepts[0][:] = 5
    network.coefs[0][:] = 5
    assert network.classes.tolist() == ["a", "b"]
    assert network.equals(classifier("logistic", classes=["a", "b"]))
    with pytest.raises(AttributeError):
        network.link = "identity"


class Frame:
    """A table of another library: columns with names, and nothing of pandas."""

    def __init__(self, X, columns):
        self.X, self.columns = np.asarray(X), columns

    def __array__(self, dtype=None, copy=None):
        return self.X if dtype is None else self.X.astype(dtype)


@pytest.mark.parametrize("make", [pd.DataFrame, Frame])
def test_columns_of_a_frame_must_be_those_of_training(make):
    network = Network.fused(np.eye(3), None, [1, -1, 1], features=["a", "b", "c"])
    labelled = Network.fused(np.eye(3), None, [1, -1, 1], features=["a", "b", "c"], classes=[0, 1])
    X = np.random.default_rng(0).normal(size=(5, 3))
    assert np.array_equal(network.predict(make(X, columns=["a", "b", "c"])), network.predict(X))
    wrong = {
        "column 1 of X is 'c', but that of the network is 'b', which comes elsewhere": ["a", "c", "b"],
        "column 2 of X is 'z', but that of the network is 'c', which X does not have": ["a", "b", "z"],
        "column 0 of X is 'A', but that of the network is 'a'": ["A", "b", "c"],
    }
    uses = [network.predict, network.forward, network.importance, network.describe]
    for use in [*uses, labelled.predict, labelled.predict_proba, labelled.decision_function]:
        for words, columns in wrong.items():
            with pytest.raises(DataError, match=words):
                use(make(X, columns=columns))
    with pytest.raises(DataError, match=r"2 columns.* 3"):
        network.predict(make(X[:, :2], columns=["a", "b"]))


@pytest.mark.parametrize("columns", [[0, 1, 2], ["x", 1, "y"], [("a", 1), ("b", 2), ("c", 3)]])
def test_columns_not_named_by_strings_are_taken_by_position(columns):
    X = np.random.default_rng(0).normal(size=(5, 3))
    network = Network.fused(np.eye(3), None, [1, -1, 1], features=["a", "b", "c"])
    assert np.array_equal(network.predict(pd.DataFrame(X, columns=columns)), network.predict(X))
    unnamed = replace(network, features=None)
    assert np.array_equal(unnamed.predict(pd.DataFrame(X, columns=["c", "b", "a"])), network.predict(X))


def test_prediction_needs_neither_torch_nor_scikit_learn():
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('torch', 'sklearn', 'pandas')))\n"
        "from thresher.network import Network\n"
        "print(Network.fused([[2.0]], None, [1]).predict([[3.0]])[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "6.0"), done.stderr


def test_a_network_of_very_many_inputs_answers_as_one_of_those_it_reads(tmp_path: Path) -> None:
    narrow = random_network((6, 4, 3), 1, direct=0.5)
    columns, inputs = np.array([5, 70, 10**6, 10**8, 10**10, 10**11]), 10**12

    def among(weights: Any) -> Any:
        entries = weights.tocoo()
        parts = entries.data, (columns[entries.row], entries.col)
        return sparse.coo_array(parts, shape=(inputs, weights.shape[1]))

    first, *others = narrow.layers
    wide = Network((Layer(among(first.weights), first.bias), *others), direct=among(narrow.direct))
    X = sparse.random_array((30, 6), density=0.6, format="csr", rng=np.random.default_rng(0))
    rows = sparse.csr_array((X.data, columns[X.indices], X.indptr), shape=(30, inputs))
    assert np.array_equal(wide.forward(rows), narrow.forward(X))
    assert np.array_equal(wide.inputs_used(), columns[narrow.support()])
    assert wide.formula() == narrow.formula([f"x{column}" for column in columns])
    assert (wide.nonzeros, wide.live_neurons) == (narrow.nonzeros, narrow.live_neurons)
    wide.save(tmp_path / "wide.thresher")
    assert Network.load(tmp_path / "wide.thresher").equals(wide)
    told, known = (description.summary(one, data) for one, data in ((wide, rows), (narrow, X)))
    assert [one["column"] for one in told["inputs"]] == [columns[one["column"]] for one in known["inputs"]]
    for key in ("importance", "direction"):
        assert [one[key] for one in told["inputs"]] == [one[key] for one in known["inputs"]]
