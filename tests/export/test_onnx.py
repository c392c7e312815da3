"""The ONNX model is valid, small, and onnxruntime computes with it what the network does."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from networks import NETWORKS, answers, fused, random_network, rows_for
from scipy import sparse

from thresher.errors import MissingExtraError
from thresher.network import Network

onnx = pytest.importorskip("onnx", reason="needs the package onnx: pip install 'thresher[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install 'thresher[onnx]'")


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_onnxruntime_computes_what_the_network_does(name):
    network = NETWORKS[name]
    model = network.to_onnx("net")
    onnx.checker.check_model(model, full_check=True)
    X = rows_for(network)
    found = session(model).run(None, {"X": X})
    if network.classes is None:
        assert np.allclose(found[0], answers(network, X), rtol=1e-5, atol=1e-5)
        assert [output.name for output in model.graph.output] == ["y"]
        return
    assert [output.name for output in model.graph.output] == ["label", "probabilities"]
    labels, proba = found
    assert np.allclose(proba, network.predict_proba(X), rtol=1e-4, atol=1e-6)
    expected = network.predict(X)
    if network.classes.dtype.kind in "biuf":
        assert labels.dtype == network.classes.dtype
        assert np.array_equal(labels, expected)
    else:
        assert labels.tolist() == [str(label) for label in expected.tolist()]


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_any_number_of_rows_is_answered(rows):
    for name in ("fused", "softmax", "logistic", "constant", "direct alone", "log, direct"):
        network = NETWORKS[name]
        X = rows_for(network, rows)
        for result in session(network.to_onnx()).run(None, {"X": X}):
            assert len(result) == rows


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "bool"])
def test_labels_keep_their_type(dtype):
    network = fused(classes=np.array([0, 1], dtype=dtype), link="identity")
    X = rows_for(network)
    labels = session(network.to_onnx()).run(["label"], {"X": X})[0]
    assert labels.dtype == dtype
    assert np.array_equal(labels, network.predict(X))


def test_ties_go_where_the_network_takes_them():
    X = np.array([[0.0], [0.5], [-0.5]], dtype=np.float32)
    for link in ("logistic", "identity"):
        network = Network.fused([[1.0, -1.0]], None, [1, -1], classes=[0, 1], link=link)
        assert session(network.to_onnx()).run(["label"], {"X": X})[0].tolist() == network.predict(X).tolist()


def test_the_model_is_small_where_the_network_is_sparse():
    rng = np.random.default_rng(0)
    shape, nonzeros = (100_000, 300), 1_000
    places = rng.choice(shape[0] * shape[1], size=nonzeros, replace=False)
    weights = sparse.coo_array((rng.normal(size=nonzeros), (places // shape[1], places % shape[1])), shape)
    direct = sparse.random_array((shape[0], 1), density=1e-3, rng=rng)
    network = Network.fused(weights, None, np.resize([1, -1], 300), direct=direct)
    content = network.to_onnx().SerializeToString()
    assert len(content) < 30 * nonzeros  # dense, over the columns in use alone, it would be 1,200 bytes each
    X = sparse.random_array((3, shape[0]), density=0.3, rng=rng).toarray().astype(np.float32)
    found = session(network.to_onnx()).run(None, {"X": X})[0]
    assert np.allclose(found, network.forward(X), rtol=1e-4, atol=1e-4)


def test_names_go_along():
    network = random_network(
        (2, 3), features=["a", "b c"], classes=["x", "y", "z"], link="softmax", details={"target": "kind"}
    )
    model = network.to_onnx("flowers")
    told = {each.key: json.loads(each.value) for each in model.metadata_props}
    assert told == {"features": ["a", "b c"], "classes": ["x", "y", "z"], "target": ["kind"]}
    assert (model.graph.name, model.producer_name) == ("flowers", "thresher")


def test_without_onnx_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'thresher\[onnx\]'"):
        fused().to_onnx()
    assert issubclass(MissingExtraError, ImportError)


def test_the_rest_needs_no_onnx():
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('onnx', 'onnxruntime', 'torch', 'sympy')))\n"
        "from thresher.network import Network\n"
        "network = Network.fused([[2.0]], None, [1])\n"
        "network.to_c(); network.to_json(); network.to_python(); network.describe(); network.latex()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
