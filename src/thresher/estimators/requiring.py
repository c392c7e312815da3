"""What people require of a network, read from an estimator's parameters; contradictions are refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.network.requirements import Requirements

# The parameters, in the order in which they are explained.
NAMES = ("max_inputs", "max_fan_in", "groups", "feature_costs", "max_cost", "monotone")
# Names that an error lists.
LISTED = 10


def required_of(estimator: Any, inputs: int, names: Sequence[Any] | None) -> Requirements:
    """Read what is required of the network of an estimator whose rows have these columns.

    Parameters
    ----------
    estimator : SparseMLP
    inputs : int
    names : sequence of str, optional
        The names of the columns, if they have any.
    """
    columns = _Columns(inputs, names)
    groups, group_names = _groups(estimator.groups, columns)
    costs = _costs(estimator.feature_costs, columns, groups, group_names)
    found = Requirements(
        _count("max_inputs", estimator.max_inputs),
        _count("max_fan_in", estimator.max_fan_in),
        groups,
        costs,
        _limit(estimator.max_cost, costs),
        _monotone(estimator.monotone, columns),
    )
    _refuse_contradictions(found, columns)
    return found


def numbered(estimator: Any) -> dict[str, Any]:
    """Give what is required of an estimator that knows its columns, with these by number."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or not hasattr(estimator, "monotone"):
        return {}
    required = required_of(estimator, len(names), names)
    return {
        "groups": [list(group) for group in required.groups] or None,
        "feature_costs": dict(required.costs) or None,
        "monotone": dict(required.monotone) or None,
    }


def refuse_outputs(required: Requirements, outputs: int) -> None:
    """Refuse monotone columns where there is more than one output."""
    if required.monotone and outputs > 1:
        raise ParameterError(
            f"monotone came, but the network has {outputs:,} outputs, and that is promised of one only: that "
            "of a regression with one target, or the log-odds of two classes. Leave it out, or fit a network "
            "for each output."
        )


class _Columns:
    """The columns of the rows, by number and by name."""

    def __init__(self, inputs: int, names: Sequence[Any] | None) -> None:
        self.inputs = inputs
        self.names = None if names is None else [str(name) for name in names]

    def number(self, parameter: str, key: Any, other: Iterable[str] = ()) -> int:
        """Give the number of a column that came by number or name."""
        if _whole(key):
            if 0 <= int(key) < self.inputs:
                return int(key)
            raise ParameterError(
                f"{parameter} names column {int(key)}, but X has {self.inputs:,} columns, numbered from 0."
            )
        if not isinstance(key, str):
            raise ParameterError(
                f"{parameter} names a column by {key!r}, but columns go by a name or a number from 0."
            )
        if self.names is None:
            raise ParameterError(
                f"{parameter} names {key!r}, but the columns of X have no names. Give their numbers, from 0, "
                "or X as a frame."
            )
        if key in self.names:
            return self.names.index(key)
        known = [*other, *self.names]
        close = get_close_matches(key, known, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        listed = ", ".join(map(repr, known[:LISTED])) + (", ..." if len(known) > LISTED else "")
        raise ParameterError(f"{parameter} names {key!r}, but the columns of X are {listed}.{hint}")

    def called(self, column: int) -> str:
        """Name a column as people do."""
        return f"column {column}" if self.names is None else repr(self.names[column])


def _count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not _whole(value) or value < 1:
        raise ParameterError(f"{name}={value!r}, but it must be a whole number of 1 or more, or None.")
    return int(value)


def _groups(given: Any, columns: _Columns) -> tuple[tuple[tuple[int, ...], ...], dict[str, int]]:
    """Give the groups, and which of them has which name."""
    if given is None:
        return (), {}
    names: list[str] | None = None
    if isinstance(given, Mapping):
        names, given = [str(name) for name in given], list(given.values())
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(
            f"groups={given!r}, but it must be a list of lists of columns, or a mapping from names to lists."
        )
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for group in given:
        if isinstance(group, (str, Integral)) or not isinstance(group, Iterable):
            raise ParameterError(f"groups holds {group!r}, but each group must be a list of columns.")
        members = tuple(dict.fromkeys(columns.number("groups", key) for key in group))
        if not members:
            raise ParameterError("groups holds a group without columns. Leave it out.")
        twice = [column for column in members if column in seen]
        if twice:
            raise ParameterError(
                f"groups has {columns.called(twice[0])} in two groups, but a column is part of one at most."
            )
        seen.update(members)
        found.append(members)
    return tuple(found), {} if names is None else {name: place for place, name in enumerate(names)}


def _costs(
    given: Any, columns: _Columns, groups: tuple[tuple[int, ...], ...], names: Mapping[str, int]
) -> dict[int, float]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"feature_costs={given!r}, but it must be a mapping from names or numbers of columns to costs."
        )
    found: dict[int, float] = {}
    for key, cost in given.items():
        if not _real(cost) or cost < 0:
            raise ParameterError(f"feature_costs has {key!r}: {cost!r}, but a cost is a number of 0 or more.")
        if isinstance(key, str) and key in names and not (columns.names and key in columns.names):
            members = groups[names[key]]
        else:
            members = (columns.number("feature_costs", key, names),)
        for column in members:
            found[column] = max(float(cost), found.get(column, 0.0))
    return found


def _limit(given: Any, costs: Mapping[int, float]) -> float | None:
    if given is None:
        if costs:
            raise ParameterError(
                "feature_costs came without max_cost, so they would limit nothing. Say what all inputs in "
                "use may cost together, such as max_cost=10."
            )
        return None
    if not _real(given) or given < 0:
        raise ParameterError(f"max_cost={given!r}, but it must be a number of 0 or more, or None.")
    if not costs:
        raise ParameterError(
            f"max_cost={given!r} came without feature_costs, so that nothing has a cost. Say what columns "
            "cost, such as feature_costs={'age': 1.0}."
        )
    return float(given)


def _monotone(given: Any, columns: _Columns) -> dict[int, int]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"monotone={given!r}, but it must be a mapping from names or numbers of columns to +1 or -1."
        )
    found: dict[int, int] = {}
    for key, sign in given.items():
        if not _real(sign) or sign not in (-1, 1):
            raise ParameterError(
                f"monotone has {key!r}: {sign!r}, but it must be +1 (never falls) or -1 (never rises)."
            )
        column = columns.number("monotone", key)
        if found.get(column, sign) != sign:
            raise ParameterError(f"monotone asks {columns.called(column)} for both +1 and -1.")
        found[column] = int(sign)
    return found


def _refuse_contradictions(required: Requirements, columns: _Columns) -> None:
    """Refuse what no network could meet, or what would mean nothing."""
    if required.max_cost is None:
        return
    costs = required.dearest()
    among = columns.inputs - sum(len(group) - 1 for group in required.groups)
    # Inputs that no cost is given for cost nothing.
    cheapest = min(costs, key=lambda one: costs[one]) if len(costs) == among else None
    if cheapest is not None and costs[cheapest] > required.max_cost:
        raise ParameterError(
            f"max_cost={required.max_cost:g}, but the cheapest input, {columns.called(cheapest)}, costs "
            f"{costs[cheapest]:g}, so that no input could be used. Raise max_cost."
        )
    for column in required.monotone:
        cost = sum(costs.get(variable, 0.0) for variable in required.variables([column]))
        if cost > required.max_cost:
            raise ParameterError(
                f"monotone asks for {columns.called(column)}, but that column is left out, since it costs "
                f"{cost:g} and max_cost={required.max_cost:g}. Raise max_cost, or drop it."
            )


def _real(value: Any) -> bool:
    number = isinstance(value, Real) and type(value) not in (bool, np.bool_)
    return number and math.isfinite(float(value))


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and type(value) not in (bool, np.bool_)
