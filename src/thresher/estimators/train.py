"""From data to a fitted network: choose coordinates and a solver, run it, go back to raw units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thresher.data.rows import OnDisk, is_sparse
from thresher.device import from_host, to_host
from thresher.errors import MemoryLimitError, NoPathWarning, warn_user
from thresher.estimators.inputs import part_of
from thresher.estimators.refusals import (
    refuse_if_too_large,
    refuse_overflow,
    refuse_strange,
    refuse_too_wide,
)
from thresher.estimators.units import Units, among, from_network, only_reading, to_layers
from thresher.linear.budget import check_budget, keep_largest
from thresher.linear.vector import SparseVector
from thresher.memory import give_back
from thresher.network import Layer, Network
from thresher.network.layer import Weights
from thresher.network.requirements import Requirements
from thresher.objective.allowed import Allowed
from thresher.objective.columns import standard_columns
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom, sparse_random
from thresher.objective.layout import Layout
from thresher.objective.linear import Linear
from thresher.objective.loss import Loss, refuse_misshapen
from thresher.objective.present import FOR_A_COLUMN, only_columns, telling_columns, very_wide
from thresher.objective.ranks import Alone
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto import Auto, Tuning
from thresher.solvers.auto.inputs import Limits, chosen_inputs
from thresher.solvers.auto.wide import alternating, loss_of_constant
from thresher.solvers.chain import ChainIHT
from thresher.solvers.iht import IHT, paper_iht
from thresher.solvers.layerwise import Layerwise
from thresher.solvers.loop import Iterate, Record, Solution, Solver, Start, refuse_network, run
from thresher.threads import one_thread

# Below this many multiplications for a pass, float64 costs nothing that anyone would notice.
SMALL_PASS = 2e7
# And below this many one thread is as quick as several.
ONE_THREAD_PASS = 2e8

# Positions of weights are numbers of 64 bits.
MOST_PLACES = 2**63 - 1

# Rows on which a loss shows that it gives what is asked of it.
FEW = 3


@dataclass(frozen=True)
class Settings:
    """What the user chose, checked; the estimators' parameters of the same names explain each."""

    budget: int
    hidden: tuple[int, ...]
    solver: str | Solver = "auto"
    bias: bool | None = None
    scale: bool | None = None
    alpha: float | None = None
    batch_size: int | str | None = None
    max_iter: int = 200
    tol: float = 1e-15
    update_gates_every: int = 1
    memory_limit: int = 64 * 2**20
    dtype: str = "auto"
    seed: int = 0
    patience: float = math.inf
    device: str | torch.device = "cpu"
    screen: float | None = None
    descends: bool = False
    tuning: Tuning = field(default_factory=Tuning)
    required: Requirements = field(default_factory=Requirements)

    @property
    def paper(self) -> bool:
        """Whether the published algorithm is wanted: no biases and no scaled columns, unless asked."""
        return self.solver == "paper"

    @property
    def has_bias(self) -> bool:
        """Whether neurons may have biases."""
        return not self.paper if self.bias is None else self.bias

    @property
    def scales(self) -> bool:
        """Whether columns are scaled to unit size."""
        return not self.paper if self.scale is None else self.scale


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as an estimator has them: inputs, targets of shape (n, targets) or class codes, weights, ranks."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None = None
    classes: bool = False
    ranks: Alone = field(default_factory=Alone)

    @property
    def count(self) -> int:
        """The rows of all ranks."""
        return self.ranks.rows(len(self.y))

    def take(self, rows: np.ndarray) -> Rows:
        """Give some of the rows that are here."""
        X, rows = part_of(self.X, rows)
        weight = None if self.weight is None else self.weight[rows]
        return Rows(X, self.y[rows], weight, self.classes, self.ranks.holding(len(rows)))

    def only(self, columns: np.ndarray) -> Rows:
        """Give some of the columns, ascending."""
        return replace(self, X=only_columns(self.X, columns))


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gives back: the network in raw units, and how it was found."""

    layers: tuple[Layer, ...]
    direct: Weights | None
    solution: Solution
    size: int
    # The standard deviation of every input that a weight reads.
    spreads: np.ndarray | None = None
    required: Requirements = field(default_factory=Requirements)


def train(
    rows: Rows,
    outputs: int,
    loss: Loss,
    settings: Settings,
    *,
    start: Network | None = None,
    held_out: Rows | None = None,
    callback: Callable[[Record], object] | None = None,
) -> Trained:
    """Train a network of any depth with any number of outputs under one budget.

    Parameters
    ----------
    rows : Rows
    outputs : int
        Outputs of the network: targets, classes, or 1 for two classes.
    loss : Loss
    settings : Settings
    start : Network, optional
        A network of the same shape to start from.
    held_out : Rows, optional
        Rows that choose the best iterate and stop the run.
    callback : callable, optional
        Called with each record; a true answer stops the run.
    """
    solver = solver_of(settings, outputs)
    refuse_if_too_large((rows.X.shape[1], *settings.hidden, outputs), settings.budget)
    whole = layout_of(rows.X.shape[1], outputs, settings, solver)
    refuse_network(solver, whole.widths)
    budget = check_budget(settings.budget, whole.size)
    columns = None
    if very_wide(rows.X, settings.memory_limit):
        each = solver.needs.inputs
        most = each if math.isinf(each) else min(each * budget, settings.memory_limit // FOR_A_COLUMN)
        columns = _columns(rows, outputs, loss, settings, most, start)
        rows, held_out = rows.only(columns), None if held_out is None else held_out.only(columns)
        start = None if start is None else only_reading(start, columns)
        settings = replace(settings, required=settings.required.among(columns))
        give_back()
    if settings.required.chooses:
        few = _required_columns(rows, outputs, loss, settings, solver, start)
        rows, held_out = rows.only(few), None if held_out is None else held_out.only(few)
        start = None if start is None else only_reading(start, few)
        settings = replace(settings, required=settings.required.among(few))
        columns = few if columns is None else columns[few]
    layout = layout_of(rows.X.shape[1], outputs, settings, solver)
    widths = layout.widths
    refuse_too_wide(widths[0], settings.memory_limit)
    work = rows.count * widths[0] * widths[1]
    dtype = precision(settings, work)
    rows.ranks.together(lambda: _refuse_overflows(rows, settings, dtype))
    units = _units(rows, loss, settings, solver, room=budget > outputs)
    if isinstance(rows.X, OnDisk):
        # All columns of some rows have been in memory.
        give_back()
    objective = _objective(rows, layout, loss, settings, units, dtype)
    refuse_misshapen(loss, objective.data.targets[:FEW], outputs)
    problem: Relu | Linear = objective
    if solver.needs.kind == "linear":
        problem, solver = _linear(objective, settings), _completed(solver, layout, settings)
    unit = float(np.mean(units.spread**2)) if loss.quadratic else 1.0

    judge = None if held_out is None else _judge(objective, held_out, units)

    def in_raw_units(record: Record) -> Record:
        told = {**record, "loss": record["loss"] * unit}
        if judge is not None and "badness" in told:
            told["validation_score"] = 1 - told.pop("badness") / judge.constant
        return told

    with one_thread(work <= ONE_THREAD_PASS):
        solution = run(
            solver,
            problem,
            budget,
            start=None if start is None else _start(start, objective, units, budget, problem),
            max_iter=settings.max_iter,
            tol=_tolerance(settings, objective),
            callback=None if callback is None else (lambda record, iterate: callback(in_raw_units(record))),
            keep="last" if settings.paper else "best",
            judge=judge,
            patience=settings.patience,
        )
    refuse_strange(solver, solution, problem, budget)
    history = [in_raw_units(record) for record in solution.history]
    point = _constant_if_cut_off(objective, _point(solution.w, solution.signs, objective), budget)
    layers, direct = to_layers(point, layout, units)
    if columns is not None:
        layers, direct = among(layers, direct, columns, whole.widths[0])
    return Trained(layers, direct, replace(solution, loss=solution.loss * unit, history=history), whole.size)


def layout_of(inputs: int, outputs: int, settings: Settings, solver: Solver) -> Layout:
    """Give the places of a network's weights, whose numbers must not exceed 64 bits."""
    widths = (inputs, *settings.hidden, outputs)
    layout = Layout(widths, settings.has_bias, fused=outputs == 1, direct=solver.needs.direct)
    if layout.size > MOST_PLACES:
        raise MemoryLimitError(
            f"X has {inputs:,} columns and hidden={settings.hidden}, which makes {layout.size:,} possible "
            f"weights, but their positions end at {MOST_PLACES:,}. Use a smaller hidden, or hash X to fewer "
            "columns."
        )
    return layout


def _columns(
    rows: Rows, outputs: int, loss: Loss, settings: Settings, most: float, start: Network | None
) -> np.ndarray:
    """Choose the columns of very wide rows that get a place: those that tell most, and those of `start`."""
    y = from_host(np.array(rows.y, order="C"))
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    share = from_host(weight / weight.sum())
    output = torch.zeros(len(rows.y), outputs, dtype=torch.float64)
    if settings.has_bias:
        output += loss.constant(y, share)
    slope = to_host(loss.slope(output, y).mul_(share[:, None]))
    if loss.quadratic:
        # Targets may be of any size, and all of them count.
        slope /= np.maximum(np.abs(slope).max(0), 1e-300)
    columns = telling_columns(rows.X, slope, to_host(share), most, settings.memory_limit)
    known = np.zeros(0, dtype=np.int64) if start is None else start.inputs_used()
    # Where rows hold nothing there is a column all the same.
    return np.union1d(columns if len(columns) else [0], known).astype(np.int64)


def _required_columns(
    rows: Rows, outputs: int, loss: Loss, settings: Settings, solver: Solver, start: Network | None
) -> np.ndarray:
    """Choose the columns that a network may read: those of a start, and more if there is a search."""
    inputs, required = rows.X.shape[1], settings.required
    known = np.zeros(0, dtype=np.int64) if start is None else start.inputs_used()
    if settings.descends and len(known):
        return known
    layout = layout_of(inputs, outputs, settings, solver)
    refuse_too_wide(inputs, settings.memory_limit)
    units = _units(rows, loss, settings, solver, room=True)
    objective = _objective(rows, layout, loss, settings, units, torch.float64)
    limits = Limits(
        required.unit_of(inputs), required.unit_costs(inputs), required.max_inputs, required.max_cost
    )
    tuning = settings.tuning
    found = chosen_inputs(objective, limits, known, settings.seed, tuning.inputs, tuning.judge)
    return rows.ranks.objects(found)[0]


def solver_of(settings: Settings, outputs: int) -> Solver:
    """Give the solver object behind a name; an IHT is completed with what an estimator needs."""
    batch = settings.batch_size if isinstance(settings.batch_size, int) else None
    if settings.solver == "auto":
        chosen = settings.tuning, settings.alpha
        passes, seed, screen = settings.max_iter, settings.seed, settings.screen
        return Auto(settings.batch_size, passes, seed, *chosen, screen=screen, descends=settings.descends)
    if settings.solver == "paper":
        if len(settings.hidden) > 1:
            return Layerwise(settings.max_iter, batch, settings.update_gates_every, settings.seed)
        if outputs > 1:
            return ChainIHT(batch, settings.seed, update_gates_every=settings.update_gates_every)
        return paper_iht(settings.update_gates_every, batch, settings.seed)
    return settings.solver  # type: ignore[return-value]


def _completed(solver: Solver, layout: Layout, settings: Settings) -> Solver:
    """Give a thresholding solver what an estimator needs: gates that follow, and a way back for neurons."""
    if not isinstance(solver, IHT) or settings.paper:
        return solver
    fallback = sparse_random(layout.shapes[0][1], layout.widths[1], nonzeros=1, seed=settings.seed)
    return replace(
        solver,
        update_gates_every=solver.update_gates_every or settings.update_gates_every,
        fallback=solver.fallback or fallback,
    )


def _units(rows: Rows, loss: Loss, settings: Settings, solver: Solver, room: bool) -> Units:
    """Choose the coordinates that the solver sees; targets are centred if there is room for output biases."""
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


def _objective(
    rows: Rows, layout: Layout, loss: Loss, settings: Settings, units: Units, dtype: torch.dtype
) -> Relu:
    data = _data(rows, units, dtype, settings.memory_limit)
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
    limit = settings.memory_limit
    return Relu(data, layout, loss, alpha, origins, middle, allowed=allowed, memory_limit=limit)


def _data(rows: Rows, units: Units, dtype: torch.dtype, memory_limit: int) -> Data:
    y = rows.y if rows.y.dtype.kind in "iu" else (rows.y - units.middle) / units.spread
    weight = None if rows.weight is None else from_host(np.array(rows.weight))
    return Data(
        rows.X, from_host(np.array(y, order="C")), weight, units.columns, dtype, memory_limit, rows.ranks
    )


def _linear(objective: Relu, settings: Settings) -> Linear:
    """See the network through gates that lag behind its weights, as a linear operator."""
    data, layout = objective.data, objective.layout
    generators = DenseRandom(layout.shapes[0][1], layout.widths[1], settings.seed)
    signs = None if settings.paper else alternating(layout)
    operator = GatedOperator(
        data, generators, bias=layout.bias, signs=signs, memory_limit=objective.memory_limit
    )
    return Linear(operator, data.targets[:, 0], objective.loss, data.weight, objective.alpha)


def _tolerance(settings: Settings, objective: Relu) -> float:
    """Give the loss that is low enough: a share of that of the zero network."""
    return settings.tol * objective.value(_nothing(objective))


def _nothing(objective: Relu) -> Point:
    return _point(SparseVector.zeros(objective.size, objective.data.dtype), None, objective)


def _point(w: SparseVector, signs: Tensor | None, objective: Relu) -> Point:
    """Give a solver's weights their places in the layout; a linear solver knows the first layer alone."""
    if objective.layout.fused and signs is None:
        signs = torch.ones(objective.layout.widths[-2], dtype=w.values.dtype)
    return Point(SparseVector(w.indices, w.values, objective.size), signs)


def _start(network: Network, objective: Relu, units: Units, budget: int, problem: Relu | Linear) -> Start:
    """Turn a fitted network into a start within the budget, of weights that the problem has places for."""
    point = from_network(network, objective.layout, units, objective.data.dtype)
    inside = point.w.indices < problem.size
    w = SparseVector(point.w.indices[inside], point.w.values[inside], problem.size)
    return Start(keep_largest(w, budget), point.signs)


def _constant_if_cut_off(objective: Relu, point: Point, budget: int) -> Point:
    """Give the best constant where no input reaches an output, and say so."""
    layout, indices = objective.layout, point.w.indices
    parts, alive = layout.split(indices), objective.alive(indices)
    feature = layout.pairs(indices[parts[0]], 0)[1]
    reached = bool((alive[parts[0]] & (feature < layout.inputs[0])).any())
    if reached or (layout.direct and parts[-1].stop > parts[-1].start):
        return point
    constant = objective.constant()
    length = layout.layers - int(layout.fused)
    if not layout.direct and length > 1 and float(objective.value(_nothing(objective))) > 0:
        warn_user(
            f"no input reaches an output within budget={budget:,}, so the network is the best constant. A "
            f"path from an input to an output takes {length} weights: raise the "
            "budget, or max_iter.",
            NoPathWarning,
        )
    if not layout.bias:
        return _nothing(objective)
    w = SparseVector(layout.output_biases, constant.to(objective.data.dtype), layout.size)
    return Point(keep_largest(w, budget), point.signs)


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
        point = _point(iterate.w, iterate.signs, self.rows)
        return self.rows.value(point.to(self.rows.data.dtype))


def _judge(objective: Relu, held_out: Rows, units: Units) -> Validation:
    data = _data(held_out, units, objective.data.dtype, objective.memory_limit)
    rows = replace(objective.on(data), alpha=0.0)
    return Validation(rows, max(loss_of_constant(rows), 1e-300))


def _refuse_overflows(rows: Rows, settings: Settings, dtype: torch.dtype) -> None:
    refuse_overflow("X", rows.X, squared=dtype is torch.float32 and not settings.scales)
    refuse_overflow("y", rows.y, squared=dtype is torch.float32 and settings.paper)


def precision(settings: Settings, multiplications: int) -> torch.dtype:
    """Choose the precision, given the multiplications of a pass over the data."""
    if settings.dtype == "auto":
        return torch.float64 if multiplications <= SMALL_PASS else torch.float32
    return torch.float32 if settings.dtype == "float32" else torch.float64
