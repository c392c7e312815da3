"""How every figure of this project looks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Given = ParamSpec("Given")

# Colours that people with any colour vision can tell apart (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#5F5F5F"
COLOURS = (BLUE, ORANGE, GREEN, PURPLE)

# Text stays text in an SVG, and the same figure gives the same bytes.
STYLE: Any = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "thresher",
}


def styled(draw: Callable[Given, Figure]) -> Callable[Given, Figure]:
    """Let a function draw in this project's style, and leave matplotlib's settings as they were."""

    @wraps(draw)
    def drawn(*args: Given.args, **kwargs: Given.kwargs) -> Figure:
        from matplotlib import rc_context

        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Make a figure of so many inches with panels side by side, without touching any global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])
