"""The paper's method for several outputs: thresholded steps on both layers, ranked by a count sketch.

The output is ``sum_i D_i X w_i v_i'``: neuron i reads inputs by the column w_i of W, and outputs read it by
the row v_i of V (appendix A, "Vector-output MLPs", "Count sketching"). With steps of a fixed size eta::

    D_i = diag(X h_i > 0)             h_i random at first, then w_i
    R   = slope of the mean loss      at the output of the weights that are held
    g_i = X' D_i R v_i,  R' D_i X w_i by the chain rule, w_i and v_i held or lent
    S  += -eta g_i                    the sketch S adds up the steps of every place
    w   = (w_i, v_i) - eta g_i        on the s places that S estimates largest, of those held and this block

A neuron without weights on one side passes nothing on, so that nothing could ever be learned about the other:
where a block has no positive entry, small random weights are lent in its place, at the first batch of every
pass (at the first step, in full batch). They enter the chain rule, and what is stored where they win.
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
from thresher.linear.sketch import CountSketch
from thresher.linear.vector import SparseVector
from thresher.objective.block import Fed
from thresher.objective.data import Batch
from thresher.objective.gates import DenseRandom
from thresher.objective.layout import Layout
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.objective.sparse import add_outer, affine
from thresher.solvers.contest import ByNeuron, Contest
from thresher.solvers.journal import State
from thresher.solvers.loop import OPTIONS, Iterate, Needs, Start
from thresher.solvers.status import DIVERGED, Status

# The authors' step sizes: for cross-entropy, and for a squared error with large and small budgets.
CROSS_ENTROPY, SQUARED, SQUARED_SMALL = 0.001, 0.005, 2.0
# Numbers for each place of a group of neurons: weights, generators, derivatives, steps, room for products.
NUMBERS = 8


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
        Seed of the first gates, of the order of rows and of the sketch.
    step_size : float, optional
        The size of all steps; by default the authors'.
    update_gates_every : int
        After how many steps the gates follow the weights, once the first pass is over (the paper's k).
    sketch_seed : int, optional
        Seed of the sketch alone; by default the other.
    """

    batch_size: int | None = None
    seed: int = 0
    step_size: float | None = None
    update_gates_every: int = 1
    sketch_seed: int | None = None

    needs: ClassVar[Needs] = Needs(kind="relu", hidden_layers=1, options=OPTIONS - {"early_stopping"})

    def init(self, objective: Relu, budget: int, start: Start | None) -> Iterate:
        """Start from nothing, or from a given network."""
        _refuse(objective.layout)
        dtype = objective.data.dtype
        w = SparseVector.zeros(objective.size, dtype) if start is None else start.w.to(dtype)
        order, layout = ByNeuron(objective.layout), objective.layout
        seed = self.seed if self.sketch_seed is None else self.sketch_seed
        sketch = CountSketch.for_budget(budget, objective.size, seed)
        held = order.of(w)
        sketch.add(held.indices, held.values)
        carry = _Run(
            objective,
            order,
            DenseRandom(layout.shapes[0][1], layout.widths[1], self.seed),
            budget,
            sketch,
            authors_step(objective, budget) if self.step_size is None else self.step_size,
            self.batch_size or objective.data.rows,
            self.update_gates_every,
            self.seed,
            # A network to start from has gates of its own.
            gates=w if w.nonzeros else None,
        )
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
        return replace(found, carry=replace(run.advanced(w), best=found if better else run.best))

    def stop(self, iterate: Iterate) -> Status | None:
        """Go on until the passes are spent."""
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Every iterate is within the budget."""
        return iterate

    def save(self, iterate: Iterate) -> State:
        """Give the weights, those that the gates follow, the sketch, the steps and the best iterate."""
        run: _Run = iterate.carry
        best = None if run.best is None else [run.best.w, run.best.loss, run.best.passes]
        return {
            "w": iterate.w,
            "gates": run.gates,
            "table": run.sketch.table,
            "step": run.step,
            "best": best,
        }

    def load(self, first: Iterate, state: State) -> Iterate:
        """Put the gates, the sketch, the steps and the best iterate back."""
        run: _Run = first.carry
        run.sketch.table.copy_(state["table"])
        best = None if state["best"] is None else Iterate(*state["best"])
        run = replace(run, gates=state["gates"], step=state["step"], best=best)
        return replace(first, w=state["w"], carry=run)


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
    """What stays the same from step to step, what gates follow, and the sketch, which all steps add to."""

    objective: Relu
    order: ByNeuron
    generators: DenseRandom
    budget: int
    sketch: CountSketch
    size: float
    batch_size: int
    update_gates_every: int
    seed: int
    step: int = 0
    # The weights that the gates follow, if they do.
    gates: SparseVector | None = None
    best: Iterate | None = None

    @property
    def steps_of_a_pass(self) -> int:
        """Steps that see every row once."""
        return -(-self.objective.data.rows // self.batch_size)

    @property
    def epoch(self) -> tuple[int, int]:
        """The pass that this step belongs to, and where in it its rows begin."""
        epoch, place = divmod(self.step, self.steps_of_a_pass)
        return epoch, place * self.batch_size

    @property
    def passes(self) -> float:
        """Passes over the data once this step is done."""
        (epoch, first), rows = self.epoch, self.objective.data.rows
        return epoch + min(first + self.batch_size, rows) / rows

    @property
    def lends(self) -> bool:
        """Whether blocks without a positive entry are lent weights at this step."""
        epoch, first = self.epoch
        return epoch == 0 if self.batch_size >= self.objective.data.rows else first == 0

    def advanced(self, w: SparseVector) -> _Run:
        """Count a step, and let the gates follow every k-th one, once one pass and one step are done."""
        done = self.step + 1
        follow = done > self.steps_of_a_pass and (done - 1) % self.update_gates_every == 0
        return replace(self, step=done, gates=w if follow else self.gates)

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
        objective, order, batch = self.objective, self.order, self.batch()
        inner, outer = objective.run(Point(w)).blocks
        hidden = inner.forward(batch.X)
        gates = self._gates(w, batch.X, hidden)
        hidden.mul_(gates)
        # What is lent is not in the output, and so not in the residual.
        slope = objective.slope(outer.forward(hidden), batch)
        amount, missed = objective.data.ranks.sum(batch.share.sum(), slope.abs().sum())
        if not bool(missed):
            # The authors fit no labels that are all zero: what is lent would stay, and explain nothing.
            return w
        slope.div_(amount.clamp(min=1e-30))
        held = order.of(w)
        contest = Contest(held, self.sketch, self.budget)
        for first, last in self._groups(batch.X.dtype):
            weights = _part(held, first * order.each, last * order.each).view(-1, order.each)
            fed = hidden[:, first:last]
            if self.lends:
                self._lend(first, weights)
                fed = self._fed(weights, batch.X, gates[:, first:last])
            steps = self._gradient(weights, batch.X, fed, gates[:, first:last], slope).mul_(-self.size)
            contest.neurons(first * order.each, weights.add_(steps), steps, order.reads)
        if objective.layout.bias:
            (steps,) = objective.data.ranks.sum(slope.sum(0))
            steps = steps * -self.size
            contest.block(order.end, _part(held, order.end, held.size) + steps, steps)
        return order.back(contest.held())

    def _groups(self, dtype: torch.dtype) -> Iterator[tuple[int, int]]:
        """Cut the hidden neurons into groups of which the memory limit holds all places."""
        neurons, each = self.objective.layout.widths[1], NUMBERS * dtype.itemsize * self.order.each
        size = max(1, self.objective.memory_limit // each)
        for first in range(0, neurons, size):
            yield first, min(first + size, neurons)

    def _gates(self, w: SparseVector, X: Fed, summed: Tensor) -> Tensor:  # (rows, neurons), bool
        """Give ``X h_i > 0``: random at first, then of the weights that the gates follow."""
        if self.gates is w:
            return summed > 0
        if self.gates is not None:
            return self.objective.run(Point(self.gates)).blocks[0].forward(X) > 0
        gates, inputs = torch.empty(summed.shape, dtype=torch.bool), self.objective.layout.inputs[0]
        for first, last in self._groups(summed.dtype):
            _, h = self.generators.columns(first, last, summed.dtype)
            memory = summed.new_empty(len(summed), last - first)
            torch.gt(affine(X, h[:inputs], h[inputs:].sum(0), memory), 0, out=gates[:, first:last])
        return gates

    def _lend(self, first: int, weights: Tensor) -> None:
        """Put small random weights in the place of blocks that have no positive entry."""
        reads, neurons = self.order.reads, self.objective.layout.widths[1]
        for part in (slice(0, reads), slice(reads, self.order.each)):
            blocks = weights[:, part]
            for row in (blocks <= 0).all(1).nonzero().flatten().tolist():
                blocks[row] = _draw(first + row, blocks.shape[1], neurons * blocks.shape[1], blocks.dtype)

    def _fed(self, weights: Tensor, X: Fed, gates: Tensor) -> Tensor:  # (rows, neurons)
        """Give ``D_i X w_i`` of weights that are held or lent."""
        inputs, reads = self.objective.layout.inputs[0], self.order.reads
        memory = weights.new_empty(gates.shape)
        inner, bias = weights[:, :inputs].T, weights[:, inputs:reads].sum(1)
        return affine(X, inner, bias, memory).mul_(gates)

    def _gradient(
        self,
        weights: Tensor,  # (neurons, places of each)
        X: Fed,
        fed: Tensor,  # (rows, neurons)
        gates: Tensor,  # (rows, neurons)
        slope: Tensor,  # (rows, outputs)
    ) -> Tensor:  # (neurons, places of each)
        """Give the derivatives of both blocks of some neurons, by the chain rule, over all ranks' rows."""
        inputs, reads = self.objective.layout.inputs[0], self.order.reads
        delta = (slope @ weights[:, reads:].T).mul_(gates)
        out = torch.zeros_like(weights)
        add_outer(out[:, :inputs], delta, X)
        if reads > inputs:
            out[:, inputs] = delta.sum(0)
        torch.mm(fed.T, slope, out=out[:, reads:])
        return self.objective.data.ranks.sum(out)[0]


def _part(w: SparseVector, first: int, last: int) -> Tensor:  # (last - first,)
    """Write out the entries at the positions of a range."""
    low, high = torch.searchsorted(w.indices, torch.tensor([first, last])).tolist()
    out = torch.zeros(last - first, dtype=w.values.dtype)
    out[w.indices[low:high] - first] = w.values[low:high]
    return out


def _draw(neuron: int, count: int, size: int, dtype: torch.dtype) -> Tensor:
    """Draw what a neuron is lent: uniform in +-1/sqrt(size of its matrix), by the neuron's number."""
    # Drawn on the host, the same on every device.
    random = torch.Generator().manual_seed(neuron)
    draws = from_host(to_host(torch.rand(count, generator=random, dtype=torch.float64, device="cpu")))
    return ((2 * draws - 1) / size**0.5).to(dtype)
