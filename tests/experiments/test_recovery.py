"""The recovery grid: its cells, its sample, and the share that it reports."""

from __future__ import annotations

from collections import Counter

import pytest

from thresher.errors import ParameterError
from thresher.experiments.experiment import Choices
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.recovery import RECOVERY, SAMPLE, SIZES


def outcome(solver: str, seed: int, psnr: float, labelled: bool = True) -> Outcome:
    cell = Cell("recovery", {"solver": solver, "hidden": 10, "budget": 20}, seed)
    result = {"psnr": psnr, "fit_seconds": 2.0, "nonzero_labels": labelled}
    return Outcome(cell, "print", "done", 1.0, result)


def test_the_sample_meets_every_row_and_column_twice() -> None:
    assert len(SAMPLE) == 20
    assert Counter(m for m, _ in SAMPLE) == Counter(s for _, s in SAMPLE) == dict.fromkeys(SIZES, 2)


def test_one_seed_covers_the_grid_and_three_the_sample() -> None:
    for solver in ("paper", "auto"):
        cells = [cell for cell in RECOVERY.chosen(Choices()) if cell["solver"] == solver]
        assert Counter(cell.seed for cell in cells) == {0: 100, 1: 20, 2: 20}
        assert {(cell["hidden"], cell["budget"]) for cell in cells if cell.seed == 1} == SAMPLE


def test_seeds_that_are_asked_for_run_every_chosen_cell() -> None:
    cells = RECOVERY.chosen(Choices(seeds=(7, 8), m=(3,), s=(4, 5), methods=("auto",)))
    chosen = [(cell["hidden"], cell["budget"], cell.seed) for cell in cells]
    assert chosen == [(3, 4, 7), (3, 5, 7), (3, 4, 8), (3, 5, 8)]


def test_auto_has_a_minute_and_paper_fifteen_steps() -> None:
    cells = {cell["solver"]: cell for cell in RECOVERY.chosen(Choices(quick=True))}
    assert cells["auto"]["seconds"] < 60
    assert cells["paper"]["parameters"]["max_iter"] == 15
    assert "seconds" not in cells["paper"].configuration


def test_an_unknown_solver_gets_a_hint() -> None:
    with pytest.raises(ParameterError, match=r"--methods papper, .* Did you mean paper"):
        RECOVERY.chosen(Choices(methods=("papper",)))


def test_a_run_of_everything_takes_the_solvers_that_there_are() -> None:
    assert RECOVERY.understood(Choices(methods=("gmp", "auto"))).methods == ("auto",)
    assert RECOVERY.understood(Choices(methods=("gmp",))).methods is None


def test_the_share_leaves_out_labels_that_are_all_zero() -> None:
    outcomes = [
        outcome("paper", 0, 30.0),
        outcome("paper", 0, 161.0),
        outcome("paper", 0, 0.0, labelled=False),
    ]
    summary = RECOVERY.summarise([*outcomes, outcome("auto", 1, 120.0)])
    assert summary.numbers["share"] == {"paper": {"0": 0.5}, "auto": {"1": 1.0}}
    assert summary.numbers["missed"] == {
        "paper": [{"m": 10, "s": 20, "seed": 0, "psnr": 30.0}],
        "auto": [],
    }
    assert summary.tables[0].rows[0] == ("paper", 0, "1 of 2 (50%)", 2.0, 2.0)


@pytest.mark.parametrize("solver", ["paper", "auto"])
def test_a_network_of_one_weight_is_found_by_both(solver: str) -> None:
    (cell,) = RECOVERY.chosen(Choices(m=(1,), s=(1,), seeds=(0,), rows=300, methods=(solver,)))
    result = RECOVERY.measure(cell)
    assert result["psnr"] > 100
    assert result["nonzeros"] == 1
    assert result["nonzero_labels"] is True
