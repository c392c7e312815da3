"""`thresher predict`: a column is added, through pipes as well, and another table is refused."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from thresher import Network
from thresher.cli.app import app


def invoke(*args: str | Path, given: str | None = None) -> Result:
    return CliRunner().invoke(app, list(map(str, args)), prog_name="thresher", input=given)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table, and a model for each kind of target."""
    folder = tmp_path_factory.mktemp("predict")
    draw = np.random.default_rng(0)
    size, colour = draw.normal(size=90).round(3), draw.choice(["red", "blue"], size=90)
    frame = pd.DataFrame({"size": size, "colour": colour, "weight": draw.normal(size=90).round(2)})
    frame["price"] = (2 * np.maximum(size, 0) + frame["weight"] + 3 * (colour == "red")).round(4)
    frame["dear"] = np.where(frame["price"] > 1.5, "yes", "no")
    frame.to_csv(folder / "table.csv", index=False)
    options = ("--budget", "8", "--hidden", "3", "--no-compare", "--quiet", "--test-share", "0")
    for target, other in (("price", "dear"), ("dear", "price")):
        out = folder / f"{target}.thresher"
        done = invoke(
            "fit", folder / "table.csv", "--target", target, "--ignore", other, "--out", out, *options
        )
        assert done.exit_code == 0, done.stderr
    plain = frame[["size", "weight", "price"]]
    plain.to_csv(folder / "plain.csv", index=False)
    done = invoke(
        "fit", folder / "plain.csv", "--target", "price", "--out", folder / "plain.thresher", *options
    )
    assert done.exit_code == 0, done.stderr
    return folder


def read(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


def test_a_column_is_added_and_the_rest_stays_to_the_letter(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "predicted.csv"
    result = invoke("predict", folder / "plain.thresher", folder / "plain.csv", "--out", out)
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    before, after = read((folder / "plain.csv").read_text()), read(out.read_text())
    assert after[0] == [*before[0], "prediction"]
    assert [row[:-1] for row in after] == before
    frame = pd.read_csv(folder / "plain.csv")
    expected = Network.load(folder / "plain.thresher").predict(frame[["size", "weight"]])
    assert [float(row[-1]) for row in after[1:]] == expected.tolist()


def test_pipes_read_and_write(folder: Path) -> None:
    text = (folder / "plain.csv").read_text()
    piped = invoke("predict", folder / "plain.thresher", "-", given=text)
    file = invoke("predict", folder / "plain.thresher", folder / "plain.csv")
    assert piped.exit_code == 0, piped.stderr
    assert piped.stdout == file.stdout
    assert len(read(piped.stdout)) == 91


def test_a_pipe_whose_reader_goes_away_is_nobodys_mistake(folder: Path) -> None:
    command = [sys.executable, "-m", "thresher", "predict", str(folder / "plain.thresher"), "-"]
    rows = "size,weight\n" + "1.0,2.0\n" * 50_000
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(rows)
        process.stdin.close()
        assert process.stdout.readline() == "size,weight,prediction\n"
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


def test_columns_may_come_in_any_order_with_others_between(folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "plain.csv")
    frame[["weight", "price", "size"]].assign(more="x").to_csv(tmp_path / "t.csv", index=False)
    one = invoke("predict", folder / "plain.thresher", folder / "plain.csv").stdout
    two = invoke("predict", folder / "plain.thresher", tmp_path / "t.csv").stdout
    assert [row[-1] for row in read(one)] == [row[-1] for row in read(two)]


@pytest.mark.parametrize("target", ["price", "dear"])
def test_the_model_encodes_raw_tables_by_itself(target: str, folder: Path) -> None:
    result = invoke("predict", folder / f"{target}.thresher", folder / "table.csv", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["score"]["value"] > 0.8
    assert found["score"]["measure"] == ("accuracy" if target == "dear" else "R2")
    assert len(found["predictions"]["prediction"]) == 90


def test_a_score_says_which_rows_the_model_was_fitted_to(folder: Path, tmp_path: Path) -> None:
    model, plain = tmp_path / "m.thresher", folder / "plain.csv"
    options = (
        "--target",
        "price",
        "--budget",
        "2",
        "--hidden",
        "2",
        "--max-iter",
        "2",
        "--no-compare",
        "--json",
    )
    fitted = json.loads(invoke("fit", plain, "--out", model, *options).stdout)
    told = invoke("predict", model, plain)
    assert "fitted to most of them" in told.stderr
    assert f"on the 18 that were set aside then it is {fitted['score']:.4f}." in told.stderr
    score = json.loads(invoke("predict", model, plain, "--json").stdout)["score"]
    assert (score["fitted"], score["set_aside"]["rows"]) == (True, 18)
    assert "fitted to these rows" in invoke("predict", folder / "plain.thresher", plain).stderr
    pd.read_csv(plain).head(20).to_csv(tmp_path / "new.csv", index=False)
    assert invoke("predict", model, tmp_path / "new.csv").stderr.endswith("hold the target.\n")


def test_probabilities_have_a_column_for_each_class(folder: Path) -> None:
    result = invoke("predict", folder / "dear.thresher", folder / "table.csv", "--probabilities")
    rows = read(result.stdout)
    assert rows[0][-3:] == ["prediction", "P(no)", "P(yes)"]
    for row in rows[1:]:
        assert float(row[-2]) + float(row[-1]) == pytest.approx(1)
        assert row[-3] == ("yes" if float(row[-1]) > 0.5 else "no")


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_missing_values_are_treated_as_in_training(missing: str, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.thresher"
    options = (
        "--budget",
        "8",
        "--hidden",
        "3",
        "--no-compare",
        "--quiet",
        "--out",
        out,
        "--missing",
        missing,
    )
    assert (
        invoke("fit", folder / "table.csv", "--target", "price", "--ignore", "dear", *options).exit_code == 0
    )
    given = "size,colour,weight\n1.0,red,\n2.0,,1\n0.5,blue,0.25\n"
    result = invoke("predict", out, "-", given=given)
    assert result.exit_code == 0, result.stderr
    cells = [row[-1] for row in read(result.stdout)[1:]]
    assert [cell == "" for cell in cells] == [missing == "drop", missing == "drop", False]
    assert ("2 rows lack a value" in result.stderr) == (missing == "drop")


def test_text_that_is_new_is_told(folder: Path) -> None:
    given = "size,colour,weight\n1.0,red,1\n2.0,pink,1\n"
    result = invoke("predict", folder / "price.thresher", "-", given=given)
    assert result.exit_code == 0
    assert "1 rows hold a text in column 'colour'" in result.stderr


def test_other_formats_can_be_written(folder: Path, tmp_path: Path) -> None:
    invoke("predict", folder / "plain.thresher", folder / "plain.csv", "--out", tmp_path / "p.tsv")
    frame = pd.read_csv(tmp_path / "p.tsv", sep="\t")
    assert frame.columns.tolist() == ["size", "weight", "price", "prediction"]
    pytest.importorskip("pyarrow")
    invoke("predict", folder / "plain.thresher", folder / "plain.csv", "--out", tmp_path / "p.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "p.parquet"), frame)
    again = invoke("predict", folder / "plain.thresher", tmp_path / "p.parquet", "--column", "again")
    assert read(again.stdout)[0][-1] == "again"


def test_arrays_give_the_new_column_alone(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=[1.5, 2.5, 3.5])
    network = Network.fused(np.array([[2.0], [0.0], [1.0]]), bias=[0.0], signs=[1])
    network.save(tmp_path / "m.thresher")
    result = invoke("predict", tmp_path / "m.thresher", tmp_path / "t.npz")
    assert result.stdout == "prediction\n2.0\n0.0\n1.0\n"


def test_a_linear_part_and_a_log_link_are_predicted_from(tmp_path: Path) -> None:
    network = Network.fused([[0.0], [2.0]], None, [1], direct=[1.0, 0.0], link="log", features=["a", "b"])
    network.save(tmp_path / "m.thresher")
    result = invoke("predict", tmp_path / "m.thresher", "-", given="b,a\n-1,0.5\n0.25,1\n")
    assert result.exit_code == 0, result.stderr
    found = [float(row[-1]) for row in read(result.stdout)[1:]]
    assert np.allclose(found, np.exp([0.5, 1.5]), rtol=1e-15)
    result = invoke("predict", tmp_path / "m.thresher", "-", given="a,b\n1000,0\n")
    assert result.exit_code == 2
    assert "exp(1000), overflows" in " ".join(result.stderr.split())


def bad(folder: Path, tmp_path: Path) -> dict[str, tuple[tuple[Any, ...], str]]:
    """List what can be wrong, with the message it gets."""
    model, table = folder / "plain.thresher", folder / "plain.csv"
    texts = {
        "other.csv": "p,q\n1,2\n",
        "near.csv": "Size,weight\n1,2\n",
        "empty.csv": "",
        "mixed.csv": "size,weight\n1,2\nbig,3\n4,5\n",
        "lacking.csv": "size,weight\n1,2\n,3\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {
        "no model": ((folder / "nowhere.thresher", table), "nowhere.thresher"),
        "a table as model": ((table, table), "plain.csv"),
        "no table": ((model, folder / "plain.cvs"), "Did you mean"),
        "another data set": ((model, tmp_path / "other.csv"), "fitted on another data set"),
        "a wrong column": ((model, tmp_path / "near.csv"), "Did you mean 'Size'?"),
        "an empty table": ((model, tmp_path / "empty.csv"), "is empty"),
        "mixed types": ((model, tmp_path / "mixed.csv"), "row 2 holds 'big'"),
        "a missing value": ((model, tmp_path / "lacking.csv"), "row 2 after the header, column 'size'"),
        "no folder": ((model, table, "--out", tmp_path / "no" / "p.csv"), "does not exist"),
        "an unknown kind": ((model, table, "--out", tmp_path / "p.xls"), "written as .csv, .tsv or .parquet"),
        "a taken name": ((model, table, "--column", "size"), "already in the table"),
        "no classes": ((model, table, "--probabilities"), "this model predicts numbers"),
    }


@pytest.mark.parametrize(
    "case",
    [
        *("no model", "a table as model", "no table", "another data set", "a wrong column", "an empty table"),
        *("mixed types", "a missing value", "no folder", "an unknown kind", "a taken name", "no classes"),
    ],
)
def test_bad_input_is_explained_and_nothing_written(case: str, folder: Path, tmp_path: Path) -> None:
    args, message = bad(folder, tmp_path)[case]
    before = sorted(path.name for path in tmp_path.iterdir())
    result = invoke("predict", *args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("Error: ") == 1
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before
