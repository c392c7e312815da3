"""Kinks of networks, and whether another network has them too: what divides rows alike and reads alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.explain.naming import named_inputs
from thresher.explain.parts import parts_of, rows_read
from thresher.network.structure import Structure

# Rows on which two kinks may differ, as a share, and the share of inputs that both must read.
APART, SHARED = 0.1, 0.5


@dataclass(frozen=True, eq=False)
class Kink:
    """A neuron of the first hidden layer, as what divides rows in two.

    Attributes
    ----------
    name : str
    columns : tuple of int
        The inputs that it reads.
    side : bool array of shape (n,)
        On which rows it is on.
    threshold : float, optional
        Of a neuron of one input.
    unit : str
    """

    name: str
    columns: tuple[int, ...]
    side: np.ndarray
    threshold: float | None = None
    unit: str = ""

    @property
    def words(self) -> str:
        """Say where it is."""
        unit = f" {self.unit}" if self.unit else ""
        return self.name if self.threshold is None else f"{self.name} at {self.threshold:.4g}{unit}"

    def same(self, other: Kink) -> bool:
        """Tell whether another kink divides the rows alike, whichever side is on, and reads these inputs."""
        one, two = set(self.columns), set(other.columns)
        if len(one & two) < SHARED * len(one | two):
            return False
        differ = float(np.mean(self.side != other.side))
        return min(differ, 1 - differ) <= APART


def kinks_of(network: Structure, X: Any) -> list[Kink]:  # (n, all inputs)
    """List the kinks of a network of one hidden layer that divide some rows, each division once."""
    parts, named = parts_of(network), named_inputs(network)
    rows, found = rows_read(network, X), list[Kink]()
    for neuron in parts.neurons:
        side = neuron.sums(rows) > 0
        if side.all() or not side.any():
            continue
        columns = tuple(int(parts.read[place]) for place in neuron.places)
        labels = [named[int(place)].plain for place in neuron.places]
        if len(columns) == 1:
            threshold = float(-neuron.bias / neuron.weights[0]) + 0.0
            kink = Kink(labels[0], columns, side, threshold, named[int(neuron.places[0])].unit)
        else:
            kink = Kink(f"neuron of {', '.join(labels)}", columns, side)
        if not any(kink.same(other) for other in found):
            found.append(kink)
    return found


def recurrences(kinks: Sequence[Kink], others: Sequence[Sequence[Kink]]) -> list[list[Kink]]:
    """List for each kink those of other networks that are the same, at most one of each network."""
    found: list[list[Kink]] = [[] for _ in kinks]
    for other in others:
        for own, same in zip(kinks, found, strict=True):
            match = next((one for one in other if own.same(one)), None)
            if match is not None:
                same.append(match)
    return found
