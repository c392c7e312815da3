"""What a solver is given: the value of a loss under an operator, its gradient where it can matter, and views
restricted to a support."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import StreamingTop
from thresher.linear.operator import Operator, Restricted
from thresher.linear.vector import SparseVector
from thresher.objective.gated import GatedOperator
from thresher.objective.losses import Loss, SquaredError


@dataclass(frozen=True, eq=False)
class Objective:
    """``f(w) = loss(A w, y) + alpha/2 ||w||^2`` under an operator A that is never built.

    Attributes
    ----------
    operator : Operator
    y : tensor of shape (rows,)
    loss : Loss
    weight : tensor of shape (rows,), optional
        Sample weights.
    alpha : float
        L2 penalty.
    """

    operator: Operator
    y: Tensor
    loss: Loss = field(default_factory=SquaredError)
    weight: Tensor | None = None
    alpha: float = 0.0

    @property
    def size(self) -> int:
        """All weights there could be."""
        return self.operator.size

    def under(self, operator: Operator) -> Objective:
        """Give the same objective under another operator on the same rows."""
        return replace(self, operator=operator)

    def on_rows(self, rows: np.ndarray) -> Objective:
        """Restrict the objective to some rows; its operator must be a gated one."""
        assert isinstance(self.operator, GatedOperator)
        chosen = torch.from_numpy(rows)
        return replace(
            self,
            operator=self.operator.on_rows(self.operator.design.take(rows)),
            y=self.y[chosen],
            weight=None if self.weight is None else self.weight[chosen],
        )

    def slope(self, output: Tensor, start: int = 0, stop: int | None = None) -> Tensor:
        """Give the weighted derivative of the loss with respect to the output of rows start to stop."""
        slope = self.loss.slope(output, self.y[start:stop])
        return slope if self.weight is None else slope * self.weight[start:stop]

    def value(self, output: Tensor, w: SparseVector) -> float:
        """Give the objective from the output that belongs to w."""
        penalty = 0.5 * self.alpha * float(w.values.double().square().sum())
        return self.loss.value(output, self.y, self.weight) + penalty

    def evaluate(self, w: SparseVector, extra: int) -> Evaluation:
        """Compute the value at w, and the gradient on its support and on the `extra` largest entries outside.

        Whatever the step size, thresholding ``w - step * gradient`` to `extra` entries can keep no others:
        outside the support the order of magnitudes is that of the gradient. So the gradient is never held
        whole, and one pass serves every step size.
        """
        output, blocks = self.operator.sweep(w, self.slope)
        top = StreamingTop(extra, self.size)
        on_support = torch.empty(w.nonzeros, dtype=self.operator.dtype)
        for start, block in blocks:
            first, last = torch.searchsorted(w.indices, torch.tensor([start, start + block.numel()])).tolist()
            inside = w.indices[first:last] - start
            on_support[first:last] = block[inside]
            block[inside] = 0
            top.offer(start, block)
            # The next block is computed before this name is used again.
            del block
        outside = top.result()
        if self.alpha:
            on_support += self.alpha * w.values
        indices = torch.cat([w.indices, outside.indices])
        order = torch.argsort(indices)
        values = torch.cat([on_support, outside.values.to(on_support.dtype)])[order]
        gradient = SparseVector(indices[order], values, self.size)
        return Evaluation(self.value(output, w), output, gradient)

    def restricted(self, support: Tensor) -> RestrictedObjective:
        """See the objective on a support only."""
        return RestrictedObjective(self, self.operator.on_support(support))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one point: its value, the output, and the gradient where it can matter."""

    value: float
    output: Tensor
    gradient: SparseVector


@dataclass(frozen=True, eq=False)
class RestrictedObjective:
    """The objective as a function of the values on a support."""

    whole: Objective
    columns: Restricted

    def value(self, output: Tensor, values: Tensor) -> float:
        """Give the objective from the output that belongs to the values."""
        penalty = 0.5 * self.whole.alpha * float(values.double().square().sum())
        return self.whole.loss.value(output, self.whole.y, self.whole.weight) + penalty

    def gradient(self, output: Tensor, values: Tensor) -> Tensor:
        """Give the gradient with respect to the values."""
        gradient = self.columns.adjoint(self.whole.slope(output))
        return gradient + self.whole.alpha * values if self.whole.alpha else gradient

    def curvature(self, output: Tensor) -> Tensor | None:
        """Give the weighted second derivative of the loss, row by row; None where it is 1."""
        curvature, weight = self.whole.loss.curvature(output), self.whole.weight
        if curvature is None or weight is None:
            return weight if curvature is None else curvature
        return curvature * weight

    def model(self, values: Tensor, times: int) -> Quadratic:
        """Give the second-order model at some values, to be asked for `times` products or fewer."""
        output, gradient = self.columns.sweep(values, self.whole.slope)
        if self.whole.alpha:
            gradient = gradient + self.whole.alpha * values
        curvature = self.curvature(output)
        return Quadratic(
            self.value(output, values),
            gradient,
            self.columns.normal(times, curvature),
            self.whole.alpha,
        )

    def bend(self, direction: Tensor, output: Tensor) -> float:
        """Give ``d' H d`` for the Hessian H at the output that a direction d on the support meets."""
        moved = self.columns.forward(direction)
        curvature = self.curvature(output)
        squares = moved.square() if curvature is None else moved.square() * curvature
        return float(squares.double().sum()) + self.whole.alpha * float(direction.double().square().sum())


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``value + g'd + d'Hd / 2``, exact where the loss is quadratic.

    Everything is relative to where the model was made, so that nothing is lost to cancellation when the
    fit is nearly perfect.
    """

    value: float
    gradient: Tensor
    normal: Callable[[Tensor], Tensor]
    alpha: float

    def hessian(self, direction: Tensor) -> Tensor:
        """Compute H d."""
        return self.normal(direction) + self.alpha * direction if self.alpha else self.normal(direction)
