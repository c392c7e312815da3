"""Columns that `thresher predict` adds: predictions, probabilities, ends of intervals, sets of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.network import Network
from thresher.network.metadata import target_names

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
        if self.probabilities and network.classes is None and not network.gives_labels:
            raise ParameterError("--probabilities needs classes, but this model predicts numbers.")
        names = predicted = self._predicted(network)
        if self.probabilities and network.gives_labels:
            names = [*names, *(f"P({target})" for target in _targets(network))]
        elif self.probabilities and network.classes is not None:
            names = [*names, *(f"P({label})" for label in network.classes.tolist())]
        if self.coverage is not None:
            ends = ("low", "high") if network.classes is None else ("set",)
            names = [*names, *(f"{name}_{end}" for name in predicted for end in ends)]
        return names

    def _predicted(self, network: Network) -> list[str]:
        """Name the columns of predictions, one for each target."""
        if network.targets == 1:
            return [self.column]
        return [f"{self.column}_{target}" for target in _targets(network)]

    def refuse_taken(self, network: Network, taken: Sequence[str]) -> None:
        """Refuse columns whose names a table has already."""
        predicted = self._predicted(network)
        others = self.names(network)[len(predicted) :]
        for name in predicted:
            if name in taken:
                adds = "" if name == self.column else f" adds a column {name!r}, which"
                raise ParameterError(
                    f"--column {self.column!r}{adds} is already in the table: choose another name."
                )
            if name in others:
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
        predicted = network.predict(X)
        found = [predicted] if predicted.ndim == 1 else list(predicted.T)
        if self.probabilities:
            found += list(network.predict_proba(X).T)
        if self.coverage is not None and network.classes is None:
            ends = network.predict_interval(X, self.coverage)  # (n, 2) or (n, 2, targets)
            found += [column for target in np.atleast_3d(ends).T for column in target]
        elif self.coverage is not None and network.classes is not None:
            labels = np.array([str(label) for label in network.classes.tolist()], dtype=object)
            sets = network.predict_set(X, self.coverage)
            found.append(np.array([BETWEEN.join(labels[inside]) for inside in sets], dtype=object))
        return found


def _targets(network: Network) -> list[str]:
    """Name the targets, or the labels, by what the model knows of them or by their numbers."""
    return target_names(network.details, network.targets) or [str(place) for place in range(network.targets)]
