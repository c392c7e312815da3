"""The ablations: one thing is changed at a time, and memory is measured apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from thresher.errors import ParameterError
from thresher.experiments.ablations import ABLATIONS
from thresher.experiments.experiment import Choices
from thresher.experiments.memory import measure_apart, peak_during
from thresher.experiments.record import Cell, Outcome

SMALL = {"n": 400, "d": 20, "hidden": 3, "budget": 10}


def cell_of(part: str, variant: str, **changes: Any) -> Cell:
    cells = ABLATIONS.chosen(Choices(quick=True, rows=400))
    (cell,) = [cell for cell in cells if (cell["part"], cell["variant"]) == (part, variant)]
    return replace(cell, configuration={**cell.configuration, **changes})


def test_refinements_and_first_passes_have_three_seeds_and_blocks_one() -> None:
    counts = Counter(cell["part"] for cell in ABLATIONS.chosen(Choices()))
    assert counts == {"acceleration": 9, "first pass": 6, "block": 5}


@pytest.mark.parametrize(
    ("part", "variant"),
    [
        ("acceleration", "armijo"),
        ("acceleration", "conjugate gradients"),
        ("acceleration", "none"),
        ("first pass", "fixed"),
        ("first pass", "following"),
    ],
)
def test_a_small_cell_is_measured(part: str, variant: str) -> None:
    result = ABLATIONS.measure(cell_of(part, variant, **SMALL, passes=6))
    assert result["steps"] == len(result["curve"]) >= (60 if part == "first pass" else 6)
    assert result["nonzeros"] <= 10
    assert 0 < result["psnr"] <= result["floor"] + 1


def test_variants_differ() -> None:
    cells = [cell_of("acceleration", variant, **SMALL, passes=6) for variant in ("armijo", "none")]
    assert ABLATIONS.measure(cells[0])["psnr"] > ABLATIONS.measure(cells[1])["psnr"]


def test_following_gates_move_in_the_first_pass() -> None:
    fixed, following = (
        ABLATIONS.measure(cell_of("first pass", variant, **SMALL, passes=1, batch_size=40))["curve"]
        for variant in ("fixed", "following")
    )
    assert fixed != following


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    configuration = {**SMALL, "n": 50, "steps": 1, "memory_limit": 2**20, "dtype": "float32", "seed": 0}
    result = measure_apart(configuration)
    assert result["step_seconds"] > 0
    assert 0 <= result["peak_bytes"] < 2**28


def test_a_measurement_that_fails_says_why() -> None:
    configuration = {**SMALL, "steps": 1, "memory_limit": 1, "dtype": "float32", "seed": 0}
    with pytest.raises(ParameterError, match="memory_limit=1 bytes"):
        measure_apart(configuration)


def test_the_peak_is_what_was_held_on_the_way() -> None:
    answer, peak = peak_during(lambda: float(np.ones(2**23).sum()))
    assert answer == 2**23
    assert 2**25 < peak < 2**28


def test_the_summary_has_a_table_for_each_part() -> None:
    curve = {"psnr": 120.0, "recovered_at": 7, "fit_seconds": 1.0}
    results = {"acceleration": curve, "first pass": {**curve, "recovered_at": None}}
    outcomes = [
        Outcome(Cell("ablations", {"part": part, "variant": "a"}, 0), "print", "done", 1.0, result)
        for part, result in results.items()
    ]
    blocks = replace(cell_of("block", "16 MB"), experiment="ablations")
    outcomes.append(Outcome(blocks, "print", "done", 1.0, {"peak_bytes": 2**21, "step_seconds": 0.5}))
    tables = ABLATIONS.summarise(outcomes).tables
    assert [len(table.rows) for table in tables] == [1, 1, 1]
    assert tables[0].rows[0] == ("a", 120.0, "1 of 1", 7.0, 1.0)
    assert tables[1].rows[0][3] is None
    assert tables[2].rows[0] == ("16 MB", 2.0, 0.5)
