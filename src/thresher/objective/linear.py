"""The loss under a linear operator, for gates that are fixed or lag and for sensing matrices.

A solver is given its value, its gradient where it can matter, and views restricted to a support.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from thresher.errors import ParameterError
from thresher.linear.budget import StreamingTop
from thresher.linear.operator import Operator, Restricted
from thresher.linear.vector import SparseVector
from thresher.objective.loss import Loss, SquaredError


@dataclass(frozen=True, eq=False)
class Linear:
    """``f(w) = mean loss(A w, y) + alpha/2 ||w||^2`` under an operator A that is never built.

    Attributes
    ----------
    operator : Operator
    y : tensor of shape (rows,)
    loss : Loss
        Of one output.
    weight : tensor of shape (rows,), optional
        Sample weights, of which only the proportions matter; one for each row by default.
    alpha : float
        L2 penalty beside the mean over rows.
    """

    operator: Operator
    y: Tensor
    loss: Loss = field(default_factory=SquaredError)
    weight: Tensor | None = None
    alpha: float = 0.0

    kind: ClassVar[str] = "linear"
    layout: ClassVar[None] = None

    @property
    def size(self) -> int:
        """All weights there could be."""
        return self.operator.size

    @cached_property
    def amount(self) -> float:
        """What all sample weights add up to: the number of rows, where there are none."""
        if self.weight is None:
            return float(self.operator.rows)
        return float(self.operator.total(self.weight.double().sum())[0].clamp(min=1e-300))

    @cached_property
    def share(self) -> Tensor:  # (rows,)
        """What each row counts in the mean."""
        if self.weight is None:
            return torch.full((len(self.y),), 1 / self.amount, dtype=self.operator.dtype)
        return (self.weight.double() / self.amount).to(self.operator.dtype)

    def under(self, operator: Operator) -> Linear:
        """Give the same objective under another operator on the same rows."""
        return replace(self, operator=operator)

    def take(self, rows: np.ndarray) -> Linear:
        """Give the objective on some rows; the penalty stays what it is beside a sum over rows."""
        weight = None if self.weight is None else self.operator.pick(self.weight, rows)
        y = self.operator.pick(self.y, rows)
        part = replace(self, operator=self.operator.take(rows), y=y, weight=weight)
        return replace(part, alpha=self.alpha * self.amount / part.amount) if self.alpha else part

    def slope(self, output: Tensor, start: int = 0, stop: int | None = None) -> Tensor:  # (stop - start,)
        """Give the derivative of the mean loss with respect to the output of rows start to stop."""
        self._require("forward", output.shape, self.y[start:stop].shape)
        slope = self.loss.slope(output[:, None], self.y[start:stop, None])[:, 0]
        return slope * self.share[start:stop]

    def curvature(self, output: Tensor) -> Tensor:  # (rows,)
        """Give the second derivative of the mean loss with respect to the output of each row."""
        one = torch.ones(len(output), 1, 1, dtype=output.dtype)
        return self.loss.scaled(output[:, None], self.y[:, None], one)[:, 0, 0].square() * self.share

    def measure(self, output: Tensor, values: Tensor) -> float:
        """Give the objective from the output that belongs to some weights."""
        rows = self.loss.value(output[:, None], self.y[:, None]).double()
        penalty = 0.5 * self.alpha * float(values.double().square().sum())
        return float(self.operator.total((rows * self.share.double()).sum())[0]) + penalty

    def value(self, w: SparseVector) -> float:
        """Give the objective at w."""
        return self.measure(self.operator.forward(w), w.values)

    def evaluate(self, w: SparseVector, extra: int) -> Evaluation:
        """Compute the value at w, and the gradient on its support and on the `extra` largest entries outside.

        Whatever the step size, thresholding ``w - step * gradient`` to `extra` entries can keep no others:
        outside the support the order of magnitudes is that of the gradient. So the gradient is never held
        whole, and one pass serves every step size.
        """
        output, blocks = self.operator.sweep(w, self.slope)
        top, length = StreamingTop(extra, self.size), 0
        on_support = torch.empty(w.nonzeros, dtype=self.operator.dtype)
        for start, block in blocks:
            first, last = torch.searchsorted(w.indices, torch.tensor([start, start + block.numel()])).tolist()
            inside = w.indices[first:last] - start
            on_support[first:last] = block[inside]
            block[inside] = 0
            top.offer(start, block)
            length += block.numel()
            # The next block is computed before this name is used again.
            del block
        self._require("adjoint", (length,), (self.size,))
        outside = top.result()
        if self.alpha:
            on_support += self.alpha * w.values
        indices = torch.cat([w.indices, outside.indices])
        order = torch.argsort(indices)
        values = torch.cat([on_support, outside.values.to(on_support.dtype)])[order]
        gradient = SparseVector(indices[order], values, self.size)
        return Evaluation(self.measure(output, w.values), output, gradient)

    def restricted(self, support: Tensor) -> RestrictedLinear:
        """See the objective on a support only."""
        columns = self.operator.on_support(support)
        self._require("on_support", (columns.rows, columns.size), (self.operator.rows, support.numel()))
        return RestrictedLinear(self, columns)

    def _require(self, method: str, came: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        """Refuse what an operator gives if its shape does not fit, naming the operator and the method."""
        if came != wanted:
            raise ParameterError(
                f"{method} of {type(self.operator).__name__} gave shape {tuple(came)}, but an operator of "
                f"{self.operator.rows} rows and {self.size} columns gives {tuple(wanted)} there."
            )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one point: its value, the output, and the gradient where it can matter."""

    value: float
    output: Tensor
    gradient: SparseVector


@dataclass(frozen=True, eq=False)
class RestrictedLinear:
    """The objective as a function of the values on a support."""

    whole: Linear
    columns: Restricted

    def model(self, values: Tensor, times: int) -> Quadratic:
        """Give the second-order model at some values, to be asked for `times` products or fewer."""
        output, gradient = self.columns.sweep(values, self.whole.slope)
        if self.whole.alpha:
            gradient = gradient + self.whole.alpha * values
        normal = self.columns.normal(times, self.whole.curvature(output))
        return Quadratic(gradient, normal, self.whole.alpha)

    def bend(self, direction: Tensor, output: Tensor) -> float:
        """Give ``d' H d`` for the Hessian H at the output that a direction d on the support meets."""
        moved = self.columns.forward(direction)
        squares = (moved.square() * self.whole.curvature(output)).double().sum()
        (squares,) = self.whole.operator.total(squares)
        return float(squares) + self.whole.alpha * float(direction.double().square().sum())


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The change ``g'd + d'Hd / 2`` of the objective, exact where the loss is quadratic.

    Everything is relative to where the model was made, so that nothing is lost to cancellation when the
    fit is nearly perfect.
    """

    gradient: Tensor
    normal: Callable[[Tensor], Tensor]
    alpha: float

    def hessian(self, direction: Tensor) -> Tensor:
        """Compute H d."""
        return self.normal(direction) + self.alpha * direction if self.alpha else self.normal(direction)
