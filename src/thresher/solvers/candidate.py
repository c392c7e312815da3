"""From a student on working features to fused weights: fit into the neurons, evaluate, polish."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.gated import GatedOperator
from thresher.objective.linear import Objective
from thresher.solvers.refine import ConjugateGradients
from thresher.solvers.settle import factor


def fuse(
    W: Tensor,  # (working features, neurons), ReLU form
    v: Tensor,  # (neurons,)
    working: Tensor,  # (working features,)
    features: int,
    hidden: int,
    bias: bool,
) -> tuple[SparseVector, Tensor]:
    """Write ReLU neurons as fused weights: the strongest first, at most `hidden` of them.

    With a constant column, neurons that use nothing else are one output bias. It needs no neuron: it has
    the place after the last one, so that the vector has room for `hidden` + 1.
    """
    used = W != 0
    only = torch.zeros(W.shape[1], dtype=torch.bool)
    constant = 0.0
    if bias and int(working[-1]) == features - 1:
        only = used[-1] & ~used[:-1].any(0)
        constant = float((W[-1].clamp(min=0) * v)[only].sum())
    strength = torch.where(only | ~used.any(0), -1.0, W.norm(dim=0))
    chosen = torch.argsort(strength, descending=True, stable=True)
    chosen = chosen[strength[chosen] >= 0][:hidden]
    places = hidden + int(bias)
    signs = torch.ones(places, dtype=W.dtype)
    signs[: chosen.numel()] = v[chosen]
    slot, feature = (W[:, chosen].T != 0).nonzero(as_tuple=True)
    flat, values = slot * features + working[feature], (W[:, chosen] * v[chosen])[feature, slot]
    if constant:
        signs[hidden] = 1.0 if constant > 0 else -1.0
        flat = torch.cat([flat, torch.tensor([places * features - 1])])
        values = torch.cat([values, torch.tensor([constant], dtype=W.dtype)])
    return SparseVector(flat, values, features * places), signs


def loss_of(objective: Objective, w: SparseVector, signs: Tensor) -> float:
    """Evaluate the ReLU network of some fused weights."""
    assert isinstance(objective.operator, GatedOperator)
    operator = objective.operator.following(w, signs)
    return objective.under(operator).value(operator.forward(w), w)


def polish(
    objective: Objective, w: SparseVector, signs: Tensor, times: int = 8
) -> tuple[SparseVector, float]:
    """Refit the weights of a ReLU network on its support, its gates following, while that helps.

    The equations of each step are solved by conjugate gradients, preconditioned with a Gram matrix in float32
    on some of the rows: exact residuals at the price of rough matrices.
    """
    assert isinstance(objective.operator, GatedOperator)
    best = loss_of(objective, w, signs)
    precondition = _rough_inverse(objective, w, signs)
    for _ in range(times):
        operator = objective.operator.following(w, signs)
        view = objective.under(operator).restricted(w.indices)
        values = ConjugateGradients(6, tolerance=1e-9, precondition=precondition)(view, w.values, 0.0)
        for length in (1.0, 0.3, 0.1):
            trial = w.with_values(w.values + length * (values - w.values))
            loss = loss_of(objective, trial, signs)
            if loss < best:
                break
        else:
            break
        slow = loss > 0.9 * best
        w, best = trial, loss
        if slow:
            break
    return w, best


def fill(objective: Objective, w: SparseVector, signs: Tensor, budget: int) -> tuple[SparseVector, float]:
    """Spend what is left of the budget where the gradient is largest, and polish."""
    assert isinstance(objective.operator, GatedOperator)
    room = budget - w.nonzeros
    at = objective.under(objective.operator.following(w, signs)).evaluate(w, room)
    tiny = 1e-9 * float(w.values.abs().max())
    values = torch.where(
        w.at(at.gradient.indices) == 0, -tiny * at.gradient.values.sign(), w.at(at.gradient.indices)
    )
    return polish(objective, SparseVector(at.gradient.indices, values, w.size), signs)


def _rough_inverse(objective: Objective, w: SparseVector, signs: Tensor) -> Callable[[Tensor], Tensor]:
    """Factor the Gram matrix of the support in float32 on a part of the rows."""
    operator = objective.operator
    assert isinstance(operator, GatedOperator)
    rows = min(operator.rows, max(4000, 8 * w.nonzeros))
    few = objective.on_rows(np.linspace(0, operator.rows - 1, rows).astype(np.int64))
    design = few.operator.design.with_dtype(torch.float32)  # type: ignore[attr-defined]
    rough = GatedOperator(design, operator.generators, operator.memory_limit).following(w, signs)
    weight = None if few.weight is None else few.weight.float()
    gram = rough.on_support(w.indices).gram(weight) * (operator.rows / rows)
    gram.diagonal().add_(objective.alpha)
    triangle = factor(gram)
    return lambda v: torch.cholesky_solve(v.double()[:, None], triangle)[:, 0].to(v.dtype)


def in_float64(objective: Objective) -> Objective:
    """See the same objective in float64."""
    assert isinstance(objective.operator, GatedOperator)
    operator = objective.operator
    design = operator.design.with_dtype(torch.float64)
    weight = None if objective.weight is None else objective.weight.double()
    return Objective(
        GatedOperator(design, operator.generators, operator.memory_limit),
        objective.y.double(),
        objective.loss,
        weight,
        objective.alpha,
    )
