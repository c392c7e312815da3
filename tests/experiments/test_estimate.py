"""Estimates: more work takes longer, what is done corrects them, and processes share it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from thresher.experiments import EXPERIMENTS, Choices, experiments_named
from thresher.experiments.estimate import estimate
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.runtimes import LINES
from thresher.experiments.settings import Settings, read_settings, write_settings

FIGURE = EXPERIMENTS["figure-1"]


def cell(method: str, m: int = 10, s: int = 100, rows: int = 50_000) -> Cell:
    (found,) = FIGURE.chosen(
        Choices(methods=(method,), parts=("left",), m=(m,), s=(s,), rows=rows, seeds=(0,))
    )
    return found


@pytest.mark.parametrize("method", ["paper", "auto", "imp-paper", "imp", "gmp", "dense"])
def test_more_rows_take_longer(method: str) -> None:
    assert FIGURE.cost(cell(method)).seconds > FIGURE.cost(cell(method, rows=500)).seconds


def test_pruning_takes_longer_the_less_is_left_and_ours_the_more() -> None:
    assert FIGURE.cost(cell("imp", s=1)).seconds > FIGURE.cost(cell("imp", s=500)).seconds
    assert FIGURE.cost(cell("paper", s=1)).seconds < FIGURE.cost(cell("paper", s=500)).seconds
    assert FIGURE.cost(cell("auto", m=1000, s=1000)).seconds <= 51


def test_what_is_done_corrects_what_is_to_come() -> None:
    pending = [cell("paper", s=s) for s in (1, 10)]
    rough = estimate(FIGURE, pending, [], jobs=1)
    slow = Outcome(cell("paper"), "print", "done", 10 * FIGURE.cost(cell("paper")).seconds)
    corrected = estimate(FIGURE, pending, [slow], jobs=1)
    assert corrected.seconds == pytest.approx(10 * rough.seconds)
    assert (rough.measured, corrected.measured) == (False, True)


def test_processes_share_time_and_add_up_memory() -> None:
    pending = [cell("paper") for _ in range(4)]
    one, two = (estimate(FIGURE, pending, [], jobs) for jobs in (1, 2))
    assert two.seconds == pytest.approx(one.seconds / 2)
    assert two.memory == pytest.approx(2 * one.memory)
    alone = replace(FIGURE, alone=True)
    assert estimate(alone, pending, [], jobs=2) == one
    assert estimate(FIGURE, [], [], jobs=2).seconds == 0


def test_a_quick_run_of_everything_is_planned_for_less_than_twenty_minutes() -> None:
    total = sum(
        estimate(experiment, experiment.chosen(Choices(quick=True)), [], jobs=2).seconds
        for experiment in experiments_named("all")
    )
    assert total < 20 * 60


def test_quick_runtimes_leave_pruning_out_where_it_takes_minutes() -> None:
    runtimes = EXPERIMENTS["runtimes"]
    full, quick = (runtimes.chosen(Choices(quick=quick)) for quick in (False, True))
    assert (
        {each["line"] for each in full} == {each["line"] for each in quick} == {line.text for line in LINES}
    )
    pruned = {each["line"] for each in quick if each["method"] == "imp"}
    assert pruned == {"0 against 1 (1, 1)", "0 against 1 (10, 100)"}


def test_commands_are_kept_once_each_in_order(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == []
    for command in ("a", "b", "a"):
        write_settings(tmp_path, Settings(command, {"quick": True}, 2))
    kept = read_settings(tmp_path)
    assert [each["command"] for each in kept] == ["a", "b"]
    assert kept[0]["machine"]["cores"] >= 1
    assert "torch" in kept[0]["versions"]
