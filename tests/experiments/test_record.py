"""Cells and their file: what was finished is never lost, and a cut line is never taken for a result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from thresher.errors import DataFileError
from thresher.experiments.record import Cell, CellFile, Outcome

CELL = Cell("toy", {"k": 1, "parameters": {"a": 0.5}}, seed=3)
OUTCOME = Outcome(CELL, "print", "done", 1.25, {"psnr": 161.4}, None, {"threads": 1})


def test_an_outcome_survives_json() -> None:
    assert Outcome.from_plain(json.loads(json.dumps(OUTCOME.plain()))) == OUTCOME


@pytest.mark.parametrize(
    "other",
    [
        replace(OUTCOME, cell=replace(CELL, experiment="other")),
        replace(OUTCOME, cell=replace(CELL, configuration={"k": 2, "parameters": {"a": 0.5}})),
        replace(OUTCOME, cell=replace(CELL, seed=4)),
        replace(OUTCOME, data="another print"),
        replace(OUTCOME, version="another version"),
    ],
)
def test_the_key_changes_with_all_that_decides_a_result(other: Outcome) -> None:
    assert other.key != OUTCOME.key


def test_the_key_ignores_what_was_measured() -> None:
    assert replace(OUTCOME, result={"psnr": 1.0}, seconds=9.0, environment={}).key == OUTCOME.key


def test_the_latest_line_of_a_cell_counts(tmp_path: Path) -> None:
    file = CellFile(tmp_path / "deep" / "cells.jsonl")
    file.prepare()
    file.append(replace(OUTCOME, status="failed", error="broken", result={}))
    file.append(OUTCOME)
    assert file.read() == {OUTCOME.key: OUTCOME}


def test_a_file_cut_anywhere_in_its_last_line_loses_that_line_only(tmp_path: Path) -> None:
    second = replace(OUTCOME, cell=replace(CELL, seed=4))
    file = CellFile(tmp_path / "cells.jsonl")
    file.append(OUTCOME)
    first_line = file.path.read_bytes()
    file.append(second)
    whole = file.path.read_bytes()
    for length in range(len(first_line), len(whole)):
        file.path.write_bytes(whole[:length])
        assert file.read() == {OUTCOME.key: OUTCOME}
    file.prepare()
    file.append(second)
    assert file.path.read_bytes() == whole


def test_prepare_leaves_a_whole_file_as_it_is(tmp_path: Path) -> None:
    file = CellFile(tmp_path / "cells.jsonl")
    file.append(OUTCOME)
    before = file.path.stat()
    file.prepare()
    assert file.path.stat().st_ino == before.st_ino
    assert file.read() == {OUTCOME.key: OUTCOME}


@pytest.mark.parametrize("line", ["not json", "[]", '{"experiment": "toy"}', "7"])
def test_a_line_that_is_no_cell_is_named(tmp_path: Path, line: str) -> None:
    file = CellFile(tmp_path / "cells.jsonl")
    file.append(OUTCOME)
    with open(file.path, "a", encoding="utf-8") as content:
        content.write(f"{line}\n")
    with pytest.raises(DataFileError, match=r"line 2 of .*cells.jsonl"):
        file.read()


def test_what_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    file = CellFile(tmp_path / "cells.jsonl")
    with pytest.raises(ValueError, match=r"JSON"):
        file.append(replace(OUTCOME, result={"psnr": float("inf")}))
    assert not file.path.exists()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DataFileError, match=r"cannot be written.*--out"):
        CellFile(tmp_path / "taken" / "cells.jsonl").prepare()


HOSTILE = {
    "no object": "[1]",
    "a deep list": "[" * 100_000 + "]" * 100_000,
    "an experiment without a name": {"experiment": {}},
    "a configuration that is a list": {"configuration": [1]},
    "a seed in words": {"seed": "x"},
    "a seed of 400 digits": {"seed": 10**400},
    "a time of NaN": {"seconds": float("nan")},
    "an infinite result": {"result": {"psnr": float("inf")}},
    "a result that is a list": {"result": []},
    "a status of its own": {"status": "fine"},
    "an environment that is a number": {"environment": 3},
    "an error that is an object": {"error": {}},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_line_that_is_no_outcome_is_named(case: str, tmp_path: Path) -> None:
    change = HOSTILE[case]
    line = change if isinstance(change, str) else json.dumps({**OUTCOME.plain(), **change})
    (tmp_path / "cells.jsonl").write_text(f"{json.dumps(OUTCOME.plain())}\n{line}\n")
    with pytest.raises(DataFileError, match=r"line 2 of .* is not the result of a cell"):
        CellFile(tmp_path / "cells.jsonl").read()
