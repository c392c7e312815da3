"""Choosing the budget: cross-validated paths from large to small, each fit starting from the last."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from thresher.budget import check_budget
from thresher.errors import DataError, InterruptedFitWarning, ParameterError
from thresher.estimators import SparseMLPClassifier, SparseMLPRegressor
from thresher.network import Network
from thresher.parameters import seed_of

# Budgets that are tried by default, as far as there are rows and weights for them.
BUDGETS = (2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500)
ROWS_FOR_A_NONZERO = 4

RULES = ("one_se", "best")

# Scores closer than this are equal: where several budgets explain everything, rounding must not choose.
SAME_SCORE = 1e-6

# Number types that need no conversion before a fit.
KEPT = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.int16, np.int32, np.int64, np.bool_]


class _BudgetPath(BaseEstimator):
    """What both estimators share: the path, its scores, and the choice."""

    network_: Network
    _estimator: Callable[..., Any]
    _passed_on: tuple[str, ...] = (
        "hidden",
        "solver",
        "bias",
        "alpha",
        "batch_size",
        "max_iter",
        "memory_limit",
    )

    def __init__(
        self,
        budgets: str | Sequence[int] = "auto",
        hidden: int | tuple[int, ...] = 100,
        *,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "one_se",
        solver: Any = "auto",
        bias: bool | None = None,
        alpha: float | None = None,
        batch_size: int | str | None = "auto",
        max_iter: int = 200,
        memory_limit: int | str = "64MB",
        random_state: Any = None,
        callback: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self.budgets = budgets
        self.hidden = hidden
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.solver = solver
        self.bias = bias
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _new(self, seed: int) -> Any:
        passed = {name: getattr(self, name) for name in self._passed_on}
        return self._estimator(random_state=seed, warm_start=True, **passed)

    def _fit(self, X: Any, y: np.ndarray, rows: Any, classifier: bool) -> None:
        """Score every budget on every fold, choose one, and walk down to it on all rows.

        `X` is what the user gave, and goes to the last walk so that names of columns reach the network;
        `rows` is the same as an array, which the folds are taken from.
        """
        if self.rule not in RULES:
            raise ParameterError(f"rule={self.rule!r}, but it must be one of {', '.join(RULES)}.")
        seed = seed_of(self.random_state)
        budgets = self._budgets(rows)
        scorer = check_scoring(self._new(seed), scoring=self.scoring)
        folds = list(self._splitter(y, seed, classifier).split(rows, y))
        scores, nonzeros = (
            np.empty((len(budgets), len(folds))),
            np.empty((len(budgets), len(folds)), dtype=int),
        )
        for fold, (train, test) in enumerate(folds):
            for place, model in self._walk(rows[train], y[train], budgets, seed):
                scores[place, fold] = scorer(model, rows[test], y[test])
                nonzeros[place, fold] = model.nonzeros_
                self._tell(budgets[place], fold, len(folds), scores[place, fold])
        self.budgets_, self.scores_ = np.array(budgets), scores
        self.mean_nonzeros_ = nonzeros.mean(axis=1)
        self.mean_scores_ = scores.mean(axis=1)
        self.standard_errors_ = scores.std(axis=1, ddof=1) / np.sqrt(len(folds))
        chosen, best = choose(self.mean_scores_, self.standard_errors_, self.rule)
        self.budget_, self.best_budget_ = budgets[chosen], budgets[best]
        for place, model in self._walk(X, y, budgets[chosen:], seed):
            self._tell(budgets[chosen + place], None, len(folds), None)
            self.estimator_ = model
        self.network_ = self.estimator_.network_
        self.status_ = self.estimator_.status_
        self.n_iter_ = self.estimator_.n_iter_

    def _walk(self, X: Any, y: np.ndarray, budgets: Sequence[int], seed: int) -> Any:
        """Fit the largest budget, then each smaller one from where the last ended; yield place and model."""
        model = self._new(seed)
        for place in reversed(range(len(budgets))):
            model.set_params(budget=budgets[place])
            with warnings.catch_warnings():
                # Ctrl-C ends the whole path, not only the fit that it meets.
                warnings.simplefilter("error", InterruptedFitWarning)
                # A budget too small for any path through the network is a fair try; its score tells.
                warnings.filterwarnings("ignore", message="no input reaches an output")
                try:
                    model.fit(X, y)
                except InterruptedFitWarning:
                    raise KeyboardInterrupt from None
            yield place, model

    def _tell(self, budget: int, fold: int | None, folds: int, score: float | None) -> None:
        if self.callback is not None:
            self.callback({"budget": budget, "fold": fold, "folds": folds, "score": score})

    def _budgets(self, rows: Any) -> list[int]:
        """Give the budgets to try in ascending order."""
        if isinstance(self.budgets, str):
            if self.budgets != "auto":
                raise ParameterError(
                    f"budgets={self.budgets!r}, but it must be 'auto' or whole numbers such as [5, 10, 20]."
                )
            first, *others = self.hidden if isinstance(self.hidden, tuple) else (self.hidden,)
            most = min(rows.shape[0] // ROWS_FOR_A_NONZERO, (rows.shape[1] + 1) * first + sum(others) + 1)
            return [budget for budget in BUDGETS if budget <= most] or [BUDGETS[0]]
        budgets = sorted({check_budget(budget) for budget in self.budgets})
        if not budgets:
            raise ParameterError("budgets is empty, but there must be one or more to choose from.")
        return budgets

    def _splitter(self, y: np.ndarray, seed: int, classifier: bool) -> Any:
        """Give what splits rows into folds; a number of them is shuffled, and lowered where rows are few."""
        if not isinstance(self.cv, (int, np.integer)):
            return check_cv(self.cv, y, classifier=classifier)
        if self.cv < 2:
            raise ParameterError(f"cv={self.cv}, but cross-validation needs 2 folds or more.")
        # A score needs two rows, and a fold of classes one of each.
        room = int(np.unique(y, return_counts=True)[1].min()) if classifier else len(y) // 2
        if room < 2:
            raise DataError(
                f"{len(y)} rows came, n_samples={len(y)}, and some class has fewer than 2, but "
                "cross-validation needs 4 rows or more, and 2 of each class. Give more rows, or fit one "
                "budget without it."
            )
        kind = StratifiedKFold if classifier else KFold
        return kind(min(int(self.cv), room), shuffle=True, random_state=seed)

    @property
    def nonzeros_(self) -> int:
        """How many weights and biases the network holds: at most `budget_`."""
        check_is_fitted(self, "network_")
        return self.network_.nonzeros

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Say which inputs the network uses, as a mask or as numbers of columns."""
        check_is_fitted(self, "network_")
        mask = self.network_.support()
        return np.flatnonzero(mask) if indices else mask

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of every row with the network of the chosen budget."""
        X = self._checked(X)
        return self.network_.predict(X)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "network_")
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=KEPT)


class SparseMLPRegressorCV(RegressorMixin, _BudgetPath):
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
        What to choose by, as scikit-learn names it; by default R2, and accuracy for classes.
    rule : {"one_se", "best"}
        "one_se" takes the smallest budget within one standard error of the best; "best" the best itself.
    solver, bias, alpha, batch_size, max_iter, memory_limit
        As in :class:`SparseMLPRegressor`, for every fit.
    random_state : int, RandomState or None
        Seed of folds and fits.
    callback : callable, optional
        Called after every fit with a dict of budget, fold, folds and score; on the last walk fold is None.

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

    Examples
    --------
    >>> from thresher.data.planted import planted
    >>> problem = planted(n=400, d=10, hidden=2, budget=6, seed=0)
    >>> path = SparseMLPRegressorCV(budgets=[2, 6, 12], hidden=2, bias=False, cv=3, random_state=0)
    >>> path.fit(problem.X, problem.y).budget_
    6
    """

    _estimator = SparseMLPRegressor

    def fit(self, X: Any, y: Any) -> SparseMLPRegressorCV:
        """Choose a budget and fit its network.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,) or (n, n_targets)

        Returns
        -------
        self
        """
        rows, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=KEPT,
            multi_output=True,
            y_numeric=True,
            accept_large_sparse=False,
        )
        y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
        self._fit(X, y, rows, classifier=False)
        return self


class SparseMLPClassifierCV(ClassifierMixin, _BudgetPath):
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
    >>> path = SparseMLPClassifierCV([2, 5, 10], hidden=3, cv=3, max_iter=20, random_state=0).fit(X, y)
    >>> path.nonzeros_ <= path.budget_, path.scores_.shape
    (True, (3, 3))
    """

    _estimator = SparseMLPClassifier
    _passed_on = (*_BudgetPath._passed_on, "class_weight")

    def __init__(
        self,
        budgets: str | Sequence[int] = "auto",
        hidden: int | tuple[int, ...] = 100,
        *,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "one_se",
        solver: Any = "auto",
        bias: bool | None = None,
        alpha: float | None = None,
        batch_size: int | str | None = "auto",
        max_iter: int = 200,
        class_weight: Any = None,
        memory_limit: int | str = "64MB",
        random_state: Any = None,
        callback: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        super().__init__(
            budgets,
            hidden,
            cv=cv,
            scoring=scoring,
            rule=rule,
            solver=solver,
            bias=bias,
            alpha=alpha,
            batch_size=batch_size,
            max_iter=max_iter,
            memory_limit=memory_limit,
            random_state=random_state,
            callback=callback,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._estimator().__sklearn_tags__().classifier_tags.multi_class
        return tags

    def fit(self, X: Any, y: Any) -> SparseMLPClassifierCV:
        """Choose a budget and fit its network.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
            Labels: numbers, strings or booleans.

        Returns
        -------
        self
        """
        rows, y = validate_data(self, X, y, accept_sparse="csr", dtype=KEPT, accept_large_sparse=False)
        check_classification_targets(y)
        if len(np.unique(y)) < 2:
            raise DataError(
                f"y holds one class only, {y[0]!r}, but a classifier needs two classes to tell apart. Give "
                "rows of both."
            )
        self._fit(X, y, rows, classifier=True)
        self.classes_ = self.estimator_.classes_
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Give a number for every row: above zero speaks for the second of two classes."""
        X = self._checked(X)
        return self.network_.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class for every row."""
        X = self._checked(X)
        return self.network_.predict_proba(X)


def choose(means: np.ndarray, errors: np.ndarray, rule: str) -> tuple[int, int]:
    """Choose among budgets in ascending order, and say which scored best.

    Parameters
    ----------
    means, errors : array of shape (n_budgets,)
        Mean score and its standard error.
    rule : {"one_se", "best"}

    Examples
    --------
    >>> choose(np.array([0.1, 0.8, 0.85]), np.array([0.1, 0.1, 0.1]), "one_se")
    (1, 2)
    """
    best = int(np.argmax(means))
    if rule == "best":
        return best, best
    return int(np.flatnonzero(means >= means[best] - errors[best] - SAME_SCORE)[0]), best
