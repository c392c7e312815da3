"""The results that docs/results.md quotes: the quickest cell of each experiment is measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from thresher.experiments import experiment_named
from thresher.experiments.fits import RECOVERED
from thresher.experiments.record import CellFile, Outcome

RESULTS = Path(__file__).parents[2] / "results"
# Rounding depends on the machine and its threads: what is not exact may differ by this much, in dB.
TOLERANCE = 1.0


def quickest() -> list[Outcome]:
    """Give the quickest finished cell of each experiment and solver."""
    found: dict[tuple[str, str], Outcome] = {}
    for path in sorted(RESULTS.glob("*/cells.jsonl")):
        for outcome in CellFile(path).read().values():
            kind = outcome.cell.experiment, str(outcome.cell.configuration.get("solver"))
            if outcome.status == "done" and (kind not in found or outcome.seconds < found[kind].seconds):
                found[kind] = outcome
    return list(found.values())


@pytest.mark.parametrize("stored", quickest(), ids=lambda outcome: outcome.cell.experiment)
def test_a_stored_cell_comes_out_again(stored: Outcome) -> None:
    again = experiment_named(stored.cell.experiment).measure(stored.cell)
    before, now = stored.result["psnr"], again["psnr"]
    exact = before > RECOVERED and now > RECOVERED
    assert exact or abs(before - now) < TOLERANCE


def test_there_are_results() -> None:
    assert quickest()
