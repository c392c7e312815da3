"""Figures: they are valid files, written whole, the same each time, and can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import matplotlib.image
import numpy as np
import pytest

from thresher.data.planted import planted
from thresher.errors import DataFileError
from thresher.experiments import Cell, Outcome
from thresher.experiments.demo import Score, match
from thresher.network import Network
from thresher.report.demo import planted_and_recovered, scores_against_nonzeros
from thresher.report.figures import draw, new_figure, save
from thresher.report.grid import recovery


def done(experiment: str, configuration: dict[str, Any], seed: int, **result: Any) -> Outcome:
    sizes = {"n": 1000, "d": 100, "hidden": 10, "budget": 500}
    return Outcome(Cell(experiment, {**sizes, **configuration}, seed), "print", "done", 1.0, result)


def grid(values: dict[tuple[str, int, int], float]) -> list[Outcome]:
    return [
        done("recovery", {"solver": solver, "hidden": m, "budget": s}, 0, psnr=psnr)
        for (solver, m, s), psnr in values.items()
    ]


OUTCOMES = {
    "table-1": [
        done("table-1", {"k": k, "steps": 100}, seed, psnr=160.0 / k, floor=161.0)
        for k in (1, 5)
        for seed in (0, 1)
    ],
    "table-2": [
        done("table-2", {"k": 1, "steps": 100}, 0, psnr=160.0, settled=40),
        done("table-2", {"k": 5, "steps": 200}, 0, psnr=30.0, settled=None),
    ],
    "ablations": [
        done("ablations", {"part": "acceleration", "variant": "none"}, 0, curve=[10.0, 20.0]),
        done("ablations", {"part": "first pass", "variant": "fixed"}, 0, curve=[10.0, 20.0]),
        done(
            "ablations",
            {"part": "block", "variant": "1 MB", "memory_limit": 2**20},
            0,
            peak_bytes=2**24,
            step_seconds=0.5,
        ),
    ],
    "sketch-draws": [
        done(
            "sketch-draws",
            {"step_size": step, "draw": draw, "steps": 15, "outputs": 10},
            seed,
            psnr=psnr,
            zero=20.0,
        )
        for step, seed, draw, psnr in [
            (2.0, 0, 0, 25.0),
            (2.0, 0, 1, -300.0),
            (2.0, 1, 0, 60.0),
            (0.5, 0, 0, 30.0),
        ]
    ],
    "recovery": grid({("paper", 1, 1): 160.0, ("paper", 1, 2): 10.0, ("auto", 1, 1): 150.0}),
}


@pytest.mark.parametrize("experiment", OUTCOMES)
@pytest.mark.parametrize("first_only", [False, True])
def test_every_experiment_has_a_figure_in_two_formats(
    experiment: str, first_only: bool, tmp_path: Path
) -> None:
    outcomes = OUTCOMES[experiment][:1] if first_only else OUTCOMES[experiment]
    figure = draw(experiment, outcomes)[experiment]
    png, svg = save(figure, tmp_path / "new", experiment)
    assert (png.suffix, svg.suffix) == (".png", ".svg")
    pixels = matplotlib.image.imread(png)
    assert pixels.shape[0] > 300
    # One number for each colour: sorting rows of four would take a hundred times as long.
    colours = np.rint(255 * pixels).astype(np.int64) @ 256 ** np.arange(pixels.shape[2])
    assert len(np.unique(colours)) > 10
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert sorted(path.name for path in png.parent.iterdir()) == [png.name, svg.name]


def test_nothing_done_is_nothing_drawn() -> None:
    assert draw("recovery", []) == {}
    assert draw("figure-1", []) == {}


def test_legends_of_the_ablations_cover_no_curve(tmp_path: Path) -> None:
    figure = draw("ablations", OUTCOMES["ablations"])["ablations"]
    save(figure, tmp_path, "ablations")
    for axes in figure.axes[:2]:
        legend = axes.get_legend()
        assert legend is not None
        assert not legend.get_window_extent().overlaps(axes.get_window_extent())


def test_figures_of_the_demonstration(tmp_path: Path) -> None:
    problem = planted(50, 12, 4, 10, negative=0.5, seed=1)
    network = Network.fused(problem.weights[0], None, problem.signs)
    scores = [Score("budget 3", 3, 0.2, 0.1, True), Score("budget 9", 9, 0.4, 0.1, True)]
    scores.append(Score("dense", 1000, 0.5, 0.1, False))
    figures = [planted_and_recovered(match(problem, network)), scores_against_nonzeros(scores, scores)]
    for number, figure in enumerate(figures):
        for path in save(figure, tmp_path, f"figure-{number}"):
            assert path.stat().st_size > 5_000


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        [path.read_bytes() for path in save(recovery(OUTCOMES["recovery"]), tmp_path / name, "grid")]
        for name in ("one", "two")
    )
    assert first == second


def test_drawing_leaves_the_settings_of_matplotlib_alone(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    save(recovery(OUTCOMES["recovery"]), tmp_path, "grid")
    assert dict(matplotlib.rcParams) == before


def test_a_figure_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    figure, _ = new_figure(2, 2)
    (tmp_path / "grid.png").mkdir()
    with pytest.raises(DataFileError, match=r"grid.png cannot be written"):
        save(figure, tmp_path, "grid")
    assert [path.name for path in tmp_path.iterdir()] == ["grid.png"]


def test_text_stays_text_in_an_svg(tmp_path: Path) -> None:
    _, svg = save(draw("table-1", OUTCOMES["table-1"])["table-1"], tmp_path, "table-1")
    text = svg.read_text(encoding="utf-8")
    assert "k: steps between updates of the gates" in text
    assert "CUT: 1,000 of 50,000 rows; 2 of 23 values of k; 2 of 3 seeds" in text


@pytest.mark.parametrize("psnr", range(0, 170, 10))
def test_numbers_in_a_heatmap_can_be_read(psnr: float) -> None:
    figure = recovery(grid({("auto", 1, 1): psnr}))
    axes = figure.axes[0]
    image = axes.images[0]
    (text,) = [text for text in axes.texts if text.get_text() == f"{psnr:.0f}"]
    behind = brightness(image.cmap(image.norm(psnr))[:3])
    written = brightness(matplotlib.colors.to_rgb(text.get_color()))
    lighter, darker = max(behind, written), min(behind, written)
    assert (lighter + 0.05) / (darker + 0.05) > 4.5


def brightness(colour: tuple[float, float, float]) -> float:
    """Give the relative luminance, as guidelines for readable text define it."""
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_the_heatmap_puts_widths_upwards_and_budgets_to_the_right() -> None:
    axes = recovery(grid({("auto", 1, 5): 10.0, ("auto", 20, 5): 20.0, ("auto", 1, 50): 30.0})).axes[0]
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert places == {"10": (0, 0), "20": (0, 1), "30": (1, 0)}
    assert axes.get_ylim()[0] < axes.get_ylim()[1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "50"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "20"]
