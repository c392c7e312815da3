"""The end game of the search: refit a student exactly, admit weights by gradient, remove them one by one.

All of it is Newton's method with the gates held: steps on a support, and backward elimination of the weights
whose removal costs least (the optimal brain surgeon of Hassibi and Stork). It serves both forms of a student
and every loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.errors import DataError
from thresher.objective.losses import Loss
from thresher.solvers.student import Student

DAMPING = 1e-6
ROWS_AT_ONCE = 2000


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit.

    Attributes
    ----------
    X, y, weight : tensors of shapes (rows, features), (rows,), (rows,) or None
    loss : Loss
    alpha : float
        L2 penalty for each row.
    """

    X: Tensor
    y: Tensor
    weight: Tensor | None
    loss: Loss
    alpha: float = 0.0

    def error(self, student: Student) -> float:
        """Give twice the mean loss: the mean squared error, where that is the loss."""
        value = self.loss.value(student.output(self.X), self.y, self.weight) / len(self.y)
        return 2 * value + self.alpha * float(student.W.double().square().sum())

    def slope(self, student: Student) -> Tensor:
        """Give the weighted derivative of the loss with respect to the output."""
        slope = self.loss.slope(student.output(self.X), self.y)
        return slope if self.weight is None else slope * self.weight

    @property
    def weighed(self) -> Tensor:  # (rows, features)
        """Give X with every row times the root of its weight: ReLUs scale along, so means are weighted."""
        return self.X if self.weight is None else self.X * self.weight.sqrt()[:, None]

    def on(self, features: Tensor) -> Rows:
        """Take some of the features."""
        return replace(self, X=self.X[:, features])

    def head(self, rows: int) -> Rows:
        """Take the first rows."""
        weight = None if self.weight is None else self.weight[:rows]
        return replace(self, X=self.X[:rows], y=self.y[:rows], weight=weight)


@dataclass(frozen=True, eq=False)
class _Equations:
    """Newton's equations ``H step = h`` for weights and, in the line form, linear part and folds."""

    feature: Tensor
    neuron: Tensor
    folds: Tensor
    H: Tensor
    h: Tensor

    def values(self, student: Student) -> Tensor:
        """Read the unknowns off a student."""
        parts = [student.W[self.feature, self.neuron]]
        if student.linear is not None and student.folds is not None:
            parts += [student.linear, student.folds[self.folds]]
        return torch.cat(parts).double()

    def write(self, student: Student, values: Tensor) -> Student:
        """Make the student that has these values."""
        values = values.to(student.W.dtype)
        W, weights = torch.zeros_like(student.W), self.feature.numel()
        W[self.feature, self.neuron] = values[:weights]
        if student.linear is None:
            return replace(student, W=W)
        d, folds = student.linear.numel(), torch.zeros_like(student.linear)
        folds[self.folds] = values[weights + d :]
        return replace(student, W=W, linear=values[weights : weights + d], folds=folds)

    def solve(self) -> Tensor:
        """Solve for the step."""
        return torch.cholesky_solve(self.h[:, None], factor(self.H))[:, 0]

    def removable(self, student: Student) -> Tensor:
        """Say which unknowns count against the budget: all but the linear part."""
        free = torch.ones(self.h.numel(), dtype=torch.bool)
        if student.linear is not None:
            free[self.feature.numel() : self.feature.numel() + student.linear.numel()] = False
        return free


def _equations(rows: Rows, student: Student, every_fold: bool = False) -> _Equations:
    """Set up Newton's step with gates held; `every_fold` admits folds that are zero now."""
    feature, neuron = (student.W != 0).nonzero(as_tuple=True)
    folds, linear = torch.zeros(0, dtype=torch.int64), 0
    if student.linear is not None and student.folds is not None:
        linear = student.linear.numel()
        folds = torch.arange(linear) if every_fold else (student.folds != 0).nonzero().flatten()
    size = feature.numel() + linear + folds.numel()
    H = torch.zeros(size, size, dtype=rows.X.dtype)
    h = torch.zeros(size, dtype=torch.float64)
    for start in range(0, len(rows.y), ROWS_AT_ONCE):
        X, y = rows.X[start : start + ROWS_AT_ONCE], rows.y[start : start + ROWS_AT_ONCE]
        gate = student.gates(X).mul_(student.v)
        columns = X[:, feature] * gate[:, neuron]
        if linear:
            columns = torch.cat([columns, X, X[:, folds].abs()], 1)
        output = student.output(X)
        slope, curvature = rows.loss.slope(output, y), rows.loss.curvature(output)
        if rows.weight is not None:
            weight = rows.weight[start : start + ROWS_AT_ONCE]
            slope, curvature = slope * weight, weight if curvature is None else curvature * weight
        h -= (columns.T @ slope).double()
        H.addmm_(columns.T, columns if curvature is None else columns * curvature[:, None])
    H = H.double()
    if rows.alpha:
        values = student.W[feature, neuron].double()
        H.diagonal()[: feature.numel()].add_(rows.alpha * len(rows.y))
        h[: feature.numel()] -= rows.alpha * len(rows.y) * values
    return _Equations(feature, neuron, folds, H, h)


def factor(H: Tensor) -> Tensor:
    """Factor a positive semidefinite matrix, damped as little as it takes."""
    if H.numel() == 0:
        return H
    damping, size = DAMPING, float(H.diagonal().mean())
    if not math.isfinite(float(H.sum())):
        raise DataError(
            "training met numbers that are not finite, because the values of X or y are too large or too "
            "small to compute with. Scale them to the order of 1."
        )
    while True:
        damped = H.clone()
        damped.diagonal().add_(damping * size + 1e-30)
        triangle, failed = torch.linalg.cholesky_ex(damped)
        if int(failed) == 0:
            return triangle
        damping *= 10


def refit(rows: Rows, student: Student, times: int, every_fold: bool = False) -> tuple[Student, float]:
    """Take Newton steps on the support while they help; give the student and its error."""
    used = (student.W != 0).any(1)
    if not student.lines and 2 * int(used.sum()) < len(used):
        # Most features are idle: all products are smaller on a copy of the others.
        small, error = refit(rows.on(used), replace(student, W=student.W[used]), times)
        W = torch.zeros_like(student.W)
        W[used] = small.W
        return replace(small, W=W), error
    best = rows.error(student)
    for _ in range(times):
        equations = _equations(rows, student, every_fold)
        if equations.h.numel() == 0:
            break
        values, step = equations.values(student), equations.solve()
        for length in (1.0, 0.5, 0.2):
            trial = equations.write(student, values + length * step)
            error = rows.error(trial)
            if error < best:
                break
        else:
            break
        slow = error > 0.8 * best
        student, best = trial, error
        if slow and rows.loss.quadratic:
            break
    return student, best


def backward(
    H: Tensor, values: Tensor, free: Tensor, count: int, limit: float = 0.0, each: float = math.inf
) -> list[int]:
    """Choose weights to remove, each the one whose removal costs least once the rest is refitted.

    Parameters
    ----------
    H : tensor of shape (k, k)
        The Hessian.
    values : tensor of shape (k,)
        Where the objective is least.
    free : bool tensor of shape (k,)
        What may be removed.
    count : int
        How many to remove.
    limit : float
        After those, go on while all removals together cost no more than this (in units of ``v'Hv``),
    each : float
        and no one of them more than this.
    """
    inverse = torch.cholesky_inverse(factor(H))
    values, live, names = values.clone(), free.clone(), torch.arange(values.numel())
    removed: list[int] = []
    spent = 0.0
    while bool(live.any()):
        cost = torch.where(live, values.square() / inverse.diagonal().clamp(min=1e-30), math.inf)
        least = int(cost.float().argmin())
        spent += float(cost[least])
        if len(removed) >= count and (spent > limit or float(cost[least]) > each or limit == 0):
            break
        column = inverse[:, least] / inverse[least, least]
        values = values - column * values[least]
        inverse.addr_(column, inverse[least].clone(), alpha=-1)
        values[least], inverse[least, least], live[least] = 0, 1, False
        removed.append(int(names[least]))
        if len(removed) % 64 == 0:
            kept = live | ~free
            inverse, values, names = inverse[kept][:, kept].contiguous(), values[kept], names[kept]
            free, live = free[kept], live[kept]
    return removed


def eliminate(rows: Rows, student: Student, budget: int, slack: float = 0.05) -> Student:
    """Remove weights down to the budget, and more while the error rises by less than a share `slack`."""
    equations = _equations(rows, student)
    values = equations.values(student)
    if rows.loss.quadratic:
        values = values + equations.solve()
    free = equations.removable(student)
    error = rows.error(student)
    # Where all that is left is noise, a useless weight gains about the mean error: 20 of it is no accident.
    limits = slack * error * len(rows.y), 20 * error
    removed = backward(equations.H, values, free, int(free.sum()) - budget, *limits)
    values[removed] = 0
    return equations.write(student, values).compact()


def settle(rows: Rows, student: Student, budget: int, slack: float = 0.05) -> tuple[Student, float]:
    """Refit on the inflated support, shrink to the budget by elimination, refit."""
    rows = rows.head(max(6000, 5 * (student.nonzeros + 2 * student.W.shape[0])))
    student, error = refit(rows, student, 3, every_fold=True)
    between = math.isqrt(max(student.nonzeros, budget) * budget)
    for target in (between, budget) if student.nonzeros > 1.15 * budget else (budget,):
        student, error = refit(rows, eliminate(rows, student, target, slack), 3)
    return student, error
