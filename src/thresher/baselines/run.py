"""Training by Adam on minibatches: the part that all baselines have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from thresher.baselines.masked import MaskedMLP
from thresher.errors import DataError

Hook = Callable[[int], None]
"""Called with the number of the step, counted from 1."""


@dataclass(frozen=True)
class Problem:
    """Rows and what to make of them, as torch sees them."""

    X: Tensor  # (rows, inputs), float32
    y: Tensor  # (rows, outputs), float32; or (rows,), int64 numbers of classes
    outputs: int
    loss: Callable[[Tensor, Tensor], Tensor]  # the mean over a minibatch
    batch_size: int

    @property
    def batches(self) -> int:
        """Minibatches of one pass."""
        return math.ceil(len(self.X) / self.batch_size)


@dataclass
class Record:
    """What happened, epoch by epoch: the mean loss, and how many weights were active at the end."""

    losses: list[float] = field(default_factory=list)
    active: list[int] = field(default_factory=list)


class AdamRun:
    """One training run: its optimiser, its learning rates, and a new order of the rows for every pass.

    Parameters
    ----------
    model : MaskedMLP
        Trained in place; what is switched off stays zero.
    problem : Problem
        What to fit.
    epochs : int
        Passes over the rows.
    learning_rate : float
        The first learning rate.
    decay : float
        Share of the steps, the last ones, over which the learning rate falls to zero by half a cosine.
    generator : torch.Generator
        Where the order of the rows comes from.
    """

    def __init__(
        self,
        model: MaskedMLP,
        problem: Problem,
        *,
        epochs: int,
        learning_rate: float,
        decay: float,
        generator: torch.Generator,
    ) -> None:
        self.model, self.problem, self.epochs, self.generator = model, problem, epochs, generator
        self.learning_rate, self.decay = learning_rate, decay
        self.step, self.steps = 0, epochs * problem.batches
        self._vector = nn.Parameter(model.flat)
        self._vector.grad = model.flat_grad
        # One vector makes the whole update one call of one kernel.
        self._adam = torch.optim.Adam([self._vector], lr=learning_rate, fused=True)

    def train(self, record: Record, *, at_gradient: Hook | None = None, at_step: Hook | None = None) -> None:
        """Run to the end.

        Parameters
        ----------
        record : Record
            Where every epoch is noted.
        at_gradient : callable, optional
            Called when the gradients of all parameters, active or not, are known and nothing has moved yet.
        at_step : callable, optional
            Called when the parameters have moved.
        """
        problem = self.problem
        for _ in range(self.epochs):
            total = 0.0
            for rows in self._order().split(problem.batch_size):
                self.step += 1
                whole = len(rows) == len(problem.X)
                inputs, targets = (
                    (problem.X, problem.y) if whole else (problem.X.index_select(0, rows), problem.y[rows])
                )
                total += self._gradient(inputs, targets) * len(rows)
                if at_gradient is not None:
                    at_gradient(self.step)
                self._move()
                if at_step is not None:
                    at_step(self.step)
            self._note(total / len(problem.X), record)

    def rate(self, step: int) -> float:
        """Give the learning rate of a step, counted from 1."""
        left = (self.steps - step + 1) / self.steps
        height = (1 - math.cos(math.pi * left / self.decay)) / 2 if left < self.decay else 1.0
        return self.learning_rate * height

    def forget(self, parameters: Tensor) -> None:
        """Let parameters that were just switched on start without the momentum of an earlier life."""
        state = self._adam.state[self._vector]
        for moment in ("exp_avg", "exp_avg_sq"):
            if moment in state:
                state[moment][parameters] = 0

    def _order(self) -> Tensor:
        return torch.randperm(len(self.problem.X), generator=self.generator)

    def _gradient(self, inputs: Tensor, targets: Tensor) -> float:
        self.model.flat_grad.zero_()
        loss = self.problem.loss(self.model(inputs), targets)
        loss.backward()
        return loss.item()

    def _move(self) -> None:
        self._adam.param_groups[0]["lr"] = self.rate(self.step)
        self._adam.step()
        # The gradient and the momentum of what is switched off would bring it back.
        self.model.apply_mask()

    def _note(self, loss: float, record: Record) -> None:
        record.losses.append(loss)
        record.active.append(self.model.active)
        if not math.isfinite(loss):
            raise DataError(
                f"the loss became {loss} in training with learning_rate={self.learning_rate:g}. Use a "
                "smaller one or scale=True, and check X and y for extreme values."
            )
