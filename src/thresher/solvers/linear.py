"""Linear models with few weights, by an L1 penalty: what a network has to beat where rows are few and noisy.

The penalty shrinks as it selects, and that is what makes it hard to beat on noisy data: a search for the best
support of a given size fits the noise, the more so the more supports there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from thresher.solvers.settle import Rows, factor

# Along the path the penalty falls by this factor, down to this share of the one that leaves nothing.
FALL, LEAST = 0.8, 1e-3
# The last fall is made in this many steps.
FINER = 4
# Newton steps for one penalty, and weights that may enter between two of them.
STEPS, ENTERING = 100, 5
# What counts as no step, and as no violation of optimality (gradients may be in float32).
TOLERANCE, SLACK = 1e-4, 1e-5


@dataclass(frozen=True, eq=False)
class Line:
    """A linear function of the working features.

    Attributes
    ----------
    features : int64 tensor of shape (k,)
    slopes : tensor of shape (k,)
    constant : float
    penalty : float
        The L1 penalty for each row, on slopes in units of the features' spread, at which it was found.
    """

    features: Tensor
    slopes: Tensor
    constant: float
    penalty: float = 0.0

    @property
    def nonzeros(self) -> int:
        """Slopes held; the constant comes on top."""
        return self.features.numel()

    def output(self, X: Tensor) -> Tensor:
        """Evaluate on rows."""
        return X[:, self.features].double() @ self.slopes + self.constant

    def towards(self, other: Line, share: float) -> Line:
        """Go a share of the way to another line on the same features."""
        slopes = self.slopes + share * (other.slopes - self.slopes)
        constant = self.constant + share * (other.constant - self.constant)
        return Line(self.features, slopes, constant, self.penalty)


@dataclass(eq=False)
class Lasso:
    """An L1-penalised linear fit, penalty after penalty.

    Slopes are those of columns of spread 1, centred where there is a constant; the constant is free. For
    each penalty, Newton steps are taken on a support whose signs are held: a slope that would change its sign
    stops at zero and leaves, and what violates optimality most enters (the feature-sign search of Lee and
    others, 2006).

    Attributes
    ----------
    rows : Rows
        With `bias`, the last column is constant.
    bias : bool
    """

    rows: Rows
    bias: bool

    def __post_init__(self) -> None:
        X = self.rows.X[:, :-1] if self.bias else self.rows.X
        share = torch.ones(len(X), dtype=X.dtype) if self.rows.weight is None else self.rows.weight
        self.share = share.double() / float(share.double().sum())
        self.X, self.y, self.loss = X, self.rows.y.double(), self.rows.loss
        self.mean = (share @ X / share.sum()).double() if self.bias else torch.zeros(X.shape[1]).double()
        square = (share @ X.square() / share.sum()).double()
        spread = (square - self.mean.square()).clamp_(min=0).sqrt_()
        self.spread = torch.where(spread > 1e-6 * square.sqrt(), spread, math.inf)
        self.support = torch.zeros(0, dtype=torch.int64)
        self.values = torch.zeros(1, dtype=torch.float64)  # the constant, and a slope for each of the support

    def path(self, most: int) -> Iterator[Line]:
        """Fit at falling penalties, while there are no more than `most` slopes; the first line has none."""
        penalty = strongest = float(self._gradient(self._start()).abs().max())
        while penalty >= LEAST * strongest:
            line = self.fit(penalty)
            if line.nonzeros > most:
                yield from self._last(penalty / FALL, most)
                return
            yield line
            if strongest == 0:
                return
            penalty *= FALL

    def _last(self, penalty: float, most: int) -> Iterator[Line]:
        """Go on in smaller steps from the last penalty that left few enough."""
        for _ in range(FINER - 1):
            penalty *= FALL ** (1 / FINER)
            line = self.fit(penalty)
            if line.nonzeros > most:
                return
            yield line

    def fit(self, penalty: float) -> Line:
        """Fit at one penalty, from the fit before."""
        entering = ENTERING
        signs = self.values[1:].sign()
        for _ in range(STEPS):
            columns = self._columns(self.support)
            step = self._newton(columns, self.values, penalty * signs)
            wrong = (self.values[1:] == 0) & (step[1:] * signs < 0)
            if bool(wrong.any()):
                signs, entering = self._keep(~wrong, signs), 1
                continue
            length = self._length(columns, step, penalty, signs)
            moved = self.values + length * step
            crossed = (moved[1:] * signs <= 1e-12 * step[1:].abs()) & (self.values[1:] != 0)
            self.values = moved
            if bool(crossed.any()):
                signs = self._keep(~crossed, signs)
            elif self._settled(step, self.values):
                signs, done = self._enter(penalty, signs, entering)
                if done:
                    break
        slopes = self.values[1:] / self.spread[self.support]
        constant = float(self.values[0] - slopes @ self.mean[self.support])
        order = torch.argsort(self.support)
        return Line(self.support[order], slopes[order], constant, penalty)

    def refit(self, line: Line, ridge: float) -> Line:
        """Fit the slopes of a line anew without the L1 penalty, under a small L2 penalty for each row."""
        columns = self._columns(line.features)
        values = torch.cat([torch.zeros(1, dtype=torch.float64), line.slopes * self.spread[line.features]])
        values[0] = line.constant + float(line.slopes @ self.mean[line.features])
        for _ in range(20):
            step = self._newton(columns, values, ridge * values[1:], ridge)
            values = values + step
            if self._settled(step, values):
                break
        slopes = values[1:] / self.spread[line.features]
        return Line(line.features, slopes, float(values[0] - slopes @ self.mean[line.features]), line.penalty)

    def _settled(self, step: Tensor, values: Tensor) -> bool:
        """Say whether another step would change nothing; a whole one on a squared error is exact."""
        return self.loss.quadratic or float(step.abs().max()) <= TOLERANCE * (1 + float(values.abs().max()))

    def _start(self) -> Tensor:
        """Fit the constant alone; gives the outputs."""
        for _ in range(20 * self.bias):
            step = self._newton(self._columns(self.support), self.values, self.values[1:])
            self.values = self.values + step
        return self.values[0].expand(len(self.y))

    def _columns(self, features: Tensor) -> Tensor:  # (rows, 1 + features)
        centred = (self.X[:, features].double() - self.mean[features]) / self.spread[features]
        first = torch.full((len(centred), 1), float(self.bias), dtype=torch.float64)
        return torch.cat([first, centred], 1)

    def _newton(self, columns: Tensor, values: Tensor, penalty: Tensor, ridge: float = 0.0) -> Tensor:
        output = columns @ values
        slope, curvature = self.loss.slope(output, self.y) * self.share, self.loss.curvature(output)
        weight = self.share if curvature is None else curvature * self.share
        gradient = columns.T @ slope
        gradient[1:] += penalty
        H = columns.T @ (columns * weight[:, None])
        H.diagonal()[1:] += ridge
        if not self.bias:
            H[0, 0] = 1.0
        return -torch.cholesky_solve(gradient[:, None], factor(H))[:, 0]

    def _gradient(self, output: Tensor) -> Tensor:  # (features,)
        slope = self.loss.slope(output, self.y) * self.share
        raw = (slope.to(self.X.dtype) @ self.X).double() - self.mean * float(slope.sum())
        return raw / self.spread

    def _length(self, columns: Tensor, step: Tensor, penalty: float, signs: Tensor) -> float:
        """Go as far as the first change of sign, and no farther than the objective falls."""
        values, ahead = self.values[1:], self.values[1:] + step[1:]
        crossing = (ahead * signs < 0) & (values != 0)
        length = float((values / (values - ahead))[crossing].min()) if bool(crossing.any()) else 1.0
        if self.loss.quadratic:
            return length

        def value(length: float) -> float:
            trial = self.values + length * step
            return self.loss.value(columns @ trial, self.y, self.share) + penalty * float(
                trial[1:].abs().sum()
            )

        now = value(0.0)
        while length > 1e-3 and value(length) > now:
            length /= 2
        return length

    def _keep(self, kept: Tensor, signs: Tensor) -> Tensor:
        self.support = self.support[kept]
        self.values = torch.cat([self.values[:1], self.values[1:][kept]])
        return signs[kept]

    def _enter(self, penalty: float, signs: Tensor, most: int) -> tuple[Tensor, bool]:
        """Let those enter that violate optimality most; says whether there were none."""
        gradient = self._gradient(self._columns(self.support) @ self.values)
        gradient[self.support] = 0
        excess = gradient.abs() - penalty * (1 + SLACK)
        new = torch.argsort(excess, descending=True, stable=True)[:most]
        new = new[excess[new] > 0]
        self.support = torch.cat([self.support, new])
        self.values = torch.cat([self.values, torch.zeros(new.numel(), dtype=torch.float64)])
        return torch.cat([signs, -gradient[new].sign()]), new.numel() == 0
