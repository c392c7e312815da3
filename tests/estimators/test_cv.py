"""Choosing the budget: scikit-learn's checks, the rule of one standard error, a planted network's size."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from problems import normal
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, LeaveOneOut, PredefinedSplit, TimeSeriesSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from thresher import SparseMLPClassifier, SparseMLPClassifierCV, SparseMLPRegressor, SparseMLPRegressorCV
from thresher.data.planted import planted
from thresher.errors import BudgetError, DataError, InterruptedFitWarning, ParameterError
from thresher.estimators.choosing import BUDGETS, budgets_to_try, choose
from thresher.solvers.auto import Tuning
from thresher.solvers.auto.auto import Auto
from thresher.solvers.auto.tuning import JudgeTuning


def small(kind: type) -> Any:
    """Make an estimator that is quick to fit."""
    return kind([16], hidden=4, cv=2, max_iter=2, random_state=0)


@pytest.fixture(scope="module")
def problem() -> Any:
    return planted(n=300, d=8, hidden=2, budget=6, seed=1)


@pytest.fixture(scope="module")
def larger() -> Any:
    return planted(n=400, d=8, hidden=2, budget=6, seed=1)


@pytest.fixture(scope="module")
def path(larger: Any) -> SparseMLPRegressorCV:
    frame = pd.DataFrame(larger.X, columns=[f"column {i}" for i in range(8)])
    model = SparseMLPRegressorCV([2, 3, 6, 9], hidden=2, bias=False, cv=3, random_state=0)
    return model.fit(frame, larger.y)


@parametrize_with_checks([small(SparseMLPRegressorCV), small(SparseMLPClassifierCV)])
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_size_of_a_planted_network_is_found(path: SparseMLPRegressorCV, larger: Any) -> None:
    assert path.budget_ == 6
    assert path.nonzeros_ <= 6
    assert path.predict(pd.DataFrame(larger.X, columns=path.feature_names_in_)) == pytest.approx(
        larger.y, abs=1e-4
    )


def test_what_is_kept_of_a_path(path: SparseMLPRegressorCV) -> None:
    assert path.budgets_.tolist() == [2, 3, 6, 9]
    assert path.scores_.shape == (4, 3)
    assert path.mean_scores_ == pytest.approx(path.scores_.mean(axis=1))
    assert path.standard_errors_ == pytest.approx(path.scores_.std(axis=1, ddof=1) / np.sqrt(3))
    assert (path.mean_nonzeros_ <= path.budgets_).all()
    assert path.network_.features == tuple(f"column {i}" for i in range(8))
    assert isinstance(path.estimator_, SparseMLPRegressor)
    assert path.get_support(indices=True).tolist() == np.flatnonzero(path.get_support()).tolist()


@pytest.mark.parametrize(
    ("means", "errors", "rule", "chosen"),
    [
        ([0.5, 0.79, 0.8], [0.1, 0.1, 0.02], "one_se", 1),
        ([0.5, 0.77, 0.8], [0.1, 0.1, 0.02], "one_se", 2),
        ([0.5, 0.79, 0.8], [0.1, 0.1, 0.02], "best", 2),
        ([0.9, 0.2, 0.8], [0.0, 0.0, 0.0], "one_se", 0),
        ([0.2, 1.0 - 1e-9, 1.0], [0.0, 0.0, 0.0], "one_se", 1),
    ],
)
def test_the_smallest_within_one_standard_error_is_chosen(
    means: list[float], errors: list[float], rule: str, chosen: int
) -> None:
    assert choose(np.array(means), np.array(errors), rule)[0] == chosen


def test_the_same_seed_gives_the_same_path(problem: Any) -> None:
    model = SparseMLPRegressorCV([2, 6], hidden=2, cv=2, max_iter=5, random_state=3)
    one, two = (clone(model).fit(problem.X, problem.y) for _ in range(2))
    assert np.array_equal(one.scores_, two.scores_)
    assert one.network_.equals(two.network_)


def test_default_budgets_follow_rows_and_weights(problem: Any) -> None:
    shape = problem.X.shape
    assert budgets_to_try("auto", (2,), shape) == [budget for budget in BUDGETS if budget <= 19]
    assert budgets_to_try("auto", (100,), shape)[-1] == 50
    assert budgets_to_try("auto", (100,), (5, shape[1])) == [2]


def test_sparse_rows_give_the_same_path(problem: Any) -> None:
    X = np.where(np.abs(problem.X) > 0.5, problem.X, 0)
    model = SparseMLPRegressorCV([3, 6], hidden=2, cv=2, max_iter=5, random_state=0)
    dense, sparse = clone(model).fit(X, problem.y), clone(model).fit(scipy.sparse.csr_array(X), problem.y)
    assert sparse.scores_ == pytest.approx(dense.scores_, abs=1e-6)


def test_every_fit_is_told(problem: Any) -> None:
    told: list[dict[str, Any]] = []
    model = SparseMLPRegressorCV(
        [2, 6], hidden=2, cv=2, rule="best", max_iter=5, random_state=0, callback=told.append
    )
    model.fit(problem.X, problem.y)
    folds = [(record["fold"], record["budget"]) for record in told]
    assert folds[:4] == [(0, 6), (0, 2), (1, 6), (1, 2)]
    assert folds[4] == (None, 6)
    assert [record["score"] for record in told[:4:2]] == model.scores_[1].tolist()


@pytest.mark.parametrize("cv", [KFold(3), [(np.arange(200), np.arange(200, 300))] * 2, TimeSeriesSplit(3)])
def test_folds_may_be_the_users_own(cv: Any, problem: Any) -> None:
    model = SparseMLPRegressorCV([3], hidden=2, cv=cv, max_iter=5, random_state=0).fit(problem.X, problem.y)
    assert model.scores_.shape == (1, 2 if isinstance(cv, list) else 3)


@pytest.mark.parametrize("rule", ["one_se", "best"])
def test_one_split_is_enough(rule: str, problem: Any) -> None:
    rows = np.where(np.arange(300) < 200, -1, 0)
    model = SparseMLPRegressorCV([2, 6], hidden=2, cv=PredefinedSplit(rows), rule=rule, max_iter=5)
    model.set_params(random_state=0).fit(problem.X, problem.y)
    assert model.scores_.shape == (2, 1)
    # One score has no spread, so nothing but the best is within it.
    assert model.standard_errors_.tolist() == [0, 0]
    assert model.budget_ == model.best_budget_ == 6


@cache
def predicted_one_by_one(targets: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give inputs, targets, and what is predicted of each row by a network of all others."""
    problem = planted(n=7, d=3, hidden=1, budget=2, seed=1)
    y = problem.y if targets == 1 else np.column_stack([problem.y, problem.X[:, 0] ** 2])
    left_out = [
        SparseMLPRegressor(4, 2, max_iter=2, random_state=0)
        .fit(problem.X[kept], y[kept])
        .predict(problem.X[out])
        for kept, out in LeaveOneOut().split(problem.X)
    ]
    return problem.X, y, np.concatenate(left_out)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("scoring", [None, "r2"])
def test_one_row_left_out_is_scored_against_the_spread_of_all(targets: int, scoring: Any) -> None:
    X, y, predicted = predicted_one_by_one(targets)
    model = SparseMLPRegressorCV([2, 4], 2, cv=LeaveOneOut(), scoring=scoring, max_iter=2, random_state=0)
    model.fit(X, y)
    assert model.scores_.shape == (2, 7)
    assert model.mean_scores_[1] == pytest.approx(r2_score(y, predicted))


def test_targets_that_do_not_vary_may_be_left_out_one_by_one() -> None:
    model = SparseMLPRegressorCV([2], 2, cv=LeaveOneOut(), max_iter=2, random_state=0)
    assert model.fit(np.arange(6.0)[:, None], np.full(6, 2.5)).scores_ == pytest.approx(np.ones((1, 6)))


def test_one_row_left_out_is_classified() -> None:
    X = np.linspace(-1, 1, 8)[:, None]
    model = SparseMLPClassifierCV([2], 2, cv=LeaveOneOut(), max_iter=5, random_state=0).fit(X, X[:, 0] > 0)
    assert set(model.scores_.ravel()) <= {0.0, 1.0}


@pytest.mark.parametrize("budgets", ["auto", [2, 4], {2, 4}, np.array([2, 4])], ids=str)
@pytest.mark.parametrize("hidden", [[3, 2], (3, 2), np.int64(3)], ids=str)
def test_layers_may_be_a_list_and_budgets_any_collection(hidden: Any, budgets: Any, problem: Any) -> None:
    model = SparseMLPRegressorCV(budgets, hidden, cv=2, max_iter=1, random_state=0)
    model.fit(problem.X[:20], problem.y[:20])
    assert model.network_.hidden == ((3,) if hidden == 3 else (3, 2))


def test_another_measure_may_choose(problem: Any) -> None:
    model = SparseMLPRegressorCV(
        [3], hidden=2, cv=2, scoring="neg_mean_absolute_error", max_iter=5, random_state=0
    )
    assert (model.fit(problem.X, problem.y).scores_ < 0).all()


def test_ctrl_c_ends_the_whole_path(problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Auto, iterate: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(Auto, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(SparseMLPRegressorCV).fit(problem.X, problem.y)


def interrupted_after(count: int) -> Any:
    """Make a callback that is Ctrl-C after so many fits."""
    told: list[Any] = []

    def callback(record: dict[str, Any]) -> None:
        told.append(record)
        if len(told) == count:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize(
    ("fits", "budget", "missing"),
    [
        (2, None, "interrupted on fold 1 of 2: 2 of 6 fits were scored. The network of budget"),
        (5, None, "interrupted on fold 2 of 2: 5 of 6 fits were scored. The network of budget"),
        (
            7,
            9,
            "the walk on all rows was interrupted; every budget was scored. A network of budget 9 was kept",
        ),
    ],
)
def test_ctrl_c_keeps_the_best_and_says_what_is_missing(
    fits: int, budget: int | None, missing: str, problem: Any
) -> None:
    path = SparseMLPRegressorCV([2, 6, 9], 2, cv=2, max_iter=5, random_state=0, rule="best")
    # Noise, so that larger budgets are used.
    y = problem.y + np.random.default_rng(0).normal(size=300)
    with pytest.warns(InterruptedFitWarning, match="Fit again for all of it"):
        path.set_params(callback=interrupted_after(fits)).fit(problem.X, y)
    assert missing in path.missing_
    assert path.nonzeros_ <= (budget or path.budget_)
    assert path.predict(problem.X).shape == (300,)
    assert np.isnan(path.scores_).sum() == max(0, 6 - fits)
    assert np.isnan(path.mean_scores_).tolist() == np.isnan(path.scores_).all(axis=1).tolist()
    assert path.set_params(callback=None).fit(problem.X, y).missing_ is None


def test_a_path_that_was_interrupted_goes_on_from_its_checkpoint(problem: Any, tmp_path: Path) -> None:
    path = SparseMLPRegressorCV([2, 6], 2, cv=2, max_iter=5, random_state=0)
    whole = clone(path).fit(problem.X, problem.y)
    path.set_params(checkpoint=tmp_path / "path", checkpoint_every=1, callback=interrupted_after(3))
    with pytest.warns(InterruptedFitWarning, match="Fit again with the same checkpoint="):
        path.fit(problem.X, problem.y)
    path.set_params(callback=None).fit(problem.X, problem.y)
    assert path.missing_ is None
    assert path.scores_.tolist() == whole.scores_.tolist()
    assert path.network_.equals(whole.network_)


def test_a_budget_that_could_not_help_is_left_out(problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[int] = []
    fit = SparseMLPRegressor.fit

    def counted(self: SparseMLPRegressor, *arguments: Any, **options: Any) -> SparseMLPRegressor:
        fits.append(self.budget)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(SparseMLPRegressor, "fit", counted)
    path = SparseMLPRegressorCV([4, 9, 30], 2, bias=False, cv=2, rule="best", random_state=0)
    path.fit(problem.X, problem.y)
    # Six weights explain the targets, so that 9 is what 30 was.
    assert (fits[0], 9 in fits) == (30, False)
    assert (path.scores_[1] == path.scores_[2]).all()
    assert path.mean_nonzeros_[2] <= 9


def test_the_time_that_is_left_falls_to_nothing(problem: Any) -> None:
    left: list[float] = []
    path = SparseMLPRegressorCV([2, 6], 2, cv=2, max_iter=5, random_state=0, rule="best")
    path.set_params(callback=lambda record: left.append(record["seconds_left"])).fit(problem.X, problem.y)
    assert all(seconds >= 0 for seconds in left)
    assert left[-1] < left[0]


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"budgets": "many"}, ParameterError, "must be 'auto' or whole numbers"),
        ({"budgets": []}, ParameterError, "budgets is empty"),
        ({"budgets": [3, 0]}, BudgetError, "budget=0"),
        ({"rule": "two_se"}, ParameterError, "must be one of one_se, best"),
        ({"budgets": 5}, ParameterError, r"budgets=5, .* budgets=\[5\]"),
        ({"budgets": None}, ParameterError, "budgets=None"),
        ({"budgets": b"5"}, ParameterError, "budgets=b'5'"),
        ({"cv": 1}, ParameterError, "needs 2 folds"),
        ({"cv": []}, DataError, "no folds"),
        ({"cv": [(np.arange(200), [])]}, DataError, "fold 1 .* 0 to score"),
        ({"cv": [([], np.arange(200))]}, DataError, "fold 1 .* 0 rows to fit"),
        ({"cv": [(np.arange(200), np.arange(200, 301))]}, DataError, "fold 1 .* 300 rows"),
        ({"hidden": [3, 0]}, ParameterError, "hidden="),
        ({"hidden": "3"}, ParameterError, "hidden='3'"),
        ({"solver": "papr"}, ParameterError, "Did you mean 'paper'"),
        ({"scoring": ["r2", "max_error"]}, ParameterError, "scoring="),
        ({"callback": 3}, ParameterError, "callback=3"),
    ],
)
def test_bad_parameters_are_explained_before_any_fit(
    parameters: dict[str, Any], error: type, message: str, problem: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparseMLPRegressor, "fit", lambda *_: pytest.fail("a fit was begun"))
    with pytest.raises(error, match=message):
        SparseMLPRegressorCV(**parameters).fit(problem.X, problem.y)


def test_a_fold_without_a_second_class_is_refused_before_any_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparseMLPClassifier, "fit", lambda *_: pytest.fail("a fit was begun"))
    with pytest.raises(DataError, match=r"fold 3 .* one class only, 'no'"):
        SparseMLPClassifierCV([2], cv=LeaveOneOut()).fit(normal(4, 2), ["no", "no", "yes", "no"])


def test_a_measure_that_is_undefined_is_refused_at_its_first_score() -> None:
    told: list[dict[str, Any]] = []
    model = SparseMLPRegressorCV(
        [2], 2, cv=LeaveOneOut(), scoring="d2_absolute_error_score", max_iter=2, callback=told.append
    )
    with (
        pytest.warns(UndefinedMetricWarning),
        pytest.raises(DataError, match="'d2_absolute_error_score' gives nan on fold 1, whose 1 row"),
    ):
        model.fit(normal(8, 2), np.arange(8.0))
    assert told == []


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="2 of each class"):
        SparseMLPClassifierCV([2]).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


def test_another_loss_and_tuning_reach_every_fit() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 3))
    y = random.poisson(np.exp(X[:, 0]))
    tuning = Tuning(judge=JudgeTuning(folds=3))
    model = SparseMLPRegressorCV([2, 4], hidden=3, cv=2, max_iter=3, loss="poisson", tuning=tuning)
    assert (model.fit(X, y).predict(X) > 0).all()
    assert model.estimator_.tuning is tuning
    with pytest.raises(DataError, match="poisson"):
        model.fit(X, -y)
