"""Tables as people have them: fitted without an option, what was read said first, and read again alike."""

from __future__ import annotations

import csv
import json
import os
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
from thresher.cli.whole import rows_of

QUICK = ("--budget", "6", "--hidden", "2", "--no-compare")
ROWS = 60


def invoke(*args: str | Path, given: str | None = None) -> Result:
    return CliRunner().invoke(app, list(map(str, args)), prog_name="thresher", input=given)


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table with something wrong in each column, in Latin-1, and a model of it."""
    folder = tmp_path_factory.mktemp("messy")
    draw = np.random.default_rng(0)
    size, days = draw.normal(size=ROWS).round(2), draw.integers(0, 200, ROWS)
    price = (2000 + 500 * size + 3 * days).round(2)
    frame = pd.DataFrame(
        {
            "id": range(1, ROWS + 1),
            "größe [m]": [f"{value:.2f}".replace(".", ",") for value in size],
            "sold": (pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D")).strftime("%d.%m.%Y"),
            "neu": np.where(draw.random(ROWS) < 0.5, "ja", "nein"),
            "note": [f"a few words on house {row}" for row in range(ROWS)],
            "none": "",
            "preis [€]": [f"EUR {value:,.2f}".translate(str.maketrans(",.", ".,")) for value in price],
        }
    )
    frame.to_csv(folder / "messy.csv", sep=";", index=False, encoding="cp1252")
    clean = pd.DataFrame({"size": size, "sold": days, "price": price})
    clean.to_csv(folder / "clean.csv", index=False)
    return folder


def test_everything_is_said_before_the_fit_and_the_score_is_that_of_the_clean_table(messy: Path) -> None:
    options = ("--target", "preis [€]", *QUICK, "--out", messy / "messy.thresher")
    result = invoke("fit", messy / "messy.csv", *options)
    assert result.exit_code == 0, result.stderr
    lines = result.stderr.splitlines()
    said = {line.split("  ")[1].strip(): line for line in lines if line.startswith("  ")}
    for name, words in {
        "id": "left out identifier --as id=number",
        "größe [m]": "number decimal comma --text 'größe [m]'",
        "sold": "date days since 2024-01-0 written %d.%m.%Y --text sold",
        "neu": "yes or no 1 is ja",
        "note": f"left out free text: {ROWS} different texts --text note",
        "none": f"left out {ROWS} no value in any row",
    }.items():
        for word in words.split():
            assert word in said[name]
    assert "preis [€]: R2 on 12 rows" in result.stdout
    found = json.loads(invoke("fit", messy / "messy.csv", *options, "--json").stdout)
    assert [part["column"] for part in found["columns"]] == ["id", "größe [m]", "sold", "neu", "note", "none"]
    clean = ("--target", "price", *QUICK, "--out", messy / "clean.thresher")
    assert (
        found["score"]
        > json.loads(invoke("fit", messy / "clean.csv", *clean, "--json").stdout)["score"] - 0.01
    )


def test_a_model_reads_new_tables_as_the_first(messy: Path) -> None:
    model = messy / "again.thresher"
    options = ("--target", "preis [€]", *QUICK, "--out", model, "--quiet", "--test-share", "0")
    assert invoke("fit", messy / "messy.csv", *options).exit_code == 0
    found = json.loads(invoke("predict", model, messy / "messy.csv", "--json").stdout)
    assert found["score"]["value"] > 0.99
    # One row alone says nothing about how it is written.
    text = (messy / "messy.csv").read_bytes().decode("cp1252").splitlines()
    one = json.loads(invoke("predict", model, "-", "--json", given=f"{text[0]}\n{text[3]}\n").stdout)
    assert one["predictions"]["prediction"] == found["predictions"]["prediction"][2:3]
    odd = invoke("predict", model, "-", given=f"{text[0]}\n{text[3].replace('.2024', '.24')}\n")
    assert odd.exit_code == 2
    assert "where dates written %d.%m.%Y are needed" in odd.stderr


def test_readings_encoding_and_decimals_can_be_told(messy: Path) -> None:
    options = ("--target", "preis [€]", *QUICK, "--out", messy / "told.thresher", "--encoding", "cp1252")
    options += ("--decimal", ",", "--as", "sold=date+year", "--as", "neu=text", "--as", "größe [m]=ignore")
    found = invoke("fit", messy / "messy.csv", *options)
    assert found.exit_code == 0, found.stderr
    features = Network.load(messy / "told.thresher").features
    assert features is not None
    assert features[1:] == ("sold (day of the year)", "neu=ja", "neu=nein")
    assert features[0].startswith("sold (days since 2024-01-0")


def write(path: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def fitted(folder: Path, *options: str, **columns: Any) -> Path:
    path = write(folder / "t.csv", **columns)
    out = folder / "m.thresher"
    result = invoke("fit", path, *QUICK, "--quiet", "--test-share", "0", "--out", out, *options)
    assert result.exit_code == 0, result.stderr
    return out


X = np.arange(30.0)


def test_labels_come_back_to_the_letter(tmp_path: Path) -> None:
    labels = np.where(X > 15, "007", "010")
    model = fitted(tmp_path, x=X, y=labels)
    found = json.loads(invoke("predict", model, tmp_path / "t.csv", "--json").stdout)
    assert set(found["predictions"]["prediction"]) == {"007", "010"}
    assert found["score"]["value"] > 0.9
    model = fitted(tmp_path, x=X, y=np.where(X > 15, 2**53 + 1, 2**53))
    assert Network.load(model).classes.tolist() == [2**53, 2**53 + 1]


def test_codes_are_told_apart_wherever_a_table_is_read(tmp_path: Path) -> None:
    codes = np.where(np.arange(30) % 2 == 0, "01", "1")
    model = fitted(tmp_path, "--text", "code", code=codes, y=X + 0.5)
    assert rows_of(tmp_path / "t.csv", Network.load(model))[:2].tolist() == [[1, 0], [0, 1]]


def test_commas_in_quotes_after_a_space_stay_in_their_cell(tmp_path: Path) -> None:
    model = fitted(tmp_path, "--target", "y", a=X, y=2 * X)
    given = 'a, b, c\n0.3, "red, dark", 0.7\n   \n1, "x", 2\n'
    rows = list(csv.reader(invoke("predict", model, "-", given=given).stdout.splitlines()))
    assert [row[:-1] for row in rows] == [["a", "b", "c"], ["0.3", "red, dark", "0.7"], ["1", "x", "2"]]


def test_a_probability_never_replaces_a_column(tmp_path: Path) -> None:
    model = fitted(tmp_path, x=X, y=np.where(X > 15, "yes", "no"))
    table = write(tmp_path / "new.csv", **{"x": X, "P(yes)": X})
    result = invoke("predict", model, table, "--probabilities")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "adds a column 'P(yes)', which is already in the table" in result.stderr
    result = invoke("predict", model, tmp_path / "t.csv", "--probabilities", "--column", "P(yes)")
    assert result.exit_code == 2
    assert "--column 'P(yes)' is what a probability is called" in result.stderr


def test_the_index_of_a_parquet_file_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    model = fitted(tmp_path, "--target", "y", x=X, y=2 * X)
    frame = pd.DataFrame({"x": X}, index=pd.Index([f"row {place}" for place in range(30)], name="who"))
    frame.to_parquet(tmp_path / "new.parquet")
    assert (
        invoke("predict", model, tmp_path / "new.parquet", "--out", tmp_path / "out.parquet").exit_code == 0
    )
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out.parquet")[["x"]], frame)
    rows = invoke("predict", model, tmp_path / "new.parquet").stdout.splitlines()
    assert rows[0] == "who,x,prediction"
    assert rows[1].startswith("row 0,0.0,")


def test_a_table_is_not_replaced_by_its_model(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", x=X, y=X)
    (tmp_path / "link.csv").symlink_to(table)
    for out in (table, tmp_path / "link.csv"):
        result = invoke("fit", table, "--out", out)
        assert result.exit_code == 2
        assert "which is read: it would be replaced" in result.stderr
    assert pd.read_csv(table)["x"].tolist() == X.tolist()


def test_units_in_brackets_are_shown_and_nothing_steers_the_terminal(tmp_path: Path) -> None:
    name = "rate [/s] \x1b[31mred"
    path = write(tmp_path / "t.csv", **{"x \x1b[2J": X, name: X**2 + 0.5})
    result = invoke("fit", path, "--target", name, *QUICK, "--out", tmp_path / "m.thresher")
    assert result.exit_code == 0, result.stderr
    assert r"rate [/s] \x1b[31mred: R2 on 6 rows" in result.stdout
    shown = [result.stdout, result.stderr]
    shown += [
        invoke("inspect", tmp_path / "m.thresher", "--write", how).stdout for how in ("sympy", "formula")
    ]
    write(tmp_path / "other.csv", **{"\x1b[31m": X})
    shown += [invoke("predict", tmp_path / "m.thresher", tmp_path / "other.csv").stderr]
    assert all(r"\x1b[" in text for text in shown)
    assert not any("\x1b" in text for text in shown)


def test_missing_values_can_have_an_input_of_their_own(tmp_path: Path) -> None:
    cells = [None if place % 3 == 0 else place for place in range(30)]
    model = fitted(
        tmp_path, "--missing", "indicator", x=cells, y=[5.5 if cell is None else 1.5 for cell in cells]
    )
    assert Network.load(model).features == ("x", "x is missing")
    found = json.loads(invoke("predict", model, "-", "--json", given="x\n\n7\n").stdout)
    assert found["rows"] == 1
    found = json.loads(invoke("predict", model, "-", "--json", given="x,z\n,1\n7,1\n").stdout)
    assert found["predictions"]["prediction"] == pytest.approx([5.5, 1.5], abs=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--as", "sold"), "--as 'sold', but it takes a name and a value"),
        (("--as", "x=what"), "a column is read as one of date, duration, number, text, ignore"),
        (("--as", "who=date"), "--as 'who', but the table has no such column"),
        (("--as", "y=ignore"), "the target 'y' is to be left out"),
        (("--decimal", ";"), "--decimal ';', but it is a point (.) or a comma (,)"),
        (("--encoding", "utf-9"), "--encoding 'utf-9' is not known"),
        (("--seed", "4294967296"), "it takes a whole number of 0 to 4,294,967,295"),
        (("--max-iter", "0"), "--max-iter '0', but it takes a whole number of 1 or more"),
        (("--loss", "cubic"), "loss='cubic'"),
        (("--class-weight", "balanced"), "'y' holds numbers, not classes"),
        (("--task", "classification", "--class-weight", "99=1"), "the classes are"),
        (("--task", "classification", "--class-weight", "1=much"), "the classes are"),
        (("--task", "classification", "--class-weight", "1=-1"), "weights are numbers above 0"),
    ],
)
def test_bad_options_are_explained(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", x=X, y=[*range(15), *range(15)])
    result = invoke("fit", path, *QUICK, "--out", tmp_path / "m.thresher", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_options_reach_the_estimator(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", x=[*X, *X], y=np.r_[np.where(X > 25, "yes", "no"), np.where(X > 20, "yes", "no")]
    )
    options = ("fit", path, *QUICK, "--test-share", "0", "--json", "--out", tmp_path / "m.thresher")
    one = json.loads(invoke(*options).stdout)
    model = Network.load(tmp_path / "m.thresher")
    assert (
        json.loads(invoke(*options, "--class-weight", "yes=20", "--max-iter", "50").stdout)["rows"]
        == one["rows"]
    )
    other = Network.load(tmp_path / "m.thresher")
    grid = np.arange(30.0)[:, None]
    assert (other.predict(grid) == "yes").sum() > (model.predict(grid) == "yes").sum()


def test_a_terminal_of_plain_letters_shows_the_rest_as_escapes(tmp_path: Path) -> None:
    path, model = write(tmp_path / "t.csv", **{"länge": X, "größe": 2 * X}), tmp_path / "m.thresher"
    fit = ["fit", str(path), "--target", "größe", *QUICK, "--out", str(model)]
    code = (
        "import sys\n"
        "from thresher.cli import main\n"
        f"for arguments in {[fit, ['predict', str(model), str(path)]]!a}:\n"
        "    sys.argv = ['thresher', *arguments]\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n        assert not end.code, end.code\n"
        "    sys.stdout.flush()\n"
    )
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, env=plain, check=True)
    assert rb"gr\xf6\xdfe: R2 on 6 rows" in shown.stdout
    assert rb"l\xe4nge" in shown.stderr
    assert "\nlänge,größe,prediction\n" in shown.stdout.decode()


def test_advice_can_be_followed(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    noise = draw.normal(size=(80, 2)).round(3)
    bent = write(
        tmp_path / "bent.csv",
        a=noise[:, 0],
        b=noise[:, 1],
        y=np.abs(noise[:, 0]) + 0.3 * draw.normal(size=80),
    )
    line = write(
        tmp_path / "line.csv", a=noise[:, 0], b=noise[:, 1], y=noise[:, 0] + 0.3 * draw.normal(size=80)
    )
    out = ("--out", tmp_path / "m.thresher")
    result = invoke("fit", bent, *QUICK, *out)
    assert "'linear'" not in result.stdout.split("nonzeros (")[0]
    assert "Raise --max-iter for a longer search." in " ".join(result.stdout.split())
    # A longer search offers the same line again.
    result = invoke("fit", line, *QUICK, *out)
    assert "the best of all ways was 'linear'" in result.stdout
    assert "max" not in result.stdout


def test_many_columns_of_plain_numbers_take_one_line(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.normal(size=(12, 41)).round(2)).rename(columns="c{}".format)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    options = ("--target", "c0", "--budget", "1", "--hidden", "1", "--max-iter", "1", "--no-compare")
    done = invoke("fit", tmp_path / "wide.csv", *options, "--out", tmp_path / "m.thresher")
    assert "All 40 columns hold numbers, and none lacks a value." in done.stderr
