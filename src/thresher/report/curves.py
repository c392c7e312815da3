"""Curves: PSNR against how often gates follow, the step at which supports settle, and the ablations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.experiments import Outcome
from thresher.experiments.fits import median
from thresher.experiments.tables import PAPER_PSNR, PAPER_SETTLED
from thresher.report.figures import BLUE, COLOURS, GREY, ORANGE, name_ticks, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Where k is written out on its axis; the rest would overlap.
TICKS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)


@styled
def psnr_against_k(outcomes: Sequence[Outcome]) -> Figure:
    """Draw table 1: the median over seeds as a line, each seed as a dot, and the paper's curve."""
    figure, (axes,) = new_figure(8, 4.6)
    ks = sorted({outcome.cell["k"] for outcome in outcomes})
    middle = [median(o.result["psnr"] for o in outcomes if o.cell["k"] == k) for k in ks]
    axes.plot(
        list(PAPER_PSNR), list(PAPER_PSNR.values()), color=GREY, ls="--", marker="s", ms=4, label="paper"
    )
    axes.plot(ks, middle, color=BLUE, lw=2, label="Thresher, median")
    axes.plot(
        [outcome.cell["k"] for outcome in outcomes],
        [outcome.result["psnr"] for outcome in outcomes],
        ls="none",
        marker="o",
        ms=5,
        mfc="none",
        mec=BLUE,
        label="Thresher, each seed",
    )
    floor = median(outcome.result["floor"] for outcome in outcomes)
    axes.axhline(floor, color=ORANGE, lw=1, ls=":", label="what the rounding of labels allows")
    axes.set(
        xscale="log",
        xlabel="k: steps between updates of the gates",
        ylabel="PSNR after 100 steps (dB)",
        title=f"Fitting quality falls when gates follow less often\n{_problem(outcomes[0])}",
        ylim=(0, 175),
    )
    name_ticks(axes, TICKS)
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.9))
    return figure


@styled
def settling(outcomes: Sequence[Outcome]) -> Figure:
    """Draw table 2: the step at which the support settles, each seed as a dot, and the paper's."""
    figure, (axes,) = new_figure(6.4, 4.4)
    ks = sorted({outcome.cell["k"] for outcome in outcomes})
    axes.plot(
        list(PAPER_SETTLED),
        list(PAPER_SETTLED.values()),
        color=GREY,
        ls="--",
        marker="s",
        ms=5,
        label="paper",
    )
    settled = [outcome for outcome in outcomes if outcome.result["settled"] is not None]
    moving = [outcome for outcome in outcomes if outcome.result["settled"] is None]
    axes.plot(
        [outcome.cell["k"] for outcome in settled],
        [outcome.result["settled"] for outcome in settled],
        color=BLUE,
        ls="none",
        marker="o",
        ms=7,
        mfc="none",
        label="Thresher, each seed",
    )
    if moving:
        axes.plot(
            [outcome.cell["k"] for outcome in moving],
            [outcome.cell["steps"] for outcome in moving],
            color=ORANGE,
            ls="none",
            marker="x",
            ms=8,
            label="not settled when the steps were spent",
        )
    axes.set(
        xticks=sorted({*ks, *PAPER_SETTLED}),
        xlabel="k: steps between updates of the gates",
        ylabel="step",
        title=f"The step at which the support settles\n{_problem(outcomes[0])}",
        ylim=(0, None),
    )
    axes.legend(loc="upper left")
    return figure


@styled
def ablations(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the ablations: two panels of curves, one of memory and time against the size of blocks."""
    figure, panels = new_figure(13.5, 4.9, panels=3)
    _draw_curves(panels[0], outcomes, "acceleration", "Refinement after each step")
    _draw_curves(panels[1], outcomes, "first pass", "Gates in the first pass (minibatches)")
    _draw_blocks(panels[2], [outcome for outcome in outcomes if outcome.cell["part"] == "block"])
    return figure


def _draw_curves(axes: Axes, outcomes: Sequence[Outcome], part: str, title: str) -> None:
    chosen = [outcome for outcome in outcomes if outcome.cell["part"] == part]
    variants = list(dict.fromkeys(outcome.cell["variant"] for outcome in chosen))
    for variant, colour in zip(variants, COLOURS, strict=False):
        curves = [outcome.result["curve"] for outcome in chosen if outcome.cell["variant"] == variant]
        for number, curve in enumerate(curves):
            label = variant if number == 0 else None
            axes.plot(range(1, len(curve) + 1), curve, color=colour, lw=1.6, alpha=0.85, label=label)
    axes.set(xlabel="step", ylabel="PSNR (dB)", title=title, ylim=(0, 175))
    if variants:
        axes.set_title(f"{title}\n{_problem(chosen[0])}")
        # Below the panel, because curves may run anywhere in it.
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.13),
            ncols=len(variants),
            title="one line for each seed",
        )


def _draw_blocks(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    """Draw memory on the left scale and time on the right one, each in the colour of its curve."""
    limits = [outcome.cell["memory_limit"] / 2**20 for outcome in outcomes]
    peaks = [outcome.result["peak_bytes"] / 2**20 for outcome in outcomes]
    axes.set(xscale="log", xlabel="memory_limit (MB)", title="Size of blocks")
    if not outcomes:
        return
    axes.set_title(f"Size of blocks\n{_problem(outcomes[0])}")
    axes.plot(limits, peaks, color=BLUE, marker="o")
    axes.set_ylabel("peak memory beyond the data (MB)", color=BLUE)
    axes.set_ylim(0, 1.15 * max(peaks))
    name_ticks(axes, limits)
    right = axes.twinx()
    times = [outcome.result["step_seconds"] for outcome in outcomes]
    right.plot(limits, times, color=ORANGE, marker="s", ls="--")
    right.set_ylabel("seconds a step", color=ORANGE)
    right.set_ylim(0, 1.15 * max(times))
    right.grid(False)
    right.spines["right"].set_visible(True)


def _problem(outcome: Outcome) -> str:
    cell = outcome.cell
    return f"n = {cell['n']:,}, d = {cell['d']}, (m, s) = ({cell['hidden']:,}, {cell['budget']:,})"
