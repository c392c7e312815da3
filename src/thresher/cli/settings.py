"""What the command line asks of an estimator, once the table is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.cli.requiring import requirements_from
from thresher.data.columns import listed
from thresher.errors import ParameterError

if TYPE_CHECKING:
    from thresher.cli.fit import FitChoices
    from thresher.data.prepared import Prepared


def settings_of(choices: FitChoices, ready: Prepared) -> dict[str, Any]:
    """Give the parameters that fits of one budget and of many share."""
    hidden = choices.hidden[0] if len(choices.hidden) == 1 else choices.hidden
    found: dict[str, Any] = {
        "hidden": hidden,
        "solver": choices.solver,
        "alpha": choices.alpha,
        "random_state": choices.seed,
        "checkpoint": choices.checkpoint,
        "checkpoint_every": choices.checkpoint_every,
        "loss": choices.loss,
        **requirements_from(choices, ready.encoding),
    }
    if choices.max_iter is not None:
        found["max_iter"] = choices.max_iter
    if choices.class_weight is not None:
        found["class_weight"] = class_weight(choices.class_weight, ready)
    return found


def class_weight(told: str, ready: Prepared) -> str | dict[Any, float]:
    """Read how much the rows of each class count, such as ``balanced`` or ``yes=3,no=1``."""
    if ready.task != "classification":
        raise ParameterError(
            f"--class-weight {told!r}, but {ready.target!r} holds numbers, not classes: leave it out, or use "
            "--task classification."
        )
    if told == "balanced":
        return told
    labels = {str(label): label for label in np.unique(ready.y).tolist()}
    weights: dict[Any, float] = {}
    for part in told.split(","):
        name, _, weight = part.strip().rpartition("=")
        try:
            weights[labels[name]] = float(weight)
        except (KeyError, ValueError):
            raise ParameterError(
                f"--class-weight {told!r}, but it takes balanced, or weights such as "
                f"{next(iter(labels))}=2 between commas; the classes are {listed(list(labels))}."
            ) from None
    if not all(0 < weight < np.inf for weight in weights.values()):
        raise ParameterError(f"--class-weight {told!r}, but weights are numbers above 0.")
    # Classes that are not named count once.
    return {label: weights.get(label, 1.0) for label in labels.values()}


def followable(status: object) -> str:
    """Write the advice of a status with the options of the command line.

    Examples
    --------
    >>> followable("max_iter: the budget of passes is spent: raise max_iter to go on.")
    'max_iter: the budget of passes is spent: raise --max-iter to go on.'
    """
    return re.sub(r"(?<=[Rr]aise )max_iter", "--max-iter", str(status))
