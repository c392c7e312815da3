"""A path of budgets as it is walked: what was scored, how long the rest will take, what Ctrl-C leaves."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresher.estimators.choosing import choose, standard_errors

# What a smaller budget takes of the time of the largest one, before any was timed.
STEP_SHARE = 0.3


@dataclass(eq=False)
class Course:
    """How far a path of budgets is.

    Attributes
    ----------
    budgets : list of int
        Ascending.
    folds : int
    scores : array of shape (n_budgets, folds)
        NaN where nothing was scored yet.
    nonzeros : int array of shape (n_budgets, folds)
    first : dict
        The estimators of the first fold by the place of their budget: what there is before all rows were
        fitted.
    """

    budgets: list[int]
    folds: int
    scores: np.ndarray = field(init=False)
    nonzeros: np.ndarray = field(init=False)
    first: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = len(self.budgets), self.folds
        self.scores, self.nonzeros = np.full(shape, np.nan), np.zeros(shape, dtype=int)
        self.began = self.fold_began = time.monotonic()
        self.fits = 0

    def scored(self, place: int, fold: int, model: Any, score: float) -> None:
        """Write down what a budget scored on a fold."""
        self.scores[place, fold], self.nonzeros[place, fold] = score, model.nonzeros_
        self.fits += 1
        if fold == 0:
            self.first[place] = copy(model)
        if place == 0:
            self.fold_began = time.monotonic()

    @property
    def complete(self) -> bool:
        """Whether every budget was scored on every fold."""
        return not np.isnan(self.scores).any()

    @property
    def compared(self) -> np.ndarray:  # (n_compared,)
        """The places of the budgets that were scored on as many folds as any."""
        counts = (~np.isnan(self.scores)).sum(axis=1)
        return np.flatnonzero(counts == counts.max()) if counts.any() else np.zeros(0, dtype=int)

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Give mean scores and their standard errors; NaN for what was not scored."""
        means, errors = np.full((2, len(self.budgets)), np.nan)
        for place, scores in enumerate(self.scores):
            known = scores[~np.isnan(scores)]
            if known.size:
                means[place], errors[place] = known.mean(), standard_errors(known[None])[0]
        return means, errors

    def mean_nonzeros(self) -> np.ndarray:
        """Give the mean number of nonzeros of every budget, over the folds it was scored on."""
        counts = (~np.isnan(self.scores)).sum(axis=1)
        return self.nonzeros.sum(axis=1) / np.maximum(counts, 1)

    def chosen(self, rule: str) -> tuple[int, int]:
        """Give the places of the budget to take and of the best, among those that can be compared."""
        means, errors = self.means()
        compared = self.compared
        chosen, best = choose(means[compared], errors[compared], rule)
        return int(compared[chosen]), int(compared[best])

    def seconds_left(self) -> float | None:
        """Estimate how long the path will take yet, the walk on all rows included."""
        elapsed = time.monotonic() - self.began
        count = len(self.budgets)
        if not self.fits:
            return None
        folds, walked = divmod(self.fits, count)
        if folds == 0:
            # The largest budget takes most of the time.
            shares = np.r_[1.0, np.full(count - 1, STEP_SHARE)]
            return elapsed * (shares.sum() * (self.folds + 1) / shares[:walked].sum() - 1)
        each = (self.fold_began - self.began) / folds
        return max(0.0, each * (self.folds + 1 - folds) - (time.monotonic() - self.fold_began))

    def missing(self, kept: str) -> str:
        """Say what an interrupted path has not done, and what was kept."""
        if self.complete:
            return f"the walk on all rows was interrupted; every budget was scored. {kept}"
        done = int((~np.isnan(self.scores)).sum())
        fold = min(self.folds, self.fits // len(self.budgets) + 1)
        return (
            f"the path was interrupted on fold {fold} of {self.folds}: {done} of {self.scores.size} fits "
            f"were scored. {kept}"
        )
