"""The figure of a certificate: the spectrum of its support, and the margin between weights and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thresher.report.figures import BLUE, GREY, ORANGE, new_figure, styled
from thresher.theory.certificate import Certificate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def spectrum_and_margin(certificate: Certificate) -> Figure:
    """Draw eigenvalues on the left; weights, and the largest gradient outside the support, on the right."""
    from matplotlib.ticker import MaxNLocator

    figure, (left, right) = new_figure(10.5, 4.2, panels=2)
    values = certificate.eigenvalues
    if not values.size:
        for axes in (left, right):
            axes.set_axis_off()
        left.text(0.5, 0.5, "The theory does not apply\nto this network.", ha="center", va="center")
        return figure
    marks = {"marker": "o", "ms": 6 if values.size <= 60 else 2.5, "ls": "none"}
    left.semilogy(range(1, values.size + 1), np.maximum(values, 1e-17), color=BLUE, **marks)
    left.axhline(1.0, color=GREY, lw=1, ls=":", label="orthogonal columns")
    status = certificate["independent"].status
    left.set(
        xlabel="eigenvalue, smallest first",
        ylabel="eigenvalue of the support's unit columns",
        title=f"Independent columns on the support: {status}",
    )
    for axes in (left, right):
        # Eigenvalues and weights are counted.
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    left.legend(loc="lower right")
    right.semilogy(
        range(1, certificate.weights.size + 1),
        np.maximum(certificate.weights, 1e-17),
        color=BLUE,
        label="weights kept",
        **marks,
    )
    right.axhline(
        max(certificate.gradient, 1e-17), color=ORANGE, lw=1.8, label="largest gradient outside the support"
    )
    right.set(
        xlabel="weight, largest first",
        ylabel="size, in unit columns",
        title=f"No gradient outside reaches a weight: {certificate['margin'].status}",
    )
    # Room below everything for the legend, whether the gradient is far below the weights or among them.
    lowest, highest = right.get_ylim()
    right.set_ylim(lowest / (highest / lowest) ** 0.35, highest)
    right.legend(loc="lower left")
    return figure
