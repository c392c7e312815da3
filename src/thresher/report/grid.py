"""Heatmaps: PSNR over widths and budgets, one panel for each solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thresher.experiments import Outcome
from thresher.experiments.fits import RECOVERED
from thresher.report.figures import new_figure, styled, text_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# One scale for all panels, in dB: from nothing to what float32 labels allow.
LOWEST, HIGHEST = 0.0, 160.0
MISSING = "#D9D9D9"


@styled
def recovery(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the recovery grid of the first seed: m upwards, s to the right, a panel for each solver."""
    seed = min(outcome.cell.seed for outcome in outcomes)
    chosen = [outcome for outcome in outcomes if outcome.cell.seed == seed]
    solvers = list(dict.fromkeys(outcome.cell["solver"] for outcome in chosen))
    ms = sorted({outcome.cell["hidden"] for outcome in chosen})
    ss = sorted({outcome.cell["budget"] for outcome in chosen})
    width = max(4.2, 0.56 * len(ss) + 1.4)
    figure, panels = new_figure(width * len(solvers) + 1.0, max(3.4, 0.5 * len(ms) + 1.6), len(solvers))
    image = None
    for axes, solver in zip(panels, solvers, strict=True):
        values = np.full((len(ms), len(ss)), np.nan)
        for outcome in chosen:
            if outcome.cell["solver"] == solver:
                place = ms.index(outcome.cell["hidden"]), ss.index(outcome.cell["budget"])
                values[place] = outcome.result["psnr"]
        image = _heatmap(axes, values, ms, ss)
        run = np.isfinite(values).sum()
        axes.set_title(f"{solver}: {int((values > RECOVERED).sum())} of {run} cells recovered")
    assert image is not None
    panels[0].set_ylabel("m: neurons")
    bar = figure.colorbar(image, ax=panels, fraction=0.05, pad=0.02)
    bar.set_label("PSNR (dB)")
    bar.ax.axhline(RECOVERED, color="black", lw=1.5)
    bar.outline.set_visible(False)
    cell = chosen[0].cell
    figure.suptitle(
        f"Planted networks found again (above {RECOVERED:.0f} dB): n = {cell['n']:,}, d = {cell['d']}, "
        f"seed {seed}"
    )
    return figure


def _heatmap(axes: Axes, values: np.ndarray, ms: Sequence[int], ss: Sequence[int]) -> AxesImage:
    """Draw one panel, with the number written into every cell."""
    axes.set_facecolor(MISSING)
    axes.grid(False)
    image = axes.imshow(values, origin="lower", cmap="viridis", vmin=LOWEST, vmax=HIGHEST, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = text_colour(image.cmap(image.norm(value)))
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour, fontsize=9)
    axes.set_xticks(range(len(ss)), labels=[str(s) for s in ss])
    axes.set_yticks(range(len(ms)), labels=[str(m) for m in ms])
    axes.set_xlabel("s: nonzero weights")
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
