"""The results that docs/results.md quotes: the quickest cell of each experiment is measured again.

Where even that one takes long, it is the quickest of the same experiment on fewer rows.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from thresher.experiments import experiment_named
from thresher.experiments.estimate import method_of
from thresher.experiments.fits import RECOVERED
from thresher.experiments.methods import PRUNING
from thresher.experiments.record import CellFile, Outcome

RESULTS = Path(__file__).parents[2] / "results"
# Rounding depends on the machine and its threads: what is not exact may differ by this much, in dB or in
# shares of test images.
DECIBELS, SHARE = 1.0, 0.01
# Seconds beyond which a cell on fewer rows stands in.
LONG = 10.0
MEASURED: dict[tuple[Any, ...], dict[str, Any]] = {}


def measurement(outcome: Outcome) -> tuple[Any, ...]:
    """Say what was measured: cells of several experiments may ask for the same."""
    cell = outcome.cell
    return experiment_named(cell.experiment).measure, cell.seed, json.dumps(cell.configuration)


def kind_of(outcome: Outcome) -> str | None:
    """Name the method: one name for iterative pruning, which differs by its batches alone."""
    method = method_of(outcome.cell)
    return "pruning" if method in PRUNING else method


def quickest() -> list[Outcome]:
    """Give a finished cell of each experiment and method."""
    fewer = quickest_in(RESULTS / "quick")
    whole = quickest_in(RESULTS).items()
    return [fewer.get(key, outcome) if outcome.seconds > LONG else outcome for key, outcome in whole]


def quickest_in(folder: Path) -> dict[tuple[str, str | None], Outcome]:
    """Give a finished cell of each experiment and method in a folder, leaving out what a clock stopped.

    It is the quickest, but where two experiments ask for the same measurement, the quickest that both have:
    it is made once for both.
    """
    cells: dict[tuple[Any, ...], dict[str, Outcome]] = defaultdict(dict)
    for path in sorted(folder.glob("*/cells.jsonl")):
        for outcome in CellFile(path).read().values():
            if outcome.status == "done" and outcome.result.get("status") != "callback":
                cells[measurement(outcome)][outcome.cell.experiment] = outcome
    found: dict[tuple[str, str | None], Outcome] = {}
    for same in sorted(cells.values(), key=lambda s: (-len(s), min(o.seconds for o in s.values()))):
        for outcome in same.values():
            found.setdefault((outcome.cell.experiment, kind_of(outcome)), outcome)
    return found


def named(outcome: Outcome) -> str:
    return f"{outcome.cell.experiment}-{method_of(outcome.cell)}"


@pytest.mark.parametrize("stored", quickest(), ids=named)
def test_a_stored_cell_comes_out_again(stored: Outcome) -> None:
    experiment = experiment_named(stored.cell.experiment)
    measure = experiment.measure
    if experiment.check is not None:
        if stored.cell["data"] != "planted" and not os.environ.get("THRESHER_DATA"):
            pytest.skip("needs data files: set THRESHER_DATA to the folder that holds them")
        measure = partial(measure, folder=None)
    what = measurement(stored)
    if what not in MEASURED:
        MEASURED[what] = measure(stored.cell)
    again = MEASURED[what]
    name = "psnr" if "psnr" in stored.result else "score"
    before, now = stored.result[name], again[name]
    accuracy = name == "score" and stored.cell["data"] in ("binary", "digits")
    exact = not accuracy and before > RECOVERED and now > RECOVERED
    assert exact or abs(before - now) < (SHARE if accuracy else DECIBELS)


def test_there_are_results() -> None:
    assert quickest()
