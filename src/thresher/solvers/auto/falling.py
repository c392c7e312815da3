"""Training all layers together under a falling budget, sparse from first to last.

Adam moves the weights that are held; a proximal step takes a little off each, so that useless ones vanish;
now and then the least useful are let go and places with the largest gradients are tried. The number of
weights held falls from a multiple of the budget to the budget, then the support stands still while the steps
become small. For classes an exchange by Newton's method may follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.memory import give_back
from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.adam import Adam, AdamSchedule, train
from thresher.solvers.auto.clean import some_rows
from thresher.solvers.auto.newton import Fit, measured, refit
from thresher.solvers.auto.subset import compactly
from thresher.solvers.auto.tuning import FallingTuning, Tuning
from thresher.solvers.auto.ways import exchange
from thresher.solvers.auto.wide import scattered_start

# Stands for a gradient that has not been seen yet, so that magnitudes alone decide.
NEVER = 1e-30
# Numbers that a gradient takes for each row: of every input, what was read and the columns in use; of every
# neuron, what products through nonzeros give, its output and its delta.
PER_INPUT, PER_NEURON = 2, 3
# And of sparse rows, each time that a nonzero meets a weight: its place, its number, their product.
PER_MEETING = 15
# Bytes that a weight takes in training: its place, several times over, its value, Adam's moments, and what an
# exchange makes of these.
WEIGHT_BYTES = 200


class Falling:
    """One training under a falling budget.

    Parameters
    ----------
    objective : Relu
    budget : int
        What is held at the end.
    passes : float
    batch : int
        Rows of a minibatch.
    seed : int
    tuning : FallingTuning
    share : float
        The share that is taken of those passes that pay.
    """

    def __init__(
        self,
        objective: Relu,
        budget: int,
        passes: float,
        batch: int,
        seed: int,
        tuning: FallingTuning,
        share: float = 1.0,
    ) -> None:
        self.objective, self.budget, self.batch, self.tuning = objective, budget, batch, tuning
        self.random = np.random.default_rng([seed, 3])
        batches = max(1, objective.data.rows // batch)
        self.passes = max(1.0, share * min(passes, math.ceil(tuning.enough / batches)))
        steps = max(1, int(self.passes * batches))
        between = max(tuning.least_between, steps * tuning.moving // tuning.exchanges)
        # Short trainings exchange a few times as well.
        few = max(1, steps * tuning.moving // tuning.fewest)
        self.between = int(min(tuning.most_between, between, few))
        fitting = max(objective.memory_limit, tuning.small) // WEIGHT_BYTES
        self.most = max(budget, min(round(tuning.inflation * budget), objective.size // 2, fitting))
        depth = objective.layout.layers - 1
        # A fused output adds up all neurons: the more weights there are, the smaller each of them is.
        self.crowded = objective.layout.fused and budget > tuning.crowded
        lowest = 0.0 if self.crowded else tuning.lowest
        rate = min(tuning.highest, depth * max(lowest, tuning.rate * math.sqrt(1000 / budget)))
        penalty = tuning.penalty_squared if objective.loss.quadratic else tuning.penalty
        self.schedule = AdamSchedule(
            self.passes,
            rate,
            tuning.last * rate,
            decay="cosine",
            warm_up=tuning.warm_up * steps,
            l1=penalty * min(1.0, math.sqrt(200 / budget)),
            l1_until=tuning.moving,
            betas=tuning.betas,
            epsilon=tuning.epsilon,
        )

    def start(self, seed: int) -> Point:
        """Draw a random sparse network."""
        point, layout = scattered_start(self.objective, self.most, seed), self.objective.layout
        if not self.crowded:
            return point
        values = point.w.values.clone()
        values[layout.split(point.w.indices)[layout.layers - 2]] /= math.sqrt(layout.widths[-2])
        return point.with_values(values)

    def run(
        self, point: Point, measure: Callable[[Point, int], float] | None = None
    ) -> Iterator[tuple[Point, float, float]]:
        """Train; gives the point after every pass, what is measured of it, and the passes that it took."""
        if point.w.nonzeros < self.most:
            point = self._widened(point)
        exempt = self.objective.layout.is_bias
        return train(
            self.objective,
            point,
            self.schedule,
            self.batch,
            self.random,
            thresholded=lambda indices: ~exempt(indices),
            exchange=self._exchange,
            measure=measure,
        )

    def _widened(self, point: Point) -> Point:
        fresh = self._largest(point, self.most - point.w.nonzeros)
        return point.at(self.objective.closed(torch.cat([point.w.indices, fresh]).unique()))

    def _exchange(self, adam: Adam) -> None:
        """Let the least useful weights go, and try places where the gradient is largest."""
        share, tuning = adam.share, self.tuning
        if share >= tuning.moving or adam.done % self.between:
            return
        falling = (1 - min(1.0, share / tuning.falling)) ** 3
        target = self.budget + int((self.most - self.budget) * falling)
        exchanged = tuning.exchanged * 0.5 * (1 + math.cos(math.pi * share / tuning.moving))
        if share + self.between / adam.steps >= tuning.moving:
            exchanged = 0.0
        usefulness = self._usefulness(adam)
        stay = min(int((usefulness > 0).sum()), target - int(exchanged * target))
        kept = chosen_within(self.objective, adam.indices, usefulness, stay)
        # What is about to go would look best of all once it is gone, so it is not tried at once.
        fresh = torch.zeros(0, dtype=torch.int64)
        if exchanged and target > kept.numel():
            fresh = self._largest(adam.point, target - kept.numel())
            if self._fitting < min(self.tuning.tried(self.budget), self.objective.data.rows):
                # It takes as much memory as there may be, and leaves gaps in the heap.
                give_back()
        self._hold(adam, kept, fresh)

    def _usefulness(self, adam: Adam) -> Tensor:  # (held,)
        """Give a weight's size times the fourth root of its mean squared gradient; 0 off every path.

        It lies between the magnitude, which is blind to what an input carries, and the square root of the
        Fisher information's estimate of what removing it costs, which is blind to how soon it is made up for.
        """
        alive = self.objective.alive(adam.indices)
        return adam.values.abs() * (adam.second + NEVER).pow(0.25) * alive

    def _hold(self, adam: Adam, kept: Tensor, fresh: Tensor) -> None:
        """Hold on to some weights, and to new ones, which start at 0 with the mean second moment."""
        layout = self.objective.layout
        old, second = adam.indices[kept], adam.second[kept]
        indices = self.objective.closed(torch.cat([old, fresh]).unique())
        values, first = (
            torch.zeros(indices.numel(), dtype=second.dtype),
            torch.zeros(indices.numel()).to(second),
        )
        moments = torch.zeros_like(values)
        for there, here in zip(layout.split(old), layout.split(indices), strict=True):
            if second[there].numel():
                moments[here] = second[there].mean()
        place = torch.searchsorted(indices, old)
        values[place], first[place], moments[place] = adam.values[kept], adam.first[kept], second
        allowed = self.objective.allowed
        if allowed is None:
            adam.hold(indices, values, first, moments)
            return
        held = allowed.within_fan_in(layout, indices, values.abs())
        adam.hold(*(part[held].contiguous() for part in (indices, values, first, moments)))

    def _largest(self, point: Point, count: int) -> Tensor:
        """Give the places whose gradient is largest, among those that are looked at this time."""
        return self.objective.largest_gradients(point, self._tried(), count, self._some).indices

    def _some(self, blocks: range) -> Iterable[int]:
        """Draw the blocks of a layer that are looked at: a share of them, and one at least."""
        count = max(1, round(self.tuning.screen * len(blocks)))
        if count >= len(blocks):
            return blocks
        return (blocks[one] for one in np.sort(self.random.choice(len(blocks), count, replace=False)))

    def _tried(self) -> Batch:
        """Read the rows on which new places prove themselves."""
        data = self.objective.data
        count = min(data.rows, max(self.batch, min(self.tuning.tried(self.budget), self._fitting)))
        return data.some(count, self.random)

    @property
    def _fitting(self) -> int:
        """Rows whose gradient fits into half of the memory limit."""
        data = self.objective.data
        numbers = PER_INPUT * data.row_numbers + PER_NEURON * sum(self.objective.layout.widths[1:])
        if data.sparse:
            numbers += PER_MEETING * data.row_numbers * self.most // data.columns
        return self.objective.memory_limit // (2 * data.dtype.itemsize * numbers)


def exchanged(objective: Relu, point: Point, budget: int, tuning: Tuning) -> Fit:
    """Fit what was trained by Newton's method: on some rows, with an exchange of weights, then on all."""
    newton, falling = tuning.newton, tuning.falling

    def fitted(part: Relu, fit: Fit) -> Fit:
        return refit(part, fit, newton.last, newton)

    # What an exchange holds in memory, and its time, grow with the outputs as with the rows.
    share = min(1.0, falling.outputs_all / objective.layout.widths[-1])
    few = some_rows(objective, int(falling.rows_each * budget * share)).gathered()
    fit = compactly(few, measured(few, point), fitted)
    trial = exchange(few, fit, falling.admitted, budget, tuning)
    fit = trial if trial.value < fit.value else fit
    return compactly(objective, measured(objective, fit.point), fitted)


def largest_within(objective: Relu, point: Point, budget: int) -> Point:
    """Keep the largest weights on paths, as many as a budget allows."""
    usefulness = point.w.values.abs() * objective.alive(point.w.indices)
    return within(objective, point, usefulness, budget)


def within(objective: Relu, point: Point, usefulness: Tensor, budget: int) -> Point:
    """Keep the most useful weights, and the biases they bring along, as many as a budget allows."""
    kept = chosen_within(objective, point.w.indices, usefulness, budget)
    return point.at(objective.closed(point.w.indices[kept]))


def chosen_within(objective: Relu, indices: Tensor, usefulness: Tensor, count: int) -> Tensor:
    """Choose the most useful places, so many that with the biases they bring along they are `count`."""
    wanted = count
    while True:
        kept = largest(usefulness, wanted)
        excess = objective.closed(indices[kept]).numel() - count
        if excess <= 0 or wanted == 0:
            return kept
        wanted = max(0, wanted - excess)
