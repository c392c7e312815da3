"""Figures of stability: how often inputs and kinks recur, and intervals of thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresher.report.style import BLUE, GREY, ORANGE, new_figure, styled
from thresher.stability import Stability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Bars that are drawn.
MOST = 20
LONGEST_NAME = 32


@styled
def plot_stability(found: Stability) -> Figure:
    """Draw how often inputs were selected on the left, how often kinks came again on the right.

    Parameters
    ----------
    found : Stability
    """
    inputs, kinks = found.inputs[:MOST], found.kinks[:MOST]
    bars = max(len(inputs), len(kinks), 3)
    figure, (left, right) = new_figure(10.5, 0.28 * bars + 1.6, panels=2)
    shares = [(each.name, each.frequency, BLUE if each.stable else "#B5CFE3") for each in inputs]
    _bars(left, shares, "share of half-samples that select it", found.threshold)
    left.set_title(f"Inputs: at most {found.bound:.2g} false ones to be expected", loc="left")
    told = [
        (
            each.name if each.threshold is None else f"{each.name} at {each.threshold:.4g}",
            each.frequency,
            ORANGE,
        )
        for each in kinks
    ]
    _bars(right, told, "share of half-samples with the same kink", None)
    right.set_title("Kinks", loc="left")
    return figure


def _bars(axes: Axes, rows: list[tuple[str, float, str]], label: str, threshold: float | None) -> None:
    if not rows:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "none", ha="center", va="center", color=GREY)
        return
    places = range(len(rows))
    axes.barh(places, [share for _, share, _ in rows], color=[colour for *_, colour in rows], height=0.7)
    axes.set_yticks(places, [_cut(name) for name, *_ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel(label)
    if threshold is not None:
        axes.axvline(threshold, color=GREY, lw=1, ls="--")


def _cut(name: str) -> str:
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    # A dollar sign would begin mathematics.
    return name.replace("$", r"\$")
