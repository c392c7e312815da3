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

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.errors import ParameterError
from thresher.linear.budget import StreamingTop
from thresher.linear.sketch import CountSketch
from thresher.linear.vector import SparseVector
from thresher.objective.block import Block, threshold_backward
from thresher.objective.data import Batch
from thresher.objective.layout import Layout
from thresher.objective.relu import Relu
from thresher.objective.running import Point, Running
from thresher.objective.sparse import places_among
from thresher.solvers.journal import State
from thresher.solvers.loop import OPTIONS, Iterate, Needs, Start
from thresher.solvers.status import DIVERGED, Status

# The authors' step sizes: for cross-entropy, and for a squared error with large and small budgets.
CROSS_ENTROPY, SQUARED, SQUARED_SMALL = 0.001, 0.005, 2.0
# Estimates that are read off the sketch at once.
BLOCK = 2**18


@dataclass(frozen=True)
class ChainIHT:
    """Iterative hard thresholding of a network with one hidden layer and any outputs.

    Its answer is the last iterate (``keep="last"`` of the loop), so that held-out rows choose nothing and
    early stopping is not among its options. A penalty counts in the loss that it tells, not in its steps.

    Attributes
    ----------
    batch_size : int, optional
        Rows of a step; all by default.
    seed : int
        Seed of the order of rows and of the sketch.
    step_size : float, optional
        The size of all steps; by default the authors'.
    """

    batch_size: int | None = None
    seed: int = 0
    step_size: float | None = None

    needs: ClassVar[Needs] = Needs(kind="relu", hidden_layers=1, options=OPTIONS - {"early_stopping"})

    def init(self, objective: Relu, budget: int, start: Start | None) -> Iterate:
        """Start from nothing, or from a given network."""
        _refuse(objective.layout)
        dtype = objective.data.dtype
        w = SparseVector.zeros(objective.size, dtype) if start is None else start.w.to(dtype)
        sketch = CountSketch.for_budget(budget, objective.size, self.seed)
        sketch.add(w.indices, w.values)
        size = authors_step(objective, budget) if self.step_size is None else self.step_size
        carry = _Run(objective, budget, sketch, size, self.batch_size or objective.data.rows, self.seed)
        return Iterate(w, math.inf, 0.0, carry=carry)

    def step(self, iterate: Iterate) -> Iterate:
        """Take one step."""
        run: _Run = iterate.carry
        w, passes = run.stepped(iterate.w), run.passes
        if not bool(torch.isfinite(w.values).all()) or not bool(torch.isfinite(run.sketch.table).all()):
            return replace(run.best or iterate, passes=passes, carry=run, record={}, status=DIVERGED)
        loss = run.objective.value(Point(w)) if passes == round(passes) else math.nan
        found = Iterate(w, loss, passes, record={"step_size": run.size})
        # Between passes the loss is not known: any known one is better.
        better = run.best is None or math.isnan(run.best.loss) or loss < run.best.loss
        return replace(found, carry=replace(run, step=run.step + 1, best=found if better else run.best))

    def stop(self, iterate: Iterate) -> Status | None:
        """Go on until the passes are spent."""
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Every iterate is within the budget."""
        return iterate

    def save(self, iterate: Iterate) -> State:
        """Give the weights, the sketch, the steps and the best iterate so far."""
        run: _Run = iterate.carry
        best = None if run.best is None else [run.best.w, run.best.loss, run.best.passes]
        return {"w": iterate.w, "table": run.sketch.table, "step": run.step, "best": best}

    def load(self, first: Iterate, state: State) -> Iterate:
        """Put the sketch, the steps and the best iterate back."""
        run: _Run = first.carry
        run.sketch.table.copy_(state["table"])
        best = None if state["best"] is None else Iterate(*state["best"])
        return replace(first, w=state["w"], carry=replace(run, step=state["step"], best=best))


def authors_step(objective: Relu, budget: int) -> float:
    """Give the step size that the authors found by hand."""
    if not objective.loss.quadratic:
        return CROSS_ENTROPY
    small = budget < 6 * objective.layout.widths[1] ** 0.536
    return SQUARED_SMALL if small else SQUARED


def _refuse(layout: Layout) -> None:
    if layout.fused or layout.direct:
        kind = "direct connections" if layout.direct else "a fused output"
        raise ParameterError(
            f"ChainIHT cannot work on a layout with {kind}: it needs a hidden layer and outputs that have "
            "weights of their own, Layout(widths, fused=False, direct=False)."
        )


@dataclass(frozen=True, eq=False)
class _Run:
    """What stays the same from step to step, the steps taken, and the sketch, which every step adds to."""

    objective: Relu
    budget: int
    sketch: CountSketch
    size: float
    batch_size: int
    seed: int
    step: int = 0
    best: Iterate | None = None

    @property
    def epoch(self) -> tuple[int, int]:
        """The pass that this step belongs to, and where in it its rows begin."""
        epoch, place = divmod(self.step, -(-self.objective.data.rows // self.batch_size))
        return epoch, place * self.batch_size

    @property
    def passes(self) -> float:
        """Passes over the data once this step is done."""
        (epoch, first), rows = self.epoch, self.objective.data.rows
        return epoch + min(first + self.batch_size, rows) / rows

    @property
    def lends(self) -> bool:
        """Whether neurons that are empty on one side are lent weights at this step."""
        epoch, first = self.epoch
        return epoch == 0 if self.batch_size >= self.objective.data.rows else first == 0

    def batch(self) -> Batch:
        """Read the rows of this step."""
        data = self.objective.data
        if self.batch_size >= data.rows:
            return data.batch(slice(0, data.rows))
        epoch, first = self.epoch
        order = data.order(np.random.default_rng([self.seed, 2, epoch]))
        return data.batch(order[first : first + self.batch_size])

    def stepped(self, w: SparseVector) -> SparseVector:
        """Take one thresholded step."""
        objective, batch = self.objective, self.batch()
        held = objective.run(Point(w))
        lent = _Lent.to(held) if self.lends else _Lent(held)
        fed = lent.forward(batch.X)
        (amount,) = objective.data.ranks.sum(batch.share.sum())
        slope = objective.slope(fed[-1], batch).div_(amount.clamp(min=1e-30))
        deltas = lent.deltas(fed, slope)
        for indices, values in lent.entries():
            self.sketch.add(indices, values)
        for layer in (0, 1):
            for first, columns, block in objective.layer_blocks(layer, fed[layer], deltas[layer]):
                neurons = torch.arange(first, first + len(block))
                places = objective.layout.position(layer, neurons[:, None], columns)
                self.sketch.add(places.view(-1), block.mul_(-self.size).view(-1))
        kept = self._largest_estimates()
        gradient = self._gradient(kept, fed, deltas)
        return SparseVector(kept, w.at(kept) + lent.at(kept) - self.size * gradient, w.size)

    def _gradient(self, kept: Tensor, fed: list[Tensor], deltas: list[Tensor]) -> Tensor:  # (kept,)
        """Compute the derivatives at some places again, which costs less than keeping all of them."""
        layout, out = self.objective.layout, torch.zeros(kept.numel(), dtype=fed[0].dtype)
        for layer, part in enumerate(layout.split(kept)):
            Block(layout, layer, kept[part], out[part]).gradient(fed[layer], deltas[layer], out[part])
        return self.objective.data.ranks.sum(out)[0]

    def _largest_estimates(self) -> Tensor:
        size = self.objective.size
        top = StreamingTop(self.budget, size)
        for start in range(0, size, BLOCK):
            top.offer(start, self.sketch.estimate(torch.arange(start, min(start + BLOCK, size))))
        return top.result().indices


@dataclass(frozen=True, eq=False)
class _Lent:
    """A network and what its empty neurons are lent, drawn again from the neuron's number when needed."""

    held: Running
    inner: tuple[int, ...] = ()
    outer: tuple[int, ...] = ()

    @classmethod
    def to(cls, held: Running) -> _Lent:
        """Lend to neurons that read no input, and to neurons that no output reads."""
        first, second = held.blocks
        return cls(held, _empty(first.neuron, first.neurons), _empty(second.feature, second.inputs))

    def _drawn(self, layer: int) -> Iterator[tuple[int, Tensor]]:
        """Give the neurons that are lent weights of a layer, and these."""
        block = self.held.blocks[layer]
        count, size = (block.neurons if layer else block.inputs), block.inputs * block.neurons
        for neuron in self.outer if layer else self.inner:
            yield neuron, _draw(neuron, count, size, self.held.values.dtype)

    def forward(self, X: Tensor) -> list[Tensor]:
        """Give what both layers are fed, and the output."""
        first, second = self.held.blocks
        summed = first.forward(X)
        for neuron, lent in self._drawn(0):
            summed[:, neuron] += X @ lent
        hidden = summed.relu_()
        output = second.forward(hidden)
        for neuron, lent in self._drawn(1):
            output += hidden[:, [neuron]] * lent
        return [X, hidden, output]

    def deltas(self, fed: list[Tensor], slope: Tensor) -> list[Tensor]:
        """Give the derivatives with respect to the sums of both layers."""
        delta = self.held.blocks[1].back(slope)
        for neuron, lent in self._drawn(1):
            delta[:, neuron] += slope @ lent
        return [threshold_backward(delta, fed[1], 0, grad_input=delta), slope]

    def entries(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Give the places of what is lent, and its values."""
        layout = self.held.layout
        for neuron, lent in self._drawn(0):
            yield neuron * layout.shapes[0][1] + torch.arange(lent.numel()), lent
        for neuron, lent in self._drawn(1):
            yield layout.offsets[1] + neuron + layout.shapes[1][1] * torch.arange(lent.numel()), lent

    def at(self, kept: Tensor) -> Tensor:
        """Read what is lent at some places, ascending."""
        out = torch.zeros(kept.numel(), dtype=self.held.values.dtype)
        for indices, values in self.entries():
            place, found = places_among(kept, indices)
            out[place[found]] = values[found]
        return out


def _empty(taken: Tensor, count: int) -> tuple[int, ...]:
    free = torch.ones(count, dtype=torch.bool)
    free[taken] = False
    return tuple(free.nonzero().flatten().tolist())


def _draw(neuron: int, count: int, size: int, dtype: torch.dtype) -> Tensor:
    """Draw what a neuron is lent: uniform in +-1/sqrt(size of its matrix), by the neuron's number."""
    # Drawn on the host, the same on every device.
    random = torch.Generator().manual_seed(neuron)
    draws = from_host(to_host(torch.rand(count, generator=random, dtype=torch.float64, device="cpu")))
    return ((2 * draws - 1) / size**0.5).to(dtype)
