"""Which columns a network may read, where not all can have a place or not all are wanted."""

from __future__ import annotations

import math

import numpy as np
import torch

from thresher.device import from_host, to_host
from thresher.estimators.objectives import objective_of, units_of
from thresher.estimators.refusals import refuse_too_wide
from thresher.estimators.task import Task
from thresher.memory import give_back
from thresher.objective.present import FOR_A_COLUMN, telling_columns, very_wide
from thresher.solvers.auto.inputs import Limits, chosen_inputs
from thresher.solvers.loop import Solver


def narrowed_task(task: Task, solver: Solver, budget: int) -> tuple[Task, np.ndarray | None]:
    """Leave out columns that the network may not read; give the numbers of the others, None for all."""
    columns, limit = None, task.settings.memory_limit
    if very_wide(task.rows.X, limit):
        each = solver.needs.inputs
        most = each if math.isinf(each) else min(each * budget, limit // FOR_A_COLUMN)
        columns = _telling(task, most)
        task = task.reading(columns)
        give_back()
    if task.settings.required.chooses:
        few = _required(task, solver)
        task = task.reading(few)
        columns = few if columns is None else columns[few]
    return task, columns


def _telling(task: Task, most: float) -> np.ndarray:
    """Choose the columns of very wide rows that get a place: those that tell most, and those of a start."""
    rows, loss, settings = task.rows, task.loss, task.settings
    y = from_host(np.array(rows.y, order="C"))
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    share = from_host(weight / weight.sum())
    output = torch.zeros(len(rows.y), task.outputs, dtype=torch.float64)
    if settings.has_bias:
        output += loss.constant(y, share)
    slope = to_host(loss.slope(output, y).mul_(share[:, None]))
    if loss.quadratic:
        # Targets may be of any size, and all of them count.
        slope /= np.maximum(np.abs(slope).max(0), 1e-300)
    columns = telling_columns(rows.X, slope, to_host(share), most, settings.memory_limit)
    # Where rows hold nothing there is a column all the same.
    return np.union1d(columns if len(columns) else [0], _known(task)).astype(np.int64)


def _required(task: Task, solver: Solver) -> np.ndarray:
    """Choose the columns that a network may read: those of a start, and more if there is a search."""
    inputs, settings, known = task.inputs, task.settings, _known(task)
    if settings.descends and len(known):
        return known
    layout = task.layout(solver)
    refuse_too_wide(inputs, settings.memory_limit)
    objective = objective_of(task, layout, units_of(task, solver, room=True), torch.float64)
    required, tuning = settings.required, settings.tuning
    limits = Limits(
        required.unit_of(inputs), required.unit_costs(inputs), required.max_inputs, required.max_cost
    )
    found = chosen_inputs(objective, limits, known, settings.seed, tuning.inputs, tuning.judge)
    return task.rows.ranks.objects(found)[0]


def _known(task: Task) -> np.ndarray:
    """Give the columns that the start reads."""
    return np.zeros(0, dtype=np.int64) if task.start is None else task.start.inputs_used()
