"""Figures of the experiments, and how a figure becomes a PNG and an SVG file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from thresher.atomic import write_whole
from thresher.errors import writing
from thresher.experiments import EXPERIMENTS, Outcome
from thresher.experiments.catalogue import FIGURES
from thresher.report.style import BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, STYLE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Those who draw find all they need here.
__all__ = [
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "STYLE",
    "draw",
    "name_ticks",
    "new_figure",
    "save",
    "styled",
    "text_colour",
]

FORMATS = ("png", "svg")
DOTS_PER_INCH = 150


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
        with writing(path, "Use --out with a folder where you may write and that has room."):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, content.getvalue())
        written.append(path)
    return written


def draw(experiment: str, outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    """Draw the figures of an experiment by the names of their files; none where nothing is done yet.

    Figures of the paper have two for each half: heatmaps, and curves against the budget.
    """
    from thresher.report import budgets, curves, draws, grid, phase

    of_one = {
        "table-1": curves.psnr_against_k,
        "table-2": curves.settling,
        "ablations": curves.ablations,
        "recovery": grid.recovery,
        "runtimes": budgets.runtimes,
        "phase-diagram": phase.phase_diagram,
        "sketch-draws": draws.sketch_draws,
        "watched": phase.watched,
    }
    if not outcomes:
        return {}
    if experiment in of_one:
        figure = of_one[experiment](outcomes)
        cut = EXPERIMENTS[experiment].left_out(outcomes)
        # The runtime examples say in their title what they lack.
        if cut and experiment != "runtimes":
            figure.supxlabel(f"CUT: {'; '.join(cut)}", fontsize=9)
        return {experiment: figure}
    return _halves(experiment, outcomes)


def _halves(experiment: str, outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    from thresher.report.budgets import curves_of_part
    from thresher.report.heatmaps import figure_of_part

    drawn = {}
    # An experiment that is all tables has no figure.
    for declared in (figure for figure in FIGURES if figure.name == experiment):
        for part in declared.parts:
            chosen = [outcome for outcome in outcomes if outcome.cell["part"] == part.name]
            if chosen:
                drawn[f"{experiment}-{part.name}"] = figure_of_part(declared, part, chosen)
                drawn[f"{experiment}-{part.name}-curves"] = curves_of_part(declared, part, chosen)
    return drawn
