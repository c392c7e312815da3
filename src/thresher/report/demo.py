"""Figures of the demonstration: planted beside recovered weights, and scores against nonzeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thresher.experiments.demo import Score, Weights
from thresher.report.figures import BLUE, COLOURS, name_ticks, new_figure, styled, text_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def planted_and_recovered(weights: Weights) -> Figure:
    """Draw both networks as heatmaps, a column for each neuron, with the sign it enters the output with."""
    figure, panels = new_figure(8.4, 5.6, panels=2)
    largest = float(
        max(np.abs(weights.planted).max(initial=0), np.abs(weights.recovered).max(initial=0), 1e-9)
    )
    # Biases have a row of their own only where there are any.
    shown = slice(None) if (weights.planted[-1].any() or weights.recovered[-1].any()) else slice(-1)
    image = None
    for axes, values, signs, title in (
        (panels[0], weights.planted, weights.planted_signs, "planted"),
        (panels[1], weights.recovered, weights.recovered_signs, "recovered"),
    ):
        rows = values[shown]
        axes.grid(False)
        image = axes.imshow(rows, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
        for (row, column), value in np.ndenumerate(rows):
            if value != 0:
                colour = text_colour(image.cmap(image.norm(value)))
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
        names = [f"{'-' if sign < 0 else '+'} relu" for sign in signs]
        axes.set_xticks(range(len(names)), labels=names)
        axes.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
        axes.grid(which="minor", axis="x", color="#C8C8C8")
        axes.tick_params(which="minor", bottom=False)
        axes.set(title=f"{title}: {np.count_nonzero(values)} weights", xlabel="neuron, with its sign")
    panels[0].set_ylabel("input")
    assert image is not None
    figure.colorbar(image, ax=panels, label="weight", fraction=0.04, pad=0.02)
    return figure


@styled
def scores_against_nonzeros(diabetes: Sequence[Score], digits: Sequence[Score]) -> Figure:
    """Draw what a budget buys on both datasets, with dense models as lines to compare with."""
    figure, (left, right) = new_figure(10.5, 4.4, panels=2)
    _draw_scores(left, diabetes, "Diabetes: R² on held-out rows", "R²")
    _draw_scores(right, digits, "Digits: accuracy on held-out rows", "accuracy")
    return figure


def _draw_scores(axes: Axes, scores: Sequence[Score], title: str, measure: str) -> None:
    sparse = [score for score in scores if score.sparse]
    axes.plot(
        [score.nonzeros for score in sparse],
        [score.score for score in sparse],
        color=BLUE,
        marker="o",
        lw=2,
        label="Thresher",
    )
    for other, colour in zip([score for score in scores if not score.sparse], COLOURS[1:], strict=False):
        label = f"{other.model} ({other.nonzeros:,} numbers)"
        axes.axhline(other.score, color=colour, ls="--", lw=1.5, label=label)
    axes.set(xscale="log", xlabel="nonzero weights and biases", ylabel=measure, title=title)
    name_ticks(axes, [score.nonzeros for score in sparse])
    lowest, highest = min(score.score for score in scores), max(score.score for score in scores)
    # Room below the curves for the legend.
    axes.set_ylim(lowest - 0.65 * (highest - lowest), highest + 0.1 * (highest - lowest))
    axes.legend(loc="lower right", fontsize=9)
