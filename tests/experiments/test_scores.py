"""Measures agree with scikit-learn's, and intervals of scores hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from thresher.experiments.scores import (
    Confusion,
    accuracy_interval,
    class_values,
    notes,
    number_values,
    r2_interval,
)


@pytest.mark.parametrize("classes", [2, 4])
def test_measures_of_classes_are_scikit_learns(classes: int) -> None:
    draw = np.random.default_rng(classes)
    truth = draw.integers(classes, size=200)
    shares = draw.dirichlet(np.ones(classes), size=200).round(2) + 0.01
    shares /= shares.sum(axis=1, keepdims=True)
    guess = shares.argmax(axis=1)
    found = class_values(np.arange(classes), truth, guess, shares)
    area = roc_auc_score(truth, shares[:, 1] if classes == 2 else shares, multi_class="ovr")
    expected = {
        "accuracy": np.mean(truth == guess),
        "balanced accuracy": balanced_accuracy_score(truth, guess),
        "AUC": area,
        "log loss": log_loss(truth, shares),
    }
    assert found == pytest.approx(expected)
    counts = Confusion.of(np.arange(classes), truth, guess).counts
    assert (counts == confusion_matrix(truth, guess)).all()


def test_measures_of_numbers_are_scikit_learns() -> None:
    draw = np.random.default_rng(0)
    truth, guess = draw.normal(size=50), draw.normal(size=50)
    expected = {
        "R2": r2_score(truth, guess),
        "RMSE": root_mean_squared_error(truth, guess),
        "MAE": mean_absolute_error(truth, guess),
    }
    assert number_values(truth, guess) == pytest.approx(expected)


def test_what_rows_cannot_tell_is_none() -> None:
    assert number_values(np.array([1.0]), np.array([2.0])) == {"R2": None, "RMSE": 1.0, "MAE": 1.0}
    labels = np.array(["a", "b"])
    certain = class_values(labels, np.array(["a"]), np.array(["b"]), [[0.0, 1.0]])
    assert (certain["AUC"], certain["log loss"]) == (None, None)
    stranger = class_values(labels, np.array(["c"]), np.array(["b"]), [[0.5, 0.5]])
    assert (stranger["accuracy"], stranger["log loss"]) == (0.0, None)
    assert r2_interval(np.arange(3.0), np.arange(3.0)) is None


def test_intervals_hold_the_truth_nineteen_times_in_twenty() -> None:
    draw = np.random.default_rng(1)
    hits = draw.binomial(40, 0.8, size=500)
    held = [low <= 0.8 <= high for low, high in (accuracy_interval(int(one), 40) for one in hits)]
    assert 0.9 < np.mean(held) < 0.99
    held = []
    for seed in range(60):
        truth = draw.normal(size=150)
        low, high = r2_interval(truth, truth + 0.5 * draw.normal(size=150), seed)
        held.append(low <= 0.75 <= high)
    assert np.mean(held) > 0.85


def test_nothing_is_said_where_nothing_is_doubtful() -> None:
    y = np.repeat(["a", "b"], 50)
    assert notes("classification", y, y) == []
    assert notes("regression", np.arange(90.0), np.arange(40.0)) == []
