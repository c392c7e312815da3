"""What people require of a network: how many inputs it reads, what they cost, where its output may not fall.

What is required goes along with a network in its details, so that a model file says what was asked for, and
can be checked against it: nothing here knows how networks are made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from thresher.errors import ParameterError
from thresher.network.layer import live, narrowed, pattern_of
from thresher.network.structure import Structure

# The entry of a network's details.
ENTRY = "requirements"
# Columns that a sentence names.
NAMED = 5


@dataclass(frozen=True)
class Requirements:
    """What is required of a network.

    Attributes
    ----------
    max_inputs : int, optional
        The most inputs in use; columns of a group count as one.
    max_fan_in : int, optional
        The most inputs of a hidden neuron, its bias not counted. Outputs add up any number of neurons.
    groups : tuple of tuples of int
        Columns of one variable: using any of them is using it.
    costs : mapping from int to float
        What using a column costs; a group costs what its dearest column does. Others cost nothing.
    max_cost : float, optional
        The most that all inputs in use may cost together.
    monotone : mapping from int to +1 or -1
        Columns with which the output, the log-odds of two classes, never falls (+1) or never rises (-1).

    Examples
    --------
    >>> required = Requirements(max_inputs=2, groups=((1, 2),), monotone={0: 1})
    >>> required.unit_of(4).tolist()
    [0, 1, 1, 2]
    """

    max_inputs: int | None = None
    max_fan_in: int | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    costs: Mapping[int, float] = field(default_factory=dict)
    max_cost: float | None = None
    monotone: Mapping[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.chooses or self.max_fan_in is not None or bool(self.monotone)

    @property
    def chooses(self) -> bool:
        """Whether some inputs have to be chosen among all."""
        return self.max_inputs is not None or self.max_cost is not None

    def variables(self, columns: Iterable[int]) -> set[int]:
        """Give what counts as one input, each by its first column: a group, or a column alone."""
        first = self._first
        return {first.get(int(column), int(column)) for column in columns}

    def dearest(self) -> dict[int, float]:
        """Give what those inputs cost that cost anything, by their first columns."""
        first, found = self._first, dict[int, float]()
        for column, cost in self.costs.items():
            variable = first.get(column, column)
            found[variable] = max(cost, found.get(variable, 0.0))
        return found

    @property
    def _first(self) -> dict[int, int]:
        return {column: min(group) for group in self.groups for column in group}

    def unit_of(self, inputs: int) -> np.ndarray:  # (inputs,)
        """Number what counts as one input, in the order of first columns: a group, or a column alone."""
        first = np.arange(inputs)
        for group in self.groups:
            first[list(group)] = min(group)
        return np.unique(first, return_inverse=True)[1]

    def unit_costs(self, inputs: int) -> np.ndarray:  # (units,)
        """Give what each of them costs."""
        unit = self.unit_of(inputs)
        costs = np.zeros(unit.max(initial=-1) + 1)
        for variable, cost in self.dearest().items():
            costs[unit[variable]] = cost
        return costs

    def among(self, columns: np.ndarray) -> Requirements:
        """Give what is required of a network that reads some columns, ascending, numbered anew."""
        place = {int(column): number for number, column in enumerate(columns)}
        return Requirements(
            self.max_inputs,
            self.max_fan_in,
            tuple(
                kept
                for group in self.groups
                if (kept := tuple(place[column] for column in group if column in place))
            ),
            {place[column]: cost for column, cost in self.costs.items() if column in place},
            self.max_cost,
            {place[column]: sign for column, sign in self.monotone.items() if column in place},
        )

    def to_details(self) -> dict[str, Any]:
        """Write it as plain values that JSON can hold."""
        return {
            "max_inputs": self.max_inputs,
            "max_fan_in": self.max_fan_in,
            "groups": [list(group) for group in self.groups],
            "costs": {str(column): float(cost) for column, cost in self.costs.items()},
            "max_cost": self.max_cost,
            "monotone": {str(column): int(sign) for column, sign in self.monotone.items()},
        }


def requirements_of(network: Structure) -> Requirements | None:
    """Read what is required of a network from its details; None where nothing that makes sense is.

    Examples
    --------
    >>> from thresher import Network
    >>> details = {"requirements": Requirements(max_inputs=1).to_details()}
    >>> requirements_of(Network.fused([[1.0]], None, [1], details=details))
    Requirements(max_inputs=1, max_fan_in=None, groups=(), costs={}, max_cost=None, monotone={})
    """
    told = (network.details or {}).get(ENTRY)
    if not isinstance(told, Mapping):
        return None
    try:
        found = Requirements(
            None if told["max_inputs"] is None else int(told["max_inputs"]),
            None if told["max_fan_in"] is None else int(told["max_fan_in"]),
            tuple(tuple(int(column) for column in group) for group in told["groups"]),
            {int(column): float(cost) for column, cost in told["costs"].items()},
            None if told["max_cost"] is None else float(told["max_cost"]),
            {int(column): int(sign) for column, sign in told["monotone"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    columns = [column for group in found.groups for column in group]
    known = all(0 <= one < network.inputs for one in (*columns, *found.costs, *found.monotone))
    sound = len(set(columns)) == len(columns) and all(found.groups)
    signs = all(sign in (1, -1) for sign in found.monotone.values())
    return found if known and sound and signs and found else None


@dataclass(frozen=True)
class Counts:
    """What a network has of what may be required.

    Attributes
    ----------
    inputs : int
        Inputs in use, columns of a group counted once.
    fan_in : int
        Inputs of the hidden neuron that reads most.
    cost : float
        What the inputs in use cost together.
    against : tuple of int
        Monotone columns along which some path goes the other way.
    """

    inputs: int
    fan_in: int
    cost: float
    against: tuple[int, ...]


def counts(network: Structure, required: Requirements) -> Counts:
    """Count what a network has: from its weights alone, so for all rows there could be."""
    used, dearest = required.variables(_read(network)), required.dearest()
    hidden = [np.diff(sparse.csc_array(layer.weights).indptr) for layer in network.layers[:-1]]
    ways = directions(network)
    wrong = [
        column
        for column, sign in required.monotone.items()
        if ways.get(column, "") not in ("", "+" if sign > 0 else "-")
    ]
    if network.outputs > 1:
        wrong = list(required.monotone)
    return Counts(
        len(used),
        max((int(each.max(initial=0)) for each in hidden), default=0),
        math.fsum(dearest.get(variable, 0.0) for variable in used),
        tuple(wrong),
    )


def violations(network: Structure, required: Requirements) -> list[str]:
    """Say which requirements a network does not meet, a sentence for each.

    Examples
    --------
    >>> from thresher import Network
    >>> network = Network.fused([[2.0], [-1.0]], None, [1], features=["age", "size"])
    >>> violations(network, Requirements(max_inputs=2, monotone={0: 1}))
    []
    >>> violations(network, Requirements(max_inputs=1, monotone={0: 1}))
    ['2 inputs are used, but max_inputs=1.']
    >>> violations(network, Requirements(monotone={1: 1}))
    ["the output may fall with 'size', but monotone asks that it never does."]
    """
    if not required:
        return []
    found, problems = counts(network, required), []
    if required.max_inputs is not None and found.inputs > required.max_inputs:
        problems.append(f"{found.inputs:,} inputs are used, but max_inputs={required.max_inputs}.")
    if required.max_fan_in is not None and found.fan_in > required.max_fan_in:
        problems.append(f"a neuron reads {found.fan_in:,} inputs, but max_fan_in={required.max_fan_in}.")
    if required.max_cost is not None and found.cost > required.max_cost:
        problems.append(f"the inputs used cost {found.cost:g}, but max_cost={required.max_cost:g}.")
    for column in found.against:
        move = "fall" if required.monotone[column] > 0 else "rise"
        problems.append(
            f"the output may {move} with {named(network, column)}, but monotone asks that it never does."
        )
    return problems


def described(network: Structure) -> str | None:
    """Write what was required of a network beside what it has; None where nothing was."""
    required = requirements_of(network)
    if required is None:
        return None
    found, parts = counts(network, required), []
    if required.max_inputs is not None:
        parts.append(f"{found.inputs:,} of at most {required.max_inputs:,} inputs")
    if required.max_fan_in is not None:
        parts.append(f"neurons of {found.fan_in:,} of at most {required.max_fan_in:,} inputs")
    if required.max_cost is not None:
        parts.append(f"cost {found.cost:g} of at most {required.max_cost:g}")
    for sign, way in ((1, "never falls"), (-1, "never rises")):
        columns = [column for column, wanted in required.monotone.items() if wanted == sign]
        if columns:
            more = f" and {len(columns) - NAMED:,} more" if len(columns) > NAMED else ""
            listed = ", ".join(named(network, column) for column in columns[:NAMED])
            parts.append(f"{way} with {listed}{more}")
    broken = violations(network, required)
    return "; ".join(parts) + (f". NOT MET: {' '.join(broken)}" if broken else "")


def named(network: Structure, column: int) -> str:
    """Name a column as people do."""
    return repr(network.features[column]) if network.features is not None else f"column {column}"


def refuse_violations(network: Structure, required: Requirements, what: str) -> None:
    """Refuse a network that does not meet what is required."""
    problems = violations(network, required)
    if problems:
        raise ParameterError(f"{what}: {' '.join(problems)}")


def _read(network: Structure) -> np.ndarray:
    """Give the columns that any weight reads, ascending."""
    columns, _, _ = narrowed(network.layers, network.direct)
    return np.asarray(columns)


def directions(network: Structure) -> dict[int, str]:
    """Say of inputs that are read whether the one output can only rise with it (+), only fall (-), or either.

    A ReLU never falls as its sum rises, so a path's direction is the product of its weights' signs.
    """
    columns, layers, direct = narrowed(network.layers, network.direct)
    if network.outputs != 1:
        return dict.fromkeys(columns.tolist(), "")
    rising, falling = np.ones(1, dtype=bool), np.zeros(1, dtype=bool)
    for layer, mask in zip(reversed(layers), reversed(live(layers)[:-1]), strict=True):
        up, down = _signed(layer.weights)
        rising, falling = (
            ((up @ rising + down @ falling) > 0) & mask,
            ((up @ falling + down @ rising) > 0) & mask,
        )
    if direct is not None:
        up, down = _signed(direct)
        rising, falling = rising | (up.sum(axis=1) > 0), falling | (down.sum(axis=1) > 0)
    signs = ["+" * bool(up) + "-" * bool(down) for up, down in zip(rising, falling, strict=True)]
    return dict(zip(columns.tolist(), signs, strict=True))


def _signed(weights: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Mark the weights above zero, and those below."""
    up, down = pattern_of(weights), pattern_of(weights)
    up.data, down.data = (weights.data > 0).astype(float), (weights.data < 0).astype(float)
    return up, down
