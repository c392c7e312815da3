"""The judge: which rows are held out, how candidates are scored, which one wins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.tuning import JudgeTuning


@dataclass(frozen=True, eq=False)
class Candidate:
    """What a way found.

    Attributes
    ----------
    way : str
    fit : Fit
        The network.
    alpha : float
        The penalty it was found under, beside a sum over rows.
    losses, shares : tensors of shape (rows,)
        What each row that it was scored on loses, and the share of all that it counts.
    amount : float
        How many rows those are, sample weights added up.
    place : tuple
        Where on its way it was found, the same for every fold.
    fold : int
        Which rows it was scored on.
    finish : callable, optional
        How it is fitted on all rows; by Newton steps on its support by default.
    shrunk : bool
        Whether an L1 penalty holds its weights back, so that a refit would make another model of it.
    """

    way: str
    fit: Fit
    alpha: float
    losses: Tensor
    shares: Tensor
    amount: float
    place: tuple[Any, ...]
    fold: int = 0
    finish: Callable[[Relu], Fit] | None = None
    shrunk: bool = False

    @property
    def score(self) -> float:
        """The mean loss on the rows that it was scored on: less is better."""
        return float((self.losses * self.shares).sum())

    @property
    def nonzeros(self) -> int:
        """How many weights it holds."""
        return self.fit.nonzeros

    @property
    def key(self) -> tuple[Any, ...]:
        """The settings that led to it, the same for every fold."""
        return (self.way, *self.place)


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a way is that has no candidate yet.

    Attributes
    ----------
    way : str
    fit : Fit, optional
        What is being trained, where that can be shown.
    kept : bool
        Whether it is within the budget.
    left : float, optional
        Passes that it will still take, where that is known.
    """

    way: str
    fit: Fit | None = None
    kept: bool = False
    left: float | None = None


@dataclass(frozen=True, eq=False)
class Judge:
    """Rows to search on, and rows to score on (the same where they are plenty).

    Attributes
    ----------
    part, unseen : Relu
        The objective on the rows to search on, and on those to score on.
    share : float
        The share of all rows that is searched on, sample weights counted.
    fold : int
        The number of the rows to score on.
    start : Point, optional
        A trained network to begin with that has not seen the rows to score on.
    """

    part: Relu
    unseen: Relu
    share: float
    tuning: JudgeTuning
    fold: int = 0
    start: Point | None = None

    def candidate(
        self,
        way: str,
        fit: Fit,
        alpha: float,
        place: tuple[Any, ...],
        finish: Callable[[Relu], Fit] | None = None,
    ) -> Candidate:
        """Score what a way found."""
        losses, data = self.unseen.row_values(fit.point), self.unseen.data
        shares = data.every(data.share).double()
        return Candidate(way, fit, alpha, losses, shares, self.unseen.data.amount, place, self.fold, finish)


def chosen(candidates: list[Candidate], errors: float, margin: float) -> Candidate:
    """Choose settings by their mean score over folds, then the best candidate found with them.

    Settings whose scores differ from the best by less than `errors` standard errors of the difference, row by
    row, are as good: of those shrunk models win, the largest first, since to choose among inputs and to refit
    them fits the noise; else the fewest nonzeros, and then the strongest penalty. Linear models are preferred
    to networks unless these score below `margin` of what they do.
    """
    groups: dict[tuple[Any, ...], list[Candidate]] = defaultdict(list)
    # Folds need not reach the same place at the same time; their rows are compared one by one.
    for candidate in sorted(candidates, key=lambda one: one.fold):
        groups[candidate.key].append(candidate)
    folds = max(len(group) for group in groups.values())
    full = [group for group in groups.values() if len(group) == folds]
    losses = [torch.cat([one.losses for one in group]) for group in full]
    shares = torch.cat([one.shares for one in full[0]]) / folds
    amount = sum(one.amount for one in full[0])
    scores = [float((loss * shares).sum()) for loss in losses]
    weighed = [
        score - (1 - margin) * abs(score) * (group[0].way == "linear")
        for score, group in zip(scores, full, strict=True)
    ]
    best = min(range(len(full)), key=lambda number: weighed[number])
    near = []
    for number, group in enumerate(full):
        difference = losses[number] - losses[best]
        mean = float((difference * shares).sum())
        spread = (float(((difference - mean).square() * shares).sum()) / amount) ** 0.5
        if number == best or (weighed[number] - weighed[best] <= errors * spread):
            near.append(group)
    shrunk = [group for group in near if group[0].shrunk]
    if shrunk:
        group = max(shrunk, key=lambda one: sum(part.nonzeros for part in one))
    else:
        group = min(near, key=lambda one: (min(part.nonzeros for part in one), -one[0].alpha))
    return min(group, key=lambda one: one.score)


def mean_score(candidates: list[Candidate], one: Candidate) -> float:
    """Give the mean score, over folds, of what was found with the settings of one candidate."""
    scores = [other.score for other in candidates if other.key == one.key]
    return sum(scores) / len(scores)


def folds_of(objective: Relu, budget: int, seed: int, tuning: JudgeTuning) -> np.ndarray | None:  # (rows,)
    """Part the rows into folds, unless there are too few to be held out, or so many that the loss will do."""
    few = tuning.least(objective.loss) <= objective.data.amount < tuning.plenty * budget
    return parted(objective, seed, tuning) if few else None


def parted(objective: Relu, seed: int, tuning: JudgeTuning) -> np.ndarray:  # (rows,)
    """Part the rows into folds by what they hold, so that their order does not matter.

    Few equal rows stay together, so that a weight equals repeats. Of many, those to come repeat some as well,
    and scores on rows held out are to say how well these are done: then equal rows go to different folds.
    """
    place = _places(objective, seed)
    if objective.data.amount >= tuning.apart:
        order = np.argsort(place, kind="stable")
        first = np.maximum.accumulate(
            np.where(np.diff(place[order], prepend=-1) != 0, np.arange(len(order)), 0)
        )
        repeat = np.empty(len(order))
        repeat[order] = np.arange(len(order)) - first
        place = np.mod(place + repeat * tuning.share, 1)
    return np.floor(place / tuning.share).astype(np.int64)


def judges_of(
    objective: Relu, budget: int, seed: int, tuning: JudgeTuning, folds: int | None = None
) -> list[Judge]:
    """Decide how candidates are judged: on folds held out in turn, or by the loss where there are none."""
    amount, rows = objective.data.amount, objective.data.rows
    most = int(max(tuning.rows, tuning.rows_each * budget))
    fold = folds_of(objective, budget, seed, tuning)
    if fold is None:
        part = _at_most(objective, np.arange(rows), most, seed)
        return [Judge(part, replace(objective, alpha=0.0), part.data.amount / amount, tuning)]
    judges = []
    for number in range((folds or tuning.folds) if amount < tuning.many else 1):
        unseen = fold == number
        if not unseen.any() or unseen.all():
            continue
        part = _at_most(objective, np.flatnonzero(~unseen), most, seed)
        held = objective.on(objective.data.take(np.flatnonzero(unseen)))
        judges.append(Judge(part, replace(held, alpha=0.0), part.data.amount / amount, tuning, number))
    return judges or [Judge(objective, replace(objective, alpha=0.0), 1.0, tuning)]


def _at_most(objective: Relu, rows: np.ndarray, most: int, seed: int) -> Relu:
    if len(rows) > most:
        rows = np.sort(np.random.default_rng([seed, 6]).choice(rows, most, replace=False))
    return objective if len(rows) == objective.data.rows else objective.on(objective.data.take(rows))


def _places(objective: Relu, seed: int) -> np.ndarray:  # (rows,), between 0 and 1
    """Place every row by what it holds, so that equal rows stay together and a weight equals repeats."""
    direction = from_host(np.random.default_rng([seed, 5]).standard_normal(objective.data.columns))
    places = [batch.X.double() @ direction for batch in objective.data.chunks(1)]
    return np.mod(1000 * to_host(torch.cat(places)), 1)
