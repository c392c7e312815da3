"""Budgets along a path: which to try, on which folds, how to walk from large to small, which to take."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from thresher.errors import DataError, InterruptedFitWarning, ParameterError
from thresher.linear.budget import check_budget

# Budgets that are tried by default, as far as there are rows and weights for them.
BUDGETS = (2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500)
ROWS_FOR_A_NONZERO = 4

RULES = ("one_se", "best")

# Scores closer than this are equal: where several budgets explain everything, rounding must not choose.
SAME_SCORE = 1e-6


def budgets_to_try(
    budgets: str | Sequence[int], hidden: int | tuple[int, ...], shape: tuple[int, int]
) -> list[int]:
    """Give the budgets to try in ascending order.

    Parameters
    ----------
    budgets : "auto" or sequence of int
        As it was asked for.
    hidden : int or tuple of int
        Neurons in every hidden layer.
    shape : (int, int)
        Rows and columns of the data.

    Examples
    --------
    >>> budgets_to_try("auto", 100, (50, 8))
    [2, 3, 5, 8, 12]
    >>> budgets_to_try([9, 3, 9], 100, (50, 8))
    [3, 9]
    """
    if isinstance(budgets, str):
        if budgets != "auto":
            raise ParameterError(
                f"budgets={budgets!r}, but it must be 'auto' or whole numbers such as [5, 10, 20]."
            )
        rows, columns = shape
        first, *others = hidden if isinstance(hidden, tuple) else (hidden,)
        most = min(rows // ROWS_FOR_A_NONZERO, (columns + 1) * first + sum(others) + 1)
        return [budget for budget in BUDGETS if budget <= most] or [BUDGETS[0]]
    ascending = sorted({check_budget(budget) for budget in budgets})
    if not ascending:
        raise ParameterError("budgets is empty, but there must be one or more to choose from.")
    return ascending


def splitter(cv: Any, y: np.ndarray, seed: int, classifier: bool) -> Any:
    """Give what splits rows into folds; a number of them is shuffled, and lowered where rows are few."""
    if not isinstance(cv, (int, np.integer)):
        return check_cv(cv, y, classifier=classifier)
    if cv < 2:
        raise ParameterError(f"cv={cv}, but cross-validation needs 2 folds or more.")
    # A score needs two rows, and a fold of classes one of each.
    room = int(np.unique(y, return_counts=True)[1].min()) if classifier else len(y) // 2
    if room < 2:
        raise DataError(
            f"{len(y)} rows came, n_samples={len(y)}, and some class has fewer than 2, but "
            "cross-validation needs 4 rows or more, and 2 of each class. Give more rows, or fit one "
            "budget without it."
        )
    kind = StratifiedKFold if classifier else KFold
    return kind(min(int(cv), room), shuffle=True, random_state=seed)


def walk(model: Any, X: Any, y: np.ndarray, budgets: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Fit the largest budget, then each smaller one from where the last ended; yield place and model.

    Parameters
    ----------
    model : estimator
        With ``warm_start=True``; it is fitted again and again.
    X, y
        Rows and targets.
    budgets : sequence of int
        In ascending order.
    """
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
