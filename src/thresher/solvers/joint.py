"""The default solver for several outputs or layers: all layers trained together, sparse from first to last.

Adam moves the weights that are held; a proximal step takes a little off each, so that useless ones vanish;
now and then the least useful are let go and places with the largest gradients are tried. The number of
weights held falls from a multiple of the budget to the budget, then the support stands still while the steps
become small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import keep_largest_of_blocks, largest
from thresher.linear.vector import SparseVector
from thresher.objective.layered import LayeredObjective, erdos_renyi
from thresher.solvers.finish import MOST, finish
from thresher.solvers.layerwise import Stage, layerwise
from thresher.solvers.loop import FINISHED, INTERRUPTED, Iterate, Start, Status

# Adam's step at a budget of 1,000, in scaled units; fewer weights bear larger steps, and deeper networks need
# them. Its limits, what is left of it at the end, how long it warms up, and its constants.
RATE, RATE_BUDGET, LOWEST, HIGHEST = 0.01, 1000, 0.007, 0.03
LAST, WARM, MOMENTUM, MEMORY, TINY = 0.01, 0.02, 0.9, 0.999, 1e-8
# The proximal step in units of Adam's, at a budget of 200; larger budgets leave less to gain by it, and a
# squared error, whose equations remove weights more surely, leaves least.
PENALTY, PENALTY_SQUARED, PENALTY_BUDGET = 0.1, 0.005, 200
# The share of all steps over which the budget falls, and over which the support may change.
FALLING, MOVING = 0.7, 0.8
# The share of weights exchanged at first, how many exchanges there are, and most batches between two.
EXCHANGED, EXCHANGES, BETWEEN = 0.2, 80, 100
# Stretches of a fit that ends with equations, passes of the layers one by one, and how often that is tried.
STRETCHES, LAYERWISE, DRAWS = 3, 15, 3
# The share of the passes of a sprint before all else, and the budgets up to which there is one: many small
# networks are found at once.
SPRINT, SPRINTED = 0.06, 200
# What is held at the end of training, in budgets, where equations choose what goes last.
SPARE = 1.5
# Rows, and numbers in those rows, whose gradient decides which places are tried.
TRIED_ROWS, TRIED_NUMBERS = 4096, 2**24
# Steps after which more passes over the data no longer pay.
ENOUGH = 24_000
# Stands for a gradient that has not been seen yet, so that magnitudes alone decide.
NEVER = 1e-30
# Rows below which one step takes all of them: the answer then depends neither on their order nor on repeats.
FULL_BATCH = 128


@dataclass(frozen=True)
class Joint:
    """Train all layers together under a falling budget.

    Attributes
    ----------
    inflation : float
        Weights held at first, as a multiple of the budget, at most 10; never more than half of the network
        (or the budget, where that is more).
    batch_size : int, "auto" or None
        Rows of a minibatch; None takes all rows at once.
    passes : float
        Passes over the data that phases are planned for.
    seed : int
        Seed of everything random.
    """

    inflation: float = 10.0
    batch_size: int | str | None = "auto"
    passes: float = 200
    seed: int = 0

    def init(self, objective: LayeredObjective, budget: int, start: Start | None) -> Iterate:
        """Start with a random sparse network, or with the given one."""
        zero = SparseVector.zeros(objective.size, objective.design.dtype)
        training = Training(self, objective, budget)
        training.plan(training.passes)
        training.begin(start)
        return Iterate(zero, math.inf, 0.0, kept=False, carry=(training, training.epochs(start)))

    def step(self, iterate: Iterate) -> Iterate:
        """Go on by one pass over the data."""
        following = next(iterate.carry[1], None)
        if following is None:
            return replace(iterate, kept=False, record={"phase": "done"})
        return replace(following, carry=iterate.carry)

    def stop(self, iterate: Iterate) -> Status | None:
        """Stop when all passes that were planned are done."""
        return FINISHED if iterate.record.get("phase") == "done" else None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Cut what is held down to the budget."""
        training: Training = iterate.carry[0]
        return training.cut()


class Training:
    """What a run holds: weights, Adam's two moments of each, and the schedule."""

    def __init__(self, solver: Joint, objective: LayeredObjective, budget: int) -> None:
        self.solver, self.objective, self.budget = solver, objective, budget
        rows = objective.design.rows
        self.batch = batch_rows(solver.batch_size, rows)
        self.batches = max(1, rows // self.batch)
        self.passes = max(1, min(math.floor(solver.passes), math.ceil(ENOUGH / self.batches)))
        # A squared error is brought down to the budget at the end, by its own equations.
        self.finishes = objective.loss.quadratic and budget <= MOST
        self.most = max(budget, min(round(min(solver.inflation, 10) * budget), objective.size // 2))
        self.least = min(self.most, round(SPARE * budget)) if self.finishes else budget
        penalty = PENALTY_SQUARED if objective.loss.quadratic else PENALTY
        self.penalty = penalty * min(1.0, math.sqrt(PENALTY_BUDGET / budget))
        depth = len(objective.layout.widths) - 2
        self.rate = min(HIGHEST, depth * max(LOWEST, RATE * math.sqrt(RATE_BUDGET / budget)))
        self.random = np.random.default_rng([solver.seed, 3])
        self.done = 0

    def plan(self, passes: int) -> None:
        """Spread a whole schedule over some passes."""
        self.steps, self.taken = passes * self.batches, 0
        self.between = int(min(BETWEEN, max(1, self.steps * MOVING // EXCHANGES)))

    def stretches(self) -> Iterator[tuple[int, bool]]:
        """Share the passes: give those of each stretch, and whether it starts afresh or from the best.

        Where equations finish each, the longest stretch comes after a sprint and before others from the best.
        """
        if not self.finishes or self.passes < 2 * STRETCHES:
            yield self.passes, True
            return
        sprint = round(SPRINT * self.passes) if self.budget <= SPRINTED else 0
        rest = self.passes // (2 * (STRETCHES - 1))
        if sprint > 1:
            yield sprint, True
        yield self.passes - self.done - rest * (STRETCHES - 1), True
        for _ in range(STRETCHES - 1):
            yield rest, False

    def begin(self, start: Start | None) -> None:
        """Hold a random sparse network that uses no input that is always zero, or the given one."""
        if start is not None and start.w.nonzeros:
            self.most = min(self.most, 2 * self.budget)
            self.hold(start.w.indices, start.w.values.to(self.objective.design.dtype))
            self.replace(torch.arange(start.w.nonzeros), self.most - start.w.nonzeros)
            return
        layout, rng = self.objective.layout, np.random.default_rng([self.solver.seed, 4])
        dtype = self.objective.design.dtype
        indices, values = [], []
        for layer, count in enumerate(erdos_renyi(layout, self.most)):
            neurons, places = layout.shapes[layer]
            usable = self.usable() if layer == 0 else np.arange(places)
            count = min(count, neurons * len(usable))
            drawn_places = np.sort(distinct(rng, neurons * len(usable), count))
            neuron = drawn_places // max(1, len(usable))
            chosen = neuron * places + usable[drawn_places % max(1, len(usable))]
            fan = np.bincount(neuron, minlength=neurons)[neuron]
            drawn = rng.standard_normal(count) * np.sqrt(2 / np.maximum(1, fan))
            if layout.bias:
                drawn[chosen % places == places - 1] = 0
            indices.append(torch.from_numpy(chosen) + layout.offsets[layer])
            values.append(torch.from_numpy(drawn).to(dtype))
        self.hold(torch.cat(indices), torch.cat(values))

    def usable(self) -> np.ndarray:
        """Give the places of a neuron of the first layer whose input is not always zero."""
        design = self.objective.design
        seen = torch.zeros(design.columns, dtype=torch.bool)
        for _, _, chunk in design.chunks(1):
            seen |= (chunk != 0).any(0)
        places = seen.nonzero().flatten().numpy()
        return np.append(places, design.columns) if self.objective.layout.bias else places

    def hold(self, indices: Tensor, values: Tensor) -> None:
        """Hold some weights, with fresh moments."""
        self.held = self.objective.hold(indices, values)
        self.first, self.second = torch.zeros_like(values), torch.zeros_like(values)

    @property
    def numbers(self) -> int:
        """Numbers held for the weights and for the optimiser."""
        return 3 * self.held.values.numel()

    def epochs(self, start: Start | None) -> Iterator[Iterate]:
        """Train, handing out something after every pass; what ends a stretch is within the budget."""
        best = self.one_by_one() if start is None else None
        if best is not None:
            yield best
        for passes, fresh in self.stretches():
            self.begin(start if fresh or best is None else self.again(best))
            self.plan(passes)
            for epoch in range(passes):
                self.train_once()
                if epoch + 1 < passes:
                    yield self.iterate(self.done)
            answer = self.last()
            if best is None or answer.loss < best.loss:
                best = answer
            end = self.done >= self.passes
            yield replace(
                best, passes=self.done, record={**best.record, **({"phase": "done"} if end else {})}
            )

    def train_once(self) -> None:
        """Go through the rows once."""
        for rows in self.rows(self.done):
            self.descend(self.objective.read(rows))
            share = self.taken / self.steps
            if share < MOVING and self.taken % self.between == 0:
                self.exchange(share)
        self.done += 1

    def one_by_one(self) -> Iterate | None:
        """Give what the layers of a deep fused network find one after the other, as in the paper."""
        objective, layout, seed = self.objective, self.objective.layout, self.solver.seed
        if len(layout.widths) <= 3 or not layout.fused or not self.finishes:
            return None
        nothing = objective.value(objective.hold(self.held.indices[:0], self.held.values[:0]))
        for draw in range(seed, seed + DRAWS):
            stages = [Stage(objective, layer, None, 1, draw) for layer in range(layout.layers - 1)]
            found = layerwise(stages, self.budget, LAYERWISE)
            if found.status is INTERRUPTED:
                raise KeyboardInterrupt
            point = finish(objective, found.w, self.budget, seed)
            if point.loss < nothing:
                record = {"held": point.w.nonzeros, "numbers": self.numbers}
                return Iterate(point.w, point.loss, 0.0, signs=objective.signs, record=record)
        return None

    def again(self, best: Iterate) -> Start:
        """Start from what was found."""
        return Start(best.w.to(self.objective.design.dtype), self.objective.signs)

    def rows(self, epoch: int) -> Iterator[np.ndarray]:
        """Go through the rows once, in an order fixed by the seed and the epoch."""
        rows = self.objective.design.rows
        if self.batch >= rows:
            yield np.arange(rows)
            return
        order = np.random.default_rng([self.solver.seed, 2, epoch]).permutation(rows)
        for number in range(self.batches):
            yield order[number * self.batch : (number + 1) * self.batch]

    def descend(self, batch: tuple[Tensor, Tensor, Tensor | None]) -> None:
        """Take one of Adam's steps, then a proximal one while the support may move."""
        X, y, weight = batch
        held, objective = self.held, self.objective
        fed = held.forward(X)
        gradient = held.gradient(fed, objective.slope(fed[-1], y, weight))
        if objective.alpha:
            gradient.add_(held.values, alpha=objective.alpha / objective.total)
        self.taken += 1
        share = self.taken / self.steps
        # The middle of the step, so that a run of a single one does not only take the last, tiny one.
        middle = (self.taken - 0.5) / self.steps
        fading = LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * middle))
        rate = self.rate * min(1.0, middle / WARM) * fading
        self.first.mul_(MOMENTUM).add_(gradient, alpha=1 - MOMENTUM)
        self.second.mul_(MEMORY).addcmul_(gradient, gradient, value=1 - MEMORY)
        size = (self.second / (1 - MEMORY**self.taken)).sqrt_().add_(TINY)
        held.values.addcdiv_(self.first, size, value=-rate / (1 - MOMENTUM**self.taken))
        if share < MOVING:
            shrunk = (held.values.abs() - rate * self.penalty).clamp_(min=0)
            held.values.copy_(shrunk.copysign_(held.values))

    def exchange(self, share: float) -> None:
        """Let the least useful weights go, and try places where the gradient is largest."""
        falling = (1 - min(1.0, share / FALLING)) ** 3
        target = self.least + int((self.most - self.least) * falling)
        exchanged = EXCHANGED * 0.5 * (1 + math.cos(math.pi * share / MOVING))
        if share + self.between / self.steps >= MOVING:
            exchanged = 0.0
        usefulness = self.usefulness()
        stay = min(int((usefulness > 0).sum()), target - int(exchanged * target))
        kept = largest(usefulness, stay)
        self.replace(kept, target - stay if exchanged else 0)

    def usefulness(self) -> Tensor:
        """Give a weight's size times the fourth root of its mean squared gradient; 0 off every path.

        It lies between the magnitude, which is blind to what an input carries, and the square root of the
        Fisher information's estimate of what removing it costs, which is blind to how soon it is made up for.
        """
        held = self.held
        return held.values.abs() * (self.second + NEVER).pow(0.25) * held.alive()

    def replace(self, kept: Tensor, count: int) -> None:
        """Hold on to some weights, and to `count` new ones with the largest gradients, which start at 0."""
        old = self.held
        indices, values = old.indices[kept], old.values[kept]
        first, second = self.first[kept], self.second[kept]
        if count:
            # What is about to go would look best of all once it is gone, so it is not tried at once.
            blocks = self.objective.gradient_blocks(old, self.tried())
            fresh = keep_largest_of_blocks(blocks, count, self.objective.size).indices
            nothing = torch.zeros(fresh.numel(), dtype=values.dtype)
            typical = self.typical(indices, second, fresh)
            indices, order = torch.cat([indices, fresh]).sort()
            values = torch.cat([values, nothing])[order]
            first = torch.cat([first, nothing])[order]
            second = torch.cat([second, typical])[order]
        self.held = self.objective.hold(indices, values.contiguous())
        self.first, self.second = first, second

    def typical(self, indices: Tensor, second: Tensor, fresh: Tensor) -> Tensor:
        """Give new places the mean second moment of their layer."""
        out = torch.zeros(fresh.numel(), dtype=second.dtype)
        layout = self.objective.layout
        for there, here in zip(layout.split(indices), layout.split(fresh), strict=True):
            if second[there].numel():
                out[here] = second[there].mean()
        return out

    def tried(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Read the rows on which new places prove themselves."""
        rows, columns = self.objective.design.rows, self.objective.design.columns
        count = min(rows, max(self.batch, min(TRIED_ROWS, TRIED_NUMBERS // columns)))
        chosen = np.arange(rows) if count == rows else self.random.choice(rows, count, replace=False)
        return self.objective.read(chosen)

    def iterate(self, passes: float) -> Iterate:
        """Hand out what is held; its loss is known once it is within the budget."""
        held = self.held
        w = SparseVector(held.indices, held.values.clone(), self.objective.size)
        kept = held.values.numel() <= self.budget
        loss = self.objective.value(held) if kept else math.inf
        record = {"held": held.values.numel(), "numbers": self.numbers}
        return Iterate(w, loss, passes, signs=self.objective.signs, kept=kept, record=record)

    def last(self) -> Iterate:
        """Bring what is held down to the budget in one way or two, and hand out the better."""
        wide = SparseVector(self.held.indices, self.held.values.clone(), self.objective.size)
        answer = self.cut()
        if self.finishes:
            point = finish(self.objective, wide, self.budget, self.solver.seed)
            if point.loss < answer.loss:
                answer = replace(answer, w=point.w, loss=point.loss)
        return replace(answer, passes=self.done)

    def cut(self) -> Iterate:
        """Keep the most useful weights, as many as the budget allows."""
        usefulness = self.usefulness()
        if not bool((usefulness > 0).any()):
            usefulness = self.held.values.abs()
        self.replace(largest(usefulness, self.budget), 0)
        return self.iterate(self.done)


def batch_rows(wanted: int | str | None, rows: int) -> int:
    """Turn the user's wish into rows of a batch."""
    if wanted is None or rows < FULL_BATCH:
        return rows
    if wanted == "auto":
        return 32 if rows < 5000 else 128
    return min(int(wanted), rows)


def distinct(rng: np.random.Generator, size: int, count: int) -> np.ndarray:
    """Draw distinct numbers below `size`, in memory that grows with their count alone."""
    if 3 * count >= size:
        return rng.permutation(size)[:count].astype(np.int64)
    found = np.unique(rng.integers(0, size, count + count // 4 + 16))
    while len(found) < count:
        found = np.unique(np.concatenate([found, rng.integers(0, size, count)]))
    return rng.permutation(found)[:count].astype(np.int64)
