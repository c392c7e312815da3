"""The numbers of a network that mean something, in words: slopes, thresholds, weights, biases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thresher.explain.naming import Named, named_inputs
from thresher.explain.parts import Neuron, parts_of
from thresher.network.formula import left_sides
from thresher.network.structure import Structure


@dataclass(frozen=True)
class Quantity:
    """A number of a network in words.

    Attributes
    ----------
    kind : {"threshold", "slope", "weight", "bias"}
        Of a neuron of one input where it is kinked, and what it adds for each unit beyond; of a neuron of
        several inputs what one of them weighs, and its bias; the slope of a linear part; an output's bias.
    name : str
    columns : tuple of int
        The inputs that it is about.
    unit : str
    """

    kind: str
    name: str
    columns: tuple[int, ...]
    unit: str = ""


def quantities(network: Structure) -> list[Quantity]:
    """List the numbers of a network with one hidden layer at most, always in the same order."""
    parts, named = parts_of(network), named_inputs(network)
    outputs = _outputs(network)
    found = []
    for place in parts.linear:
        column = int(parts.read[place])
        found += [Quantity("slope", f"{named[place].plain}{of}", (column,)) for of in outputs]
    for number, neuron in enumerate(parts.neurons, start=1):
        columns = tuple(int(parts.read[place]) for place in neuron.places)
        found += _of_neuron(neuron, number, columns, named, outputs)
    return found + [Quantity("bias", f"constant{of}", ()) for of in outputs]


def _outputs(network: Structure) -> list[str]:
    if network.outputs == 1:
        return [""]
    return [f" for {left}" for left in left_sides(network, str, str)]


def _of_neuron(
    neuron: Neuron, number: int, columns: tuple[int, ...], named: Sequence[Named], outputs: Sequence[str]
) -> list[Quantity]:
    if len(columns) == 1:
        name = named[int(neuron.places[0])]
        where = "above" if neuron.weights[0] > 0 else "below"
        # Without a bias the threshold is zero by structure, and no number that is fitted.
        threshold = [Quantity("threshold", name.plain, columns, name.unit)] if neuron.bias else []
        return [*threshold, *(Quantity("slope", f"{name.plain} {where} it{of}", columns) for of in outputs)]
    inside = [
        Quantity("weight", f"{named[int(place)].plain} in neuron {number}", (column,))
        for place, column in zip(neuron.places, columns, strict=True)
    ]
    inside.append(Quantity("bias", f"neuron {number}", columns))
    return inside + [Quantity("slope", f"neuron {number}{of}", columns) for of in outputs if of]


def numbers(network: Structure) -> np.ndarray:
    """Give the numbers that `quantities` names, in the same order.

    A neuron of several inputs that feeds one output is taken with its factor; with several outputs its
    weights are those of unit length, since a factor may move between layers.
    """
    parts, found = parts_of(network), list[float]()
    for slopes in parts.linear.values():
        found += slopes.tolist()
    for neuron in parts.neurons:
        if len(neuron.places) == 1:
            weight = float(neuron.weights[0])
            found += [-neuron.bias / weight] if neuron.bias else []
            found += (neuron.gives * abs(weight)).tolist()
            continue
        size = (
            abs(float(neuron.gives[0])) if network.outputs == 1 else 1 / float(np.linalg.norm(neuron.weights))
        )
        found += [*(size * neuron.weights).tolist(), size * neuron.bias]
        found += (neuron.gives / size).tolist() if network.outputs > 1 else []
    return np.array([*found, *parts.constant.tolist()])
