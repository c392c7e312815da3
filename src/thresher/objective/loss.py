"""What is minimised, row by row, as a function of the network's output: value, slope, curvature.

Outputs, and targets that are numbers, have shape (rows, outputs); classes are codes of shape (rows, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from thresher.errors import DataError, ParameterError

# The least share that is made a logarithm of: a class without rows is unlikely, not impossible.
SMALLEST_SHARE = 1e-9

# Beyond this output exp goes on as a straight line, so that no step of a search overflows: exp(40) is 2e17,
# more than any count, and its square fits into float32.
LARGEST_LOG = 40.0

# Steps of the best constant under Huber's loss; each shrinks the error to the share of rows beyond the
# threshold, one in five or so.
HUBER_STEPS = 50


class Loss(Protocol):
    """A smooth convex function of a row's outputs, given its targets."""

    name: ClassVar[str]
    """The word a user asks for it by."""
    link: ClassVar[str]
    """What turns outputs into predictions: "identity", "logistic", "softmax" or "log" (prediction = exp)."""
    quadratic: ClassVar[bool] = False
    """Whether the second-order model is exact."""

    def value(self, output: Tensor, y: Tensor) -> Tensor:  # (rows,)
        """Give the loss of each row, summed over its outputs, in float64: never below 0, which is perfect."""
        ...

    def slope(self, output: Tensor, y: Tensor) -> Tensor:  # (rows, outputs)
        """Give the derivative with respect to the output, in the output's precision."""
        ...

    def scaled(
        self,
        output: Tensor,
        y: Tensor,
        J: Tensor,  # (rows, outputs, k)
    ) -> Tensor:  # (rows, outputs, k)
        """Multiply derivatives of the output by a root of the loss's second derivative R'R.

        The sum over rows and outputs of ``scaled.T @ scaled`` is the (generalised Gauss-Newton) curvature of
        the loss with respect to the k parameters that `J` differentiates by. The result may be `J` itself.
        """
        ...

    def constant(
        self,
        y: Tensor,
        share: Tensor,  # (rows,)
    ) -> Tensor:  # (outputs,)
        """Give the output, the same for all rows, that minimises the mean loss; rows' shares sum to 1."""
        ...

    def check(self, y: np.ndarray) -> None:  # (rows,) or (rows, outputs)
        """Refuse targets that the loss is not made for, in a sentence; by default none."""
        return None


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared error, ``1/2 (output - y)^2``."""

    name: ClassVar[str] = "squared"
    link: ClassVar[str] = "identity"
    quadratic: ClassVar[bool] = True

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """Give half the squared residuals."""
        return 0.5 * (output.double() - y.double()).square().sum(1)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the residual."""
        return output - y.to(output.dtype)

    def scaled(self, output: Tensor, y: Tensor, J: Tensor) -> Tensor:
        """Give J itself: the second derivative is the identity."""
        return J

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        """Give the mean."""
        return _mean(y, share)


@dataclass(frozen=True)
class Huber(Loss):
    """Half the squared error of small residuals; beyond a threshold it grows as their size only.

    Parameters
    ----------
    threshold : float
        In units of a robust spread of y, by which the caller has divided. With 1.35, 95 % of the precision of
        the squared error is kept if errors are normal.

    References
    ----------
    Huber (1964), Robust estimation of a location parameter, Annals of Mathematical Statistics 35.
    """

    threshold: float = 1.35

    name: ClassVar[str] = "huber"
    link: ClassVar[str] = "identity"

    def __post_init__(self) -> None:
        given: Any = self.threshold
        number = isinstance(given, Real) and not isinstance(given, (bool, np.bool_))
        if not (number and 0 < given < math.inf):
            raise ParameterError(
                f"threshold={given!r}, but Huber's loss needs a number above 0, such as 1.35: errors beyond "
                "it count by their size, not by their square."
            )

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """Give half the square up to the threshold, and its tangent beyond."""
        size = (output.double() - y.double()).abs()
        inside = size.clamp(max=self.threshold)
        return (inside * (size - 0.5 * inside)).sum(1)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the residual, clipped."""
        return (output - y.to(output.dtype)).clamp_(-self.threshold, self.threshold)

    def scaled(self, output: Tensor, y: Tensor, J: Tensor) -> Tensor:
        """Take 1 up to the threshold, and threshold / abs(residual) beyond, as reweighted least squares do.

        The second derivative beyond is 0, which would leave Newton's equations singular; the parabola of this
        curvature touches the loss and lies above it, so that a step down the one is a step down the other.
        """
        return self._weight(output - y.to(output.dtype)).sqrt_().to(J.dtype)[..., None] * J

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        """Reweight the mean, beginning at the median."""
        y, part = y.double(), share.double()[:, None]
        constant = _median(y, part)
        for _ in range(HUBER_STEPS):
            weight = part * self._weight(y - constant)
            constant = (weight * y).sum(0) / weight.sum(0)
        return constant

    def _weight(self, residual: Tensor) -> Tensor:
        return self.threshold / residual.abs().clamp_(min=self.threshold)


@dataclass(frozen=True)
class Poisson(Loss):
    """Half the deviance of counts whose mean is exp(output): ``exp(output) - y output - y + y log y``.

    It is minus the log-likelihood, less what no prediction can avoid. (Counts need not be whole: rates and
    amounts with zeros will do.)
    """

    name: ClassVar[str] = "poisson"
    link: ClassVar[str] = "log"

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """Give half the deviance; beyond the largest output it goes on as a straight line."""
        output, y = output.double(), y.double()
        capped = output.clamp(max=LARGEST_LOG)
        mean = capped.exp() * (1 + (output - capped))
        # Rounding of large counts must not lead below zero, where no loss is a share of another.
        return (mean - y * output + torch.xlogy(y, y) - y).clamp_(min=0).sum(1)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the predicted mean less the count."""
        return output.clamp(max=LARGEST_LOG).exp_() - y.to(output.dtype)

    def scaled(self, output: Tensor, y: Tensor, J: Tensor) -> Tensor:
        """Take the root of the predicted mean, which is the variance as well."""
        return (0.5 * output.clamp(max=LARGEST_LOG)).exp_().to(J.dtype)[..., None] * J

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        """Give the logarithm of the mean."""
        return _mean(y, share).clamp(min=SMALLEST_SHARE).log()

    def check(self, y: np.ndarray) -> None:
        """Refuse counts below 0, columns of nothing but 0, and counts beyond what exp may reach."""
        counts = y.reshape(len(y), -1)
        least, most = float(counts.min()), float(counts.max())
        if least < 0:
            raise DataError(
                f"y holds {least:.6g}, but loss='poisson' is for counts of 0 or more. Use another loss."
            )
        if not counts.any(axis=0).all():
            raise DataError(
                "y holds only zeros, but loss='poisson' takes the logarithm of each target's mean. "
                "Give rows with counts."
            )
        if most > math.exp(LARGEST_LOG):
            raise DataError(
                f"y holds {most:.3g}, but loss='poisson' takes counts up to {math.exp(LARGEST_LOG):.0g}. "
                "Divide y by a unit."
            )


@dataclass(frozen=True)
class Logistic(Loss):
    """Minus the log-likelihood of labels 0 and 1 whose log-odds are the output."""

    name: ClassVar[str] = "logistic"
    link: ClassVar[str] = "logistic"

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """Give log(1 + exp(output)) - y output."""
        output = output.double()
        return (torch.nn.functional.softplus(output) - y.double() * output).sum(1)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the probability of 1 less the label."""
        return torch.sigmoid(output).sub_(y.to(output.dtype))

    def scaled(self, output: Tensor, y: Tensor, J: Tensor) -> Tensor:
        """Take the root of p (1 - p)."""
        # 1 - p as a sigmoid of its own: near 1 the difference would be lost to rounding.
        return (torch.sigmoid(output) * torch.sigmoid(-output)).sqrt_().to(J.dtype)[..., None] * J

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        """Give the log-odds of the mean, clipped where there is one label only."""
        return torch.logit(_mean(y, share), eps=SMALLEST_SHARE)

    def check(self, y: np.ndarray) -> None:
        """Refuse labels other than 0 and 1."""
        others = y[(y != 0) & (y != 1)]
        if others.size:
            raise DataError(
                f"y holds {others[0]:.6g}, but the logistic loss is for labels 0 and 1. Encode the labels."
            )


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Minus the log-likelihood of one class of several, whose probabilities are the softmax of the outputs.

    Targets are codes 0, 1, ... as int64 of shape (rows, 1), since a column for each class would multiply
    their memory by the number of classes; or the probabilities of all classes, (rows, classes), as a teacher
    gives them.

    Parameters
    ----------
    classes : int
        How many there are, which is the number of outputs; some rows may hold fewer.
    """

    classes: int

    name: ClassVar[str] = "cross-entropy"
    link: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        given: Any = self.classes
        if not (isinstance(given, Integral) and int(given) >= 2):
            raise ParameterError(f"classes={given!r}, but the cross-entropy needs 2 or more of them.")

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """Give minus the logarithm of the probability of each row's class."""
        output = output.double()
        of_class = (output * y).sum(1) if y.is_floating_point() else output.gather(1, y)[:, 0]
        return torch.logsumexp(output, 1) - of_class

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give the probabilities, less 1 for the row's class or less what its targets are."""
        p = torch.softmax(output, 1)
        if y.is_floating_point():
            return p.sub_(y.to(p.dtype))
        return p.scatter_add_(1, y, -torch.ones_like(p[:, :1]))

    def scaled(self, output: Tensor, y: Tensor, J: Tensor) -> Tensor:
        """Give sqrt(p_c) (J_c - sum_j p_j J_j), whose squares sum to J' (diag(p) - p p') J."""
        p = torch.softmax(output, 1).to(J.dtype)[..., None]
        return p.sqrt() * (J - (p * J).sum(1, keepdim=True))

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        """Give the logarithms of the classes' shares, less their mean: softmax does not see what all have."""
        share = share.double()
        if y.is_floating_point():
            shares = _mean(y, share)
        else:
            shares = share.new_zeros(self.classes).index_add_(0, y[:, 0], share)
        logarithms = shares.clamp(min=SMALLEST_SHARE).log()
        return logarithms - logarithms.mean()

    def check(self, y: np.ndarray) -> None:
        """Refuse what is not the code of a class."""
        others = y[(y < 0) | (y >= self.classes) | (y != np.floor(y))]
        if others.size:
            raise DataError(
                f"y holds {others[0]:.6g}, but the cross-entropy is for codes from 0 to {self.classes - 1}. "
                "Encode the labels."
            )


def refuse_misshapen(loss: Loss, y: Tensor, outputs: int) -> None:  # y: (rows, targets)
    """Refuse a loss whose parts do not have the shapes that are asked of them, naming the part."""
    rows = len(y)
    dtype = y.dtype if y.is_floating_point() else torch.float64
    output, share = (
        torch.zeros(rows, outputs, dtype=dtype),
        torch.full((rows,), 1 / max(1, rows), dtype=dtype),
    )
    asked: list[tuple[str, Callable[[], Any], tuple[int, ...]]] = [
        ("value", lambda: loss.value(output, y), (rows,)),
        ("slope", lambda: loss.slope(output, y), (rows, outputs)),
        ("scaled", lambda: loss.scaled(output, y, output[:, :, None].clone()), (rows, outputs, 1)),
        ("constant", lambda: loss.constant(y, share), (outputs,)),
    ]
    for part, call, shape in asked:
        try:
            came = call()
        except (RuntimeError, TypeError, IndexError) as error:
            raise ParameterError(
                f"{part} of loss={loss!r} cannot work on outputs of shape {rows, outputs} and targets of "
                f"shape {tuple(y.shape)}: {error}. Give a tensor of shape {shape}."
            ) from error
        if not isinstance(came, Tensor) or tuple(came.shape) != shape:
            is_now = f"shape {tuple(came.shape)}" if isinstance(came, Tensor) else type(came).__name__
            raise ParameterError(
                f"{part} of loss={loss!r} gives {is_now}, but for outputs of shape {rows, outputs} it must "
                f"give a tensor of shape {shape}."
            )


def expected(loss: Loss, output: Tensor) -> Tensor:  # (rows, outputs), twice
    """Give what outputs say of the targets: their mean, or the probability of each class."""
    if loss.link == "logistic":
        return torch.sigmoid(output)
    if loss.link == "softmax":
        return torch.softmax(output, 1)
    return output.clamp(max=LARGEST_LOG).exp() if loss.link == "log" else output


def _mean(y: Tensor, share: Tensor) -> Tensor:  # (outputs,)
    return share.double() @ y.double()


def _median(y: Tensor, part: Tensor) -> Tensor:  # (rows, outputs), (rows, 1) -> (outputs,)
    """Give the least target of each output that half of all shares do not exceed."""
    ascending, order = y.sort(0)
    below = part[:, 0][order].cumsum(0) < 0.5
    place = below.sum(0, keepdim=True).clamp(max=len(y) - 1)
    return ascending.gather(0, place)[0]
