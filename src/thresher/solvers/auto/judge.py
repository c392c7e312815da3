"""The judge: which rows are held out, how candidates are scored, which one wins."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from thresher.objective.relu import Relu
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.tuning import JudgeTuning


@dataclass(frozen=True, eq=False)
class Candidate:
    """What a way found: a network, the penalty it was found under, and its score (less is better)."""

    way: str
    fit: Fit
    alpha: float
    score: float

    @property
    def nonzeros(self) -> int:
        """How many weights it holds."""
        return self.fit.nonzeros


@dataclass(frozen=True, eq=False)
class Judge:
    """Rows to search on, and rows to score on (the same where they are plenty).

    Attributes
    ----------
    part, unseen : Relu
        The objective on the rows to search on, and on those to score on.
    held_out : bool
        Whether the two differ.
    """

    part: Relu
    unseen: Relu
    held_out: bool
    tuning: JudgeTuning

    def candidate(self, way: str, fit: Fit, alpha: float) -> Candidate:
        """Score what a way found."""
        return Candidate(way, fit, alpha, self.unseen.value(fit.point))

    def best(self, candidates: list[Candidate]) -> Candidate:
        """Choose the fewest nonzeros among those whose score is as good as the best."""
        least = min(candidate.score for candidate in candidates)
        equal = [one for one in candidates if one.score <= least + self.tuning.equal * abs(least) + 1e-20]
        return min(equal, key=lambda one: (one.nonzeros, one.score))


def judge_of(objective: Relu, budget: int, seed: int, tuning: JudgeTuning) -> Judge:
    """Decide how candidates are judged, by how many rows there are for each nonzero."""
    amount = objective.data.amount
    most = int(max(tuning.rows, tuning.rows_each * budget))
    if amount < tuning.fewest or amount >= tuning.plenty * budget:
        part = _at_most(objective, np.arange(objective.data.rows), most, seed)
        return Judge(part, replace(objective, alpha=0.0), False, tuning)
    unseen = _unseen(objective, seed, tuning.share)
    seen = np.flatnonzero(~unseen)
    held = objective.on(objective.data.take(np.flatnonzero(unseen)))
    return Judge(_at_most(objective, seen, most, seed), replace(held, alpha=0.0), True, tuning)


def _at_most(objective: Relu, rows: np.ndarray, most: int, seed: int) -> Relu:
    if len(rows) > most:
        rows = np.sort(np.random.default_rng([seed, 6]).choice(rows, most, replace=False))
    return objective if len(rows) == objective.data.rows else objective.on(objective.data.take(rows))


def _unseen(objective: Relu, seed: int, share: float) -> np.ndarray:  # (rows,), bool
    """Divide the rows by what they hold, so that equal rows stay together and a weight equals repeats."""
    direction = torch.from_numpy(np.random.default_rng([seed, 5]).standard_normal(objective.data.columns))
    places = [batch.X.double() @ direction for batch in objective.data.chunks(1)]
    place = torch.cat(places).numpy()
    return np.mod(1000 * place, 1) < share
