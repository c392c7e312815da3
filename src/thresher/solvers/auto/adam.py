"""Training by minibatches: Adam on the weights that are held, with a proximal L1 step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.linear.vector import SparseVector
from thresher.objective.data import Batch, Data
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.journal import State, journal
from thresher.threads import one_thread


@dataclass(frozen=True)
class AdamSchedule:
    """How long to train, and how steps, penalty and budget change on the way.

    Attributes
    ----------
    passes : float
        Passes over the data.
    first, last : float
        Step sizes at the beginning and at the end.
    decay : {"geometric", "cosine"}
        How the step size falls from one to the other.
    warm_up : float
        Steps over which the step size rises from nothing.
    l1 : float
        The proximal step, as a share of Adam's own. A weight stays while its mean gradient exceeds that share
        of the gradient's root mean square, so the penalty fades by itself as a fit becomes exact.
    l1_until : float
        The share of the training after which no proximal steps are taken.
    betas : pair of float
        How slowly the two moments of the gradient are forgotten.
    epsilon : float
        Added to the root of the second moment.
    budget : callable, optional
        The most weights at each share of the training, from 0 to 1. What exceeds it goes, smallest first.
    budget_every : int
        Steps between two looks at the budget.
    """

    passes: float
    first: float
    last: float
    decay: str = "geometric"
    warm_up: float = 50.0
    l1: float = 0.0
    l1_until: float = 1.0
    betas: tuple[float, float] = (0.9, 0.99)
    epsilon: float = 1e-12
    budget: Callable[[float], int] | None = None
    budget_every: int = 20

    def rate(self, step: int, steps: int) -> float:
        """Give the size of a step, counted from 1."""
        warm = min(1.0, step / self.warm_up) if self.warm_up else 1.0
        if self.decay == "geometric":
            return warm * self.first * (self.last / self.first) ** (step / steps)
        # The middle of the step, so that a training of a single one does not only take the last, tiny one.
        turn = 0.5 * (1 + math.cos(math.pi * (step - 0.5) / steps))
        return warm * (self.last + (self.first - self.last) * turn)


def falling(start: int, end: int, until: float) -> Callable[[float], int]:
    """Plan a budget that falls geometrically from one number to another by a share of the training."""
    return lambda share: max(end, round(start * (end / max(1, start)) ** min(1.0, share / until)))


class Adam:
    """The weights held by a network in training, and Adam's two moments of each.

    Parameters
    ----------
    objective : Relu
    point : Point
        Where to start; the support stays what it is unless `hold` changes it.
    schedule : AdamSchedule
    steps : int
        All steps there will be.
    thresholded : callable, optional
        Says of positions which the proximal step applies to; by default to all.
    decay : callable, optional
        Says of positions how strong their L2 penalty is; by default that of the objective.

    Attributes
    ----------
    done : int
        Steps taken.
    first, second : tensors of shape (held,)
        Means of the gradient and of its square, both still to be corrected for their start at zero.
    """

    def __init__(
        self,
        objective: Relu,
        point: Point,
        schedule: AdamSchedule,
        steps: int,
        thresholded: Callable[[Tensor], Tensor] | None = None,
        decay: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.objective, self.schedule, self.steps = objective, schedule, steps
        self.thresholded, self.decay = thresholded, decay
        self.size, self.signs, self.done = point.w.size, point.signs, 0
        values = point.w.values.clone()
        self.hold(point.w.indices, values, torch.zeros_like(values), torch.zeros_like(values))

    def hold(self, indices: Tensor, values: Tensor, first: Tensor, second: Tensor) -> None:
        """Hold other positions, ascending, with these values and moments."""
        self.indices, self.values, self.first, self.second = indices, values, first, second
        self.running = self.objective.run(self.point)
        self.bounds = self.objective.bounds(self.point)
        self.weigh()
        mask = None if self.thresholded is None else self.thresholded(indices)
        self.mask = None if mask is None or bool(mask.all()) else mask.to(values.dtype)

    def weigh(self) -> None:
        """Ask anew how strong the L2 penalty is."""
        penalty = self._penalty if self.decay is None else self.decay
        self.l2 = penalty(self.indices).to(self.values.dtype)

    def _penalty(self, indices: Tensor) -> Tensor:
        return self.objective.alpha * self.objective.penalised(indices)

    def keep(self, chosen: Tensor) -> None:
        """Hold some of the weights only; `chosen` is a mask or ascending places among those held."""
        held = (self.indices, self.values, self.first, self.second)
        self.hold(*(part[chosen].contiguous() for part in held))

    @property
    def point(self) -> Point:
        """The weights as they are; later steps change them in place."""
        return Point(SparseVector(self.indices, self.values, self.size), self.signs)

    @property
    def share(self) -> float:
        """The share of the training that is done."""
        return self.done / self.steps

    def step(self, batch: Batch, valued: bool = True) -> Tensor | None:  # ()
        """Take one step on some rows, and give their mean loss before it, if that is wanted."""
        schedule, (slow, slower) = self.schedule, self.schedule.betas
        loss, gradient = self.objective.batch_gradient(self.running, batch, valued)
        gradient.addcmul_(self.values, self.l2)
        self.done += 1
        rate = schedule.rate(self.done, self.steps)
        self.first.lerp_(gradient, 1 - slow)
        self.second.mul_(slower).addcmul_(gradient, gradient, value=1 - slower)
        # Both moments start at zero and are too small at first, by these factors.
        first, second = 1 - slow**self.done, math.sqrt(1 - slower**self.done)
        size = self.second.sqrt().add_(schedule.epsilon * second)
        self.values.addcdiv_(self.first, size, value=-rate * second / first)
        if schedule.l1 and self.share <= schedule.l1_until:
            self._threshold(schedule.l1 * rate)
        if self.bounds is not None:
            self.values.clamp_(*self.bounds)
        if schedule.budget is not None and self.done % schedule.budget_every == 0:
            budget = schedule.budget(self.share)
            if self.values.numel() > budget:
                self.keep(largest(self.values.abs().float(), budget))
        return loss

    def _threshold(self, threshold: float) -> None:
        taken = self.values.clamp(-threshold, threshold)
        if self.mask is not None:
            taken *= self.mask
        self.values -= taken


class _Course:
    """How far a training is: what is held, the passes told of, and the place within the pass under way.

    Attributes
    ----------
    told : list of pairs of float
        The loss and the passes of every pass that is over.
    losses : list of tensors
        Those of the steps of the pass under way, where they are wanted.
    taken : int
        Its steps so far.
    before : dict
        The random state that it began with.
    """

    def __init__(self, adam: Adam, random: np.random.Generator) -> None:
        self.adam, self.random, self.before = adam, random, random.bit_generator.state
        self.told, self.losses, self.taken = list[tuple[float, float]](), list[Tensor](), 0

    def batches(self, data: Data, size: int) -> Iterator[Batch]:
        """Read the rows of the pass that no step was taken on yet."""
        now = self.random.bit_generator.state
        if not self.taken:
            self.before = now
            yield from data.shuffled(size, self.random)
            return
        self.random.bit_generator.state = self.before
        rest = data.shuffled(size, self.random, self.taken)
        batch = next(rest, None)
        # The order is drawn: what was drawn since the pass began comes back.
        self.random.bit_generator.state = now
        if batch is not None:
            yield batch
        yield from rest

    def tell(self, loss: float, passes: float) -> tuple[float, float]:
        """End a pass."""
        self.told.append((loss, passes))
        self.losses, self.taken, self.before = [], 0, self.random.bit_generator.state
        return loss, passes

    def save(self) -> State:
        """Give what the training needs to go on, or once it is over to be told of again."""
        adam, over = self.adam, self.adam.done == self.adam.steps
        return {
            "held": SparseVector(adam.indices, adam.values, adam.size),
            "moments": None if over else [adam.first, adam.second],
            "done": adam.done,
            "told": self.told,
            "losses": torch.stack(self.losses) if self.losses else None,
            "taken": self.taken,
            "before": self.before,
            # Before its first step the order of a pass counts as not drawn yet.
            "random": self.random.bit_generator.state if self.taken else self.before,
        }

    def load(self, state: State) -> None:
        """Go on from there."""
        adam, held = self.adam, state["held"]
        moments = state["moments"] or 2 * [torch.zeros_like(held.values)]
        if held.size != adam.size or any(one.shape != held.values.shape for one in moments):
            raise ValueError("a state of another network")
        adam.hold(held.indices, held.values, *moments)
        adam.done = state["done"]
        self.told, self.taken, self.before = state["told"], state["taken"], state["before"]
        self.losses = [] if state["losses"] is None else list(state["losses"])
        self.random.bit_generator.state = state["random"]


def train(
    objective: Relu,
    point: Point,
    schedule: AdamSchedule,
    batch: int,
    random: np.random.Generator,
    thresholded: Callable[[Tensor], Tensor] | None = None,
    exchange: Callable[[Adam], None] | None = None,
    decay: Callable[[Tensor], Tensor] | None = None,
    measure: Callable[[Point, int], float] | None = None,
) -> Iterator[tuple[Point, float, float]]:
    """Train the weights of a network.

    A training that goes on from a journal tells its passes again. With those that were over by then it gives
    the weights that came of them later, so decisions are to be made by the numbers alone.

    Parameters
    ----------
    objective : Relu
    point : Point
        Where to start.
    schedule : AdamSchedule
    batch : int
        Rows of a minibatch; all of them are one batch, in their order.
    random : Generator
        Draws the order of the rows.
    thresholded : callable, optional
        Says of positions which the proximal step applies to; by default to all.
    exchange : callable, optional
        Called after every step; may change what is held, and draw from `random`.
    decay : callable, optional
        Says of positions how strong their L2 penalty is, before every pass; by default that of the objective.
    measure : callable, optional
        What to tell of the weights after a pass, whose number counts from 0, instead of the loss.

    Yields
    ------
    point, loss, passes
        After every pass, and at the end: the weights, their mean loss while they were trained in that pass
        (or what was measured), and the passes that it took (one, or the rest).
    """
    data = objective.data
    each = max(1, data.rows // batch)
    adam = Adam(objective, point, schedule, max(1, int(schedule.passes * each)), thresholded, decay)
    course, kept = _Course(adam, random), journal()
    with kept.work("training", course.save, course.load):
        if course.told:
            trained = adam.point.with_values(adam.values.clone())
            for loss, passes in course.told:
                yield trained, loss, passes
        while adam.done < adam.steps:
            adam.weigh()
            with one_thread():
                for rows in course.batches(data, batch):
                    kept.pause()
                    value = adam.step(rows, valued=measure is None)
                    course.taken += 1
                    if value is not None:
                        course.losses.append(value)
                    if exchange is not None:
                        exchange(adam)
                    if adam.done == adam.steps:
                        break
            trained, number = adam.point.with_values(adam.values.clone()), len(course.told)
            mean = float(torch.stack(course.losses).mean()) if measure is None else measure(trained, number)
            yield trained, *course.tell(mean, course.taken / each)
