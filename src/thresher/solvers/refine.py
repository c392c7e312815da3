"""Refinement: lower the objective without changing the support."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from thresher.objective.linear import Quadratic, RestrictedObjective


class Refinement(Protocol):
    """Something that improves the values on a support."""

    def __call__(self, view: RestrictedObjective, values: Tensor, step: float) -> Tensor:
        """Give better values; `step` is the step size of the thresholding step before."""
        ...


@dataclass(frozen=True)
class Armijo:
    """The paper's refinement: a few gradient steps on the support, each halved until it descends enough.

    With ``F(v) = 2 f(v)``, the unhalved squared error, and g the gradient of f, a step t is accepted when
    ``F(v - t g) <= F(v) - constant t ||g||^2``. Where the loss is not quadratic, F is its second-order model.
    The halved step is kept for the next inner step. When no
    halving is accepted, all inner steps are undone.

    Attributes
    ----------
    steps : int
        Inner steps.
    constant : float
        The share of the promised descent that must be realised.
    halvings : int
        How often a step may be halved.
    """

    steps: int = 10
    constant: float = 0.9
    halvings: int = 11

    def __call__(self, view: RestrictedObjective, values: Tensor, step: float) -> Tensor:
        """Descend from the given values."""
        model = view.model(values, times=self.steps)
        moved, gradient = torch.zeros_like(values), model.gradient
        for _ in range(self.steps):
            # Along -g the objective is a parabola, so every halving costs nothing.
            bent = model.hessian(gradient)
            slope, bend = _dot(gradient, gradient), _dot(gradient, bent)
            for _ in range(self.halvings + 1):
                if step * (2 * slope - step * bend) >= self.constant * step * slope:
                    break
                step /= 2
            else:
                return values
            moved, gradient = moved - step * gradient, gradient - step * bent
        return _descend(view, values, moved)


@dataclass(frozen=True)
class ConjugateGradients:
    """Newton steps whose equations are solved by conjugate gradients; one step is exact least squares.

    Attributes
    ----------
    iterations : int
        Conjugate-gradient iterations in each Newton step, each two products on the support.
    newton : int
        Newton steps; a squared error needs one.
    tolerance : float
        Stop when the gradient has fallen to this share of where it began.
    precondition : callable, optional
        An approximate inverse of the Hessian.
    """

    iterations: int = 3
    newton: int = 1
    tolerance: float = 1e-7
    precondition: Callable[[Tensor], Tensor] | None = None

    def __call__(self, view: RestrictedObjective, values: Tensor, step: float) -> Tensor:
        """Solve on the support, starting from the given values."""
        for _ in range(1 if view.whole.loss.quadratic else self.newton):
            values = _descend(view, values, self._solve(view.model(values, times=self.iterations)))
        return values

    def _solve(self, model: Quadratic) -> Tensor:
        """Solve ``H d = -g`` approximately."""
        near = self.precondition or (lambda v: v)
        direction, residual = torch.zeros_like(model.gradient), -model.gradient
        search = nearer = near(residual)
        length = _dot(residual, nearer)
        enough = self.tolerance**2 * length
        for _ in range(self.iterations):
            if not length > enough:
                break
            bent = model.hessian(search)
            bend = _dot(search, bent)
            if not bend > 0:
                break
            direction = direction + (length / bend) * search
            residual = residual - (length / bend) * bent
            nearer = near(residual)
            previous, length = length, _dot(residual, nearer)
            search = nearer + (length / previous) * search
        return direction


@dataclass(frozen=True)
class LeastSquares:
    """Newton steps whose equations are solved directly, in float64: s^2 numbers, for the end game.

    Attributes
    ----------
    newton : int
        Newton steps; a squared error needs one.
    damping : float
        Added to the diagonal, as a share of its mean, so that dependent columns have an answer.
    """

    newton: int = 1
    damping: float = 1e-12

    def __call__(self, view: RestrictedObjective, values: Tensor, step: float) -> Tensor:
        """Solve on the support, starting from the given values."""
        for _ in range(1 if view.whole.loss.quadratic else self.newton):
            output = view.columns.forward(values)
            hessian = view.columns.gram(view.curvature(output))
            damping = self.damping * float(hessian.diagonal().mean()) if values.numel() else 0.0
            hessian.diagonal().add_(view.whole.alpha + damping)
            direction = -_solve_symmetric(hessian, view.gradient(output, values).double())
            values = _descend(view, values, direction.to(values.dtype))
        return values


def _solve_symmetric(matrix: Tensor, right: Tensor) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed) == 0:
        return torch.cholesky_solve(right[:, None], factor)[:, 0]
    return torch.linalg.lstsq(matrix, right[:, None], driver="gelsd").solution[:, 0]


def _dot(left: Tensor, right: Tensor) -> float:
    return float((left.double() * right.double()).sum())


def _descend(view: RestrictedObjective, values: Tensor, direction: Tensor) -> Tensor:
    """Go along a direction, halving it until a loss that is not quadratic does not rise."""
    if view.whole.loss.quadratic:
        return values + direction
    output, change = view.columns.forward(values), view.columns.forward(direction)
    current = view.value(output, values)
    for _ in range(12):
        if view.value(output + change, values + direction) <= current:
            return values + direction
        direction, change = direction / 2, change / 2
    return values
