"""Figures of the experiments, and how a figure becomes a PNG and an SVG file."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from thresher.errors import DataFileError
from thresher.experiments import Outcome
from thresher.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Given = ParamSpec("Given")

FORMATS = ("png", "svg")
DOTS_PER_INCH = 150

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


def text_colour(background: ArrayLike) -> str:
    """Choose black or white, whichever has the higher contrast on a background of red, green and blue.

    Examples
    --------
    >>> text_colour((1.0, 1.0, 0.0)), text_colour((0.2, 0.0, 0.3))
    ('black', 'white')
    """
    colour = np.asarray(background, dtype=float)[:3]
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ [0.2126, 0.7152, 0.0722])
    # Contrast is (lighter + 0.05) / (darker + 0.05), and both choices are equal at the geometric mean.
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"


def name_ticks(axes: Axes, ticks: Sequence[float]) -> None:
    """Write plain numbers, and no others, on a logarithmic horizontal axis."""
    axes.minorticks_off()
    axes.set_xticks(list(ticks), labels=[f"{tick:g}" for tick in ticks])


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG, each whole or not at all.

    Parameters
    ----------
    figure : Figure
    folder : path
        Made if it is not there.
    name : str
        Name of the files, without an ending.

    Returns
    -------
    list of path
        What was written.
    """
    from matplotlib import rc_context

    written = []
    for kind in FORMATS:
        content = io.BytesIO()
        with rc_context(STYLE):
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata=metadata, facecolor="white")
        path = folder / f"{name}.{kind}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, content.getvalue())
        except OSError as error:
            raise DataFileError(
                f"{path} cannot be written ({error.strerror or error}). Use --out with a folder where you "
                "may write and that has room."
            ) from error
        written.append(path)
    return written


def draw(experiment: str, outcomes: Sequence[Outcome]) -> Figure | None:
    """Draw the figure of an experiment; None where there is nothing to draw yet."""
    from thresher.report.curves import ablations, psnr_against_k, settling
    from thresher.report.grid import recovery
    from thresher.report.phase import phase_diagram

    figures = {
        "table-1": psnr_against_k,
        "table-2": settling,
        "ablations": ablations,
        "recovery": recovery,
        "phase-diagram": phase_diagram,
    }
    return figures[experiment](outcomes) if outcomes and experiment in figures else None
