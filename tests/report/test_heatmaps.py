"""Heatmaps and curves of the figures: the paper's layout, one scale, deviations below, and what was cut."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thresher.experiments import EXPERIMENTS, Choices, Outcome
from thresher.experiments.catalogue import FIGURES
from thresher.experiments.grids import cuts
from thresher.experiments.runtimes import LINES
from thresher.report.budgets import LOOKS
from thresher.report.figures import draw, save
from thresher.report.heatmaps import figure_of_part

PLANTED, DIGITS = FIGURES[0], FIGURES[2]


def outcomes(name: str, **choices: Any) -> list[Outcome]:
    """Pretend that cells were measured: scores follow width and budget, so that places can be told apart."""
    cells = EXPERIMENTS[name].chosen(Choices(**choices))
    accuracy = name == "figure-3"
    return [
        Outcome(
            cell,
            "print",
            "done",
            1.0,
            {
                "score": 0.75 if accuracy else float(cell["hidden"] % 37) + cell.seed,
                "fit_seconds": cell["budget"] / 10,
                "peak_bytes": 2**20 * cell["hidden"],
                "nonzeros": cell["budget"],
                "cut": cuts(cell) if "part" in cell.configuration else [],
            },
        )
        for cell in cells
    ]


def texts(figure: Any) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_methods_are_side_by_side_on_the_papers_scale() -> None:
    figure = figure_of_part(PLANTED, PLANTED.parts[0], outcomes("figure-1", quick=True, parts=("left",)))
    panels = [axes for axes in figure.axes if axes.images]
    titles = [axes.get_title() for axes in panels]
    assert titles == [
        "paper (IHT)",
        "Thresher (auto)",
        "IMP as in the paper",
        "IMP, retrained",
        "gradual pruning",
    ]
    assert {axes.images[0].get_clim() for axes in panels} == {(-20.0, 50.0)}
    assert panels[0].get_ylim()[0] < panels[0].get_ylim()[1]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["2", "10", "100"]


def test_deviations_over_seeds_come_below() -> None:
    shown = outcomes("figure-1", parts=("left",), methods=("paper", "imp"), m=(1, 2), s=(5, 10))
    figure = figure_of_part(PLANTED, PLANTED.parts[0], shown)
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 4
    assert np.allclose(panels[0].images[0].get_array(), [[2, 2], [3, 3]])
    # Scores of the three seeds are 0, 1 and 2 apart.
    assert np.allclose(panels[2].images[0].get_array(), np.sqrt(2 / 3))


def test_accuracy_is_shown_in_percent_from_chance_to_perfect() -> None:
    figure = figure_of_part(DIGITS, DIGITS.parts[1], outcomes("figure-3", quick=True, parts=("right",)))
    panel = figure.axes[0]
    assert panel.images[0].get_clim() == (10.0, 100.0)
    assert set(texts(figure)) == {"75.0"}


def test_a_cell_that_is_missing_stays_grey() -> None:
    shown = outcomes("figure-1", quick=True, parts=("left",), methods=("paper",))[:-1]
    values = figure_of_part(PLANTED, PLANTED.parts[0], shown).axes[0].images[0].get_array()
    assert int(np.isnan(np.asarray(values)).sum()) + int(np.ma.getmaskarray(values).sum()) >= 1
    assert len(texts(figure_of_part(PLANTED, PLANTED.parts[0], shown))) == len(shown)


@pytest.mark.parametrize("name", [figure.name for figure in FIGURES])
def test_quick_figures_say_on_themselves_what_was_cut(name: str, tmp_path: Path) -> None:
    figures = draw(name, outcomes(name, quick=True))
    assert list(figures) == [f"{name}-{part}{kind}" for part in ("left", "right") for kind in ("", "-curves")]
    for figure in figures.values():
        said = figure.get_suptitle().replace("\n", " ")
        assert re.search(r"CUT: \d+ of \d+ m; \d+ of \d+ s; 1 of 3 seeds", said)
    for path in save(figures[f"{name}-left"], tmp_path, "left"):
        assert path.stat().st_size > 5_000


def test_a_whole_figure_says_that_nothing_was_cut() -> None:
    shown = outcomes("figure-4", parts=("left",), methods=("paper",))
    figure = figure_of_part(FIGURES[3], FIGURES[3].parts[0], shown)
    assert "CUT" not in figure.get_suptitle()
    assert "the paper's grid" in figure.get_suptitle()


def test_curves_show_score_time_and_memory_against_the_budget() -> None:
    figure = draw("figure-1", outcomes("figure-1", quick=True, parts=("left",)))["figure-1-left-curves"]
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels[0] == "PSNR (dB)"
    assert "seconds" in labels[1]
    assert "memory" in labels[2]
    seconds = figure.axes[1].lines[0]
    assert list(seconds.get_ydata()) == [budget / 10 for budget in seconds.get_xdata()]


def test_every_method_looks_its_own_way() -> None:
    assert len({(colour, marker) for colour, marker, _ in LOOKS.values()}) == len(LOOKS)
    assert len({marker for _, marker, _ in LOOKS.values()}) == len(LOOKS)


def test_runtimes_have_a_panel_for_each_line() -> None:
    figure = draw("runtimes", outcomes("runtimes", quick=True))["runtimes"]
    assert [axes.get_title() for axes in figure.axes] == [line.text for line in LINES]
    assert "CUT: 1 of 3 seeds" in figure.get_suptitle()
