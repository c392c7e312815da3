"""The estimators' parameters, checked all at once when `fit` begins."""

from __future__ import annotations

import math
import re
from dataclasses import is_dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from thresher.device import devices, usable
from thresher.errors import ParameterError
from thresher.estimators.task import Settings
from thresher.linear.budget import check_budget
from thresher.solvers.auto import Tuning
from thresher.solvers.sound import problem_with

# What a regressor and a classifier can be asked to minimise, and what an object that says it must have.
LOSSES = (("auto", "squared", "huber", "poisson"), ("auto", "logistic", "squared"))
PARTS_OF_LOSS = ("name", "link", "quadratic", "value", "slope", "scaled", "constant", "check")

UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def check_parameters(estimator: Any) -> Settings:
    """Turn an estimator's parameters into settings, or raise one error that names every problem."""
    check_budget(estimator.budget)
    problems: list[str] = []

    def require(name: str, allowed: bool, what: str, came: str | None = None) -> None:
        if not allowed:
            came = repr(getattr(estimator, name)) if came is None else came
            problems.append(f"{name}={came}, but it must be {what}.")

    hidden = estimator.hidden
    widths = tuple(hidden) if isinstance(hidden, (tuple, list)) else (hidden,)
    require(
        "hidden",
        bool(widths) and all(_whole(width) and width >= 1 for width in widths),
        "a whole number of neurons, 1 or more, or a tuple of them, one for each hidden layer",
    )
    if isinstance(estimator.solver, str) and estimator.solver not in ("auto", "paper"):
        close = get_close_matches(estimator.solver, ("auto", "paper"), 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        problems.append(
            f"solver={estimator.solver!r}, but it must be 'auto', 'paper' or a solver object.{hint}"
        )
    elif not isinstance(estimator.solver, str):
        lacks = problem_with(estimator.solver)
        require("solver", lacks is None, f"'auto', 'paper' or a solver object, and {lacks}")
    for name in ("bias", "scale"):
        require(name, getattr(estimator, name) in (None, True, False), "True, False or None")
    alpha = estimator.alpha
    require("alpha", alpha is None or (_real(alpha) and alpha >= 0), "a number of 0 or more, or None")
    batch = estimator.batch_size
    require(
        "batch_size",
        batch in ("auto", None) or (_whole(batch) and batch >= 1),
        "a whole number of rows, 'auto', or None for all rows",
    )
    require("max_iter", _whole(estimator.max_iter) and estimator.max_iter >= 1, "a whole number of 1 or more")
    require("tol", _real(estimator.tol) and estimator.tol >= 0, "a number of 0 or more")
    share = estimator.validation_fraction
    require("validation_fraction", _real(share) and 0 < share < 1, "a number between 0 and 1")
    for name in ("n_iter_no_change", "update_gates_every"):
        value = getattr(estimator, name)
        require(name, _whole(value) and value >= 1, "a whole number of 1 or more")
    memory = memory_bytes(estimator.memory_limit)
    require("memory_limit", memory is not None, "a number of bytes or a size such as '64MB'")
    screen = estimator.screen
    require(
        "screen",
        screen is None or (_real(screen) and 0 < screen <= 1),
        "a share of the blocks, above 0 and at most 1, or None",
    )
    require(
        "device",
        usable(estimator.device),
        "a device of this machine that torch can use and that computes in float64, which mps does not: "
        + " or ".join(repr(name) for name in devices()),
    )
    require("dtype", estimator.dtype in ("auto", "float32", "float64"), "'auto', 'float32' or 'float64'")
    allowed = LOSSES[hasattr(estimator, "class_weight")]
    named = " or ".join(repr(name) for name in allowed)
    loss = estimator.loss
    require(
        "loss",
        loss in allowed if isinstance(loss, str) else _object_with(loss, PARTS_OF_LOSS),
        f"{named}, or a loss object with {', '.join(PARTS_OF_LOSS)}",
    )
    require(
        "tuning",
        estimator.tuning is None or isinstance(estimator.tuning, Tuning),
        "a thresher.solvers.auto.Tuning, or None; the tuning of one phase is one of its fields",
        # A tuning written out is longer than a screen.
        came=f"{type(estimator.tuning).__name__}(...)" if is_dataclass(estimator.tuning) else None,
    )
    require("callback", estimator.callback is None or callable(estimator.callback), "a function or None")
    if problems:
        raise ParameterError(" ".join(problems))
    patience = estimator.n_iter_no_change if estimator.early_stopping else math.inf
    return Settings(
        budget=int(estimator.budget),
        hidden=tuple(int(width) for width in widths),
        solver=estimator.solver,
        bias=estimator.bias,
        scale=estimator.scale,
        alpha=None if alpha is None else float(alpha),
        batch_size=_batch_size(batch, estimator.solver),
        max_iter=int(estimator.max_iter),
        tol=float(estimator.tol),
        update_gates_every=int(estimator.update_gates_every),
        memory_limit=memory or 0,
        dtype=estimator.dtype,
        seed=seed_of(estimator.random_state),
        patience=patience,
        device=estimator.device,
        screen=None if screen is None else float(screen),
        tuning=estimator.tuning or Tuning(),
    )


def memory_bytes(limit: Any) -> int | None:
    """Read a number of bytes, or a size such as "64MB"; None if it is neither.

    Examples
    --------
    >>> memory_bytes("64MB"), memory_bytes(1000), memory_bytes("much")
    (67108864, 1000, None)
    """
    if _whole(limit) and limit > 0:
        return int(limit)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", limit) if isinstance(limit, str) else None
    if found is None or found.group(2).upper() not in UNITS:
        return None
    return int(float(found.group(1)) * UNITS[found.group(2).upper()]) or None


def seed_of(random_state: Any) -> int:
    """Turn a random_state into one seed, without touching the global random state."""
    if _whole(random_state) and random_state >= 0:
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise ParameterError(
        f"random_state={random_state!r}, but it must be a whole number of 0 or more, a NumPy random state, "
        "or None."
    )


def _batch_size(batch: Any, solver: Any) -> int | str | None:
    if batch == "auto":
        return None if solver == "paper" else "auto"
    return None if batch is None else int(batch)


def _object_with(value: Any, parts: tuple[str, ...]) -> bool:
    """Say whether an object, not its class, has all of its parts."""
    return not isinstance(value, type) and all(hasattr(value, part) for part in parts)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def _real(value: Any) -> bool:
    number = isinstance(value, Real) and type(value) not in (bool, np.bool_)
    return number and math.isfinite(float(value))
