"""From data to a fitted network: choose coordinates and a solver, run it, go back to raw units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from thresher.data.rows import OnDisk
from thresher.errors import NoPathWarning, warn_user
from thresher.estimators.columns import narrowed_task
from thresher.estimators.objectives import (
    linear_of,
    nothing,
    objective_of,
    point_of,
    start_of,
    units_of,
    validation_of,
)
from thresher.estimators.refusals import (
    refuse_if_too_large,
    refuse_overflow,
    refuse_strange,
    refuse_too_wide,
)
from thresher.estimators.task import Settings, Task
from thresher.estimators.units import among, to_layers
from thresher.linear.budget import check_budget, keep_largest
from thresher.linear.vector import SparseVector
from thresher.memory import give_back
from thresher.network import Layer
from thresher.network.layer import Weights
from thresher.network.requirements import Requirements
from thresher.objective.gates import sparse_random
from thresher.objective.layout import Layout
from thresher.objective.linear import Linear
from thresher.objective.loss import refuse_misshapen
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto import Auto
from thresher.solvers.chain import ChainIHT
from thresher.solvers.iht import IHT, paper_iht
from thresher.solvers.layerwise import Layerwise
from thresher.solvers.loop import Record, Solution, Solver, refuse_network, run
from thresher.threads import one_thread

# Below this many multiplications for a pass, float64 costs nothing that anyone would notice.
SMALL_PASS = 2e7
# And below this many one thread is as quick as several.
ONE_THREAD_PASS = 2e8

# Rows on which a loss shows that it gives what is asked of it.
FEW = 3


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


def train(task: Task, callback: Callable[[Record], object] | None = None) -> Trained:
    """Train a network of any depth with any number of outputs under one budget.

    Parameters
    ----------
    task : Task
    callback : callable, optional
        Called with each record; a true answer stops the run.
    """
    loss, outputs = task.loss, task.outputs
    solver = solver_of(task.settings, outputs)
    refuse_if_too_large((task.inputs, *task.settings.hidden, outputs), task.settings.budget)
    whole = task.layout(solver)
    refuse_network(solver, whole.widths)
    budget = check_budget(task.settings.budget, whole.size)
    task, columns = narrowed_task(task, solver, budget)
    settings, rows, layout = task.settings, task.rows, task.layout(solver)
    widths = layout.widths
    refuse_too_wide(widths[0], settings.memory_limit)
    work = rows.count * widths[0] * widths[1]
    dtype = precision(settings, work)
    rows.ranks.together(lambda: _refuse_overflows(task, dtype))
    units = units_of(task, solver, room=budget > outputs)
    if isinstance(rows.X, OnDisk):
        # All columns of some rows have been in memory.
        give_back()
    objective = objective_of(task, layout, units, dtype)
    refuse_misshapen(loss, objective.data.targets[:FEW], outputs)
    problem: Relu | Linear = objective
    if solver.needs.kind == "linear":
        problem, solver = linear_of(objective, settings), _completed(solver, layout, settings)
    unit = float(np.mean(units.spread**2)) if loss.quadratic else 1.0

    judge = None if task.held_out is None else validation_of(objective, task.held_out, units)

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
            start=None if task.start is None else start_of(task.start, objective, units, budget, problem),
            max_iter=settings.max_iter,
            # The loss that is low enough is a share of that of the zero network.
            tol=settings.tol * objective.value(nothing(objective)),
            callback=None if callback is None else (lambda record, iterate: callback(in_raw_units(record))),
            keep="last" if settings.paper else "best",
            judge=judge,
            patience=settings.patience,
        )
    refuse_strange(solver, solution, problem, budget)
    history = [in_raw_units(record) for record in solution.history]
    point = _constant_if_cut_off(objective, point_of(solution.w, solution.signs, objective), budget)
    layers, direct = to_layers(point, layout, units)
    if columns is not None:
        layers, direct = among(layers, direct, columns, whole.widths[0])
    return Trained(layers, direct, replace(solution, loss=solution.loss * unit, history=history), whole.size)


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
    if not layout.direct and length > 1 and float(objective.value(nothing(objective))) > 0:
        warn_user(
            f"no input reaches an output within budget={budget:,}, so the network is the best constant. A "
            f"path from an input to an output takes {length} weights: raise the "
            "budget, or max_iter.",
            NoPathWarning,
        )
    if not layout.bias:
        return nothing(objective)
    w = SparseVector(layout.output_biases, constant.to(objective.data.dtype), layout.size)
    return Point(keep_largest(w, budget), point.signs)


def _refuse_overflows(task: Task, dtype: torch.dtype) -> None:
    rows, single = task.rows, dtype is torch.float32
    refuse_overflow("X", rows.X, squared=single and not task.settings.scales)
    refuse_overflow("y", rows.y, squared=single and task.settings.paper)


def precision(settings: Settings, multiplications: int) -> torch.dtype:
    """Choose the precision, given the multiplications of a pass over the data."""
    if settings.dtype == "auto":
        return torch.float64 if multiplications <= SMALL_PASS else torch.float32
    return torch.float32 if settings.dtype == "float32" else torch.float64
