"""The paper's method for several outputs: thresholded steps on both layers, ranked by a count sketch.

With ``y = relu(X W) V`` and steps of fixed size eta (appendix A, "Vector-output MLPs", "Count sketching")::

    w   = w + lent                  small random weights for neurons that have none on one side
    g   = gradient of the mean loss with respect to (W, V), by the chain rule, a block of neurons at a time
    S  += lent - eta g              the sketch S keeps a noisy estimate of the whole iterate
    w   = (w - eta g) on the s places with the largest estimates in S, and 0 elsewhere

A neuron without weights on one side passes nothing on, so that nothing could ever be learned about the other:
hence the lending, at the first batch of every pass (at the first step, in full batch).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import StreamingTop
from thresher.linear.sketch import CountSketch
from thresher.linear.vector import SparseVector
from thresher.objective.layered import Held, LayeredObjective
from thresher.solvers.loop import DIVERGED, Iterate, Start, Status

# The authors' step sizes: for cross-entropy, and for a squared error with large and small budgets.
CROSS_ENTROPY, SQUARED, SQUARED_SMALL = 0.001, 0.005, 2.0
# Estimates that are read off the sketch at once.
BLOCK = 2**18


@dataclass(frozen=True)
class ChainIHT:
    """Iterative hard thresholding of a network with one hidden layer and any outputs.

    Attributes
    ----------
    batch : int, optional
        Rows of a step; all by default.
    seed : int
        Seed of the order of rows and of the sketch.
    step_size : float, optional
        The size of all steps; by default the authors'.
    """

    batch: int | None = None
    seed: int = 0
    step_size: float | None = None

    def init(self, objective: LayeredObjective, budget: int, start: Start | None) -> Iterate:
        """Start from nothing, or from a given network."""
        if start is None:
            w = SparseVector.zeros(objective.size, objective.design.dtype)
        else:
            w = start.w.to(objective.design.dtype)
        sketch = CountSketch.for_budget(budget, objective.size, self.seed)
        sketch.add(w.indices, w.values)
        size = self.step_size or authors_step(objective, budget)
        carry = _Run(objective, budget, sketch, size, self._batches(objective.design.rows))
        return Iterate(w, float("inf"), 0.0, carry=carry)

    def step(self, iterate: Iterate) -> Iterate:
        """Take one step."""
        run: _Run = iterate.carry
        rows, lend = next(run.batches)
        w = run.stepped(iterate.w, rows, lend)
        passes = iterate.passes + len(rows) / run.objective.design.rows
        if not bool(torch.isfinite(w.values).all()) or not bool(torch.isfinite(run.sketch.table).all()):
            return replace(run.best or iterate, passes=passes, carry=run, record={"diverged": True})
        loss = (
            run.objective.value(run.objective.hold(w.indices, w.values)) if _whole(passes) else float("nan")
        )
        following = Iterate(w, loss, passes, carry=run, record={"step_size": run.size})
        if run.best is None or loss < run.best.loss:
            run.best = replace(following, carry=None)
        return following

    def stop(self, iterate: Iterate) -> Status | None:
        """Go on until the passes are spent, or the steps have grown beyond all bounds."""
        return DIVERGED if iterate.record.get("diverged") else None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Every iterate is within the budget."""
        return iterate

    def _batches(self, rows: int) -> Iterator[tuple[np.ndarray, bool]]:
        """Give the rows of each step, and whether empty neurons are lent weights."""
        if self.batch is None or self.batch >= rows:
            everything = np.arange(rows)
            yield everything, True
            while True:
                yield everything, False
        epoch = 0
        while True:
            order = np.random.default_rng([self.seed, 2, epoch]).permutation(rows)
            for first in range(0, rows, self.batch):
                yield order[first : first + self.batch], first == 0
            epoch += 1


def authors_step(objective: LayeredObjective, budget: int) -> float:
    """Give the step size that the authors found by hand."""
    if not objective.loss.quadratic:
        return CROSS_ENTROPY
    small = budget < 6 * objective.layout.widths[1] ** 0.536
    return SQUARED_SMALL if small else SQUARED


@dataclass(eq=False)
class _Run:
    """What stays the same from step to step, and the sketch, which does not."""

    objective: LayeredObjective
    budget: int
    sketch: CountSketch
    size: float
    batches: Iterator[tuple[np.ndarray, bool]]
    best: Iterate | None = None

    def stepped(self, w: SparseVector, rows: np.ndarray, lend: bool) -> SparseVector:
        """Take one thresholded step on some rows."""
        objective = self.objective
        held = objective.hold(w.indices, w.values)
        lent = _Lent.to(held) if lend else _Lent.nothing(held)
        X, y, weight = objective.read(rows)
        fed = lent.forward(X, objective.design.factor)
        deltas = lent.deltas(fed, objective.slope(fed[-1], y, weight))
        for indices, values in lent.entries():
            self.sketch.add(indices, values)
        for start, block in self._gradient(fed, deltas):
            self.sketch.add(torch.arange(start, start + block.numel()), block.mul_(-self.size))
        kept = self._largest_estimates()
        chosen = objective.hold(kept, torch.zeros(kept.numel(), dtype=w.values.dtype))
        gradient = torch.empty_like(chosen.values)
        for layer, part in enumerate(chosen.parts):
            gradient[chosen.slices[layer]] = part.gradient(fed[layer], deltas[layer])
        return SparseVector(kept, w.at(kept) + lent.at(kept) - self.size * gradient, objective.size)

    def _gradient(self, fed: list[Tensor], deltas: list[Tensor]) -> Iterator[tuple[int, Tensor]]:
        nothing = torch.zeros(0, dtype=torch.int64)
        for layer in (0, 1):
            yield from self.objective.blocks(layer, fed[layer], deltas[layer], nothing)

    def _largest_estimates(self) -> Tensor:
        size = self.objective.size
        top = StreamingTop(self.budget, size)
        for start in range(0, size, BLOCK):
            top.offer(start, self.sketch.estimate(torch.arange(start, min(start + BLOCK, size))))
        return top.result().indices


@dataclass(frozen=True, eq=False)
class _Lent:
    """A network and what its empty neurons are lent, drawn again from the neuron's number when needed."""

    held: Held
    inner: list[int]
    outer: list[int]

    @classmethod
    def to(cls, held: Held) -> _Lent:
        """Lend to neurons that read no input, and to neurons that no output reads."""
        first, second = held.parts
        readers, read = first.neuron, second.place_of(second.place)
        return cls(held, _empty(readers, first.neurons), _empty(read, second.inputs))

    @classmethod
    def nothing(cls, held: Held) -> _Lent:
        """Lend nothing."""
        return cls(held, [], [])

    def _rows(self) -> Iterator[tuple[int, Tensor]]:
        part = self.held.parts[0]
        for neuron in self.inner:
            yield neuron, _draw(neuron, part.inputs, part.inputs * part.neurons, self.held.values.dtype)

    def _columns(self) -> Iterator[tuple[int, Tensor]]:
        part = self.held.parts[1]
        for neuron in self.outer:
            yield neuron, _draw(neuron, part.neurons, part.inputs * part.neurons, self.held.values.dtype)

    def forward(self, X: Tensor, factor: Tensor | None) -> list[Tensor]:
        """Give what both layers are fed, and the output."""
        (first, second), values, slices = self.held.parts, self.held.values, self.held.slices
        summed = first.forward(values[slices[0]], X)
        for neuron, lent in self._rows():
            summed[:, neuron] += X @ (lent if factor is None else lent * factor[: first.inputs])
        hidden = summed.relu_()
        output = second.forward(values[slices[1]], hidden)
        for neuron, lent in self._columns():
            output += hidden[:, [neuron]] * lent
        return [X, hidden, output]

    def deltas(self, fed: list[Tensor], slope: Tensor) -> list[Tensor]:
        """Give the derivatives with respect to the sums of both layers."""
        delta = self.held.parts[1].back(slope)
        for neuron, lent in self._columns():
            delta[:, neuron] += slope @ lent
        return [delta.mul_(fed[1] > 0), slope]

    def entries(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Give the places of what is lent, and its values."""
        layout = self.held.layout
        for neuron, lent in self._rows():
            yield neuron * layout.shapes[0][1] + torch.arange(lent.numel()), lent
        for neuron, lent in self._columns():
            yield layout.offsets[1] + neuron + layout.shapes[1][1] * torch.arange(lent.numel()), lent

    def at(self, kept: Tensor) -> Tensor:
        """Read what is lent at some places, ascending."""
        out = torch.zeros(kept.numel(), dtype=self.held.values.dtype)
        for indices, values in self.entries():
            place = torch.searchsorted(kept, indices).clamp_(max=max(0, kept.numel() - 1))
            if kept.numel():
                found = kept[place] == indices
                out[place[found]] = values[found]
        return out


def _empty(taken: Tensor, count: int) -> list[int]:
    free = torch.ones(count, dtype=torch.bool)
    free[taken] = False
    return [int(neuron) for neuron in free.nonzero().flatten()]


def _draw(neuron: int, count: int, size: int, dtype: torch.dtype) -> Tensor:
    """Draw what a neuron is lent: uniform in +-1/sqrt(size of its matrix), by the neuron's number."""
    draws = torch.rand(count, generator=torch.Generator().manual_seed(neuron), dtype=torch.float64)
    return ((2 * draws - 1) / size**0.5).to(dtype)


def _whole(passes: float) -> bool:
    return abs(passes - round(passes)) < 1e-9
