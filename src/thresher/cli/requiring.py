"""What the command line requires of a network: columns by name, the inputs of one column as a group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from thresher.data.columns import did_you_mean, listed
from thresher.errors import ParameterError

if TYPE_CHECKING:
    from thresher.cli.fit import FitChoices
    from thresher.data.encoding import Encoding


def requirements_from(choices: FitChoices, encoding: Encoding) -> dict[str, Any]:
    """Give the parameters of an estimator that say what is required, with columns by number."""
    groups, first = {}, 0
    for column in encoding.columns:
        groups[column.name] = list(range(first, first + len(column.inputs)))
        first += len(column.inputs)
    costs = {
        place: number("--feature-cost", name, cost)
        for name, cost in choices.feature_costs.items()
        for place in _of_column("--feature-cost", name, groups)
    }
    found: dict[str, Any] = {
        "max_inputs": choices.max_inputs,
        "max_fan_in": choices.max_fan_in,
        "max_cost": choices.max_cost,
        "feature_costs": costs or None,
        "monotone": {
            _one_input(name, groups, encoding.features): _sign(name, sign)
            for name, sign in choices.monotone.items()
        }
        or None,
    }
    if found["max_inputs"] is not None or costs:
        # The inputs of a column, such as those of its categories, come together.
        found["groups"] = [group for group in groups.values() if len(group) > 1] or None
    found = {name: value for name, value in found.items() if value is not None}
    _refuse_contradictions(found, encoding)
    return found


def number(option: str, name: str, text: str) -> float:
    """Read the number that a name is given."""
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"{option} '{name}={text}', but {text!r} is no number. It takes a name and a number, as in "
            f"{option} '{name}=1'."
        ) from None


def _sign(name: str, text: str) -> int:
    value = number("--monotone", name, text)
    if value not in (-1, 1):
        raise ParameterError(
            f"--monotone '{name}={text}', but it takes {name}=+1 (never falls) or {name}=-1 (never rises)."
        )
    return int(value)


def _of_column(option: str, name: str, groups: dict[str, list[int]]) -> list[int]:
    if name not in groups:
        raise ParameterError(
            f"{option} names {name!r}, but the columns that are read are {listed(list(groups))}."
            f"{did_you_mean(name, list(groups))}"
        )
    return groups[name]


def _one_input(name: str, groups: dict[str, list[int]], features: tuple[str, ...]) -> int:
    """Give the input that a name means: a column of numbers, or one value of a column of text."""
    if name in features:
        return features.index(name)
    inputs = [features[place] for place in _of_column("--monotone", name, groups)]
    raise ParameterError(
        f"--monotone names {name!r}, but that column becomes {len(inputs):,} inputs. Name one of them: "
        f"{listed(inputs)}."
    )


def _refuse_contradictions(found: dict[str, Any], encoding: Encoding) -> None:
    """Refuse before the fit what it would refuse, with the names of the table."""
    from thresher.estimators.requiring import NAMES, required_of

    asked = SimpleNamespace(**{name: found.get(name) for name in NAMES})
    required_of(asked, len(encoding.features), encoding.features)
