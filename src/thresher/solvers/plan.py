"""What the phases of a search share: the problem, its sizes, and how results are handed out."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.linear.budget import keep_largest, largest
from thresher.linear.vector import SparseVector
from thresher.objective.gated import GatedOperator
from thresher.objective.linear import Objective
from thresher.solvers.candidate import fill, fuse, in_float64, loss_of, polish
from thresher.solvers.loop import Iterate, Start
from thresher.solvers.settle import Rows
from thresher.solvers.student import Pace, Student, train
from thresher.solvers.working import Working

# Weights up to which equations are solved directly, and the mean squared error on some rows, as a share of
# the targets' variance, below which a fit is worth polishing on all rows.
MOST_POLISHED, EXPLAINED = 2000, 1e-7


@dataclass(eq=False)
class Plan:
    """A search under way.

    Attributes
    ----------
    objective : Objective
    data : Working
        The rows on the working features; it counts the passes.
    budget, hidden : int
        What the network may hold in the end.
    width : int
        Neurons of the wide student.
    batch : int
        Rows of a minibatch.
    passes : float
        Passes planned for.
    negative : bool
        Whether neurons may enter with a negative sign.
    seed : int
    """

    objective: Objective
    data: Working
    budget: int
    hidden: int
    width: int
    batch: int
    passes: float
    negative: bool
    seed: int

    def __post_init__(self) -> None:
        self.size = _spread(self.data.y, self.data.weight) if self.objective.loss.quadratic else 2.0
        self.peak = float(self.data.y.abs().max()) or 1.0
        self.latest: Student | None = None
        # How many times as strong the penalty is as the user's, where few rows ask for more.
        self.strength = 1.0
        self.random = np.random.default_rng([self.seed, 3])

    @property
    def unit(self) -> float:
        """The size of a typical weight, in whose units steps are measured."""
        return self.size / math.sqrt(self.budget)

    @property
    def penalty(self) -> float:
        """The L2 penalty for each row."""
        return self.strength * self.objective.alpha / self.data.total

    @property
    def whole(self) -> bool:
        """Whether all features are working features."""
        return self.data.width == self._operator.features

    def places(self, student: Student, times: int = 1) -> int:
        """Give the neurons that may still be added to a student; an output bias needs no place."""
        return max(0, times * self.hidden - int(self._real(student).sum()))

    def _real(self, student: Student) -> Tensor:
        """Say which neurons use an input, and are not an output bias."""
        used = student.W != 0
        return used[:-1].any(0) if self.bias else used.any(0)

    def within(self, rows: Rows, student: Student) -> Student:
        """Drop the weakest neurons beyond the allowed number; an output bias needs no place."""
        real = self._real(student)
        strength = (rows.weighed @ student.W).clamp_(min=0).square().mean(0)
        strength = torch.where(real, strength, torch.inf)
        excess = int(real.sum()) - self.hidden
        if excess <= 0:
            return student
        kept = largest(strength.float(), student.neurons - excess)
        return replace(student, W=student.W[:, kept], v=student.v[kept])

    @property
    def _operator(self) -> GatedOperator:
        operator = self.objective.operator
        assert isinstance(operator, GatedOperator)
        return operator

    @property
    def bias(self) -> bool:
        """Whether the last column is constant."""
        return self._operator.design.bias

    @property
    def left(self) -> float:
        """Passes that remain."""
        return self.passes - self.data.passes

    def spend(self, rows: Rows) -> None:
        """Count one step on some rows as that share of a pass."""
        self.data.passes += len(rows.y) / self.data.rows

    def noise(self, *shape: int) -> Tensor:
        """Draw standard normal numbers."""
        return torch.from_numpy(self.random.standard_normal(shape)).to(self.data.y.dtype)

    def neurons(self, count: int, size: float) -> tuple[Tensor, Tensor]:
        """Draw small random neurons whose sum has about the given size, and their signs."""
        W = self.noise(self.data.width, count) * (0.25 * size / math.sqrt(self.data.width * count))
        v = torch.ones(count, dtype=W.dtype)
        if self.negative:
            v[1::2] = -1
        return W, v

    def trained(
        self, student: Student, pace: Pace, phase: str
    ) -> Generator[Iterate, None, tuple[Student, float]]:
        """Train a student, showing every pass; gives the student and its mean loss."""
        loss = math.inf
        for trained, loss in train(self.data, student, replace(pace, decay=self.penalty), self.batch):
            student = trained
            yield self.progress(student, loss, phase)
        return student, loss

    def progress(self, student: Student, loss: float, phase: str) -> Iterate:
        """Show an unfinished student: it is not within the budget and cannot be handed out."""
        self.latest = student
        w, signs = self._fused(student.W, student.v, max(self.hidden, student.neurons))
        total = loss * self.data.total
        return Iterate(w, total, self.data.passes, signs, kept=False, record={"phase": phase})

    def hand_out(self, W: Tensor, v: Tensor, phase: str, exact: bool = False) -> Iterate:
        """Cut ReLU neurons to the budget, refit them, and give them as an iterate that may be kept.

        With `exact`, the refit is in float64: first on some rows, and on all once those are explained.
        """
        objective = in_float64(self.objective) if exact else self.objective
        dtype = objective.operator.dtype
        w, signs = self._fused(W.to(dtype), v.to(dtype), self.hidden)
        w = keep_largest(w, self.budget)
        polished = objective.loss.quadratic and 0 < w.nonzeros <= MOST_POLISHED
        if polished:
            few = objective.on_rows(self.data.chosen(max(6000, 6 * self.budget)))
            w, loss = polish(few, w, signs)
            if exact and w.nonzeros < self.budget:
                filled = fill(few, w, signs, self.budget)
                w, loss = filled if filled[1] < 0.1 * loss else (w, loss)
            polished = 2 * loss < EXPLAINED * self.size**2 * few.operator.rows
        if polished:
            w, loss = polish(objective, w, signs, times=3)
        else:
            loss = loss_of(objective, w, signs)
        return Iterate(w, loss, self.data.passes, signs, record={"phase": phase})

    def hand_out_as_is(self, student: Student, phase: str) -> Iterate:
        """Give ReLU neurons within the budget as an iterate that is preferred to all before."""
        w, signs = self._fused(student.W, student.v, self.hidden)
        loss = loss_of(self.objective, w, signs)
        return Iterate(w, loss, self.data.passes, signs, preferred=True, record={"phase": phase})

    def opened(self, start: Start) -> tuple[Tensor, Tensor]:
        """Turn fused weights into ReLU neurons on the working features: weights and signs."""
        operator = self._operator
        neuron, feature = start.w.indices // operator.features, start.w.indices % operator.features
        live, column = torch.unique(neuron, return_inverse=True)
        signs = torch.ones(live.numel()) if start.signs is None else start.signs[live]
        signs = signs.to(self.data.y.dtype)
        row = torch.searchsorted(self.data.features, feature).clamp_(max=self.data.width - 1)
        inside = self.data.features[row] == feature
        W = torch.zeros(self.data.width, live.numel(), dtype=signs.dtype)
        W[row[inside], column[inside]] = (start.w.values * signs[column])[inside]
        return W, signs

    def _fused(self, W: Tensor, v: Tensor, hidden: int) -> tuple[SparseVector, Tensor]:
        return fuse(W, v, self.data.features, self._operator.features, hidden, self.bias)


def _spread(y: Tensor, weight: Tensor | None) -> float:
    """Give the weighted standard deviation of the targets, or their size where they are constant."""
    share = torch.ones_like(y) if weight is None else weight
    mean = float((y * share).double().mean())
    spread = math.sqrt(float(((y - mean).square() * share).double().mean()))
    return spread or abs(mean) or 1.0
