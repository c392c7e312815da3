"""Phase diagrams: what is found again over rows and nonzeros, of planted networks and of trained ones."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thresher.experiments import Outcome
from thresher.report.figures import new_figure, styled, text_colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {
    "theorem": "theorem 1: step 2/(3β), budget 3 s",
    "refined": "normalised step, refined, budget s",
}
MISSING = "#D9D9D9"


@styled
def phase_diagram(outcomes: Sequence[Outcome]) -> Figure:
    """Draw rows upwards, nonzeros to the right, and the share found in every cell."""
    solvers = list(dict.fromkeys(outcome.cell["solver"] for outcome in outcomes))
    ns = sorted({outcome.cell["n"] for outcome in outcomes})
    ss = sorted({outcome.cell["s"] for outcome in outcomes})
    figure, panels = new_figure(4.6 * len(solvers) + 1.2, max(3.2, 0.5 * len(ns) + 1.6), len(solvers))
    image = None
    for axes, solver in zip(panels, solvers, strict=True):
        values = np.full((len(ns), len(ss)), np.nan)
        for row, n in enumerate(ns):
            for column, s in enumerate(ss):
                found = [
                    outcome.result["recovered"]
                    for outcome in outcomes
                    if (outcome.cell["solver"], outcome.cell["n"], outcome.cell["s"]) == (solver, n, s)
                ]
                if found:
                    values[row, column] = statistics.mean(found)
        axes.set_facecolor(MISSING)
        axes.grid(False)
        image = axes.imshow(values, origin="lower", cmap="viridis", vmin=0, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = text_colour(image.cmap(image.norm(value)))
                axes.text(column, row, f"{value:.0%}", ha="center", va="center", color=colour, fontsize=9)
        axes.set_xticks(range(len(ss)), labels=[str(s) for s in ss])
        axes.set_yticks(range(len(ns)), labels=[str(n) for n in ns])
        axes.set(xlabel="s: nonzero weights", title=TITLES.get(solver, solver))
    panels[0].set_ylabel("n: rows")
    assert image is not None
    figure.colorbar(image, ax=panels, label="share found", fraction=0.05, pad=0.02)
    cell = outcomes[0].cell
    figure.suptitle(f"Planted weights found: {cell['d']} features, {cell['draws']} draws for each cell")
    return figure


@styled
def watched(outcomes: Sequence[Outcome]) -> Figure:
    """Draw images watched upwards, budgets to the right, a panel for each width; PSNR and weights found."""
    widths = sorted({outcome.cell["hidden"] for outcome in outcomes})
    ns = sorted({outcome.cell["n"] for outcome in outcomes})
    ss = sorted({outcome.cell["budget"] for outcome in outcomes})
    figure, panels = new_figure(3.4 * len(widths) + 2.4, max(3.2, 0.7 * len(ns) + 1.8), len(widths))
    image = None
    for axes, width in zip(panels, widths, strict=True):
        values, texts = np.full((len(ns), len(ss)), np.nan), {}
        for row, n in enumerate(ns):
            for column, s in enumerate(ss):
                results = [
                    outcome.result
                    for outcome in outcomes
                    if (outcome.cell["hidden"], outcome.cell["n"], outcome.cell["budget"]) == (width, n, s)
                ]
                if results:
                    values[row, column] = statistics.median(result["psnr"] for result in results)
                    share = statistics.median(result["weights_found"]["all"] for result in results)
                    texts[row, column] = f"{values[row, column]:.0f} dB\n{share:.0%}"
        axes.set_facecolor(MISSING)
        axes.grid(False)
        image = axes.imshow(values, origin="lower", cmap="viridis", vmin=20, vmax=170, aspect="auto")
        for (row, column), text in texts.items():
            colour = text_colour(image.cmap(image.norm(values[row, column])))
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=9)
        axes.set_xticks(range(len(ss)), labels=[f"{s:,}" for s in ss])
        axes.set_yticks(range(len(ns)), labels=[f"{n:,}" for n in ns])
        axes.set(xlabel="s: nonzeros of the network", title=f"{width} neurons")
    panels[0].set_ylabel("images watched")
    assert image is not None
    figure.colorbar(image, ax=panels, label="PSNR on test images, dB", fraction=0.05, pad=0.02)
    figure.suptitle("Trained networks found again from their logits: dB, share of weights")
    return figure
