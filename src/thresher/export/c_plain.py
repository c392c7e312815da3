"""The loops of an integer network in C over arrays of indices and weights, the fastest form."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from thresher.export.c_types import (
    Table,
    activation,
    answer,
    declared,
    function,
    indented,
    layer_type,
    product_type,
    times,
)
from thresher.integer import IntegerNetwork


def plain_loops(network: IntegerNetwork, all_inputs: bool) -> tuple[str, str]:
    """Return arrays of starts, indices, weights, biases and shifts, and the function that runs over them."""
    columns = network.used if all_inputs else np.arange(network.used.size)
    tables: list[Table] = []
    body = [*declared(network), "uint32_t j, k;"]
    for number, layer in enumerate(network.layers):
        kind = layer_type(network, number)
        before = number - 1 if number else None
        index = np.arange(layer.inputs) if number else columns
        inner = [f"{kind} sum = 0;"]
        bias = None
        if layer.bias.any():
            tables.append(Table(f"bias{number}", layer.bias))
            bias = f"({kind}){tables[-1].read('j')}"
        adding = _added(network, str(number), layer.weights, index, before, kind)
        tables += adding[0]
        inner += adding[1]
        if number < len(network.layers) - 1:
            inner += [f"sum = ({kind})(sum + {bias});"] if bias else []
            shift = str(int(layer.shift[0]))
            if (layer.shift != layer.shift[0]).any():
                tables.append(Table(f"shift{number}", layer.shift))
                shift = tables[-1].read("j")
            inner += activation(network, number, shift)
        else:
            if network.direct is not None:
                adding = _added(network, "_direct", network.direct, columns, None, kind)
                tables += adding[0]
                linear = f"out[j] = (NAME_output)(sum{times(kind, network.direct_shift)});"
                inner = [inner[0], *adding[1], linear, "sum = 0;", *inner[1:]]
            inner.append(answer(network, bias))
        body += [f"for (j = 0; j < {layer.neurons}; j++) {{", *indented(inner), "}"]
    reads = network.direct is not None or network.layers[0].weights.nnz
    body += [] if reads else ["(void)in;"]
    body += [] if any(layer.weights.nnz for layer in network.layers) or reads else ["(void)k;"]
    return "\n".join(map(str, tables)), function(body)


def _added(
    network: IntegerNetwork,
    name: str,
    weights: sparse.csc_array,
    index: np.ndarray,
    before: int | None,
    kind: str,
) -> tuple[list[Table], list[str]]:
    """Return the tables of some weights, and the loop that adds them to `sum`."""
    if not weights.nnz:
        return [], []
    start = Table(f"start{name}", weights.indptr.astype(np.int64))
    place = Table(f"index{name}", index[weights.indices])
    value = Table(f"weight{name}", weights.data)
    product = product_type(network, int(np.abs(weights.data).max()), before)
    source = "in" if before is None else f"h{before}"
    return [start, place, value], [
        f"for (k = {start.read('j')}; k < {start.read('j + 1')}; k++)",
        f"    sum = ({kind})(sum + ({kind})(({product}){value.read('k')}",
        f"        * ({product}){source}[{place.read('k')}]));",
    ]
