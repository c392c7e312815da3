"""Pruning by magnitude: round by round, gradually, at once, and not at all."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from thresher.baselines.base import Baseline, Trial, is_share, is_whole
from thresher.clock import Seconds
from thresher.linear.budget import check_budget


@dataclass(eq=False, repr=False)
class IterativePruning(Baseline):
    """Iterative magnitude pruning: train, prune a tenth, rewind to the first weights, train again.

    Each round trains for `max_iter` passes, switches off `fraction` of the active weights, those of smallest
    magnitude in all layers together, and gives the others their first values back. The last round prunes just
    what is left to prune, so the budget is met exactly.

    The paper's baseline, "imp-paper" in `BASELINES`, hands out what the last pruning leaves, never trained
    since. The default trains it once more, on scaled data, with a learning rate that suits the steps.

    Parameters
    ----------
    fraction : float
        Share of the active weights pruned in a round; where it is less than one weight, one is pruned.
    retrain : bool
        Whether the network is trained once more after the last pruning.
    **others
        As in :class:`thresher.baselines.base.Baseline`.

    References
    ----------
    J. Frankle and M. Carbin, "The lottery ticket hypothesis: finding sparse, trainable neural networks",
    ICLR 2019.

    Examples
    --------
    >>> from thresher.data.planted import planted
    >>> problem = planted(n=200, d=5, hidden=2, budget=4)
    >>> model = IterativePruning(budget=4, hidden=3, bias=False, max_iter=2, random_state=0)
    >>> model.fit(problem.X, problem.y).active_curve_[::2]
    [18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4]
    >>> model.nonzeros_
    4
    """

    fraction: float = 0.1
    retrain: bool = True

    def fit_path(self, X: Any, y: Any, budgets: Iterable[int]) -> Iterator[tuple[int, IterativePruning]]:
        """Fit for several budgets in about the time that the smallest of them takes.

        Budgets share the rounds that lead to them, so each network is, to the last bit, the one that
        :meth:`fit` finds for its budget alone, and `seconds_` is what that would have taken.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.
        budgets : several int
            Whole numbers of 1 or more; the parameter `budget` is not used.

        Yields
        ------
        int, IterativePruning
            Each budget, largest first, and a copy of this estimator fitted for it.
        """
        began = Seconds.now()
        trial = self._prepare(X, y)
        model, first = trial.model, trial.model.flat.clone()
        self._run(trial).train(trial.record)
        for budget in sorted({check_budget(budget) for budget in budgets}, reverse=True):
            self._approach(trial, first, budget)
            asked, record = Seconds.now(), copy.deepcopy(trial.record)
            state = model.flat.clone(), model.mask.clone(), trial.generator.get_state()
            self._arrive(trial, first, budget)
            fitted = copy.copy(self)
            fitted.budget = budget
            fitted._keep(trial, Seconds.since(began))
            yield budget, fitted
            model.flat.copy_(state[0])
            model.mask.copy_(state[1])
            trial.generator.set_state(state[2])
            trial.record = record
            # What one budget took by itself is no part of the others' time.
            began = began.later(Seconds.since(asked))

    def _search(self, trial: Trial, budget: int) -> None:
        first = trial.model.flat.clone()
        self._run(trial).train(trial.record)
        self._approach(trial, first, budget)
        self._arrive(trial, first, budget)

    def _approach(self, trial: Trial, first: Tensor, budget: int) -> None:
        """Go round after round while the budget is more than one pruning away."""
        while (left := weights_left(trial.model.active, self.fraction)) > budget:
            trial.model.keep_largest(left)
            self._train_again(trial, first)

    def _arrive(self, trial: Trial, first: Tensor, budget: int) -> None:
        """Prune to the budget, and train once more if that is wanted."""
        if trial.model.keep_largest(budget) and self.retrain:
            self._train_again(trial, first)

    def _train_again(self, trial: Trial, first: Tensor) -> None:
        trial.model.flat.copy_(first)
        trial.model.apply_mask()
        self._train_live(trial)

    def _check_own(self, require: Any) -> None:
        require("fraction", is_share(self.fraction), "a number between 0 and 1")


def weights_left(active: int, fraction: float) -> int:
    """Give how many weights a round of pruning leaves: all but a fraction, and at least one less.

    Examples
    --------
    >>> weights_left(79_400, 0.1), weights_left(19, 0.1), weights_left(5, 0.1)
    (71460, 18, 4)
    """
    return active - max(1, int(fraction * active))


@dataclass(eq=False, repr=False)
class GradualPruning(Baseline):
    """Gradual magnitude pruning: one training run in which the budget falls along a cubic curve.

    Over the first `pruning_share` of the steps the active weights fall from all N of them to the budget s as
    ``s + (N - s) (1 - t)^3``; the rest of the run trains what is left. What was pruned never returns.

    Parameters
    ----------
    pruning_share : float
        Share of the steps by which pruning ends.
    prune_every : int
        Steps from one pruning to the next, or fewer where the run is short.
    **others
        As in :class:`thresher.baselines.base.Baseline`.

    References
    ----------
    M. Zhu and S. Gupta, "To prune, or not to prune: exploring the efficacy of pruning for model compression",
    2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GradualPruning("classification", budget=200, hidden=20, random_state=0).fit(X, y)
    >>> model.nonzeros_, model.score(X, y) > 0.85
    (200, True)
    """

    pruning_share: float = 0.5
    prune_every: int = 20

    def _search(self, trial: Trial, budget: int) -> None:
        run, model = self._run(trial), trial.model
        # The last step must still come after pruning, however short the run is.
        last = min(max(1, int(self.pruning_share * run.steps)), max(1, run.steps - 1))
        every = max(1, min(self.prune_every, last // 20))

        def prune(step: int) -> None:
            if step <= last and (step % every == 0 or step == last):
                left = (1 - step / last) ** 3
                model.keep_largest(budget + int(left * (model.size - budget)))

        run.train(trial.record, at_step=prune)

    def _check_own(self, require: Any) -> None:
        require("pruning_share", is_share(self.pruning_share), "a number between 0 and 1")
        require("prune_every", is_whole(self.prune_every), "a whole number of steps, 1 or more")


@dataclass(eq=False, repr=False)
class OneShotPruning(Baseline):
    """One-shot magnitude pruning: train, keep the largest weights, train those for as long again.

    Parameters
    ----------
    **others
        As in :class:`thresher.baselines.base.Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OneShotPruning("classification", budget=50, hidden=10, random_state=0).fit(X, y)
    >>> model.nonzeros_, len(model.loss_curve_)
    (50, 40)
    """

    def _search(self, trial: Trial, budget: int) -> None:
        self._run(trial).train(trial.record)
        trial.model.keep_largest(budget)
        self._train_live(trial)


@dataclass(eq=False, repr=False)
class Dense(Baseline):
    """Dense training, the ceiling: no weight is pruned, and the budget is ignored.

    Parameters
    ----------
    **others
        As in :class:`thresher.baselines.base.Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Dense(hidden=20, random_state=0).fit(X, y).nonzeros_
    241
    """

    def _search(self, trial: Trial, budget: int) -> None:
        self._run(trial).train(trial.record)
