"""Refinement: lower the objective without changing the support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from thresher.objective.linear import Quadratic, RestrictedLinear

# How often a Newton step is halved before it is given up.
HALVINGS = 12


class Refinement(Protocol):
    """Something that improves the values on a support."""

    def __call__(self, view: RestrictedLinear, values: Tensor, step: float) -> Tensor:
        """Give better values; `step` is the step of the thresholding before, beside the mean over rows."""
        ...


@dataclass(frozen=True)
class Armijo:
    """The paper's refinement: a few gradient steps on the support, each halved until it descends enough.

    With ``F(v) = 2 f(v)``, the squared error that is not halved, and g the gradient of f, a step t is
    accepted when ``F(v - t g) <= F(v) - constant t ||g||^2``. Where the loss is not quadratic, F is its
    second-order model. The halved step is kept for the next inner step. When no halving is accepted, all
    inner steps are undone.

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

    def __call__(self, view: RestrictedLinear, values: Tensor, step: float) -> Tensor:
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
    """

    iterations: int = 3
    newton: int = 1
    tolerance: float = 1e-7

    def __call__(self, view: RestrictedLinear, values: Tensor, step: float) -> Tensor:
        """Solve on the support, starting from the given values."""
        for _ in range(1 if view.whole.loss.quadratic else self.newton):
            values = _descend(view, values, self._solve(view.model(values, times=self.iterations)))
        return values

    def _solve(self, model: Quadratic) -> Tensor:
        """Solve ``H d = -g`` approximately."""
        direction, residual = torch.zeros_like(model.gradient), -model.gradient
        search, length = residual, _dot(residual, residual)
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
            previous, length = length, _dot(residual, residual)
            search = residual + (length / previous) * search
        return direction


def _dot(left: Tensor, right: Tensor) -> float:
    return float((left.double() * right.double()).sum())


def _descend(view: RestrictedLinear, values: Tensor, direction: Tensor) -> Tensor:
    """Go along a direction, halving it until a loss that is not quadratic does not rise."""
    if view.whole.loss.quadratic:
        return values + direction
    output, change = view.columns.forward(values), view.columns.forward(direction)
    current = view.whole.measure(output, values)
    for _ in range(HALVINGS):
        if view.whole.measure(output + change, values + direction) <= current:
            return values + direction
        direction, change = direction / 2, change / 2
    return values
