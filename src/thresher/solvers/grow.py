"""Where a student should grow: the weights, tilts and new neurons that the gradient promises most for."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.solvers.settle import ROWS_AT_ONCE, Rows
from thresher.solvers.student import Student


def grow_lines(rows: Rows, student: Student, count: int) -> Student:
    """Admit the weights with the largest gradient in the line form, also as tilts of the folds."""
    assert student.folds is not None
    folds, axes = student.folds, (student.folds != 0).nonzero().flatten()
    tilts = torch.zeros(folds.numel(), axes.numel(), dtype=folds.dtype)
    tilts[axes, torch.arange(axes.numel())] = folds[axes].abs()
    wide = Student(torch.cat([student.W, tilts], 1), torch.cat([student.v, folds[axes].sign()]), folds, folds)
    gradient = _gradient(rows, wide, rows.slope(student))
    gradient[wide.W != 0] = 0
    chosen = largest(gradient.abs().view(-1).float(), count)
    size = rows.X.square().sum(0).clamp_(min=1e-30)[chosen // wide.neurons]
    W = wide.W.clone()
    W.view(-1)[chosen] = -gradient.view(-1)[chosen] / size
    tilted = (W[:, student.neurons :] != 0).sum(0) > 1
    folds = folds.clone()
    folds[axes[tilted]] = 0
    kept = torch.cat([torch.ones(student.neurons, dtype=torch.bool), tilted])
    return replace(student, W=W[:, kept], v=wide.v[kept], folds=folds)


def grow_relus(
    rows: Rows, student: Student, count: int, places: int, negative: bool, bias: bool = False
) -> Student:
    """Admit the weights of most promise in the ReLU form, among them new neurons of one weight.

    The promise of a weight is the fall of the loss that its own Newton step foresees, ``g^2 / 2h``. A new
    neuron is one half of an axis, ``relu(x_j)`` or ``relu(-x_j)``.

    Parameters
    ----------
    rows : Rows
    student : Student
    count : int
        Weights to admit.
    places : int
        New neurons that may be among them.
    negative : bool
        Whether a new neuron may enter with a negative sign.
    bias : bool
        Whether the last column is constant. A neuron of it alone is an output bias: it needs no place, and
        gets no other weight.
    """
    slope = rows.slope(student)
    curvature = rows.loss.curvature(student.output(rows.X))
    weight = rows.weight if curvature is None else curvature * (1 if rows.weight is None else rows.weight)
    gradient, bend = _gradient(rows, student, slope), _bend(rows.X, student.gates(rows.X), weight)
    promise = gradient.square() / bend
    promise[student.W != 0] = 0
    if bias:
        promise[:, ~(student.W[:-1] != 0).any(0)] = 0
    halves, half_gradient, half_bend = _halves(rows.X, slope, weight)
    if not negative:
        halves[half_gradient > 0] = 0
    halves[_present(student)] = 0
    # Scores are compared in float32: what differs by rounding only is a tie, and goes to the lower index.
    d = rows.X.shape[1]
    constant = torch.tensor([d - 1] if bias else [], dtype=torch.int64)
    others = halves.float().index_fill(0, constant, 0)
    fresh = torch.cat([largest(others, min(places, count)), constant]).unique()
    scores = torch.cat([promise.view(-1), halves[fresh]])
    chosen = largest(scores.float(), count)
    chosen = chosen[scores[chosen] > 0]
    old, new = chosen[chosen < promise.numel()], fresh[chosen[chosen >= promise.numel()] - promise.numel()]
    W = student.W.clone()
    W.view(-1)[old] = (-gradient / bend).view(-1)[old] * (0.5 / max(1, count) ** 0.5)
    column = torch.zeros(d, new.numel(), dtype=W.dtype)
    size = (half_gradient[new] / half_bend[new]).abs()
    column[new % d, torch.arange(new.numel())] = torch.where(new < d, size, -size)
    return replace(student, W=torch.cat([W, column], 1), v=torch.cat([student.v, -half_gradient[new].sign()]))


def _gradient(rows: Rows, student: Student, slope: Tensor) -> Tensor:  # (features, neurons)
    return rows.X.T @ (student.gates(rows.X).mul_(student.v) * slope[:, None])


def _bend(X: Tensor, gates: Tensor, weight: Tensor | None) -> Tensor:  # (features, neurons)
    squares = gates.square() if weight is None else gates.square() * weight[:, None]
    return (X.square().T @ squares).clamp_(min=1e-12)


def _halves(X: Tensor, slope: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Give promise, gradient and curvature of every half-axis: relu(x_j) for all j, then relu(-x_j)."""
    gradient = torch.zeros(2, X.shape[1], dtype=X.dtype)
    bend = torch.zeros_like(gradient)
    one = torch.ones_like(slope) if weight is None else weight
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        for half, part in enumerate((X[rows].clamp(min=0), X[rows].clamp(max=0).neg_())):
            gradient[half] += slope[rows] @ part
            bend[half] += one[rows] @ part.square_()
    gradient, bend = gradient.view(-1), bend.view(-1)
    promise = torch.where(bend > 0, gradient.square() / bend.clamp(min=1e-12), 0)
    return promise, gradient, bend.clamp_(min=1e-12)


def _present(student: Student) -> Tensor:
    """Give the half-axes that are neurons already."""
    one = (student.W != 0).sum(0) == 1
    feature = (student.W[:, one] != 0).to(torch.int8).argmax(0)
    positive = student.W[feature, one.nonzero().flatten()] > 0
    return torch.where(positive, feature, feature + student.W.shape[0])
