"""Columns that `thresher predict` adds: predictions, probabilities, ends of intervals, sets of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.network import Network

# Between the classes of a set.
BETWEEN = " | "


@dataclass(frozen=True)
class Added:
    """What is asked for.

    Attributes
    ----------
    column : str
        Name of the column of predictions.
    probabilities : bool
        Whether the probability of each class is added.
    coverage : float, optional
        The share of rows whose target an interval, or a set of classes, is to hold.
    """

    column: str
    probabilities: bool = False
    coverage: float | None = None

    def names(self, network: Network) -> list[str]:
        """Name the columns, and refuse what the network cannot give."""
        if self.probabilities and network.classes is None:
            raise ParameterError("--probabilities needs classes, but this model predicts numbers.")
        names = [self.column]
        if self.probabilities and network.classes is not None:
            names += [f"P({label})" for label in network.classes.tolist()]
        if self.coverage is not None:
            ends = ("low", "high") if network.classes is None else ("set",)
            names += [f"{self.column}_{end}" for end in ends]
        return names

    def refuse_taken(self, network: Network, taken: Sequence[str]) -> None:
        """Refuse columns whose names a table has already."""
        _, *others = self.names(network)
        if self.column in taken:
            raise ParameterError(f"--column {self.column!r} is already in the table: choose another name.")
        if self.column in others:
            raise ParameterError(
                f"--column {self.column!r} is what a probability is called: choose another name."
            )
        for name in others:
            if name in taken:
                option = "--interval" if name.startswith(self.column) else "--probabilities"
                raise ParameterError(
                    f"{option} adds a column {name!r}, which is already in the table: leave that column out, "
                    "or rename it."
                )

    def values(self, network: Network, X: Any) -> list[np.ndarray]:
        """Give the columns for some rows, predictions first."""
        found = [network.predict(X)]
        if found[0].ndim > 1:
            raise ParameterError(
                f"the model predicts {found[0].shape[1]} columns, and a table takes one: use Python."
            )
        if self.probabilities:
            found += list(network.predict_proba(X).T)
        if self.coverage is not None and network.classes is None:
            found += list(network.predict_interval(X, self.coverage).T)
        elif self.coverage is not None and network.classes is not None:
            labels = np.array([str(label) for label in network.classes.tolist()], dtype=object)
            sets = network.predict_set(X, self.coverage)
            found.append(np.array([BETWEEN.join(labels[inside]) for inside in sets], dtype=object))
        return found
