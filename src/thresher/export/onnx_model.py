"""A network as an ONNX model: columns in use, layers over live neurons, the link, the labels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from thresher._version import __version__
from thresher.errors import MissingExtraError
from thresher.export.compact import CompactLayer, compact
from thresher.export.naming import checked_name, plain_labels
from thresher.network.metadata import target_names
from thresher.network.structure import Structure

# The newest version of the operators that onnxruntime runs on every Python that Thresher supports.
OPSET = 23

# Numbers of the first layer (16 MB) that a runtime may spread out for unused inputs too: to choose columns
# takes longer than to multiply by zeros.
MOST_SPREAD = 2**22


class _Graph:
    """Nodes and constants, as they are added."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output


def onnx_model(network: Structure, name: str) -> Any:
    """Build the model.

    ONNX has no product with a sparse matrix, so the file holds the nonzeros of a layer alone wherever that is
    smaller, and a runtime spreads them out over live neurons when it loads the model.

    Raises
    ------
    MissingExtraError
        When the package onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise MissingExtraError(
            "to write ONNX the package onnx is needed, and is not installed: pip install 'thresher[onnx]'."
        ) from None
    helper = onnx.helper
    graph = _Graph(onnx)
    results = _answer(graph, network, _scores(graph, network))
    made = helper.make_graph(
        graph.nodes,
        checked_name(name),
        [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, ["n", network.inputs])],
        [helper.make_tensor_value_info(*result) for result in results],
        initializer=graph.constants,
    )
    opsets = [helper.make_opsetid("", min(OPSET, onnx.defs.onnx_opset_version()))]
    model = helper.make_model(
        made,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="thresher",
        producer_version=__version__,
    )
    helper.set_model_props(model, _properties(network))
    return model


def _properties(network: Structure) -> dict[str, str]:
    """Gather the names that go along, as JSON."""
    told = {
        "features": None if network.features is None else list(network.features),
        "classes": None if network.classes is None else plain_labels(network.classes),
        "target": target_names(network.details, network.targets),
    }
    return {key: json.dumps(value) for key, value in told.items() if value is not None}


def _scores(graph: _Graph, network: Structure) -> str:
    """Add layers and direct connections; return the name of the outputs, of shape (n, outputs)."""
    used, layers, direct = compact(network, all_inputs=True, dtype=np.float32)
    read = "X"
    widest = max(layers[0].neurons, 0 if direct is None else direct.neurons)
    if 0 < used.size < network.inputs and network.inputs * widest > MOST_SPREAD:
        _, layers, direct = compact(network, all_inputs=False, dtype=np.float32)
        read = graph.node("Gather", ["X", graph.constant("columns", used.astype(np.int64))], "used", axis=1)
    values = read
    for number, layer in enumerate(layers):
        if number > 0:
            values = graph.node("Relu", [values], f"live{number}")
        values = _layer(graph, str(number), layer, values)
    if direct is None:
        return values
    return graph.node("Add", [values, _layer(graph, "_direct", direct, read)], "sum")


def _layer(graph: _Graph, number: str, layer: CompactLayer, values: str) -> str:
    if layer.nonzeros == 0 or layer.inputs == 0 or layer.neurons == 0:
        # Nothing comes in: as many rows of biases as there are rows.
        rows = graph.node("Shape", ["X"], f"rows{number}", start=0, end=1)
        width = graph.constant(f"width{number}", np.array([layer.neurons], dtype=np.int64))
        shape = graph.node("Concat", [rows, width], f"shape{number}", axis=0)
        return graph.node(
            "Expand", [graph.constant(f"bias{number}", layer.bias[None]), shape], f"sum{number}"
        )
    inputs = [values, _weights(graph, number, layer)]
    if layer.bias.any():
        return graph.node("Gemm", [*inputs, graph.constant(f"bias{number}", layer.bias)], f"sum{number}")
    return graph.node("MatMul", inputs, f"sum{number}")


def _weights(graph: _Graph, number: str, layer: CompactLayer) -> str:
    """Add a matrix of weights, whole or as its nonzeros, whichever takes fewer bytes."""
    size = layer.inputs * layer.neurons
    neuron = np.repeat(np.arange(layer.neurons), np.diff(layer.start))
    places = layer.index.astype(np.int64) * layer.neurons + neuron
    # A number takes four bytes, and one with its place eight, or twelve where places are large.
    index_type = np.int32 if size < 2**31 else np.int64
    if size * 4 <= layer.nonzeros * (4 + np.dtype(index_type).itemsize):
        dense = np.zeros(size, dtype=np.float32)
        dense[places] = layer.value
        return graph.constant(f"weights{number}", dense.reshape(layer.inputs, layer.neurons))
    zeros = graph.onnx.numpy_helper.from_array(np.zeros(1, dtype=np.float32))
    length = graph.constant(f"size{number}", np.array([size], dtype=np.int64))
    flat = graph.node("ConstantOfShape", [length], f"zeros{number}", value=zeros)
    entries = [
        graph.constant(f"places{number}", places.astype(index_type)),
        graph.constant(f"values{number}", layer.value),
    ]
    filled = graph.node("ScatterElements", [flat, *entries], f"filled{number}", axis=0)
    shape = graph.constant(f"matrix{number}", np.array([layer.inputs, layer.neurons], dtype=np.int64))
    return graph.node("Reshape", [filled, shape], f"weights{number}")


def _answer(graph: _Graph, network: Structure, scores: str) -> list[tuple[str, int, list[Any]]]:
    """Add the link and the labels; return name, type and shape of what the model gives."""
    floats = graph.onnx.TensorProto.FLOAT
    if network.classes is None:
        graph.node({"log": "Exp", "logistic": "Sigmoid"}.get(network.link, "Identity"), [scores], "y")
        return [("y", floats, ["n", network.outputs])]
    if network.link == "softmax":
        graph.node("Softmax", [scores], "probabilities", axis=1)
        place = graph.node("ArgMax", [scores], "place", axis=1, keepdims=0)
    else:
        place = _two_classes(graph, network.link, scores)
    labels = _labels(network.classes)
    graph.node("Gather", [graph.constant("labels", labels), place], "label")
    kind = graph.constants[-1].data_type
    return [("label", kind, ["n"]), ("probabilities", floats, ["n", network.classes.size])]


def _two_classes(graph: _Graph, link: str, scores: str) -> str:
    """Add probabilities of both classes; return the name of the more probable one's number, of shape (n,)."""
    threshold = graph.constant("threshold", np.float32(0.0 if link == "logistic" else 0.5))
    if link == "logistic":
        negative = graph.node("Neg", [scores], "negative")
        first, second = graph.node("Sigmoid", [negative], "first"), graph.node("Sigmoid", [scores], "second")
        above = graph.node("Greater", [scores, threshold], "above")
    else:
        one = graph.constant("one", np.float32(1.0))
        second = graph.node("Clip", [scores, graph.constant("zero", np.float32(0.0)), one], "second")
        first = graph.node("Sub", [one, second], "first")
        above = graph.node("GreaterOrEqual", [scores, threshold], "above")
    graph.node("Concat", [first, second], "probabilities", axis=1)
    number = graph.node("Cast", [above], "number", to=int(graph.onnx.TensorProto.INT64))
    return graph.node("Squeeze", [number, graph.constant("axis", np.array([1], dtype=np.int64))], "place")


def _labels(classes: np.ndarray) -> np.ndarray:
    """Return labels in a type that ONNX has: numbers and truth values as they are, all else as text."""
    if classes.dtype.kind in "biuf":
        return classes
    return np.array([str(label) for label in plain_labels(classes)], dtype=object)
