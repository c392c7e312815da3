"""The figure of a budget path shows every budget and marks the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from thresher import SparseMLPRegressorCV, plot_path


def path(budgets: list[int], means: list[float], chosen: int, **more: Any) -> Any:
    """Stand in for a fitted path: what the figure reads, and nothing else."""
    scores = np.array(means)[:, None] + np.array([-0.02, 0.0, 0.02])
    fitted = SparseMLPRegressorCV(budgets, scoring=more.pop("scoring", None))
    fitted.budgets_, fitted.scores_ = np.array(budgets), scores
    fitted.mean_scores_, fitted.standard_errors_ = scores.mean(axis=1), np.full(len(budgets), 0.01)
    fitted.budget_, fitted.best_budget_ = chosen, budgets[int(np.argmax(means))]
    for name, value in more.items():
        setattr(fitted, name, value)
    return fitted


def test_the_choice_is_marked_and_every_budget_drawn(tmp_path: Path) -> None:
    figure = plot_path(path([2, 5, 10, 20], [0.5, 0.8, 0.81, 0.8], chosen=5))
    (axes,) = figure.axes
    drawn = [line.get_xydata().tolist() for line in axes.lines]
    assert [[2.0, 0.5], [5.0, 0.8], [10.0, 0.81], [20.0, 0.8]] in [
        [[x, round(y, 6)] for x, y in line] for line in drawn
    ]
    assert [5] in [list(line.get_xdata()) for line in axes.lines if line.get_marker() == "o"]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "chosen: 5 nonzeros, 0.800" in legend
    assert "each of 3 folds" in legend
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "5", "10", "20"]
    figure.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 10_000


def test_labels_that_would_overlap_are_left_out() -> None:
    figure = plot_path(path([10, 11, 12, 13, 100], [0.1, 0.2, 0.3, 0.4, 0.5], chosen=13))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["10", "13", "100"]


@pytest.mark.parametrize(
    ("more", "label"),
    [({}, "R²"), ({"classes_": [0, 1]}, "accuracy"), ({"scoring": "max_error"}, "max_error")],
)
def test_the_measure_is_named(more: dict[str, Any], label: str) -> None:
    figure = plot_path(path([2, 4], [0.1, 0.2], chosen=4, **more))
    assert figure.axes[0].get_ylabel() == f"score: {label}"


def test_one_wild_fold_does_not_flatten_the_rest() -> None:
    wild = path([2, 4, 8], [0.7, 0.8, 0.9], chosen=8)
    wild.scores_[0, 0] = -50.0
    assert plot_path(wild).axes[0].get_ylim()[0] > 0


def test_a_path_of_one_budget_can_be_drawn() -> None:
    assert plot_path(path([3], [0.5], chosen=3)).axes


def test_a_path_that_was_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError):
        plot_path(SparseMLPRegressorCV())


def test_one_fold_of_equal_scores_can_be_drawn() -> None:
    alike = path([2, 4], [1.0, 1.0], chosen=2, scores_=np.ones((2, 1)), standard_errors_=np.zeros(2))
    (axes,) = plot_path(alike).axes
    assert axes.get_ylim()[0] < 1 < axes.get_ylim()[1]
    assert "the only fold" in [text.get_text() for text in axes.get_legend().get_texts()]
