"""From data to a network of several layers or outputs: scale, choose a solver, run it, unscale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from thresher.errors import DataError, NoPathWarning, warn_user
from thresher.estimators.training import (
    ONE_THREAD_PASS,
    Settings,
    precision,
    refuse_if_too_large,
    refuse_overflow,
    typical_size,
)
from thresher.linear.budget import check_budget, keep_largest
from thresher.linear.vector import SparseVector
from thresher.network import Layer, Network
from thresher.objective.design import Design, column_scale
from thresher.objective.layered import LayeredObjective, Layout
from thresher.objective.losses import Loss
from thresher.solvers.chain import ChainIHT
from thresher.solvers.joint import Joint
from thresher.solvers.layerwise import Stage, layerwise
from thresher.solvers.loop import Iterate, Record, Solution, Solver, Start, run
from thresher.threads import one_thread

# A column that is mostly zero is scaled to a size below others: this power of its share of nonzero rows.
RARE = 0.25


@dataclass(frozen=True, eq=False)
class TrainedLayers:
    """What training gives back: the layers in raw units, and how they were found."""

    layers: tuple[Layer, ...]
    solution: Solution
    size: int


def train_layers(
    X: Any,  # (n, d)
    y: np.ndarray,  # (n, outputs)
    weight: np.ndarray | None,  # (n,)
    loss: Loss,
    settings: Settings,
    *,
    start: Network | None = None,
    held_out: tuple[Any, np.ndarray, np.ndarray | None] | None = None,
    callback: Callable[[Record], object] | None = None,
) -> TrainedLayers:
    """Train a network of any depth with any number of outputs under one budget.

    Parameters are those of :func:`thresher.estimators.training.train`, but `y` has a column for each
    output: targets, one-hot classes for the cross-entropy, 0 and 1 for the logistic loss.
    """
    paper, scaled = settings.paper, settings.scales
    widths = (X.shape[1], *settings.widths, y.shape[1])
    layout = Layout(widths, settings.has_bias, fused=y.shape[1] == 1)
    budget = check_budget(settings.budget, layout.size)
    refuse_if_too_large(sum(widths[1:]), budget, X.shape[1])
    dtype = precision(settings, X.shape[0] * X.shape[1] * widths[1])
    refuse_overflow("X", X, squared=dtype is torch.float32 and not scaled)
    refuse_overflow("y", y, squared=dtype is torch.float32 and paper)
    scale = column_scale(X, weight, RARE) if scaled else None
    unit = typical_size(y, weight) if loss.quadratic and not paper else 1.0
    objective = LayeredObjective(
        Design(X, scale, False, dtype),
        layout,
        torch.from_numpy(y / unit),
        loss,
        None if weight is None else torch.from_numpy(weight),
        settings.alpha,
        _signs(layout, y, loss, dtype, paper),
        settings.memory_limit,
    )
    size_of_unit = unit**2 if loss.quadratic else 1.0
    report = None if callback is None else (lambda record, _: callback(_in_units(record, size_of_unit)))
    small = X.shape[0] * X.shape[1] * widths[1] <= ONE_THREAD_PASS
    with one_thread(small):
        if paper and (len(widths) > 3 or layout.fused):
            solution = layerwise(_stages(objective, settings), budget, settings.max_iter, report)
        else:
            solution = run(
                _solver(settings),
                objective,
                budget,
                start=None if start is None else _start_of(start, objective, unit, budget),
                max_iter=settings.max_iter,
                tol=settings.tol * loss.value(torch.zeros_like(objective.y), objective.y, objective.weight),
                callback=report,
                keep="last" if paper else "best",
                judge=None if held_out is None else _judge(objective, held_out, unit),
                patience=settings.patience,
            )
    history = [_in_units(record, size_of_unit) for record in solution.history]
    solution = replace(solution, loss=solution.loss * size_of_unit, history=history)
    w = _constant_if_cut_off(objective, solution.w, budget)
    return TrainedLayers(_unfold(objective, w, unit), solution, layout.size)


def _in_units(record: Record, size: float) -> Record:
    return {**record, "loss": record["loss"] * size}


def _signs(layout: Layout, y: np.ndarray, loss: Loss, dtype: torch.dtype, paper: bool) -> Tensor | None:
    """Choose how a fused output sums the last hidden layer: half of it negative, where targets can be."""
    if not layout.fused:
        return None
    signs = torch.ones(layout.widths[-2], dtype=dtype)
    if not paper and (not loss.quadratic or float(y.min()) < 0):
        signs[1::2] = -1
    return signs


def _solver(settings: Settings) -> Solver:
    if settings.solver == "auto":
        return Joint(batch_size=settings.batch_size, passes=settings.max_iter, seed=settings.seed)
    if settings.paper:
        batch = settings.batch_size if isinstance(settings.batch_size, int) else None
        return ChainIHT(batch, settings.seed)
    assert not isinstance(settings.solver, str)
    return settings.solver


def _stages(objective: LayeredObjective, settings: Settings) -> list[Stage]:
    batch = settings.batch_size if isinstance(settings.batch_size, int) else None
    return [
        Stage(objective, layer, batch, settings.update_gates_every, settings.seed)
        for layer in range(len(objective.layout.widths) - 2)
    ]


def _judge(
    objective: LayeredObjective, held_out: tuple[Any, np.ndarray, np.ndarray | None], unit: float
) -> Callable[[Iterate], float]:
    """Judge iterates by their loss on held-out rows."""
    X, y, weight = held_out
    dtype = objective.design.dtype
    rows = replace(
        objective,
        design=Design(X, objective.design.scale, False, dtype),
        y=torch.from_numpy(y / unit).to(dtype),
        weight=None if weight is None else torch.from_numpy(weight).to(dtype),
        alpha=0.0,
    )
    return lambda iterate: rows.value(rows.hold(iterate.w.indices, iterate.w.values))


def _start_of(network: Network, objective: LayeredObjective, unit: float, budget: int) -> Start:
    """Turn a fitted network back into weights of scaled columns."""
    layout, scale = objective.layout, objective.design.scale
    indices, values = [], []
    last = len(network.layers) - 1
    signs = objective.signs
    for layer, held in enumerate(network.layers):
        places = layout.shapes[layer][1]
        weights = scipy.sparse.coo_array(held.weights)
        feature, neuron = weights.row.astype(np.int64), weights.col.astype(np.int64)
        numbers = weights.data.astype(np.float64)
        if layer == 0 and scale is not None:
            numbers = numbers * scale[feature]
        if layout.fused and layer == last:
            signs = torch.from_numpy(held.weights.toarray()[:, 0]).to(objective.design.dtype)
            feature, neuron, numbers = feature[:0], neuron[:0], numbers[:0]
        constants = np.flatnonzero(held.bias) if layout.bias else np.zeros(0, dtype=np.int64)
        shrink = unit if layer >= last - int(layout.fused) else 1.0
        indices.append(
            layout.offsets[layer] + np.append(neuron * places + feature, constants * places + places - 1)
        )
        values.append(np.append(numbers, held.bias[constants].astype(np.float64)) / shrink)
    flat, order = torch.from_numpy(np.concatenate(indices)).sort()
    numbers_of = torch.from_numpy(np.concatenate(values)).to(objective.design.dtype)[order]
    return Start(keep_largest(SparseVector(flat, numbers_of, layout.size), budget), signs)


def _constant_if_cut_off(objective: LayeredObjective, w: SparseVector, budget: int) -> SparseVector:
    """Give the best constant where no input reaches an output, and say so."""
    held = objective.hold(w.indices, w.values)
    first = held.alive()[held.slices[0]]
    _, feature = objective.layout.pairs(w.indices[held.slices[0]], 0)
    if bool((first & (feature < objective.layout.inputs[0])).any()):
        return w
    layout = objective.layout
    needed = layout.layers - int(layout.fused)
    warn_user(
        f"no input reaches an output within budget={budget:,}, so the network is the best constant. A path "
        f"from an input to an output takes {needed} weights: raise the budget, or max_iter.",
        NoPathWarning,
    )
    if not layout.bias:
        return SparseVector.zeros(layout.size, w.values.dtype)
    constants = _best_constants(objective, budget)
    places = layout.shapes[-1][1]
    indices = layout.offsets[-2] + torch.arange(layout.widths[-1]) * places + places - 1
    return keep_largest(SparseVector(indices, constants.to(w.values.dtype), layout.size), budget)


def _best_constants(objective: LayeredObjective, budget: int) -> Tensor:  # (outputs,)
    """Give the output of every row that minimises the loss: means, or logarithms of odds and of shares."""
    y = objective.y.double()
    weight = torch.ones(len(y)).double() if objective.weight is None else objective.weight.double()
    mean = (y * weight[:, None]).sum(0) / weight.sum()
    if objective.loss.quadratic:
        return mean
    if y.shape[1] == 1:
        return torch.logit(mean, eps=1e-9)
    return _best_logarithms(mean.clamp(min=1e-9), max(1, y.shape[1] - budget))


def _best_logarithms(shares: Tensor, zeros: int) -> Tensor:
    """Give the logits whose softmax is nearest to some shares, `zeros` of them zero.

    Classes whose logit is zero come out equally likely, so they should have had nearly equal shares: they are
    neighbours when the shares are sorted. The others can be exact.
    """
    order, best = torch.argsort(shares), None
    for first in range(shares.numel() - zeros + 1):
        alike = order[first : first + zeros]
        logits = (shares / shares[alike].mean()).log()
        logits[alike] = 0
        loss = float(torch.logsumexp(logits, 0) - (shares * logits).sum() / shares.sum())
        if best is None or loss < best[0]:
            best = loss, logits
    assert best is not None
    return best[1]


def _unfold(objective: LayeredObjective, w: SparseVector, unit: float) -> tuple[Layer, ...]:
    """Turn weights of scaled columns into layers that take raw inputs and give raw outputs."""
    layout, scale = objective.layout, objective.design.scale
    layers = []
    last = layout.layers - 1
    for layer, piece in enumerate(layout.split(w.indices)):
        neuron, feature = (part.numpy() for part in layout.pairs(w.indices[piece], layer))
        values = w.values[piece].double().numpy()
        # A ReLU passes a factor on, so a fused output finds its unit one layer earlier.
        if layer >= last - int(layout.fused):
            values = values * unit
        inputs, neurons = layout.inputs[layer], layout.widths[layer + 1]
        inside = feature < inputs
        if layer == 0 and scale is not None:
            values[inside] = values[inside] / scale[feature[inside]]
        if not np.isfinite(values).all():
            raise DataError(
                "training ended in weights that are not finite, because the values of X or y are too large "
                "or too small to compute with. Scale them to the order of 1."
            )
        constants = np.zeros(neurons)
        constants[neuron[~inside]] = values[~inside]
        if layout.fused and layer == last:
            assert objective.signs is not None
            layers.append(Layer(objective.signs.double().numpy()[:, None], constants, signs_only=True))
        else:
            pairs = (feature[inside], neuron[inside])
            matrix = scipy.sparse.csr_array((values[inside], pairs), shape=(layout.widths[layer], neurons))
            layers.append(Layer(matrix, constants))
    return tuple(layers)
