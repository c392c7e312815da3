"""Estimators are calibrated on rows of their own or across folds, and cover what they promise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.model_selection import KFold

from thresher import SparseMLPClassifier, SparseMLPRegressor, SparseMLPRegressorCV
from thresher.errors import DataError, ParameterError


def noisy(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 2))
    return X, np.abs(X[:, 0]) + X[:, 1] + 0.5 * draw.normal(size=rows)


def covered(model: SparseMLPRegressor, X: np.ndarray, y: np.ndarray, coverage: float = 0.9) -> float:
    ends = model.predict_interval(X, coverage)
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))


def quick(**options: object) -> SparseMLPRegressor:
    return SparseMLPRegressor(6, 2, max_iter=20, random_state=0, **options)


def test_rows_of_their_own_and_folds_both_cover() -> None:
    X, y = noisy(2400)
    model = quick().fit(X[:100], y[:100])
    assert 0.86 < covered(model.calibrate(X[100:400], y[100:400]), X[400:], y[400:]) < 0.94
    before = model.network_
    assert 0.84 < covered(model.calibrate(X[:100], y[:100], cv=4), X[400:], y[400:]) < 0.97
    assert model.network_.equals(before)
    assert model.network_.details["calibration"]["by"] == "folds"
    # Splitters are taken as numbers of folds are.
    model.calibrate(X[:100], y[:100], cv=KFold(2))
    assert model.network_.details["calibration"]["rows"] == 100


def test_several_targets_have_intervals_of_their_own() -> None:
    X, y = noisy(300)
    both = np.column_stack([y, 100 * y])
    model = quick().fit(X[:100], both[:100]).calibrate(X[100:], both[100:])
    ends = model.predict_interval(X[:5])
    assert ends.shape == (5, 2, 2)
    widths = ends[:, 1] - ends[:, 0]
    assert (widths[:, 1] > 30 * widths[:, 0]).all()


def test_classes_come_in_sets_whatever_their_names_and_rows() -> None:
    X, y = noisy(900)
    labels = np.where(y > 1.5, "high", np.where(y > 0, "middle", "low"))
    rows = scipy.sparse.csr_array(X)
    model = SparseMLPClassifier(8, 2, max_iter=20, random_state=0).fit(rows[:150], labels[:150])
    sets = model.calibrate(rows[150:400], labels[150:400]).predict_set(rows[400:], 0.8)
    place = np.searchsorted(model.classes_, labels[400:])
    assert 0.74 < sets[np.arange(500), place].mean() < 0.9
    assert sets.any(axis=1).all()


def test_a_path_is_calibrated_like_what_it_chose() -> None:
    X, y = noisy(160)
    path = SparseMLPRegressorCV([2, 6], 2, cv=2, max_iter=10, random_state=0).fit(X, y)
    ends = path.calibrate(X, y, cv=2).predict_interval(X)
    assert np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) > 0.8


def test_another_fit_asks_for_another_calibration() -> None:
    X, y = noisy(80)
    model = quick().fit(X, y)
    model.calibrate(X, y).fit(X, y)
    with pytest.raises(ParameterError, match="has no calibration rows"):
        model.predict_interval(X)


def test_what_no_calibration_can_be_made_of_is_refused() -> None:
    X, y = noisy(80)
    model = quick().fit(X, y)
    for targets, message in (
        (y[:-1], "one target a row"),
        (np.where(y > 2, np.nan, y), "NaN or infinity"),
        (np.full(80, "a"), "not a number"),
        (np.column_stack([y, y]), "has shape"),
    ):
        with pytest.raises(DataError, match=message):
            model.calibrate(X, targets)
    with pytest.raises(ParameterError, match="2 folds or more"):
        model.calibrate(X, y, cv=1)
