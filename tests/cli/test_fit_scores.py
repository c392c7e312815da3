"""What `thresher fit` says of its scores: few rows, classes missing or rare, confusions, intervals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from thresher import Network
from thresher.cli.app import app


def invoke(command: str, *args: str | Path) -> Result:
    return CliRunner().invoke(app, [command, *map(str, args)], prog_name="thresher")


def fitted(frame: pd.DataFrame, folder: Path, *options: str | Path) -> dict[str, Any]:
    frame.to_csv(folder / "table.csv", index=False)
    options = ("--budget", "4", "--hidden", "2", *options)
    result = invoke("fit", folder / "table.csv", "--out", folder / "m.thresher", "--json", *options)
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


@pytest.mark.parametrize("rows", range(3, 7))
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_three_rows_are_scored_as_far_as_they_can_be(kind: str, rows: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(rows)
    frame = pd.DataFrame(draw.normal(size=(rows, 2)), columns=["a", "b"])
    frame["y"] = draw.normal(size=rows) if kind == "numbers" else ["u", "v", "u", "v", "w", "w"][:rows]
    found = fitted(frame, tmp_path, *(["--task", "regression"] if kind == "numbers" else []))
    assert len(found["peers"]) == 4
    assert any("to test on, which tells little" in note for note in found["notes"])
    if kind == "numbers" and found["rows"]["test"] == 1:
        assert (found["score"], found["interval"]) == (None, None)


def test_classes_that_are_missing_or_rare_are_named(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    train = pd.DataFrame({"a": draw.normal(size=200), "y": ["seldom"] * 4 + ["no"] * 150 + ["yes"] * 46})
    pd.DataFrame({"a": draw.normal(size=40), "y": ["no"] * 39 + ["new"]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    found = fitted(train, tmp_path, "--test", tmp_path / "t.csv", "--no-compare")
    assert found["notes"] == [
        "No row to train on is of class 'new', so that the model cannot predict it; such test rows count as "
        "wrong.",
        "No test row is of class 'seldom', 'yes', so that the score says nothing of it.",
        "Rare: class 'seldom', the fewest with 4 of 200 rows to train on. Accuracy hardly counts such "
        "classes; balanced accuracy counts all alike.",
    ]
    assert found["measures"]["log loss"] is None
    assert found["confusion"]["labels"] == ["new", "no", "seldom", "yes"]
    assert np.array(found["confusion"]["counts"]).sum(axis=1).tolist() == [1, 39, 0, 0]


def test_rows_set_aside_make_intervals_of_the_file(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"a": draw.normal(size=300)})
    frame["y"] = 2 * frame["a"] + draw.normal(size=300)
    fitted(frame, tmp_path, "--no-compare")
    assert Network.load(tmp_path / "m.thresher").details["calibration"]["rows"] == 60
    fresh = pd.DataFrame({"a": draw.normal(size=2000)})
    truth = 2 * fresh["a"] + draw.normal(size=2000)
    fresh.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "p.csv"
    done = invoke("predict", tmp_path / "m.thresher", tmp_path / "new.csv", "--interval", "90", "--out", out)
    assert done.exit_code == 0, done.stderr
    told = pd.read_csv(out)
    assert list(told.columns) == ["a", "prediction", "prediction_low", "prediction_high"]
    assert 0.8 < ((told["prediction_low"] <= truth) & (truth <= told["prediction_high"])).mean() < 0.97


def test_sets_of_classes_are_written_and_a_taken_name_is_refused(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    frame = pd.DataFrame({"a": draw.normal(size=200)})
    frame["y"] = np.where(frame["a"] + draw.normal(size=200) > 0, "yes", "no")
    fitted(frame, tmp_path, "--no-compare")
    model, table = tmp_path / "m.thresher", tmp_path / "table.csv"
    done = invoke("predict", model, table, "--interval", "90", "--json")
    assert done.exit_code == 0, done.stderr
    assert set(json.loads(done.stdout)["predictions"]["prediction_set"]) == {"no", "yes", "no | yes"}
    frame.assign(prediction_set="mine").to_csv(table, index=False)
    done = invoke("predict", model, table, "--interval", "90")
    assert done.exit_code == 2
    assert "--interval adds a column 'prediction_set', which is already in the table" in done.stderr


def test_intervals_of_a_model_without_calibration_rows_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(40.0), "y": np.arange(40.0) ** 2})
    fitted(frame, tmp_path, "--test-share", "0")
    done = invoke("predict", tmp_path / "m.thresher", tmp_path / "table.csv", "--interval", "90")
    assert done.exit_code == 2
    assert "has no calibration rows" in done.stderr
    done = invoke("predict", tmp_path / "m.thresher", tmp_path / "table.csv", "--interval", "0.9")
    assert done.exit_code == 2
    assert "percentage from 1 to below 100" in done.stderr


def test_labels_that_look_like_markup_are_shown_as_they_are(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({"a": draw.normal(size=60)})
    frame["rate [/s]"] = np.where(frame["a"] > 0, "[red]", "[/b]")
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--target", "rate [/s]", "--budget", "2", "--hidden", "1", "--no-compare")
    done = invoke("fit", tmp_path / "table.csv", *options, "--out", tmp_path / "m.thresher")
    assert done.exit_code == 0, done.stderr
    assert "rate [/s]: accuracy on" in done.stdout
    assert "as [/b]" in done.stdout
