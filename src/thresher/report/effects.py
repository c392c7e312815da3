"""A picture of what each input does: a panel for each, the largest effect first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.explain.effects import Effect
from thresher.network.formula import printable
from thresher.report.style import BLUE, COLOURS, GREY, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Panels that are drawn, and panels side by side; inches of one.
MOST, ACROSS, WIDE, HIGH = 12, 3, 3.4, 2.5
LONGEST_NAME = 34
# Outputs that are told apart by colour.
MOST_OUTPUTS = len(COLOURS)


@styled
def plot_effects(found: Sequence[Effect], outputs: Sequence[str] = ("output",)) -> Figure:
    """Draw effects: a line where an input stands alone, with a band where it depends on others.

    Parameters
    ----------
    found : sequence of Effect
        As :func:`thresher.explain.effects` gives them; the first twelve are drawn.
    outputs : sequence of str
        What the outputs are called; the first four are drawn.
    """
    from matplotlib.figure import Figure

    shown = list(found[:MOST])
    down, across = max(1, -(-len(shown) // ACROSS)), min(ACROSS, max(1, len(shown)))
    figure = Figure(figsize=(WIDE * across, HIGH * down + 0.4), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes, effect in zip(panels, shown, strict=False):
        _draw(axes, effect, outputs[:MOST_OUTPUTS])
    if not shown:
        panels[0].set_axis_off()
        panels[0].text(0.5, 0.5, "The network reads no input.", ha="center", va="center")
    elif len(outputs) > 1:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    else:
        for axes in panels[: len(shown) : across]:
            axes.set_ylabel(f"change of {_shown(outputs[0])}", fontsize=8)
    return figure


def _draw(axes: Axes, effect: Effect, outputs: Sequence[str]) -> None:
    axes.axhline(0.0, color=GREY, lw=0.6)
    for number, name in enumerate(outputs):
        colour = COLOURS[number] if len(outputs) > 1 else BLUE
        values, low, high = (part[:, number] for part in (effect.values, effect.low, effect.high))
        label = _shown(str(name))
        if effect.binary:
            places = effect.grid + 0.12 * (number - (len(outputs) - 1) / 2)
            axes.vlines(places, 0.0, values, color=colour, lw=4, label=label)
            axes.plot(places, values, "o", color=colour, ms=5)
            axes.set_xticks([0, 1], ["no", "yes"])
            axes.set_xlim(-0.5, 1.5)
            continue
        axes.plot(effect.grid, values, color=colour, lw=1.8, label=label)
        if not effect.alone:
            axes.fill_between(effect.grid, low, high, color=colour, alpha=0.18, lw=0)
    for kink in effect.kinks:
        axes.axvline(kink, color=GREY, lw=0.7, ls=":")
    if not effect.binary:
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlim(float(effect.grid[0]), float(effect.grid[-1]))
    unit = f" [{effect.unit}]" if effect.unit else ""
    axes.set_title(_shown(f"{effect.name}{unit}"), fontsize=9, loc="left")
    axes.tick_params(labelsize=8)


def _shown(name: str) -> str:
    name = printable(" ".join(name.split()))
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    # A dollar sign would begin mathematics.
    return name.replace("$", r"\$")
