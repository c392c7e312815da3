"""Pruning by magnitude: round by round, gradually, at once, and not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from thresher.baselines.base import Baseline, is_share, is_whole
from thresher.baselines.masked import MaskedMLP
from thresher.baselines.run import Problem, Record


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

    def _search(self, model: MaskedMLP, problem: Problem, budget: int, record: Record) -> None:
        first = model.flat.clone()
        for target in pruning_rounds(model.size, budget, self.fraction):
            self._run(model, problem).train(record)
            model.keep_largest(target)
            if self.retrain or target > budget:
                model.flat.copy_(first)
                model.apply_mask()
        if self.retrain or budget == model.size:
            self._run(model, problem).train(record)

    def _check_own(self, require: Any) -> None:
        require("fraction", is_share(self.fraction), "a number between 0 and 1")


def pruning_rounds(size: int, budget: int, fraction: float) -> Iterator[int]:
    """Give how many weights each round of pruning leaves, down to the budget.

    Examples
    --------
    >>> list(pruning_rounds(100, 60, 0.1))
    [90, 81, 73, 66, 60]
    >>> list(pruning_rounds(12, 8, 0.1))
    [11, 10, 9, 8]
    """
    active = size
    while active > budget:
        active = max(budget, active - max(1, int(fraction * active)))
        yield active


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

    pruning_share: float = 0.7
    prune_every: int = 20

    def _search(self, model: MaskedMLP, problem: Problem, budget: int, record: Record) -> None:
        run = self._run(model, problem)
        # The last step must still come after pruning, however short the run is.
        last = min(max(1, int(self.pruning_share * run.steps)), max(1, run.steps - 1))
        every = max(1, min(self.prune_every, last // 20))

        def prune(step: int) -> None:
            if step <= last and (step % every == 0 or step == last):
                left = (1 - step / last) ** 3
                model.keep_largest(budget + int(left * (model.size - budget)))

        run.train(record, at_step=prune)

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

    def _search(self, model: MaskedMLP, problem: Problem, budget: int, record: Record) -> None:
        self._run(model, problem).train(record)
        model.keep_largest(budget)
        self._run(model, problem).train(record)


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

    def _search(self, model: MaskedMLP, problem: Problem, budget: int, record: Record) -> None:
        self._run(model, problem).train(record)
