"""A loss of one's own: guesses that are too low cost nine times as much as guesses that are too high.

python examples/own_loss.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from thresher import SparseMLPRegressor


@dataclass(frozen=True)
class Expectile:
    """``1/2 |level - [output > y]| (output - y)^2``: the squared error with two prices."""

    level: float = 0.9
    name: ClassVar[str] = "expectile"
    link: ClassVar[str] = "identity"  # outputs are predictions
    quadratic: ClassVar[bool] = False  # so that Newton steps are repeated

    def _price(self, residual: Tensor) -> Tensor:
        return torch.where(residual > 0, 1 - self.level, self.level).to(residual.dtype)

    def value(self, output: Tensor, y: Tensor) -> Tensor:  # (rows,)
        """Give the loss of each row, in float64."""
        return 0.5 * (self.slope(output.double(), y.double()) * (output.double() - y.double())).sum(1)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:  # (rows, outputs)
        """Give its derivative with respect to the output."""
        return self._price(output - y) * (output - y)

    def scaled(self, output: Tensor, y: Tensor, J: Tensor) -> Tensor:  # (rows, outputs, k)
        """Multiply derivatives of the output by the root of the second derivative."""
        return self._price(output - y).sqrt().to(J.dtype)[..., None] * J

    def constant(self, y: Tensor, share: Tensor) -> Tensor:  # (outputs,)
        """Give the best constant by reweighted means."""
        best = share @ y
        for _ in range(50):
            weight = self._price(best - y) * share[:, None]
            best = (weight * y).sum(0) / weight.sum(0)
        return best

    def check(self, y: np.ndarray) -> None:
        """Accept any number."""


if __name__ == "__main__":
    X = np.random.default_rng(0).uniform(0, 10, (2000, 3))
    y = 2 * np.maximum(X[:, 0] - 4, 0) + np.random.default_rng(1).standard_normal(2000)
    for loss in ("squared", Expectile()):
        model = SparseMLPRegressor(budget=6, hidden=4, loss=loss, random_state=0).fit(X, y)
        print(f"too low on {np.mean(model.predict(X) < y):.0%} of rows: {model.network_.formula()}")
