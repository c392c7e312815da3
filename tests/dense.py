"""ReLU networks written out in torch for autograd: the truth that fast products must meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Huber, Logistic, Loss, Poisson, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point


def dense_network(
    layout: Layout,
    point: Point,
    absolute: bool = False,
    X: Tensor | None = None,
) -> Callable[[Tensor], Tensor]:
    """Give the outputs on rows X as a function of the values held, every block a dense matrix."""
    assert X is not None

    def outputs(values: Tensor) -> Tensor:  # (rows, outputs)
        whole = torch.zeros(layout.size, dtype=values.dtype).index_put((point.w.indices,), values)
        blocks = []
        for number, (neurons, places) in enumerate(layout.shapes):
            grid = whole[layout.offsets[number] : layout.offsets[number + 1]].view(neurons, places)
            inputs = layout.inputs[number]
            bias = grid[:, inputs] if places > inputs else torch.zeros(neurons, dtype=values.dtype)
            blocks.append((grid[:, :inputs], bias))
        fed = X
        for weights, bias in blocks[: layout.layers - 1]:
            summed = fed @ weights.T + bias
            fed = summed.abs() if absolute else summed.relu()
        weights, bias = blocks[layout.layers - 1]
        if layout.fused:
            assert point.signs is not None
            out = (fed @ point.signs)[:, None] + bias
        else:
            out = fed @ weights.T + bias
        return out + X @ blocks[-1][0].T if layout.direct else out

    return outputs


def random_point(layout: Layout, density: float, seed: int, dtype: torch.dtype = torch.float64) -> Point:
    """Hold a share of all places, with normal values, so that no sum of theirs is at a kink."""
    random = np.random.default_rng(seed)
    held = np.flatnonzero(random.random(layout.size) < density)
    values = torch.from_numpy(random.standard_normal(len(held))).to(dtype)
    signs = torch.from_numpy(random.choice([-1.0, 1.0], layout.widths[-2])).to(dtype)
    w = SparseVector(torch.from_numpy(held), values, layout.size)
    return Point(w, signs if layout.fused else None)


@dataclass(frozen=True)
class NetworkCase:
    """A kind of network and a loss, with rows to try them on."""

    widths: tuple[int, ...]
    loss: Loss = field(default_factory=SquaredError)
    bias: bool = True
    fused: bool = False
    direct: bool = False
    absolute: bool = False
    weighted: bool = False
    density: float = 0.6

    def __str__(self) -> str:
        parts = [self.loss.name, "-".join(map(str, self.widths))]
        parts += [name for name in ("fused", "direct", "absolute", "weighted") if getattr(self, name)]
        return " ".join([*parts, *([] if self.bias else ["no bias"]), f"{self.density:g}"])

    @property
    def layout(self) -> Layout:
        """Where its weights can be."""
        return Layout(self.widths, self.bias, self.fused, self.direct)

    def rows(self, count: int = 40, seed: int = 0) -> tuple[np.ndarray, Tensor, Tensor | None]:
        """Draw inputs, targets that the loss is made for, and weights where rows have some."""
        random = np.random.default_rng(seed)
        X = random.standard_normal((count, self.widths[0])).astype(np.float32).astype(np.float64)
        outputs = self.widths[-1]
        y: np.ndarray = 2 * random.standard_normal((count, outputs))
        if self.loss.name == "poisson":
            y = random.poisson(2.0, (count, outputs)).astype(np.float64)
        elif self.loss.name == "logistic":
            y = random.integers(0, 2, (count, outputs)).astype(np.float64)
        elif self.loss.name == "cross-entropy":
            y = random.integers(0, outputs, (count, 1))
        weight = torch.from_numpy(random.integers(0, 4, count).astype(np.float64)) if self.weighted else None
        return X, torch.from_numpy(y), weight

    def objective(
        self, count: int = 40, seed: int = 0, dtype: torch.dtype = torch.float64, alpha: float = 0.0
    ) -> Relu:
        """Give the objective on those rows."""
        X, y, weight = self.rows(count, seed)
        data = Data(X, y, weight, dtype=dtype)
        return Relu(data, self.layout, self.loss, alpha, absolute=self.absolute)

    def point(self, seed: int = 0, dtype: torch.dtype = torch.float64) -> Point:
        """Draw a network."""
        return random_point(self.layout, self.density, seed, dtype)


CASES = [
    NetworkCase((4, 3, 1), fused=True),
    NetworkCase((4, 3, 1), fused=True, direct=True, weighted=True),
    NetworkCase((4, 3, 1), fused=True, direct=True, density=1.0),
    NetworkCase((4, 3, 1), fused=True, bias=False, absolute=True),
    NetworkCase((4, 3, 1), fused=True, absolute=True, direct=True, density=1.0),
    NetworkCase((4, 3, 2), direct=True),
    NetworkCase((4, 3, 2), bias=False, density=1.0),
    NetworkCase((4, 5, 3, 1), fused=True, direct=True),
    NetworkCase((4, 5, 3, 2), direct=True, weighted=True),
    NetworkCase((4, 5, 4, 3, 2), density=0.8),
    NetworkCase((4, 5, 4, 3, 1), fused=True, absolute=True, density=0.8),
    NetworkCase((4, 3)),
    NetworkCase((4, 3, 1), Huber(0.7), fused=True, direct=True),
    NetworkCase((4, 5, 3, 2), Huber(0.7), weighted=True),
    NetworkCase((4, 3, 1), Poisson(), fused=True, direct=True, weighted=True),
    NetworkCase((4, 3, 2), Poisson(), direct=True),
    NetworkCase((4, 3, 1), Logistic(), fused=True, direct=True),
    NetworkCase((4, 5, 3, 1), Logistic(), fused=True),
    NetworkCase((4, 5, 3), CrossEntropy(3), direct=True),
    NetworkCase((4, 5, 4, 3), CrossEntropy(3), weighted=True),
    NetworkCase((4, 5, 3), CrossEntropy(3), density=0.15),
    NetworkCase((300, 3, 1), fused=True, direct=True, density=0.01),
]
