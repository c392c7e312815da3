"""From data to a fitted network: scale, choose a solver, run it, fold the scale back into the weights."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch

from thresher.errors import DataError, MemoryLimitError, ParameterError
from thresher.linear.budget import check_budget, keep_largest
from thresher.linear.vector import SparseVector
from thresher.network import Layer, Network
from thresher.objective.design import Design, column_scale
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom, sparse_random
from thresher.objective.linear import Objective
from thresher.objective.losses import Loss
from thresher.solvers.iht import IHT, paper_iht
from thresher.solvers.loop import Iterate, Record, Solution, Solver, Start, run
from thresher.solvers.search import Search
from thresher.threads import one_thread

# Below this many multiplications for a pass, float64 costs nothing that anyone would notice.
SMALL_PASS = 2e7
# And below this many one thread is as quick as several.
ONE_THREAD_PASS = 2e8

# Numbers beyond these overflow in float32 when they meet others, and when they are squared and summed.
LARGEST, LARGEST_SQUARED = 1e30, 1e15


@dataclass(frozen=True)
class Settings:
    """What the user chose, checked; the estimators' parameters of the same names explain each."""

    budget: int
    hidden: int | tuple[int, ...]
    solver: str | Solver = "auto"
    bias: bool | None = None
    scale: bool | None = None
    alpha: float = 0.0
    batch_size: int | str | None = None
    max_iter: int = 200
    tol: float = 1e-15
    update_gates_every: int = 1
    memory_limit: int = 64 * 2**20
    dtype: str = "auto"
    seed: int = 0
    patience: float = math.inf

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons of every hidden layer."""
        return self.hidden if isinstance(self.hidden, tuple) else (self.hidden,)

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
class Trained:
    """What training gives back: the network in raw units, and how it was found."""

    weights: scipy.sparse.csr_array  # (d, hidden)
    bias: np.ndarray  # (hidden,)
    signs: np.ndarray  # (hidden,)
    output_bias: float
    solution: Solution
    size: int

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The hidden layer, and the signs and bias of the output."""
        output = Layer(self.signs[:, None], np.array([self.output_bias]), signs_only=True)
        return Layer(self.weights, self.bias), output


def train(
    X: Any,  # (n, d)
    y: np.ndarray,  # (n,)
    weight: np.ndarray | None,  # (n,)
    loss: Loss,
    settings: Settings,
    *,
    start: Network | None = None,
    held_out: tuple[Any, np.ndarray, np.ndarray | None] | None = None,
    callback: Callable[[Record], object] | None = None,
) -> Trained:
    """Train a fused network of one output.

    Parameters
    ----------
    X, y, weight
        Data, targets (0 and 1 for the logistic loss), sample weights.
    loss : Loss
    settings : Settings
    start : Network, optional
        A network of the same shape to start from.
    held_out : (X, y, weight), optional
        Rows that choose the best iterate and stop the run.
    callback : callable, optional
        Called with each record; a true answer stops the run.
    """
    paper, bias, scaled = settings.paper, settings.has_bias, settings.scales
    d = X.shape[1]
    features = d + int(bias)
    budget = check_budget(settings.budget, _size(features, settings.widths[0], bias))
    refuse_if_too_large(settings.widths[0], budget, features)
    dtype = precision(settings, X.shape[0] * features * settings.widths[0])
    refuse_overflow("X", X, squared=dtype is torch.float32 and not scaled)
    refuse_overflow("y", y, squared=dtype is torch.float32 and paper)
    scale = column_scale(X, weight) if scaled else None
    design = Design(X, scale, bias, dtype)
    unit = typical_size(y, weight) if loss.quadratic and not paper else 1.0
    objective = Objective(
        GatedOperator(
            design, DenseRandom(features, settings.widths[0], settings.seed), settings.memory_limit
        ),
        torch.from_numpy(y / unit).to(dtype),
        loss,
        None if weight is None else torch.from_numpy(weight).to(dtype),
        settings.alpha,
    )
    negative = (loss.quadratic and float(y.min(initial=0.0)) < 0) or not loss.quadratic
    solver = _solver(settings, features, bool(negative))
    begin = None if start is None else _start_of(start, scale, bias, unit, budget, dtype)
    size_of_unit = unit**2 if loss.quadratic else 1.0

    def in_raw_units(record: Record) -> Record:
        return {**record, "loss": record["loss"] * size_of_unit}

    small = X.shape[0] * features * settings.widths[0] <= ONE_THREAD_PASS
    with one_thread(small):
        solution = run(
            solver,
            objective,
            budget,
            start=begin,
            max_iter=settings.max_iter,
            tol=settings.tol * _size_of_loss(objective),
            callback=None if callback is None else (lambda record, iterate: callback(in_raw_units(record))),
            keep="last" if paper else "best",
            judge=None if held_out is None else _judge(design, held_out, loss, unit, settings),
            patience=settings.patience,
        )
    history = [in_raw_units(record) for record in solution.history]
    solution = replace(solution, loss=solution.loss * size_of_unit, history=history)
    return _unfold(solution, scale, bias, unit, (d, settings.widths[0]))


def _size(features: int, hidden: int, bias: bool) -> int:
    """Count all numbers a network could hold: a weight for each input of each neuron, and an output bias."""
    return features * hidden + int(bias)


def refuse_if_too_large(hidden: int, budget: int, features: int) -> None:
    """Refuse sizes that cannot fit into this machine's memory, before anything is allocated."""
    needed = 48 * hidden + 64 * min(budget, features * hidden)
    present = _memory()
    if needed > present:
        raise MemoryLimitError(
            f"hidden={hidden:,} and budget={budget:,} need at least {needed:,} bytes, but this machine has "
            f"{present:,}. Use a smaller hidden or budget."
        )


def refuse_overflow(name: str, values: Any, squared: bool) -> None:
    """Refuse numbers that float32 cannot hold together with others, or not once they are squared."""
    numbers = values.data if scipy.sparse.issparse(values) else values
    if numbers.dtype.kind != "f" or numbers.size == 0:
        return
    largest = max(float(numbers.max()), -float(numbers.min()))
    allowed = LARGEST_SQUARED if squared else LARGEST
    if largest > allowed:
        raise DataError(
            f"{name} holds {largest:.3g}, but numbers beyond {allowed:.0g} overflow in float32. Scale {name} "
            "to the order of 1."
        )


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**36


def precision(settings: Settings, multiplications: int) -> torch.dtype:
    """Choose the precision, given the multiplications of a pass over the data."""
    if settings.dtype == "auto":
        return torch.float64 if multiplications <= SMALL_PASS else torch.float32
    return torch.float32 if settings.dtype == "float32" else torch.float64


def typical_size(y: np.ndarray, weight: np.ndarray | None) -> float:
    """Give the root mean square of the targets, in whose units a squared error is fitted."""
    mean = float(np.average(np.square(y, dtype=np.float64), axis=0, weights=weight).mean())
    return math.sqrt(mean) if mean > 0 and math.isfinite(mean) else 1.0


def _size_of_loss(objective: Objective) -> float:
    """Give the loss of the zero network, against which `tol` is measured."""
    zero = torch.zeros_like(objective.y)
    return objective.loss.value(zero, objective.y, objective.weight)


def _solver(settings: Settings, features: int, negative: bool) -> Solver:
    if settings.paper:
        batch = settings.batch_size if isinstance(settings.batch_size, int) else None
        return paper_iht(settings.update_gates_every, batch, settings.seed)
    if settings.solver == "auto":
        return Search(settings.batch_size, settings.max_iter, negative, settings.seed)
    if isinstance(settings.solver, IHT):
        return _completed(settings.solver, settings, features, negative)
    if isinstance(settings.solver, str):
        raise ParameterError(
            f"solver={settings.solver!r} is not known. Use 'auto', 'paper', or a solver object such as "
            "thresher.solvers.iht.IHT()."
        )
    return settings.solver


def _completed(solver: IHT, settings: Settings, features: int, negative: bool) -> IHT:
    """Fill in what an estimator needs of a solver object: gates that follow, signs, a way back."""
    signs = torch.ones(settings.widths[0])
    if negative:
        signs[1::2] = -1
    return replace(
        solver,
        update_gates_every=solver.update_gates_every or settings.update_gates_every,
        signs=signs if solver.signs is None else solver.signs,
        fallback=solver.fallback
        or sparse_random(features, settings.widths[0], nonzeros=1, seed=settings.seed),
    )


def _start_of(
    network: Network, scale: np.ndarray | None, bias: bool, unit: float, budget: int, dtype: torch.dtype
) -> Start:
    """Turn a fitted network back into fused weights of the scaled columns."""
    hidden, output = network.layers
    weights = scipy.sparse.csr_array(hidden.weights, dtype=np.float64)
    if scale is not None:
        weights = scipy.sparse.csr_array(weights.multiply(scale[:, None]))
    signs = np.asarray(output.weights.todense()).ravel()
    signs = np.where(signs == 0, 1.0, signs)
    if bias:
        column = scipy.sparse.csr_array((weights.shape[0], 1))
        constants = np.append(hidden.bias, abs(output.bias[0]))
        signs = np.append(signs, 1.0 if output.bias[0] >= 0 else -1.0)
        weights = scipy.sparse.vstack([scipy.sparse.hstack([weights, column]), constants[None, :]])
    weights = scipy.sparse.csc_array(weights.multiply(signs[None, :] / unit))
    weights.sort_indices()
    features, neurons = weights.shape
    neuron = np.repeat(np.arange(neurons, dtype=np.int64), np.diff(weights.indptr))
    flat = torch.from_numpy(neuron * features + weights.indices)
    vector = SparseVector(flat, torch.from_numpy(weights.data).to(dtype), features * neurons)
    return Start(keep_largest(vector, budget), torch.from_numpy(signs))


def _judge(
    design: Design,
    held_out: tuple[Any, np.ndarray, np.ndarray | None],
    loss: Loss,
    unit: float,
    settings: Settings,
) -> Callable[[Iterate], float]:
    """Judge iterates by the loss of their ReLU network on held-out rows."""
    X, y, weight = held_out
    rows = Design(X, design.scale, design.bias, design.dtype)
    target = torch.from_numpy(y / unit).to(design.dtype)
    share = None if weight is None else torch.from_numpy(weight).to(design.dtype)
    operator = GatedOperator(rows, DenseRandom(design.features, settings.widths[0]), settings.memory_limit)

    def judge(iterate: Iterate) -> float:
        signs = torch.ones(settings.widths[0]) if iterate.signs is None else iterate.signs
        return loss.value(operator.following(iterate.w, signs).forward(iterate.w), target, share)

    return judge


def _unfold(
    solution: Solution, scale: np.ndarray | None, bias: bool, unit: float, shape: tuple[int, int]
) -> Trained:
    """Turn fused weights of scaled columns into a network that takes raw inputs.

    A neuron that uses the constant column alone is an output bias, and needs no neuron.
    """
    d, hidden = shape
    features = d + int(bias)
    neuron, feature = (solution.w.indices // features).numpy(), (solution.w.indices % features).numpy()
    signs = np.ones(hidden) if solution.signs is None else solution.signs.double().numpy()
    places = len(signs)
    values = solution.w.values.double().numpy() * signs[neuron] * unit
    inside = feature < d
    if scale is not None:
        values[inside] /= scale[feature[inside]]
    if not np.isfinite(values).all():
        raise DataError(
            "training ended in weights that are not finite, because the values of X or y are too large or "
            "too small to compute with. Scale them to the order of 1."
        )
    weights = scipy.sparse.csc_array((values[inside], (feature[inside], neuron[inside])), shape=(d, places))
    constants = np.zeros(places)
    constants[neuron[~inside]] = values[~inside]
    lone = np.diff(weights.indptr) == 0
    output = float((signs * np.maximum(constants, 0))[lone].sum())
    constants[lone] = 0
    # The extra place, if any, held an output bias; what is left fits into the allowed neurons.
    return Trained(
        weights[:, :hidden].tocsr(),
        constants[:hidden],
        signs[:hidden],
        output,
        solution,
        _size(features, hidden, bias),
    )
