"""What cannot be trained is refused: sizes, numbers, and what a solver hands out that fits no problem."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from thresher.data.rows import OnDisk
from thresher.errors import DataError, MemoryLimitError, ParameterError
from thresher.linear.vector import SparseVector
from thresher.memory import machine_memory
from thresher.objective.linear import Linear
from thresher.objective.relu import Relu
from thresher.solvers.auto import Auto
from thresher.solvers.loop import Solution, Solver

# Numbers beyond these overflow in float32 when they meet others, and when they are squared and summed.
LARGEST, LARGEST_SQUARED = 1e30, 1e15


def refuse_strange(solver: Solver, solution: Solution, problem: Relu | Linear, budget: int) -> None:
    """Refuse what a user's solver hands out if it does not fit the problem, naming the solver."""
    w, signs, name = solution.w, solution.signs, type(solver).__name__
    neurons = problem.layout.widths[-2] if problem.layout is not None else None
    if w.size != problem.size:
        raise ParameterError(
            f"{name} handed out a vector of {w.size:,} places, but the problem has {problem.size:,}. Return "
            "w with size=objective.size."
        )
    if not _in_order(w):
        raise ParameterError(
            f"{name} handed out weights whose places do not fit: they must be one whole number for each "
            f"value, ascending, each once, from 0 to {problem.size - 1:,}. Return SparseVector(indices, "
            "values, objective.size) of two tensors, sorted by indices."
        )
    if solver.needs.kind == "relu" and not isinstance(solver, Auto) and w.nonzeros > budget:
        raise ParameterError(
            f"{name} handed out {w.nonzeros:,} weights, but budget={budget:,}. Mark iterates beyond the "
            "budget with kept=False, and cut in rescue."
        )
    if signs is not None and neurons is not None and signs.shape != (neurons,):
        raise ParameterError(
            f"{name} handed out signs of shape {tuple(signs.shape)}, but the last hidden layer has "
            f"{neurons:,} neurons. Give one sign for each, in a vector."
        )


def _in_order(w: SparseVector) -> bool:
    """Say whether a vector holds one value for each of its places, which ascend within its size."""
    places, values = w.indices, w.values
    if not (isinstance(places, Tensor) and isinstance(values, Tensor)) or places.dtype != torch.int64:
        return False
    if places.ndim != 1 or places.shape != values.shape:
        return False
    ends = torch.cat([places.new_tensor([-1]), places, places.new_tensor([w.size])])
    return bool((ends.diff() > 0).all())


def refuse_if_too_large(widths: tuple[int, ...], budget: int) -> None:
    """Refuse sizes that cannot fit into this machine's memory, before anything is allocated."""
    weights = sum((one + 1) * two for one, two in pairwise(widths))
    needed = 48 * sum(widths[1:]) + 64 * min(budget, weights)
    between = [one * two for one, two in pairwise(widths[1:])]
    # A gradient between hidden layers is looked at whole, a block at a time.
    needed = max(needed, 4 * max(between))
    present = machine_memory()
    if present is not None and needed > present:
        hidden = f"{widths[1]:,}" if len(widths) == 3 else str(widths[1:-1])
        raise MemoryLimitError(
            f"hidden={hidden} and budget={budget:,} need at least {needed:,} bytes, but this machine "
            f"has {present:,}. Use a smaller hidden or budget."
        )


def refuse_too_wide(inputs: int, memory_limit: int) -> None:
    """Refuse inputs of which one neuron's gradient exceeds the memory limit."""
    each = 8 * (inputs + 1)
    if each > memory_limit:
        raise MemoryLimitError(
            f"memory_limit={memory_limit:,} bytes, but one neuron with {inputs:,} inputs needs {each:,} "
            "bytes of working memory. Raise memory_limit."
        )


def refuse_overflow(name: str, values: Any, squared: bool) -> None:
    """Refuse numbers that float32 cannot hold together with others, or not once they are squared."""
    numbers = values.data if scipy.sparse.issparse(values) else values
    if isinstance(numbers, OnDisk):
        largest = numbers.largest()
    elif numbers.dtype.kind != "f" or numbers.size == 0:
        return
    else:
        largest = max(float(numbers.max()), -float(numbers.min()))
    allowed = LARGEST_SQUARED if squared else LARGEST
    if largest > allowed:
        raise DataError(
            f"{name} holds {largest:.3g}, but numbers beyond {allowed:.0g} overflow in float32. Scale {name} "
            "to the order of 1."
        )
