"""The graph of a network as a page draws it: nodes in columns, links between them, each in words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from thresher.explain.naming import named_inputs
from thresher.explain.parts import parts_of
from thresher.network.formula import printable
from thresher.network.layer import live, narrowed
from thresher.network.metadata import spread_of
from thresher.network.structure import Structure
from thresher.report.graph import output_names, places_of, with_direct

LONGEST = 60
# The share of links that are no more than a sign.
SIGNS = 0.3


def graph_data(network: Structure, spread: np.ndarray | None = None) -> dict[str, Any]:
    """Give the live part of a network as plain values.

    Nodes stand in the order in which few links cross. A link's share is its weight's size beside the largest
    of its layer, weights of inputs for one standard deviation of each.

    Parameters
    ----------
    network : Network
    spread : array of shape (inputs read,), optional
        Standard deviations of the inputs in use; by default what the details tell.
    """
    read, layers, direct = narrowed(network.layers, network.direct)
    masks = live(layers, direct)
    weights = [
        layer.weights[before][:, after].tocoo()
        for layer, (before, after) in zip(layers, pairwise(masks), strict=True)
    ]
    matrices, links, fed = with_direct(weights, None if direct is None else direct[masks[0]])
    places = places_of(links, [links[0].shape[0], *(matrix.shape[1] for matrix in links)])
    if spread is None:
        told = spread_of(network.details, network.inputs)
        spread = None if told is None else told[read[masks[0]]]
    columns = [_inputs(network)]
    for number, (layer, mask) in enumerate(zip(layers[:-1], masks[1:-1], strict=True)):
        columns.append(_neurons(network, number, layer.bias[mask]))
        columns[-1] += [{"label": "linear part", "bias": 0.0, "kind": "linear"} for _ in fed]
    columns.append(_outputs(network, layers[-1].bias))
    for nodes, heights in zip(columns, places, strict=True):
        for node, height in zip(nodes, heights.tolist(), strict=True):
            node["height"] = height
    found = []
    for number, matrix in enumerate(links):
        sizes = np.abs(matrix.data.astype(float))
        if number == 0 and spread is not None:
            sizes = sizes * spread[matrix.coords[0]]
        largest = float(sizes.max()) if sizes.size else 1.0
        known = matrices[number].shape
        for row, column, value, size in zip(*matrix.coords, matrix.data, sizes, strict=True):
            # What leads from a linear part to its output has no weight.
            free = row >= known[0] or column >= known[1]
            share = 0.0 if free else float(np.sqrt(size / largest)) if largest else 0.0
            # Signs are all alike.
            share = min(share, SIGNS) if layers[number].signs_only else share
            weight = None if free else float(value)
            found.append([number, int(row), int(column), weight, share])
    return {"columns": columns, "links": found}


def _inputs(network: Structure) -> list[dict[str, Any]]:
    named = named_inputs(network)
    units = [f" [{each.unit}]" if each.unit else "" for each in named]
    return [
        {"label": _cut(f"{each.plain}{unit}"), "kind": "input", "bias": 0.0}
        for each, unit in zip(named, units, strict=True)
    ]


def _neurons(network: Structure, layer: int, bias: np.ndarray) -> list[dict[str, Any]]:
    """Name neurons: by their threshold where they read one input, else by their number."""
    named, parts = named_inputs(network), parts_of(network)
    labels = [f"neuron {number + 1}" for number in range(len(bias))]
    if len(network.hidden) == 1 and len(parts.neurons) == len(bias):
        for number, neuron in enumerate(parts.neurons):
            if len(neuron.places) == 1:
                name = named[int(neuron.places[0])]
                where = "above" if neuron.weights[0] > 0 else "below"
                threshold = -neuron.bias / neuron.weights[0] + 0.0
                labels[number] = f"{name.plain} {where} {threshold:.4g}{name.after}"
    prefix = f"layer {layer + 1}, " if len(network.hidden) > 1 else ""
    return [
        {"label": _cut(prefix + label), "kind": "neuron", "bias": float(value)}
        for label, value in zip(labels, bias.tolist(), strict=True)
    ]


def _outputs(network: Structure, bias: np.ndarray) -> list[dict[str, Any]]:
    return [
        {"label": _cut(name), "kind": "output", "bias": float(value)}
        for name, value in zip(output_names(network), bias.tolist(), strict=True)
    ]


def _cut(name: str) -> str:
    name = printable(" ".join(name.split()))
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
