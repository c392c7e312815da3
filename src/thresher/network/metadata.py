"""What a network carries along besides its weights, such as the name of its target."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from thresher.errors import ParameterError

# Levels of lists and mappings within the details.
DEEPEST = 20


def plain_copy(details: Any) -> dict[str, Any]:
    """Return a copy of a mapping that JSON can hold, or say what JSON cannot hold.

    Examples
    --------
    >>> plain_copy({"target": "y", "sizes": (1, 2)})
    {'target': 'y', 'sizes': [1, 2]}
    """
    if not isinstance(details, Mapping):
        raise ParameterError(f"details are of type {type(details).__name__}, but a mapping is needed.")
    return _plain(details, "details", DEEPEST)


def _plain(value: Any, place: str, depth: int) -> Any:
    if depth == 0:
        raise ParameterError(f"{place[:200]} is nested too deeply: {DEEPEST} levels are allowed.")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ParameterError(f"{place[:200]} has a key that is no string, but JSON needs strings.")
        return {str(key): _plain(inner, f"{place}[{key!r}]", depth - 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{place}[{number}]", depth - 1) for number, inner in enumerate(value)]
    if value is None or type(value) in (str, bool) or _is_finite(value):
        return value
    raise ParameterError(
        f"{place[:200]} is {_shown(value)!r} of type {type(value).__name__}, but details hold strings, "
        "finite numbers, booleans, None, and lists and mappings of these: convert it."
    )


def _is_finite(value: Any) -> bool:
    """Whether this is a number that a float can hold."""
    if type(value) is int:
        return value.bit_length() <= sys.float_info.max_exp
    return type(value) is float and math.isfinite(value)


def _shown(value: Any) -> str:
    """Write a value, or the size of a number that Python does not write out."""
    return f"a number of {value.bit_length():,} bits" if type(value) is int else str(value)[:100]


def target_names(details: Mapping[str, Any], columns: int) -> list[str] | None:
    """Return the names of the columns of y that the details tell, or None."""
    told = details.get("target")
    told = [told] if isinstance(told, str) else told
    known = isinstance(told, list) and len(told) == columns and all(isinstance(name, str) for name in told)
    return told if known else None


def spread_of(details: Mapping[str, Any], inputs: int) -> np.ndarray | None:
    """Return the standard deviation of every input where the details tell it as ``spread``, else None."""
    told = details.get("spread")
    if not isinstance(told, list) or len(told) != inputs:
        return None
    if any(type(value) not in (int, float) or value < 0 for value in told):
        return None
    return np.array(told, dtype=np.float64)
