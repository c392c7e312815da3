"""Curves against the budget, which the paper lacks: score, time and peak memory; and the runtime examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thresher.experiments import Outcome
from thresher.experiments.catalogue import Figure as Declared
from thresher.experiments.catalogue import Part
from thresher.experiments.fits import median
from thresher.experiments.grids import cut_of
from thresher.experiments.methods import METHODS, NAMES
from thresher.experiments.runtimes import LINES, runtimes_left_out
from thresher.report.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, name_ticks, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# A colour, a marker and a line for each method, so that none rests on colour alone.
LOOKS = {
    "paper": (ORANGE, "s", "-"),
    "auto": (BLUE, "o", "-"),
    "imp-paper": (GREY, "v", "--"),
    "imp": ("black", "^", "--"),
    "gmp": (GREEN, "D", "-."),
    "rigl": (PURPLE, "P", "-."),
    "one-shot": ("#E69F00", "X", ":"),
    "dense": ("#56B4E9", "*", ":"),
}
MEGABYTE = 2**20


@styled
def curves_of_part(declared: Declared, part: Part, outcomes: Sequence[Outcome]) -> Figure:
    """Draw score, time and peak memory against the budget: medians over widths and seeds, and quartiles."""
    figure, panels = new_figure(14, 4.9, panels=3)
    methods = [method for method in METHODS if any(o.cell["method"] == method for o in outcomes)]
    score = "PSNR (dB)" if part.measure == "PSNR" else "accuracy"
    for axes, quantity, unit, label in (
        (panels[0], "score", 1.0, score),
        (panels[1], "fit_seconds", 1.0, "seconds of a fit"),
        (panels[2], "peak_bytes", float(MEGABYTE), "peak memory of a fit beyond the data (MB)"),
    ):
        for method in methods:
            _curve(axes, [o for o in outcomes if o.cell["method"] == method], method, quantity, unit)
        axes.set(xscale="log", xlabel="s: nonzero weights", ylabel=label)
        name_ticks(axes, sorted({outcome.cell["budget"] for outcome in outcomes}))
        axes.tick_params(axis="x", rotation=90 if len(axes.get_xticks()) > 7 else 0)
        if quantity != "score":
            axes.set_yscale("log")
            _plain_numbers(axes.yaxis, (1.0, 2.0, 5.0))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    cut = cut_of(declared, part, outcomes)
    note = f"\nCUT: {'; '.join(cut)}" if cut else ""
    number = declared.name.replace("-", " ").capitalize()
    figure.suptitle(
        f"{number}, {part.name} ({part.title}) against the budget: "
        f"median over m and seeds, shaded quartiles{note}"
    )
    return figure


def _plain_numbers(axis: Axis, digits: tuple[float, ...]) -> None:
    """Write plain numbers with the given leading digits, and no others, on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _curve(axes: Axes, outcomes: Sequence[Outcome], method: str, quantity: str, unit: float) -> None:
    if quantity != "score":
        # A logarithmic scale has no zero; and where all labels are zero nothing was fitted.
        outcomes = [outcome for outcome in outcomes if outcome.result[quantity] > 0]
    budgets = sorted({outcome.cell["budget"] for outcome in outcomes})
    values = [[o.result[quantity] / unit for o in outcomes if o.cell["budget"] == s] for s in budgets]
    low, middle, high = ([float(np.percentile(column, share)) for column in values] for share in (25, 50, 75))
    colour, marker, line = LOOKS[method]
    axes.fill_between(budgets, low, high, color=colour, alpha=0.12, lw=0)
    axes.plot(budgets, middle, color=colour, marker=marker, ls=line, ms=5, lw=1.7, label=NAMES[method])


@styled
def runtimes(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the runtime examples, a panel each: seconds to the right, score upwards, the paper's as rings."""
    lines = [line for line in LINES if any(o.cell["line"] == line.text for o in outcomes)]
    figure, panels = new_figure(3.5 * len(lines) + 0.5, 4.9, panels=len(lines))
    for axes, line in zip(panels, lines, strict=True):
        of_line = [outcome for outcome in outcomes if outcome.cell["line"] == line.text]
        for (score, seconds), colour, name in (
            (line.iht, ORANGE, "paper's IHT on an A6000"),
            (line.imp, GREY, "paper's IMP on an A6000"),
        ):
            axes.plot(seconds, score, "o", ms=11, mfc="none", mec=colour, mew=1.8, ls="none", label=name)
        for method in METHODS:
            results = [outcome.result for outcome in of_line if outcome.cell["method"] == method]
            if results:
                colour, marker, _ = LOOKS[method]
                x = median(max(result["fit_seconds"], 1e-3) for result in results)
                y = median(result["score"] for result in results)
                axes.plot(x, y, marker, color=colour, ms=8, ls="none", label=NAMES[method])
        axes.set(xscale="log", xlabel="seconds of a fit", title=line.text)
        _plain_numbers(axes.xaxis, (1.0, 3.0))
        axes.set_ylabel("PSNR (dB)" if line.data == "planted" else "accuracy on test images")
        axes.margins(0.15)
    # A panel may lack a method; the legend names each once.
    named = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=min(5, len(named)))
    seeds = len({outcome.cell.seed for outcome in outcomes})
    cut = runtimes_left_out(outcomes)
    note = f"\nCUT: {'; '.join(cut)}" if cut else ""
    figure.suptitle(
        f"Runtimes, upper left is best: (m, s), medians over {seeds} seed{'s' * (seeds > 1)}{note}"
    )
    return figure
