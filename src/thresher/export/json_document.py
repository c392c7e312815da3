"""A network as one JSON document: everything there is to know, in lists that any language reads."""

from __future__ import annotations

import json
from typing import Any

from scipy import sparse

from thresher._version import __version__
from thresher.export.naming import plain_labels
from thresher.network.layer import Layer
from thresher.network.structure import Structure

# Without direct connections, and with them: a reader that knows nothing of them must not pass them over.
PLAIN_VERSION, DIRECT_VERSION = 1, 2


def json_document(network: Structure) -> str:
    """Write the network as JSON, in ASCII.

    Layers come from the inputs to the outputs. ``weights`` are triples of input, neuron and weight and
    ``biases`` pairs of neuron and bias; what is not listed is zero. Between layers, negative numbers become
    zero. ``direct``, in documents of version 2, holds triples of input, output and weight, which are added
    to the outputs; networks without direct connections are written as version 1. ``link`` says how outputs
    become answers: "logistic" and "softmax" give probabilities, "log" the exponential of the output, and
    "identity" with classes compares the output with 0.5.
    """
    direct = {} if network.direct is None else {"direct": _triples(network.direct)}
    document = {
        "format": "thresher",
        "version": DIRECT_VERSION if direct else PLAIN_VERSION,
        "writer": f"thresher {__version__}",
        "inputs": network.inputs,
        "outputs": network.outputs,
        "nonzeros": network.nonzeros,
        "features": None if network.features is None else list(network.features),
        "classes": None if network.classes is None else plain_labels(network.classes),
        "link": network.link,
        "activation": "relu",
        "layers": [_layer(layer) for layer in network.layers],
        **direct,
        "details": network.details,
    }
    return json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"


def _layer(layer: Layer) -> dict[str, Any]:
    biased = layer.bias.nonzero()[0]
    return {
        "inputs": layer.inputs,
        "neurons": layer.neurons,
        "signs_only": layer.signs_only,
        "weights": _triples(layer.weights),
        "biases": [list(pair) for pair in zip(biased.tolist(), layer.bias[biased].tolist(), strict=True)],
    }


def _triples(weights: sparse.csr_array) -> list[list[Any]]:
    entries = weights.tocoo()
    rows, columns = entries.coords
    return [list(entry) for entry in zip(rows.tolist(), columns.tolist(), entries.data.tolist(), strict=True)]
