"""The part of a problem that minibatch training works on: some features, all rows, in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from thresher.objective.design import Design
from thresher.objective.linear import Objective
from thresher.objective.losses import Loss

# Rows below which one step takes all of them: the answer then depends neither on their order nor on repeats.
FULL_BATCH = 128


@dataclass(eq=False)
class Working:
    """Rows and targets restricted to a working set of features, as the operator sees them (scaled).

    Parameters
    ----------
    design : Design
    features : int64 tensor of shape (k,)
        The working set, ascending.
    y, weight, loss
        As in the objective; weights average to one.
    memory_limit : int
        Bytes a copy of the working columns may take; otherwise they are read batch by batch.
    seed : int
        Order of the rows.
    total : float
        What all sample weights add up to.
    """

    design: Design
    features: Tensor
    y: Tensor
    weight: Tensor | None
    loss: Loss
    memory_limit: int
    seed: int
    total: float
    passes: float = field(default=0.0, init=False)

    @classmethod
    def of(cls, objective: Objective, features: Tensor, memory_limit: int, seed: int) -> Working:
        """Take the working set from an objective on a gated operator."""
        weight, total = objective.weight, float(objective.operator.rows)
        if weight is not None:
            total = float(weight.double().sum())
            weight = weight / weight.mean()
        design = objective.operator.design  # type: ignore[attr-defined]
        return cls(design, features, objective.y, weight, objective.loss, memory_limit, seed, total)

    def __post_init__(self) -> None:
        number = torch.finfo(self.design.dtype).bits // 8
        fits = number * self.rows * self.features.numel() <= self.memory_limit
        self._copy = self._read(slice(0, self.rows)) if fits else None
        self._order = np.random.default_rng([self.seed, 1]).permutation(self.rows)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.design.rows

    @property
    def width(self) -> int:
        """Features in the working set."""
        return self.features.numel()

    def batch_size(self, wanted: int | str | None) -> int:
        """Turn the user's wish into rows of a batch."""
        if wanted is None or self.rows < FULL_BATCH:
            return self.rows
        if wanted == "auto":
            return 32 if self.rows < 5000 else 100
        return min(int(wanted), self.rows)

    def batches(self, size: int, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Go through all rows once, in an order fixed by the seed and the epoch."""
        if size >= self.rows:
            yield self.sample(self.rows)
            return
        order = np.random.default_rng([self.seed, 2, epoch]).permutation(self.rows)
        rows = torch.from_numpy(order)
        for start in range(0, self.rows - size + 1, size):
            part = slice(start, start + size)
            yield (
                # A batch at a time: it stays in cache, and all rows in another order would be a second copy.
                self._read(order[part]) if self._copy is None else self._copy[rows[part]],
                self.y[rows[part]],
                None if self.weight is None else self.weight[rows[part]],
            )

    def sample(self, rows: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Give the same random rows every time, or all of them in their order."""
        if rows >= self.rows:
            X = self._read(slice(0, self.rows)) if self._copy is None else self._copy
            return X, self.y, self.weight
        chosen = self.chosen(rows)
        places = torch.from_numpy(chosen)
        X = self._read(chosen) if self._copy is None else self._copy[places]
        return X, self.y[places], None if self.weight is None else self.weight[places]

    def chosen(self, rows: int) -> np.ndarray:
        """Give the numbers of the rows that `sample` takes, ascending."""
        return np.sort(self._order[:rows])

    def _read(self, rows: np.ndarray | slice) -> Tensor:
        if isinstance(rows, slice):
            parts = []
            for start, stop, chunk in self.design.chunks(self.width):
                del start, stop
                parts.append(self.design.gather(chunk, self.features))
            return torch.cat(parts)
        part = self.design.take(rows)
        return part.gather(part.chunk(0, len(rows)), self.features)
