"""Choosing the budget: cross-validated paths from large to small, each fit starting from the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from thresher.errors import DataError, InterruptedFitWarning, ParameterError, warn_user
from thresher.estimators.checkpointing import checkpointed
from thresher.estimators.choosing import (
    RULES,
    budgets_to_try,
    folds_of,
    scorer_of,
    walk,
)
from thresher.estimators.fitting import checked_weights
from thresher.estimators.inputs import part_of, target_of
from thresher.estimators.intervals import IntervalPredictor, SetPredictor
from thresher.estimators.labels import are_labels, indicator, names_of
from thresher.estimators.mlp import SparseMLPClassifier, SparseMLPRegressor
from thresher.estimators.parameters import check_parameters, seed_of
from thresher.estimators.path import Course
from thresher.estimators.predicting import ClassPredictor, Predictor, Scored, refuse_one_class
from thresher.estimators.requiring import numbered
from thresher.objective.ranks import present
from thresher.solvers.journal import forgetting, journal


@dataclass(eq=False, repr=False)
class _BudgetPath(Predictor):
    """What both estimators share: the path, its scores, and the choice."""

    budgets: str | Sequence[int] = "auto"
    hidden: int | tuple[int, ...] = 100
    _: KW_ONLY
    cv: Any = 5
    scoring: Any = None
    rule: str = "one_se"
    solver: Any = "auto"
    loss: Any = "auto"
    bias: bool | None = None
    alpha: float | None = None
    batch_size: int | str | None = "auto"
    max_iter: int = 200
    memory_limit: int | str = "64MB"
    max_inputs: int | None = None
    max_fan_in: int | None = None
    groups: Any = None
    feature_costs: Any = None
    max_cost: float | None = None
    monotone: Any = None
    tuning: Any = None
    random_state: Any = None
    callback: Callable[[dict[str, Any]], object] | None = None
    checkpoint: Any = None
    checkpoint_every: str | int = "5min"

    _estimator: ClassVar[Callable[..., Any]]
    _passed_on: ClassVar[tuple[str, ...]] = (
        "hidden",
        "solver",
        "loss",
        "bias",
        "alpha",
        "batch_size",
        "max_iter",
        "memory_limit",
        "max_inputs",
        "max_fan_in",
        "groups",
        "feature_costs",
        "max_cost",
        "monotone",
        "tuning",
    )

    def _new(self, seed: int) -> Any:
        passed = {name: getattr(self, name) for name in self._passed_on} | numbered(self)
        return self._estimator(random_state=seed, warm_start=True, **passed)

    def _fit(self, X: Any, y: np.ndarray, rows: Any, weight: Any, groups: Any, classifier: bool) -> None:
        """Score every budget on every fold, choose one, and walk down to it on all rows.

        `X` is what the user gave, and goes to the last walk so that names of columns reach the network;
        `rows` is the same as an array, which the folds are taken from.
        """
        if self.rule not in RULES:
            raise ParameterError(f"rule={self.rule!r}, but it must be one of {', '.join(RULES)}.")
        if self.callback is not None and not callable(self.callback):
            raise ParameterError(f"callback={self.callback!r}, but it must be a function or None.")
        with present() as ranks:
            if ranks.count > 1:
                raise ParameterError(
                    f"{type(self).__name__} came with {ranks.count} ranks, but it chooses the budget on the "
                    "rows of one process. Choose it on some rows outside the process group, and fit with it "
                    "there."
                )
        seed = seed_of(self.random_state)
        settings = check_parameters(self._new(seed))
        budgets = budgets_to_try(self.budgets, settings.hidden, rows.shape)
        # What a user splits by may split otherwise the next time.
        counted = isinstance(self.cv, (int, np.integer))
        if counted and groups is not None:
            raise ParameterError(
                f"groups came with cv={self.cv}, which does not look at them. Use cv=GroupKFold({self.cv}), "
                "which keeps the rows of a group in one fold."
            )
        own = None if counted else folds_of(self.cv, rows, y, seed, classifier, groups)
        weight = checked_weights(weight, rows)
        data = {"X": rows, "y": y, "folds": _flat(own), "sample_weight": weight}
        with checkpointed(self, seed, ranks, **data) as seed:
            folds = folds_of(self.cv, rows, y, seed, classifier) if own is None else own
            self._walk(X, y, rows, weight, budgets, folds, seed, classifier)

    def _walk(
        self,
        X: Any,
        y: np.ndarray,
        rows: Any,
        weight: np.ndarray | None,
        budgets: list[int],
        folds: list[tuple[np.ndarray, np.ndarray]],
        seed: int,
        classifier: bool,
    ) -> None:
        """Fit every fold, and go down to the budget chosen; after Ctrl-C keep what there is."""
        course = Course(budgets, len(folds))
        self.missing_: str | None = None
        try:
            self._score(course, y, rows, weight, folds, seed, classifier)
        except KeyboardInterrupt:
            if not len(course.compared):
                raise
            journal().break_off()
            self._choose(course)
            self._keep_unfinished(course, rows, folds)
            return
        self._choose(course)
        chosen = budgets.index(self.budget_)
        try:
            for place, model in walk(self._new(seed), X, y, budgets[chosen:], weight):
                self._keep(model)
                self._tell(course, budgets[chosen + place], None, None)
        except KeyboardInterrupt:
            journal().break_off()
            self._keep_unfinished(course, rows, folds)

    def _score(
        self,
        course: Course,
        y: np.ndarray,
        rows: Any,
        weight: np.ndarray | None,
        folds: list[tuple[np.ndarray, np.ndarray]],
        seed: int,
        classifier: bool,
    ) -> None:
        """Walk down the budgets on every fold."""
        scorer = scorer_of(self._new(seed), self.scoring, y, folds, classifier)
        for fold, split in enumerate(folds):
            (seen, train), (unseen, test) = (part_of(rows, numbers) for numbers in split)
            weights = None if weight is None else weight[train]
            counted = {} if weight is None else {"sample_weight": weight[test]}
            for place, model in walk(self._new(seed), seen, y[train], course.budgets, weights):
                score = scorer(model, unseen, y[test], **counted)
                if not np.isfinite(score):
                    raise DataError(
                        f"scoring={self.scoring!r} gives {score} on fold {fold + 1}, whose {len(test)} "
                        f"row{'s' * (len(test) > 1)} it cannot measure. Use larger folds or another measure."
                    )
                course.scored(place, fold, model, score)
                self._tell(course, course.budgets[place], fold, score)

    def _choose(self, course: Course) -> None:
        self.budgets_, self.scores_ = np.array(course.budgets), course.scores
        self.mean_nonzeros_ = course.mean_nonzeros()
        self.mean_scores_, self.standard_errors_ = course.means()
        chosen, best = course.chosen(self.rule)
        self.budget_, self.best_budget_ = course.budgets[chosen], course.budgets[best]
        # That of another fit is not of this path.
        if hasattr(self, "estimator_"):
            del self.estimator_

    def _keep(self, model: Any) -> None:
        self.estimator_ = model
        self.network_, self.status_, self.n_iter_ = model.network_, model.status_, model.n_iter_

    def _keep_unfinished(self, course: Course, rows: Any, folds: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Keep the network that comes nearest to the one that was asked for, and say what is missing."""
        if hasattr(self, "estimator_"):
            kept = f"A network of budget {self.estimator_.budget:,} was kept"
        else:
            self._keep(course.first[course.budgets.index(self.budget_)])
            kept = (
                f"The network of budget {self.budget_:,} was kept that saw {len(folds[0][0]):,} of "
                f"{rows.shape[0]:,} rows"
            )
        on = "" if self.checkpoint is None else f" with the same checkpoint={str(self.checkpoint)!r}"
        missing = self.missing_ = course.missing(f"{kept}. Fit again{on} for all of it.")
        warn_user(missing, InterruptedFitWarning)

    def _tell(self, course: Course, budget: int, fold: int | None, score: float | None) -> None:
        if self.callback is None:
            return
        told = {"budget": budget, "fold": fold, "folds": course.folds, "score": score}
        with forgetting():
            self.callback({**told, "seconds_left": course.seconds_left()})


def _flat(folds: list[tuple[np.ndarray, np.ndarray]] | None) -> list[np.ndarray] | None:
    return None if folds is None else [part for fold in folds for part in fold]


@dataclass(eq=False, repr=False)
class SparseMLPRegressorCV(Scored, RegressorMixin, IntervalPredictor, _BudgetPath):
    """A :class:`SparseMLPRegressor` that chooses its budget by cross-validation.

    On every fold the largest budget is fitted first and each smaller one starts from the network before it.
    The smallest budget whose mean score is within one standard error of the best is chosen, and the same walk
    on all rows ends at its network.

    Parameters
    ----------
    budgets : "auto" or sequence of int
        What to choose from. By default 2, 3, 5, 8, 12, 20, ... up to a quarter of the rows.
    hidden : int or tuple of int
        Neurons in every hidden layer.
    cv : int, splitter or iterable
        Folds: a number of shuffled ones, or anything that scikit-learn splits by.
    scoring : str or callable, optional
        What to choose by, as scikit-learn names it; by default R2, and accuracy for classes. One row has no
        R2 of its own, so where a fold holds a single row (as with ``LeaveOneOut``) errors are compared with
        the variance of all targets: the mean score is then the R2 of the predictions of all folds together.
    rule : {"one_se", "best"}
        "one_se" takes the smallest budget within one standard error of the best; "best" the best itself. A
        single split (as with ``PredefinedSplit``) gives no standard error, and both take the best.
    solver, loss, bias, alpha, batch_size, max_iter, memory_limit, tuning
        As in :class:`SparseMLPRegressor`, for every fit.
    max_inputs, max_fan_in, groups, feature_costs, max_cost, monotone
        As there: what is required of every network. Inputs are chosen on the rows of each fold.
    random_state : int, RandomState or None
        Seed of folds and fits.
    callback : callable, optional
        Called after every fit with a dict of budget, fold, folds, score and seconds_left, an estimate; on the
        last walk fold is None.
    checkpoint, checkpoint_every
        As in :class:`SparseMLPRegressor`, for all fits together.

    Attributes
    ----------
    budget_ : int
        The budget chosen.
    best_budget_ : int
        The one with the highest mean score.
    budgets_ : array of shape (n_budgets,)
        All budgets, ascending.
    scores_ : array of shape (n_budgets, n_folds)
    mean_scores_, standard_errors_, mean_nonzeros_ : array of shape (n_budgets,)
    network_ : Network
        The network of the chosen budget, fitted to all rows.
    estimator_ : SparseMLPRegressor
        The estimator that holds it.
    missing_ : str or None
        What was not done because of Ctrl-C, and which network was kept all the same.

    Examples
    --------
    >>> from thresher.data.planted import planted
    >>> problem = planted(n=400, d=10, hidden=2, budget=6, seed=0)
    >>> path = SparseMLPRegressorCV(budgets=[2, 6, 12], hidden=2, bias=False, cv=3, random_state=0)
    >>> path.fit(problem.X, problem.y).budget_ in (6, 12)
    True
    """

    _estimator: ClassVar[Callable[..., Any]] = SparseMLPRegressor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = self._estimator().__sklearn_tags__().target_tags
        return tags

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> SparseMLPRegressorCV:
        """Choose a budget and fit its network.

        Parameters
        ----------
        X : array, sparse matrix or rows on disk of shape (n, d)
        y : array of shape (n,) or (n, n_targets)
        sample_weight : array of shape (n,), optional
            What rows count, in fits and in scores; a scoring function of your own then takes it as well.
        groups : array of shape (n,), optional
            The group of every row, for a `cv` that looks at groups, such as ``GroupKFold``.

        Returns
        -------
        self
        """
        rows, y = self._validated(X, y, numeric=True)
        y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
        self._fit(X, y, rows, sample_weight, groups, classifier=False)
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class SparseMLPClassifierCV(Scored, ClassifierMixin, ClassPredictor, SetPredictor, _BudgetPath):
    """A :class:`SparseMLPClassifier` that chooses its budget by cross-validation.

    Parameters and attributes are those of :class:`SparseMLPRegressorCV`, and in addition:

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights of the classes.

    Attributes
    ----------
    classes_ : array
        The labels, in order.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = SparseMLPClassifierCV([2, 10], hidden=3, cv=2, max_iter=5, random_state=0).fit(X, y)
    >>> path.nonzeros_ <= path.budget_, path.scores_.shape
    (True, (2, 2))
    """

    class_weight: Any = None

    _estimator: ClassVar[Callable[..., Any]] = SparseMLPClassifier
    _passed_on: ClassVar[tuple[str, ...]] = (*_BudgetPath._passed_on, "class_weight")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = self._estimator().__sklearn_tags__().classifier_tags
        return tags

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> SparseMLPClassifierCV:
        """Choose a budget and fit its network.

        Parameters
        ----------
        X : array, sparse matrix or rows on disk of shape (n, d)
        y : array of shape (n,), or of shape (n, labels)
            Labels: numbers, strings or booleans. Or a table of zeros and ones, which tells of several labels
            which ones a row has; budgets are then chosen by the share of rows whose labels are all right,
            unless `scoring` says otherwise, and folds are not stratified.
        sample_weight, groups : array of shape (n,), optional
            As for the regressor.

        Returns
        -------
        self
        """
        if are_labels(target_of(X, y)):
            return self._fit_labels(X, y, sample_weight, groups)
        rows, y = self._validated(X, y, numeric=False)
        check_classification_targets(y)
        refuse_one_class(np.unique(y))
        self._fit(X, y, rows, sample_weight, groups, classifier=True)
        self.classes_ = self.estimator_.classes_
        return self

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> SparseMLPClassifierCV:
        names = names_of(target_of(X, y))
        rows, table = self._validated(X, indicator(target_of(X, y)), numeric=False, several=True)
        self._fit(X, table, rows, sample_weight, groups, classifier=True)
        self.classes_, self.label_type_ = self.estimator_.classes_, self.estimator_.label_type_
        if names is not None:
            # Folds take rows of a table, whose columns have no names.
            self.network_ = replace(self.network_, details={**self.network_.details, "target": names})
            self.estimator_.network_ = self.network_
        return self
