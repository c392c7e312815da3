"""The figure of a budget path: cross-validated score against nonzeros, with the choice marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.report.figures import BLUE, GREY, ORANGE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Ticks closer than this factor would run into each other.
APART = 1.25


@styled
def plot_path(path: Any) -> Figure:
    """Draw what every budget scored in cross-validation, and which one was chosen.

    Parameters
    ----------
    path : SparseMLPRegressorCV or SparseMLPClassifierCV
        Fitted.

    Returns
    -------
    Figure
        Save it with ``figure.savefig("path.png")``.

    Examples
    --------
    >>> from thresher import SparseMLPRegressorCV
    >>> from thresher.data.planted import planted
    >>> problem = planted(n=200, d=5, hidden=2, budget=4, seed=0)
    >>> path = SparseMLPRegressorCV([2, 4], hidden=2, bias=False, cv=2, random_state=0)
    >>> figure = plot_path(path.fit(problem.X, problem.y))
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(path, "budgets_")
    budgets, means, errors = path.budgets_, path.mean_scores_, path.standard_errors_
    chosen, best = (int(np.flatnonzero(budgets == budget)[0]) for budget in (path.budget_, path.best_budget_))
    figure, (axes,) = new_figure(7.0, 4.4)
    axes.plot(budgets, path.scores_, color=GREY, lw=0.6, alpha=0.5)
    folds = path.scores_.shape[1]
    axes.plot([], [], color=GREY, lw=0.6, label=f"each of {folds} folds" if folds > 1 else "the only fold")
    bars: dict[str, Any] = {"color": BLUE, "marker": "o", "ms": 5, "lw": 2, "capsize": 3, "elinewidth": 1.2}
    axes.errorbar(budgets, means, yerr=errors, label="mean and its standard error", **bars)
    axes.axhline(means[best] - errors[best], color=GREY, ls="--", lw=1, label="best, less one standard error")
    label = f"chosen: {path.budget_:,} nonzeros, {means[chosen]:.3f}"
    axes.plot(
        budgets[chosen], means[chosen], marker="o", ms=13, mew=2, mfc="none", mec=ORANGE, ls="", label=label
    )
    axes.axvline(budgets[chosen], color=ORANGE, lw=1, zorder=0)
    axes.set(xscale="log", xlabel="budget: nonzero weights and biases", ylabel=f"score: {_measure(path)}")
    axes.set_title("Cross-validated score against the budget")
    axes.minorticks_off()
    ticks = _apart(budgets)
    axes.set_xticks(ticks, labels=[f"{tick:,}" for tick in ticks])
    _limit(axes, means, errors, path.scores_)
    axes.legend(loc="lower right", fontsize=9, frameon=True, facecolor="white", edgecolor="none")
    return figure


def _measure(path: Any) -> str:
    if path.scoring is None:
        return "accuracy" if hasattr(path, "classes_") else "R²"
    return path.scoring if isinstance(path.scoring, str) else getattr(path.scoring, "__name__", "own measure")


def _apart(budgets: np.ndarray) -> list[int]:
    """Leave out ticks that would be written over each other."""
    kept: list[int] = []
    for budget in budgets.tolist():
        if not kept or budget >= APART * kept[-1]:
            kept.append(budget)
    return kept


def _limit(axes: Any, means: np.ndarray, errors: np.ndarray, scores: np.ndarray) -> None:
    """Show all means, and of the folds what lies near them: one wild fold must not flatten the rest."""
    low, high = float((means - errors).min()), float((means + errors).max())
    room = max(high - low, 1e-3)
    bottom, top = max(float(scores.min()), low - 0.3 * room), min(float(scores.max()), high + 0.3 * room)
    # Below everything there is room for the legend.
    span = max(top - bottom, 1e-3)
    axes.set_ylim(bottom - 0.4 * span, top + 0.08 * span)
