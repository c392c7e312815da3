"""A network whose support stays while its numbers are fitted again to other rows, by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from thresher.data.rows import OnDisk, is_sparse
from thresher.device import from_host
from thresher.errors import DataError
from thresher.estimators.units import Units, among, from_network, only_reading, to_layers
from thresher.network import Network
from thresher.network.requirements import requirements_of
from thresher.objective.allowed import Allowed
from thresher.objective.columns import Columns, standard_columns
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Logistic, Loss, Poisson, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.newton import Fit, refit
from thresher.solvers.auto.newton_tuning import NewtonTuning

# Steps of one refit, which begins near its end, and the gain below which a step is the last: what another fit
# would move is to be seen, so it must be small beside that.
STEPS = 30
TUNING = NewtonTuning(helps=1e-7, helps_rows=1e-3)


@dataclass(frozen=True, eq=False)
class Refitter:
    """A network of fixed support and the rows that its numbers are fitted to, each counted as often as asked.

    Attributes
    ----------
    network : Network
    columns : int array
        The inputs that it reads.
    narrow : Network
        The same with these inputs alone.
    objective : Relu
    units : Units
    """

    network: Network
    columns: np.ndarray
    narrow: Network
    objective: Relu
    units: Units

    @classmethod
    def of(cls, network: Network, X: Any, y: Any, loss: Loss | None = None, keeps: bool = False) -> Refitter:
        """Make ready to refit a network on weighted rows.

        Parameters
        ----------
        network : Network
        X : array-like or sparse array of shape (n, inputs)
        y : array of shape (n,) or (n, targets)
            Targets, or labels among the network's classes.
        loss : Loss, optional
            What is minimised; by default what the network's link goes with.
        keeps : bool
            Whether refits keep to what was required of the network: where its output may not fall.
        """
        columns = network.inputs_used()
        columns = columns if len(columns) else np.zeros(1, dtype=np.int64)
        narrow = only_reading(network, columns)
        rows = _inputs(X, columns)
        targets = targets_of(network, y)
        loss = loss_of(network) if loss is None else loss
        seen = standard_columns(rows, None, True)
        units = _units(narrow, seen, targets, loss)
        widths = (len(columns), *network.hidden, network.outputs)
        fused = network.layers[-1].signs_only
        layout = Layout(widths, True, fused=fused, direct=network.direct is not None)
        values = targets if targets.dtype.kind == "i" else (targets - units.middle) / units.spread
        data = Data(rows, from_host(np.array(values, order="C")), None, units.columns, torch.float64)
        objective = Relu(data, layout, loss)
        required = requirements_of(network) if keeps else None
        if required is not None:
            monotone = required.among(columns).monotone
            directions = torch.tensor([monotone.get(place, 0) for place in range(len(columns))])
            objective = replace(objective, allowed=Allowed.of(layout, directions, None))
        return cls(network, columns, narrow, objective, units)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.objective.data.rows)

    def refit(self, weight: np.ndarray | None = None, alpha: float = 0.0) -> Network:
        """Fit the numbers again.

        Parameters
        ----------
        weight : array of shape (n,), optional
            How often each row counts.
        alpha : float
            L2 penalty beside a sum over rows.
        """
        objective = self.objective
        if weight is not None:
            data = objective.data
            counted = Data(
                data.X,
                data.targets,
                from_host(np.asarray(weight, dtype=np.float64)),
                self.units.columns,
                torch.float64,
            )
            objective = objective.on(counted)
        objective = replace(objective, alpha=alpha / max(objective.data.amount, 1.0))
        point = from_network(self.narrow, objective.layout, self.units, torch.float64)
        fit = refit(objective, Fit(point, objective.value(point)), STEPS, TUNING, rough=False)
        layers, direct = to_layers(fit.point, objective.layout, self.units)
        layers, direct = among(layers, direct, self.columns, self.network.inputs)
        return replace(self.network, layers=layers, direct=direct)


def loss_of(network: Network) -> Loss:
    """Give the loss that goes with a network's link."""
    if network.link == "softmax":
        assert network.classes is not None
        return CrossEntropy(len(network.classes))
    return {"identity": SquaredError(), "logistic": Logistic(), "log": Poisson()}[network.link]


def targets_of(network: Network, y: Any) -> np.ndarray:  # (n, targets)
    """Give targets as losses take them: numbers, 0 and 1, or codes of classes."""
    y = np.asarray(y)
    if network.classes is None:
        numbers = y.astype(np.float64).reshape(len(y), -1)
        if numbers.shape[1] != network.targets:
            raise DataError(f"y has shape {y.shape}, but the network has {network.targets} targets.")
        return numbers
    codes = {label: code for code, label in enumerate(network.classes.tolist())}
    strangers = [label for label in y.ravel().tolist() if label not in codes]
    if strangers:
        raise DataError(f"y holds {strangers[0]!r}, which is not among the classes of the network.")
    found = np.array([codes[label] for label in y.ravel().tolist()], dtype=np.int64)[:, None]
    return found if network.link == "softmax" else found.astype(np.float64)


def _inputs(X: Any, columns: np.ndarray) -> np.ndarray:
    rows = X[:] if isinstance(X, OnDisk) else X
    if is_sparse(rows):
        return rows.tocsc()[:, columns].toarray().astype(np.float64)
    return np.asarray(rows)[:, columns].astype(np.float64)


def _units(narrow: Network, seen: Columns, targets: np.ndarray, loss: Loss) -> Units:
    """Centre inputs and targets where a bias takes it up in any case, so that the support stays the same."""
    first, biased = narrow.layers[0], narrow.layers[0].bias != 0
    unbiased = np.flatnonzero(np.asarray((first.weights != 0)[:, ~biased].sum(axis=1)).ravel() > 0)
    origin = seen.origin.copy()
    origin[unbiased] = 0.0
    outputs = narrow.layers[-1].bias != 0
    if narrow.direct is not None:
        entries = narrow.direct.tocoo()
        origin[np.unique(entries.coords[0][~outputs[entries.coords[1]]])] = 0.0
    columns = Columns(origin, seen.scale, True)
    count = targets.shape[1]
    if loss.link != "identity":
        return Units(columns, np.zeros(count), np.ones(count), False)
    centred = bool(outputs.all())
    middle = targets.mean(axis=0) if centred else np.zeros(count)
    spread = np.sqrt(np.square(targets - middle).mean(axis=0))
    return Units(columns, middle, np.where(spread > 0, spread, 1.0), centred)
