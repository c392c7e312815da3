"""The experiments of the theory: small cells show what the large ones do."""

from __future__ import annotations

from pathlib import Path

import pytest

from thresher.errors import ParameterError
from thresher.experiments import Choices, experiment_named
from thresher.experiments.certificates import gathered, records_of
from thresher.experiments.record import DONE, Cell, CellFile, Outcome
from thresher.experiments.theorem import draw_of

RESULTS = Path(__file__).parents[2] / "results" / "theory"


def outcome(cell: Cell) -> Outcome:
    measured = experiment_named(cell.experiment).measure(cell)
    return Outcome(cell, "data", DONE, 1.0, measured)


def test_more_rows_find_more_planted_networks() -> None:
    experiment = experiment_named("phase-diagram")
    shape = {"d": 6, "s": 1, "draws": 2, "steps": 400, "solver": "theorem"}
    done = [outcome(Cell("phase-diagram", {"n": n, **shape}, seed=0)) for n in (6, 80)]
    assert done[0].result["recovered"] <= done[1].result["recovered"] == 1.0
    assert all(each.result["monotone"] for each in done)
    assert experiment.summarise(done).tables[0].rows[1] == (80, 1.0)


def test_the_phase_diagram_knows_its_limits() -> None:
    experiment = experiment_named("phase-diagram")
    with pytest.raises(ParameterError, match="at most as many"):
        experiment.chosen(Choices(s=(11,)))
    assert [cell["n"] for cell in experiment.chosen(Choices(quick=True, s=(2,), methods=("theorem",)))] == [
        20,
        80,
    ]
    with pytest.raises(ParameterError, match="Did you mean theorem"):
        experiment.chosen(Choices(methods=("theorm",)))


def test_the_theorem_reaches_planted_weights() -> None:
    experiment = experiment_named("theorem")
    cell = Cell("theorem", {"n": 200, "d": 3, "neurons": 2, "draws": 2, "steps": 2000}, seed=0)
    numbers = experiment.summarise([outcome(cell)]).numbers
    assert numbers["of these, planted weights reached"] == numbers["draws"] == 2
    assert numbers["bound on the loss kept at every step"] == 2
    assert numbers["largest alpha with both of each pair"] < 1e-12


def test_certificates_of_a_few_problems_hold_nothing_false() -> None:
    experiment = experiment_named("certificates")
    cells = [
        Cell("certificates", {"n": 240, "problems": 4, "outputs": outputs}, seed=3) for outputs in (1, 3)
    ]
    numbers = experiment.summarise([outcome(cell) for cell in cells]).numbers
    for part in ("one output", "several outputs"):
        assert numbers[part]["problems"] == 4
        assert numbers[part]["false proofs"] == numbers[part]["claims broken"] == 0
        assert numbers[part]["something claimed"] > 4
        assert numbers[part]["not equivalent"] > 4
    assert numbers["one output"]["recovered: unique on its support"] == 1.0
    assert len({experiment.fingerprint(cell) for cell in cells}) == 2
    assert experiment.fingerprint(cells[0]) == experiment.fingerprint(cells[0])


def stored(name: str) -> list[Outcome]:
    return list(CellFile(RESULTS / name / "cells.jsonl").read().values())


def test_a_stored_draw_of_the_theorem_comes_out_again() -> None:
    done = stored("theorem")
    again, before = draw_of(done[0].cell, 0), done[0].result["draws"][0]
    assert again["condition"] == pytest.approx(before["condition"])
    for name in ("reached", "allowed", "monotone", "rate", "distance", "reached at s", "reached at 3 s"):
        assert again[name] == before[name]
    assert sum(len(outcome.result["draws"]) for outcome in done) == 100


def test_stored_certificates_come_out_again_and_none_is_false() -> None:
    done = stored("certificates")
    first = next(each for each in done if each.cell.seed == 0 and each.cell["outputs"] == 1)
    again = gathered(records_of(first.cell, 0)[1])
    assert "recovered" in again["tried"]
    assert all(record in first.result["exact"] for record in again["exact"])
    for outputs, problems in ((1, 1500), (4, 300)):
        part = [outcome for outcome in done if outcome.cell["outputs"] == outputs]
        assert sum(outcome.result["tried"]["planted"] for outcome in part) == problems
    assert not any(outcome.result["false"] or outcome.result["broken"] for outcome in done)
