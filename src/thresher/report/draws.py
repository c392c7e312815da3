"""What draws of the count sketch reach: the share of them at or above each PSNR, a panel for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.experiments import Outcome
from thresher.experiments.sketch_draws import PAPER, drawn_often, of_many, psnrs
from thresher.report.figures import COLOURS, GREY, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Below this, in dB, a draw has overshot, and how far says nothing.
LEAST = 0.0


@styled
def sketch_draws(outcomes: Sequence[Outcome]) -> Figure:
    """Draw falling staircases of networks of many draws and of many networks, and what the paper reports."""
    steps = list(dict.fromkeys(outcome.cell["step_size"] for outcome in outcomes))
    figure, panels = new_figure(max(6.8, 5.6 * len(steps)), 4.8, len(steps))
    most = 1.05 * max(PAPER, *psnrs(outcomes))
    for axes, step in zip(panels, steps, strict=True):
        chosen = [outcome for outcome in outcomes if outcome.cell["step_size"] == step]
        lines = {f"network {seed}, {len(of)} draws": of for seed, of in drawn_often(chosen).items()}
        if many := of_many(chosen):
            lines[f"{len(many)} networks, one draw each"] = many
        for number, (label, of) in enumerate(lines.items()):
            found = [max(value, LEAST) for value in psnrs(of)]
            shares = [1 - place / len(found) for place in range(len(found) + 1)]
            # From the left edge, where all draws are, down to none beyond the best.
            axes.step(
                [LEAST, *found, found[-1]],
                [1.0, *shares],
                where="pre",
                color=COLOURS[number % len(COLOURS)],
                ls=("-", "--", "-.", (0, (1, 1)))[number % 4],
                lw=1.8,
                label=label,
            )
        axes.axvline(PAPER, color=GREY, ls=":", lw=1.5, label=f"the paper reports {PAPER:g} dB")
        axes.set(
            xlabel="PSNR (dB), 0 for all below",
            title=f"steps of {step:g}",
            ylim=(0, 1.03),
            xlim=(LEAST, most),
        )
    panels[0].set_ylabel("share of draws that reach it")
    cell = outcomes[0].cell
    # Above the panels, because staircases may run anywhere in them.
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=3 if len(steps) > 1 else 2,
        title=f"One draw of the sketch after another: {cell['steps']} steps, n = {cell['n']:,}, "
        f"(m, s) = ({cell['hidden']}, {cell['budget']}), {cell['outputs']} outputs",
    )
    return figure
