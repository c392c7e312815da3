"""What is minimised: squared error, logistic loss and cross-entropy, as functions of the network's output.

Outputs and targets have shape (rows,), or (rows, outputs) where there are several outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Loss(Protocol):
    """A sum over rows of a smooth convex function of the output."""

    @property
    def quadratic(self) -> bool:
        """Whether the loss is a squared error, whose second-order model is exact."""
        ...

    def value(self, output: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """Give the weighted sum over rows."""
        ...

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the derivative with respect to the output, row by row."""
        ...

    def curvature(self, output: Tensor) -> Tensor | None:
        """Give the second derivative row by row; None where it is 1 everywhere."""
        ...


def _total(rows: Tensor, weight: Tensor | None) -> float:
    each = rows.double() if rows.ndim == 1 else rows.double().sum(1)
    return float((each if weight is None else each * weight.double()).sum())


@dataclass(frozen=True)
class SquaredError:
    """Half the squared error, ``f = 1/2 ||output - y||^2``, whose slope is the residual."""

    quadratic: bool = True

    def value(self, output: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """Give half the weighted sum of squared residuals."""
        return 0.5 * _total((output - y).double().square_(), weight)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the residual."""
        return output - y

    def curvature(self, output: Tensor) -> None:
        """Give None: the curvature is 1 everywhere."""
        return None


@dataclass(frozen=True)
class Logistic:
    """The logistic loss for labels 0 and 1, whose slope is ``sigmoid(output) - y``."""

    quadratic: bool = False

    def value(self, output: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """Give the weighted sum of negative log-likelihoods."""
        return _total(torch.nn.functional.softplus(output) - y * output, weight)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the probability less the label."""
        return torch.sigmoid(output) - y

    def curvature(self, output: Tensor) -> Tensor:
        """Give p (1 - p)."""
        p = torch.sigmoid(output)
        return p * (1 - p)


@dataclass(frozen=True)
class CrossEntropy:
    """The cross-entropy of softmax probabilities for one-hot targets, whose slope is ``softmax(output) - y``.

    (The paper prints the slope as the softmax of the difference, which is a slip.)
    """

    quadratic: bool = False

    def value(self, output: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """Give the weighted sum of negative log-likelihoods."""
        return _total(torch.logsumexp(output, 1) - (y * output).sum(1), weight)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the probabilities less the targets."""
        return torch.softmax(output, 1).sub_(y)

    def curvature(self, output: Tensor) -> Tensor:
        """Give p (1 - p): the diagonal of the second derivative, row by row and output by output."""
        p = torch.softmax(output, 1)
        return p * (1 - p)
