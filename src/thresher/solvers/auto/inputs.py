"""Which inputs to read, where a network may not read all of them: as many as allowed, or what they may cost.

Inputs are chosen by what they tell together, on rows left out. What a small network could make of some inputs
is measured by ridge regression on them, on kinks of each, and on random neurons that read several: that takes
milliseconds, so hundreds of choices are compared. Inputs are added one by one, each the best beside those
there are, then exchanged one for another as long as that helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.linear.budget import largest
from thresher.objective.relu import Relu
from thresher.solvers.auto.clean import some_rows
from thresher.solvers.auto.judge import parted
from thresher.solvers.auto.tuning import InputsTuning, JudgeTuning
from thresher.solvers.auto.wide import relevance

# Inputs of a random neuron, at most.
MOST_READ = 3


@dataclass(frozen=True, eq=False)
class Limits:
    """What counts as one input, and how much there may be.

    Attributes
    ----------
    unit : int64 array of shape (inputs,)
        What every input is part of.
    costs : array of shape (units,)
        What each unit costs.
    most : int, optional
        Units at most.
    cost : float, optional
        What all of them may cost together.
    """

    unit: np.ndarray
    costs: np.ndarray
    most: int | None
    cost: float | None

    def admit(self, units: Sequence[int]) -> bool:
        """Say whether some units are few and cheap enough."""
        few = self.most is None or len(units) <= self.most
        return few and (self.cost is None or float(np.sort(self.costs[list(units)]).sum()) <= self.cost)


def chosen_inputs(
    objective: Relu,
    limits: Limits,
    kept: np.ndarray,
    seed: int,
    tuning: InputsTuning,
    judge: JudgeTuning,
) -> np.ndarray:
    """Choose the inputs that a network is to read, ascending.

    Parameters
    ----------
    objective : Relu
        On all inputs.
    limits : Limits
    kept : int64 array
        Inputs that are read in any case.
    seed : int
        Draws the random neurons.
    tuning : InputsTuning
    judge : JudgeTuning
        Says which rows are left out together.
    """
    scores = relevance(objective).float()
    best = torch.zeros(len(limits.costs)).scatter_reduce_(0, from_host(limits.unit), scores, "amax")
    kept = np.unique(limits.unit[kept])
    may = [number for number in range(len(limits.costs)) if limits.admit([number])]
    if limits.admit(may):
        # There is nothing to choose.
        return np.flatnonzero(np.isin(limits.unit, may))
    many = max(tuning.fewest, tuning.each * (limits.most or 1))
    among = from_host(np.array(may, dtype=np.int64))
    told = to_host(among[largest(best[among], min(len(may), many))])
    units = np.union1d(told, kept)
    columns = np.flatnonzero(np.isin(limits.unit, units))
    trial = _Trial.of(objective, columns, limits.unit[columns], seed, tuning, judge)
    found = _Search(trial, limits, units.tolist(), tuning).best(kept.tolist())
    return np.flatnonzero(np.isin(limits.unit, found))


class _Trial:
    """Rows, and what ridge regression makes of features of some columns on rows left out."""

    def __init__(
        self,
        X: Tensor,
        y: Tensor,
        share: Tensor,
        fold: np.ndarray,
        unit: np.ndarray,
        directions: Tensor | None,
        seed: int,
        tuning: InputsTuning,
    ) -> None:
        self.X, self.tuning, self.unit, self.directions = X, tuning, unit, directions
        self.share, self.y = share, y - share @ y
        self.fold = [from_host(fold == number) for number in np.unique(fold)]
        self.own = {number: self._of_unit(number) for number in np.unique(unit).tolist()}
        self.tried: dict[tuple[int, ...], float] = {}
        self.drawn = from_host(
            np.random.default_rng([seed, 12]).standard_normal((tuning.neurons, 2 * MOST_READ))
        )
        self.picked = np.random.default_rng([seed, 13]).random((tuning.neurons, MOST_READ))

    @classmethod
    def of(
        cls,
        objective: Relu,
        columns: np.ndarray,
        unit: np.ndarray,
        seed: int,
        tuning: InputsTuning,
        judge: JudgeTuning,
    ) -> _Trial:
        """Read some rows of some columns."""
        few = some_rows(objective, tuning.rows)
        data = few.data.only(from_host(columns))
        batch = data.batch(slice(0, data.rows))
        y = batch.y
        if not y.is_floating_point():
            y = torch.nn.functional.one_hot(y[:, 0], objective.layout.widths[-1])
        X, share = data.read(slice(0, data.rows)).double(), batch.share.double()
        mean = share @ X
        spread = (share @ (X - mean).square()).sqrt()
        X = (X - mean) / torch.where(spread > 0, spread, 1.0)
        fold = parted(few, seed, judge)
        known = None if objective.allowed is None else objective.allowed.inputs
        directions = None if known is None else known[from_host(columns)]
        return cls(X, y.double(), share, np.maximum(fold, 0), unit, directions, seed, tuning)

    def _of_unit(self, number: int) -> Tensor:  # (rows, features)
        """Give the columns of a unit, and kinks of those that take more than two values."""
        parts = []
        for column in np.flatnonzero(self.unit == number).tolist():
            x = self.X[:, column]
            parts.append(x[:, None])
            cuts = x.quantile(torch.linspace(0, 1, self.tuning.kinks + 2, dtype=x.dtype)[1:-1]).unique()
            cuts = cuts[(cuts > x.min()) & (cuts < x.max())]
            if cuts.numel():
                parts.append((x[:, None] - cuts).clamp_(min=0))
        return torch.cat(parts, 1)

    def features(self, units: tuple[int, ...]) -> Tensor:
        """Give what a network may make of some units."""
        parts = [self.own[number] for number in units]
        columns = np.flatnonzero(np.isin(self.unit, units))
        if len(columns) > 1:
            count = min(self.tuning.neurons, self.tuning.neurons_each * len(columns))
            read = min(MOST_READ, len(columns))
            # The same neurons are drawn for the same number of columns, so that choices are comparable.
            place = (self.picked[:count, :read] * len(columns)).astype(np.int64)
            weights, towards = self.drawn[:count, :read], self.drawn[:count, MOST_READ : MOST_READ + read]
            summed = torch.zeros(len(self.X), count, dtype=torch.float64)
            for number in range(read):
                of = from_host(columns[place[:, number]])
                summed += (self.X[:, of] - towards[:, number]) * weights[:, number]
            parts.append(summed.clamp_(min=0))
        return torch.cat([torch.ones(len(self.X), 1, dtype=torch.float64), *parts], 1)

    def score(self, units: tuple[int, ...]) -> float:
        """Give the mean squared error on rows left out, under the best of some penalties."""
        units = tuple(sorted(units))
        if units not in self.tried:
            useful = self._useful(units)
            if useful != units:
                self.tried[units] = self.score(useful)
            elif units:
                self.tried[units] = self._score(units)[0]
            else:
                self.tried[units] = float((self.share @ self.y.square()).sum())
        return self.tried[units]

    def _useful(self, units: tuple[int, ...]) -> tuple[int, ...]:
        """Leave out what clearly pulls the output the other way than it may, beside the others."""
        columns = np.flatnonzero(np.isin(self.unit, units))
        if self.directions is None or not bool(self.directions[from_host(columns)].any()):
            return units
        X = self.X[:, from_host(columns)]
        inverse = torch.linalg.inv(
            (X * self.share[:, None]).T @ X + self.tuning.ridges[0] * torch.eye(len(columns))
        )
        slopes = (inverse @ (X.T @ (self.y * self.share[:, None])))[:, 0]
        left = float(self.share @ (self.y[:, 0] - X @ slopes).square())
        errors = (inverse.diagonal() * left / len(X)).sqrt()
        wrong = slopes * self.directions[from_host(columns)] < -self.tuning.errors * errors
        gone = self.unit[columns[to_host(wrong)]]
        # Of a group other columns may still serve.
        return tuple(one for one in units if one not in gone or (self.unit == one).sum() > 1)

    def left(self, units: tuple[int, ...]) -> Tensor:  # (rows, outputs)
        """Give what rows left out leave unexplained."""
        return self._score(units)[1] if units else self.y

    def _score(self, units: tuple[int, ...]) -> tuple[float, Tensor]:
        A = self.features(units)
        weighed = A * self.share[:, None]
        whole, aim = weighed.T @ A, weighed.T @ self.y
        eye = whole.diagonal().clone()
        eye[0] = 0
        best, left = float("inf"), self.y
        parts = [
            (rows, whole - weighed[rows].T @ A[rows], aim - weighed[rows].T @ self.y[rows])
            for rows in self.fold
        ]
        if len(parts) == 1:
            parts = [(self.fold[0], whole, aim)]
        for ridge in self.tuning.ridges:
            errors = torch.empty_like(self.y)
            for rows, gram, pull in parts:
                solved = torch.linalg.solve(gram + torch.diag(ridge * eye + 1e-10), pull)
                errors[rows] = self.y[rows] - A[rows] @ solved
            value = float((self.share @ errors.square()).sum())
            if value < best:
                best, left = value, errors
        return best, left

    def promising(self, left: Tensor, units: list[int]) -> list[int]:
        """Order units by what each alone explains of what is left, the most first."""
        pull = left * self.share[:, None]
        gains = []
        for number in units:
            features = self.own[number]
            size = (features.square() * self.share[:, None]).sum(0).clamp(min=1e-12)
            gains.append(float(((features.T @ pull).square().sum(1) / size).max()))
        return [units[place] for place in np.argsort(-np.array(gains, dtype=np.float32), kind="stable")]


class _Search:
    """Adds units and exchanges them, within the limits."""

    def __init__(self, trial: _Trial, limits: Limits, units: list[int], tuning: InputsTuning) -> None:
        self.trial, self.limits, self.units, self.tuning = trial, limits, units, tuning

    def best(self, kept: list[int]) -> tuple[int, ...]:
        """Give the best choice that is found."""
        ends = [self._exchanged(self._added(kept, priced), kept) for priced in self._prices()]
        return min(ends, key=lambda units: (np.float32(self.trial.score(units)), units))

    def _prices(self) -> tuple[bool, ...]:
        """Whether what a unit gains is divided by its cost: tried both ways where there are costs."""
        return (False, True) if self.limits.cost is not None else (False,)

    def _added(self, kept: list[int], priced: bool) -> tuple[int, ...]:
        """Add units one by one, and keep the best choice on the way."""
        now = best = tuple(kept)
        while (options := self._options(now)) and len(self.trial.tried) < self.tuning.trials:
            value = self.trial.score(now)
            shown = self._shortlist(now, options)
            gains = [value - self.trial.score((*now, one)) for one in shown]
            worth = np.array(gains)
            if priced:
                free = max(self.limits.costs[self.units].max(), 1e-300) * 1e-3
                worth = worth / np.maximum(self.limits.costs[shown], free)
            now = (*now, shown[int(np.argmax(np.float32(worth)))])
            if self.trial.score(now) < self.trial.score(best) or len(best) == len(kept):
                best = now
            elif len(now) > len(best) + self.tuning.patience:
                break
        return best

    def _exchanged(self, now: tuple[int, ...], kept: list[int]) -> tuple[int, ...]:
        """Exchange one unit for another, or add one, as long as rows left out lose less."""
        better = True
        while better and len(self.trial.tried) < self.tuning.trials:
            better = False
            for trial in self._neighbours(now, kept):
                if self.trial.score(trial) < (1 - self.tuning.helps) * self.trial.score(now):
                    now, better = trial, True
                    break
                if len(self.trial.tried) >= self.tuning.trials:
                    break
        return now

    def _neighbours(self, now: tuple[int, ...], kept: list[int]) -> Iterator[tuple[int, ...]]:
        options = self._options(now)
        for one in self._shortlist(now, options) if options else []:
            yield (*now, one)
        # What is missed least goes first.
        rest = [one for one in now if one not in kept]
        without = sorted(
            (tuple(other for other in now if other != one) for one in rest), key=self.trial.score
        )
        for fewer in without:
            options = [one for one in self._options(fewer) if one not in now]
            for one in self._shortlist(fewer, options) if options else []:
                yield (*fewer, one)

    def _options(self, now: tuple[int, ...]) -> list[int]:
        return [one for one in self.units if one not in now and self.limits.admit((*now, one))]

    def _shortlist(self, now: tuple[int, ...], options: list[int]) -> list[int]:
        count = max(self.tuning.shortest, self.tuning.shortlist // max(1, len(now)))
        if len(options) <= count:
            return options
        return self.trial.promising(self.trial.left(now), options)[:count]
