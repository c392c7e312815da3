"""What a fit minimises, in a solver's coordinates: rows, penalties, what is allowed; points and starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.data.rows import is_sparse
from thresher.device import from_host
from thresher.estimators.task import Rows, Settings, Task
from thresher.estimators.units import Units, from_network
from thresher.linear.budget import keep_largest
from thresher.linear.vector import SparseVector
from thresher.network import Network
from thresher.objective.allowed import Allowed
from thresher.objective.columns import standard_columns
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom
from thresher.objective.layout import Layout
from thresher.objective.linear import Linear
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.wide import alternating, loss_of_constant
from thresher.solvers.loop import Iterate, Solver, Start


def units_of(task: Task, solver: Solver, room: bool) -> Units:
    """Choose the coordinates that the solver sees; targets are centred if there is room for output biases."""
    rows, loss, settings = task.rows, task.loss, task.settings
    centred = settings.has_bias and settings.scales and solver.needs.centred
    dense = not is_sparse(rows.X)
    moves = centred and dense
    columns = standard_columns(rows.X, rows.weight, moves, rows.ranks) if settings.scales else None
    targets = rows.y.shape[1]
    if settings.paper or loss.link != "identity":
        return Units(columns, np.zeros(targets), np.ones(targets), False)
    y = rows.ranks.every(rows.y)
    weight = None if rows.weight is None else rows.ranks.every(rows.weight)
    mean = np.average(y, axis=0, weights=weight)
    centred = centred and room
    middle = mean if centred else np.zeros(targets)
    spread = np.sqrt(np.average(np.square(y - middle), axis=0, weights=weight))
    if not loss.quadratic and centred:
        # Outliers move neither a median nor a median deviation.
        middle = np.median(y, axis=0)
        robust = 1.4826 * np.median(np.abs(y - middle), axis=0)
        spread = np.where(robust > 0, robust, spread)
    flat = ~(spread > 1e-12 * np.abs(mean)) | ~np.isfinite(spread)
    return Units(columns, middle, np.where(flat, np.maximum(np.abs(mean), 1e-300) ** flat, spread), centred)


def objective_of(task: Task, layout: Layout, units: Units, dtype: torch.dtype) -> Relu:
    """Give what is minimised, in these coordinates."""
    settings, limit = task.settings, task.settings.memory_limit
    data = _data(task.rows, units, dtype, limit)
    origins = middle = None
    if units.centred:
        middle = from_host(np.resize(units.middle / units.spread, layout.widths[-1]))
    if units.columns is not None and units.columns.centred:
        origins = from_host(units.columns.origin / units.columns.scale)
    alpha = (settings.alpha or 0.0) / data.amount
    directions = torch.zeros(layout.widths[0], dtype=torch.int8)
    for column, sign in settings.required.monotone.items():
        directions[column] = sign
    allowed = Allowed.of(layout, directions, settings.required.max_fan_in)
    return Relu(data, layout, task.loss, alpha, origins, middle, allowed=allowed, memory_limit=limit)


def _data(rows: Rows, units: Units, dtype: torch.dtype, memory_limit: int) -> Data:
    y = rows.y if rows.y.dtype.kind in "iu" else (rows.y - units.middle) / units.spread
    weight = None if rows.weight is None else from_host(np.array(rows.weight))
    return Data(
        rows.X, from_host(np.array(y, order="C")), weight, units.columns, dtype, memory_limit, rows.ranks
    )


def linear_of(objective: Relu, settings: Settings) -> Linear:
    """See the network through gates that lag behind its weights, as a linear operator."""
    data, layout = objective.data, objective.layout
    generators = DenseRandom(layout.shapes[0][1], layout.widths[1], settings.seed)
    signs = None if settings.paper else alternating(layout)
    operator = GatedOperator(
        data, generators, bias=layout.bias, signs=signs, memory_limit=objective.memory_limit
    )
    return Linear(operator, data.targets[:, 0], objective.loss, data.weight, objective.alpha)


@dataclass(frozen=True, eq=False)
class Validation:
    """Judges iterates by the loss of their network on held-out rows.

    Attributes
    ----------
    rows : Relu
        What is minimised, on the held-out rows and without a penalty.
    constant : float
        What the best constant loses there.
    """

    rows: Relu
    constant: float

    def __call__(self, iterate: Iterate) -> float:
        """Give the loss of an iterate's network."""
        point = point_of(iterate.w, iterate.signs, self.rows)
        return self.rows.value(point.to(self.rows.data.dtype))


def validation_of(objective: Relu, held_out: Rows, units: Units) -> Validation:
    """Give the judge that held-out rows are."""
    data = _data(held_out, units, objective.data.dtype, objective.memory_limit)
    rows = replace(objective.on(data), alpha=0.0)
    return Validation(rows, max(loss_of_constant(rows), 1e-300))


def start_of(network: Network, objective: Relu, units: Units, budget: int, problem: Relu | Linear) -> Start:
    """Turn a fitted network into a start within the budget, of weights that the problem has places for."""
    point = from_network(network, objective.layout, units, objective.data.dtype)
    inside = point.w.indices < problem.size
    w = SparseVector(point.w.indices[inside], point.w.values[inside], problem.size)
    return Start(keep_largest(w, budget), point.signs)


def point_of(w: SparseVector, signs: Tensor | None, objective: Relu) -> Point:
    """Give a solver's weights their places in the layout; a linear solver knows the first layer alone."""
    if objective.layout.fused and signs is None:
        signs = torch.ones(objective.layout.widths[-2], dtype=w.values.dtype)
    return Point(SparseVector(w.indices, w.values, objective.size), signs)


def nothing(objective: Relu) -> Point:
    """Give the zero network."""
    return point_of(SparseVector.zeros(objective.size, objective.data.dtype), None, objective)
