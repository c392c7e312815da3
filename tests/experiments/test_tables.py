"""Tables 1 and 2: the paper's cells are declared, and the summary says what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from thresher.experiments.experiment import Choices
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.tables import PAPER_PSNR, TABLE_1, TABLE_2


def outcome(name: str, k: int, seed: int, **result: Any) -> Outcome:
    cell = Cell(name, {"k": k, "steps": 100}, seed)
    return Outcome(cell, "print", "done", 1.0, {"floor": 161.5, "settled": None, **result})


def test_the_cells_of_table_1_are_those_of_the_paper() -> None:
    cells = TABLE_1.chosen(Choices())
    assert len(cells) == 23 * 3
    assert {cell["k"] for cell in cells} == set(PAPER_PSNR)
    assert {cell.seed for cell in cells} == {0, 1, 2}
    for cell in cells:
        sizes = [cell[name] for name in ("n", "d", "hidden", "budget", "steps")]
        assert sizes == [50_000, 100, 10, 500, 100]


def test_table_2_takes_more_steps_where_the_paper_does() -> None:
    steps = {cell["k"]: cell["steps"] for cell in TABLE_2.chosen(Choices())}
    assert steps == {1: 100, 2: 100, 3: 100, 4: 100, 5: 200}


def test_choices_replace_what_is_declared() -> None:
    cells = TABLE_1.chosen(Choices(k=(7,), seeds=(4, 5), rows=30))
    assert [(cell["k"], cell.seed, cell["n"]) for cell in cells] == [(7, 4, 30), (7, 5, 30)]


def test_the_summary_of_table_1_counts_what_reaches_the_floor() -> None:
    outcomes = [
        outcome("table-1", 1, 0, psnr=161.45),
        outcome("table-1", 1, 1, psnr=161.0),
        outcome("table-1", 1, 2, psnr=161.6),
        outcome("table-1", 5, 0, psnr=30.0),
    ]
    summary = TABLE_1.summarise(outcomes)
    assert summary.numbers["exact"] == {"1": 2, "5": 0}
    (table,) = summary.tables
    assert table.rows == (
        (1, 161.45, 161.0, 161.6, 161.45, 161.44, "2 of 3"),
        (5, 30.0, None, None, 30.0, 36.63, "0 of 1"),
    )
    assert len(table.columns) == len(table.rows[0])


def test_the_summary_of_table_2_gives_steps() -> None:
    outcomes = [outcome("table-2", 1, seed, psnr=161.0, settled=step) for seed, step in enumerate((40, None))]
    (table,) = TABLE_2.summarise(outcomes).tables
    assert table.rows == ((1, 100, 40, None, 43, 161.0),)
    assert len(table.columns) == len(table.rows[0])


@pytest.mark.parametrize("experiment", [TABLE_1, TABLE_2])
def test_a_small_cell_is_measured_the_same_twice(experiment: Any) -> None:
    (cell,) = experiment.chosen(Choices(k=(2,), seeds=(0,), rows=150))
    results = [experiment.measure(cell) for _ in range(2)]
    for result in results:
        del result["fit_seconds"], result["peak_bytes"]
    assert results[0] == results[1]
    assert results[0]["passes"] == 100
    assert results[0]["nonzeros"] <= 500
