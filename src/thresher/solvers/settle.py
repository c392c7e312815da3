"""The end game of the search: refit a student in the line form exactly, and remove weights one by one.

All of it is least squares with the gates held: Gauss-Newton steps on a support, backward elimination of the
weights whose removal costs least (Hassibi and Stork's optimal brain surgeon), and growth by gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.solvers.student import Student

DAMPING = 1e-6
ROWS_AT_ONCE = 2000


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit, already multiplied where they are weighted."""

    X: Tensor  # (rows, features)
    y: Tensor  # (rows,)
    weight: Tensor | None = None

    def error(self, student: Student) -> float:
        """Give the weighted mean squared error."""
        squares = (student.output(self.X) - self.y).square_()
        return float((squares if self.weight is None else squares * self.weight).double().mean())

    def head(self, rows: int) -> Rows:
        """Take the first rows."""
        return Rows(self.X[:rows], self.y[:rows], None if self.weight is None else self.weight[:rows])


@dataclass(frozen=True, eq=False)
class _Equations:
    """Normal equations ``H step = h`` of a student's weights, linear part and folds."""

    feature: Tensor
    neuron: Tensor
    folds: Tensor
    H: Tensor
    h: Tensor

    def values(self, student: Student) -> Tensor:
        """Read the unknowns off a student."""
        assert student.linear is not None and student.folds is not None
        parts = [student.W[self.feature, self.neuron], student.linear, student.folds[self.folds]]
        return torch.cat(parts).double()

    def write(self, student: Student, values: Tensor) -> Student:
        """Make the student that has these values."""
        assert student.linear is not None
        values = values.to(student.W.dtype)
        weights, d = self.feature.numel(), student.linear.numel()
        W, folds = torch.zeros_like(student.W), torch.zeros_like(student.linear)
        W[self.feature, self.neuron] = values[:weights]
        folds[self.folds] = values[weights + d :]
        return replace(student, W=W, linear=values[weights : weights + d], folds=folds)

    def solve(self) -> Tensor:
        """Solve for the step."""
        return torch.cholesky_solve(self.h[:, None], factor(self.H))[:, 0]


def _equations(rows: Rows, student: Student, every_fold: bool) -> _Equations:
    """Set up the Gauss-Newton step with gates held; `every_fold` admits folds that are zero now."""
    assert student.linear is not None and student.folds is not None
    d = student.linear.numel()
    feature, neuron = (student.W != 0).nonzero(as_tuple=True)
    folds = torch.arange(d) if every_fold else (student.folds != 0).nonzero().flatten()
    size = feature.numel() + d + folds.numel()
    H = torch.zeros(size, size, dtype=rows.X.dtype)
    h = torch.zeros(size, dtype=torch.float64)
    for start in range(0, len(rows.y), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        X = rows.X[part]
        gate = (X @ student.W).sign_().mul_(student.v)
        columns = torch.cat([X[:, feature] * gate[:, neuron], X, X[:, folds].abs()], 1)
        residual = rows.y[part] - student.output(X)
        if rows.weight is not None:
            root = rows.weight[part].sqrt()
            columns, residual = columns * root[:, None], residual * root
        H.addmm_(columns.T, columns)
        h += (columns.T @ residual).double()
    return _Equations(feature, neuron, folds, H.double(), h)


def factor(H: Tensor) -> Tensor:
    """Factor a positive semidefinite matrix, damped as little as it takes."""
    damping, size = DAMPING, float(H.diagonal().mean())
    while True:
        damped = H.clone()
        damped.diagonal().add_(damping * size + 1e-30)
        triangle, failed = torch.linalg.cholesky_ex(damped)
        if int(failed) == 0:
            return triangle
        damping *= 10


def refit(rows: Rows, student: Student, times: int, every_fold: bool = False) -> tuple[Student, float]:
    """Take Gauss-Newton steps on the support while they help; give the student and its error."""
    best = rows.error(student)
    for _ in range(times):
        equations = _equations(rows, student, every_fold)
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
        if slow:
            break
    return student, best


def backward(H: Tensor, values: Tensor, free: Tensor, count: int, limit: float = math.inf) -> list[int]:
    """Choose weights to remove, one by one, each the one whose removal costs least once the rest is refitted.

    Parameters
    ----------
    H : tensor of shape (k, k)
        Half the Hessian of the squared error.
    values : tensor of shape (k,)
        Where the squared error is least.
    free : bool tensor of shape (k,)
        What may be removed.
    count : int
        How many to remove.
    limit : float
        After those, go on while all removals together cost no more than this.
    """
    inverse = torch.cholesky_inverse(factor(H))
    values, live, names = values.clone(), free.clone(), torch.arange(values.numel())
    removed: list[int] = []
    spent = 0.0
    while bool(live.any()):
        cost = torch.where(live, values.square() / inverse.diagonal().clamp(min=1e-30), math.inf)
        least = int(cost.argmin())
        spent += float(cost[least])
        if len(removed) >= count and (spent > limit or math.isinf(limit)):
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
    equations = _equations(rows, student, every_fold=False)
    weights, linear = equations.feature.numel(), student.W.shape[0]
    values = equations.values(student) + equations.solve()
    free = torch.ones(values.numel(), dtype=torch.bool)
    free[weights : weights + linear] = False
    limit = slack * rows.error(student) * len(rows.y)
    removed = backward(equations.H, values, free, int(free.sum()) - budget, limit)
    values[removed] = 0
    return equations.write(student, values).compact()


def grow(rows: Rows, student: Student, count: int) -> Student:
    """Admit the weights with the largest gradient, also as tilts of the folds."""
    assert student.folds is not None
    folds, axes = student.folds, (student.folds != 0).nonzero().flatten()
    tilts = torch.zeros(folds.numel(), axes.numel(), dtype=folds.dtype)
    tilts[axes, torch.arange(axes.numel())] = folds[axes].abs()
    W, v = torch.cat([student.W, tilts], 1), torch.cat([student.v, folds[axes].sign()])
    slope = student.output(rows.X) - rows.y
    if rows.weight is not None:
        slope = slope * rows.weight
    gradient = rows.X.T @ ((rows.X @ W).sign_().mul_(v) * slope[:, None])
    gradient[W != 0] = 0
    chosen = torch.topk(gradient.abs().view(-1), min(count, gradient.numel())).indices
    size = rows.X.square().sum(0).clamp_(min=1e-30)[chosen // W.shape[1]]
    W.view(-1)[chosen] = -gradient.view(-1)[chosen] / size
    tilted = (W[:, student.neurons :] != 0).sum(0) > 1
    folds = folds.clone()
    folds[axes[tilted]] = 0
    kept = torch.cat([torch.ones(student.neurons, dtype=torch.bool), tilted])
    return replace(student, W=W[:, kept], v=v[kept], folds=folds)


def settle(rows: Rows, student: Student, budget: int) -> tuple[Student, float]:
    """Refit on the inflated support, shrink to the budget by elimination, refit."""
    rows = rows.head(max(6000, 5 * (student.nonzeros + 2 * student.W.shape[0])))
    student, error = refit(rows, student, 3, every_fold=True)
    between = math.isqrt(max(student.nonzeros, budget) * budget)
    for target in (between, budget) if student.nonzeros > 1.15 * budget else (budget,):
        student, error = refit(rows, eliminate(rows, student, target), 3)
    return student, error
