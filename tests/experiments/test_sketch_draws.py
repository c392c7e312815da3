"""Draws of the sketch: everything but the sketch is held fixed, and the summary counts what was reached."""

from __future__ import annotations

from typing import Any

import pytest

from thresher.experiments import experiment_named, experiments_named
from thresher.experiments.experiment import Choices
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.sketch_draws import PAPER, SKETCH_DRAWS

SHAPE = {"n": 800, "d": 100, "outputs": 10, "hidden": 10, "budget": 10, "steps": 15}


def measured(**configuration: Any) -> dict[str, Any]:
    cell = Cell("sketch-draws", {**SHAPE, "step_size": 0.5, "draw": 0, **configuration}, 1)
    return SKETCH_DRAWS.measure(cell)


def outcome(psnr: float, step_size: float, seed: int, draw: int, zero: float = 20.0) -> Outcome:
    cell = Cell("sketch-draws", {**SHAPE, "step_size": step_size, "draw": draw}, seed)
    return Outcome(cell, "data", "done", 1.0, {"psnr": psnr, "handed_out": psnr + 1, "zero": zero})


def test_there_are_thirty_draws_for_each_of_three_networks_and_one_for_each_of_thirty() -> None:
    cells = SKETCH_DRAWS.chosen(Choices())
    assert len(cells) == 2 * (3 * 30 + 27)
    assert len({(cell.seed, cell["draw"], cell["step_size"]) for cell in cells}) == len(cells)
    assert {cell.seed for cell in cells if cell["draw"] == cell.seed} == set(range(30))
    assert {cell["step_size"] for cell in cells} == {2.0, 0.5}
    for cell in cells:
        assert [cell[name] for name in ("n", "d", "outputs", "hidden", "budget", "steps")] == [
            *(50_000, 100, 10, 10, 10, 15)
        ]
    assert len(SKETCH_DRAWS.chosen(Choices(quick=True, seeds=(5,)))) == 12


def test_draws_differ_by_the_sketch_alone() -> None:
    first, again, other = measured(), measured(), measured(draw=1)
    for result in (first, again, other):
        del result["fit_seconds"], result["processor_seconds"]
    assert first == again
    assert first["zero"] == other["zero"]
    assert first["psnr"] != other["psnr"]
    assert first["nonzeros"] <= 10
    # The network without weights is far behind.
    assert first["psnr"] > first["zero"] + 5


def test_a_draw_that_overshoots_is_written_as_a_number() -> None:
    result = measured(step_size=1e4)
    assert result["status"] == "diverged"
    assert result["psnr"] == -400.0 < result["handed_out"]


def test_the_summary_counts_draws_that_reach_the_paper() -> None:
    outcomes = [
        *(outcome(psnr, 2.0, 0, draw) for draw, psnr in enumerate((10.0, 25.0, 30.0, PAPER))),
        *(outcome(psnr, 2.0, 1, draw) for draw, psnr in enumerate((40.0, 120.0))),
        outcome(60.0, 2.0, 7, 7),
        # All of its labels are zero.
        outcome(0.0, 2.0, 8, 8, zero=0.0),
        outcome(60.0, 0.5, 0, 0),
    ]
    summary = SKETCH_DRAWS.summarise(outcomes)
    (table,) = summary.tables
    assert table.rows == (
        (2.0, "network 0", 4, 10.0, 21.2, 27.5, 34.7, 48.7, 1, 1, 28.5, 20.0),
        (2.0, "network 1", 2, 40.0, 60.0, 80.0, 100.0, 120.0, 1, 0, 81.0, 20.0),
        (2.0, "draws of the sketch", 6, 10.0, 26.2, 35.0, 46.5, 120.0, 2, 1, 36.0, None),
        (2.0, "networks, one draw each", 3, 10.0, 35.0, 60.0, 90.0, 120.0, 2, 1, 61.0, None),
        (0.5, "networks, one draw each", 1, 60.0, 60.0, 60.0, 60.0, 60.0, 1, 0, 61.0, None),
    )
    assert all(len(row) == len(table.columns) for row in table.rows)
    numbers = summary.numbers["2"]["draws of the sketch"]
    assert (numbers["reach the paper's"], numbers["recovered"]) == (2, 1)
    assert numbers["median"] == pytest.approx(35.0)


def test_all_of_the_paper_leaves_it_out() -> None:
    assert experiment_named("sketch-draws") is SKETCH_DRAWS
    assert SKETCH_DRAWS not in experiments_named("all")
