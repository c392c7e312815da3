"""Budgets along a path: which to try, on which folds, by which score, how to walk, which to take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from thresher.errors import DataError, InterruptedFitWarning, ParameterError
from thresher.linear.budget import check_budget

# Budgets that are tried by default, as far as there are rows and weights for them.
BUDGETS = (2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500)
ROWS_FOR_A_NONZERO = 4

RULES = ("one_se", "best")

# Scores closer than this are equal: where several budgets explain everything, rounding must not choose.
SAME_SCORE = 1e-6


def budgets_to_try(
    budgets: str | Sequence[int], hidden: tuple[int, ...], shape: tuple[int, int]
) -> list[int]:
    """Give the budgets to try in ascending order.

    Parameters
    ----------
    budgets : "auto" or sequence of int
        As it was asked for.
    hidden : tuple of int
        Neurons in every hidden layer.
    shape : (int, int)
        Rows and columns of the data.

    Examples
    --------
    >>> budgets_to_try("auto", (100,), (50, 8))
    [2, 3, 5, 8, 12]
    >>> budgets_to_try([9, 3, 9], (100,), (50, 8))
    [3, 9]
    """
    if isinstance(budgets, str) and budgets == "auto":
        rows, columns = shape
        first, *others = hidden
        most = min(rows // ROWS_FOR_A_NONZERO, (columns + 1) * first + sum(others) + 1)
        return [budget for budget in BUDGETS if budget <= most] or [BUDGETS[0]]
    if isinstance(budgets, (str, bytes)) or not np.iterable(budgets):
        raise ParameterError(
            f"budgets={budgets!r}, but it must be 'auto' or whole numbers such as [5, 10, 20]. One budget is "
            "no choice: fit it without cross-validation, or write budgets=[5] for its score."
        )
    ascending = sorted({check_budget(budget) for budget in budgets})
    if not ascending:
        raise ParameterError("budgets is empty, but there must be one or more to choose from.")
    return ascending


def splitter(cv: Any, y: np.ndarray, seed: int, classifier: bool) -> Any:
    """Give what splits rows into folds; a number of them is shuffled, and lowered where rows are few.

    Folds have a share of every class, but not of every set of labels, of which there are too many.
    """
    # What only cross-validation needs takes 15 MB, which a fit does without.
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv

    if not isinstance(cv, (int, np.integer)):
        return check_cv(cv, y, classifier=classifier)
    if cv < 2:
        raise ParameterError(f"cv={cv}, but cross-validation needs 2 folds or more.")
    # A score needs two rows, and a fold of classes one of each.
    by_class = classifier and y.ndim == 1
    room = int(np.unique(y, return_counts=True)[1].min()) if by_class else len(y) // 2
    if room < 2:
        raise DataError(
            f"{len(y)} rows came, n_samples={len(y)}, and some class has fewer than 2, but "
            "cross-validation needs 4 rows or more, and 2 of each class. Give more rows, or fit one "
            "budget without it."
        )
    kind = StratifiedKFold if by_class else KFold
    return kind(min(int(cv), room), shuffle=True, random_state=seed)


def folds_of(
    cv: Any, X: Any, y: np.ndarray, seed: int, classifier: bool, groups: Any = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Give the rows to fit and the rows to score of every fold, and refuse folds that lack either."""
    check_consistent_length(y, groups)
    places, folds = np.arange(len(y)), []
    for number, parts in enumerate(splitter(cv, y, seed, classifier).split(X, y, groups), start=1):
        train, test = (np.asarray(part) for part in parts)
        if not (train.size and test.size):
            raise DataError(
                f"fold {number} of cv has {train.size} rows to fit and {test.size} to score, but it needs "
                "one or more of each. Leave it out."
            )
        try:
            train, test = places[train], places[test]
        except IndexError as error:
            raise DataError(
                f"fold {number} of cv names rows that X, of {len(y)} rows, does not have: {error}."
            ) from error
        if classifier and y.ndim == 1 and len(classes := np.unique(y[train])) < 2:
            raise DataError(
                f"fold {number} of cv leaves rows of one class only, {classes.tolist()[0]!r}, to be fitted. "
                "Give more rows of the others, or another cv such as StratifiedKFold."
            )
        folds.append((train, test))
    if not folds:
        raise DataError("cv has no folds, but a budget is chosen by the scores of one or more.")
    return folds


def scorer_of(
    model: Any, scoring: Any, y: np.ndarray, folds: Sequence[tuple[np.ndarray, np.ndarray]], classifier: bool
) -> Callable[..., float]:
    """Give what scores a fitted model on a fold: scikit-learn's scorer, or R2 that is defined for one row."""
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ParameterError(
            f"scoring={scoring!r}, but one measure chooses: its name, a function of model, X and y, or None."
        )
    r2 = (scoring is None and not classifier) or (isinstance(scoring, str) and scoring == "r2")
    if r2 and min(len(test) for _, test in folds) < 2:
        return SharedR2(np.atleast_1d(np.var(y, axis=0)))
    from sklearn.metrics import check_scoring

    scorer: Callable[..., float] = check_scoring(model, scoring=scoring)
    return scorer


@dataclass(frozen=True, eq=False)
class SharedR2:
    """R2 of a fold against the spread of all rows, since one row has none of its own.

    The mean over folds of equal size is the R2 of the predictions of all folds together.

    Parameters
    ----------
    variance : array of shape (n_targets,)
        Of the targets of all rows.
    """

    variance: np.ndarray

    def __call__(self, model: Any, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        """Give 1 less the mean squared error as a share of the variance, the mean over targets."""
        error = np.atleast_1d(np.average(np.square(y - model.predict(X)), axis=0, weights=sample_weight))
        # As scikit-learn has it: of targets that do not vary a perfect prediction scores 1, any other 0.
        unexplained = np.divide(error, self.variance, out=np.sign(error), where=self.variance > 0)
        return float(np.mean(1 - unexplained))


def standard_errors(scores: np.ndarray) -> np.ndarray:  # (n_budgets,)
    """Give the standard error of every budget's mean score; 0 where a single fold tells nothing of it."""
    budgets, folds = scores.shape
    return scores.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(budgets)


def walk(
    model: Any, X: Any, y: np.ndarray, budgets: Sequence[int], weight: np.ndarray | None = None
) -> Iterator[tuple[int, Any]]:
    """Fit the largest budget, then each smaller one from where the last ended; yield place and model.

    A network that a smaller budget has room for as well is that budget's too: more could not help.

    Parameters
    ----------
    model : estimator
        With ``warm_start=True``; it is fitted again and again.
    X, y
        Rows and targets.
    budgets : sequence of int
        In ascending order.
    weight : array, optional
        What rows count.
    """
    for place in reversed(range(len(budgets))):
        model.set_params(budget=budgets[place])
        if not model._descends or model.nonzeros_ > budgets[place]:
            with warnings.catch_warnings():
                # Ctrl-C ends the whole path, not only the fit that it meets.
                warnings.simplefilter("error", InterruptedFitWarning)
                # A budget too small for any path through the network is a fair try; its score tells.
                warnings.filterwarnings("ignore", message="no input reaches an output")
                try:
                    model.fit(X, y, sample_weight=weight)
                except InterruptedFitWarning:
                    raise KeyboardInterrupt from None
            model._descends = True
        yield place, model


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
