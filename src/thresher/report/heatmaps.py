"""Heatmaps in the paper's layout: m upwards, s to the right, methods side by side on one colour scale."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from thresher.experiments import Outcome
from thresher.experiments.catalogue import Figure as Declared
from thresher.experiments.catalogue import Part
from thresher.experiments.grids import cut_of
from thresher.experiments.methods import METHODS, NAMES
from thresher.experiments.tasks import CLASSES
from thresher.report.figures import styled, text_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# The paper's scale, in dB.
LOWEST, HIGHEST = -20.0, 50.0
MISSING = "#D9D9D9"
CELL, MARGIN = 0.33, 0.75


@styled
def figure_of_part(declared: Declared, part: Part, outcomes: Sequence[Outcome]) -> Figure:
    """Draw one half of a figure: mean scores above, their standard deviations over seeds below.

    Parameters
    ----------
    declared : Figure of the catalogue
    part : Part
    outcomes : sequence of Outcome
        The cells of this part that are done.
    """
    from matplotlib.figure import Figure

    methods = [method for method in METHODS if any(o.cell["method"] == method for o in outcomes)]
    ms = sorted({outcome.cell["hidden"] for outcome in outcomes})
    ss = sorted({outcome.cell["budget"] for outcome in outcomes})
    seeds = len({outcome.cell.seed for outcome in outcomes})
    rows = 2 if seeds > 1 else 1
    width = max(2.5, CELL * len(ss) + MARGIN)
    height = max(1.7, CELL * len(ms) + MARGIN)
    size = max(8.0, width * len(methods) + 1.4), height * rows + 1.5
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, len(methods), squeeze=False, sharex=True, sharey=True)
    factor = factor_of(part)
    means = [_values(outcomes, method, ms, ss, np.mean, factor) for method in methods]
    _row(figure, list(panels[0]), means, scale_of(part), _unit(part, "mean" if seeds > 1 else ""), part)
    for axes, method in zip(panels[0], methods, strict=True):
        axes.set_title(NAMES[method])
    if rows == 2:
        deviations = [_values(outcomes, method, ms, ss, np.std, factor) for method in methods]
        largest = max(np.nanmax(values, initial=0.0) for values in deviations) or 1.0
        unit = _unit(part, "standard deviation")
        _row(figure, list(panels[1]), deviations, (0.0, float(largest)), unit, part, "magma_r")
    for axes in panels[-1]:
        axes.set_xticks(range(len(ss)), labels=[str(s) for s in ss], rotation=90 if len(ss) > 7 else 0)
        axes.set_xlabel("s: nonzero weights")
    for axes in panels[:, 0]:
        axes.set_yticks(range(len(ms)), labels=[str(m) for m in ms])
        axes.set_ylabel("m: neurons in a layer" if part.layers > 1 else "m: neurons")
    title = _title(declared, part, outcomes, seeds)
    if any(np.isnan(values).any() for values in means):
        title += "; grey: not run, failed, or more weights than the network has"
    figure.suptitle(
        "\n".join(line for each in title.split("\n") for line in textwrap.wrap(each, int(size[0] * 11)))
    )
    return figure


def scale_of(part: Part) -> tuple[float, float]:
    """Give the colour scale of a part: the paper's in dB, or percent from chance to perfect."""
    return (LOWEST, HIGHEST) if part.measure == "PSNR" else (100 / CLASSES[part.data], 100.0)


def factor_of(part: Part) -> float:
    """Give what scores are multiplied by to be shown: accuracies are shown in percent."""
    return 1.0 if part.measure == "PSNR" else 100.0


def _values(
    outcomes: Sequence[Outcome],
    method: str,
    ms: Sequence[int],
    ss: Sequence[int],
    average: Callable[[list[float]], np.floating],
    factor: float,
) -> np.ndarray:
    """Average the scores of a method over seeds; NaN where there are none."""
    found: dict[tuple[int, int], list[float]] = {}
    for outcome in outcomes:
        if outcome.cell["method"] == method:
            place = ms.index(outcome.cell["hidden"]), ss.index(outcome.cell["budget"])
            found.setdefault(place, []).append(factor * outcome.result["score"])
    values = np.full((len(ms), len(ss)), np.nan)
    for place, scores in found.items():
        values[place] = average(scores)
    return values


def _row(
    figure: Figure,
    panels: list[Axes],
    grids: Sequence[np.ndarray],
    scale: tuple[float, float],
    label: str,
    part: Part,
    colours: str = "viridis",
) -> None:
    """Draw one row of panels on one scale, with its colour bar."""
    image = None
    for axes, values in zip(panels, grids, strict=True):
        image = _panel(axes, values, scale, colours, part)
    assert image is not None
    extend = "both" if part.measure == "PSNR" and colours == "viridis" else "neither"
    bar = figure.colorbar(image, ax=panels, fraction=0.03, pad=0.01, extend=extend)
    bar.set_label(label)
    bar.outline.set_visible(False)


def _panel(axes: Axes, values: np.ndarray, scale: tuple[float, float], colours: str, part: Part) -> AxesImage:
    axes.set_facecolor(MISSING)
    axes.grid(False)
    image = axes.imshow(values, origin="lower", cmap=colours, vmin=scale[0], vmax=scale[1], aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = text_colour(image.cmap(image.norm(value)))
            # Tenths where they matter: accuracies, and small deviations.
            whole = value >= 99.95 or (part.measure == "PSNR" and (colours == "viridis" or value >= 9.95))
            text = f"{value:.0f}" if whole else f"{value:.1f}"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    return image


def _unit(part: Part, what: str) -> str:
    return f"{what}\n{'PSNR (dB)' if part.measure == 'PSNR' else 'accuracy (percent)'}".strip()


def _title(declared: Declared, part: Part, outcomes: Sequence[Outcome], seeds: int) -> str:
    head = (
        f"{declared.name.replace('-', ' ').capitalize()}, {part.name}: {declared.title.lower()}, {part.title}"
    )
    head = head.replace("mnist", "MNIST").replace("cifar", "CIFAR")
    cut = cut_of(declared, part, outcomes)
    scores = "PSNR in dB" if part.measure == "PSNR" else "accuracy in percent"
    over = f"{scores}, mean over {seeds} seeds" if seeds > 1 else f"{scores}, one seed"
    note = f"CUT: {'; '.join(cut)}" if cut else "the paper's grid"
    return f"{head}\n{over}; {note}"
