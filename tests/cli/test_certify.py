"""`thresher certify`: a saved network, a table, and what is proved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.data.planted import fresh_rows, planted
from thresher.network import Network
from thresher.theory.forms import network_of


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="thresher")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A planted network and its rows, as CSV, and fresh rows, as NPZ."""
    place = tmp_path_factory.mktemp("certify")
    problem = planted(n=150, d=4, hidden=2, budget=4, seed=1)
    network_of(problem).save(place / "model.thresher")
    table = np.column_stack([problem.X, problem.y]).astype(float)
    header = "a,b,c,d,y"
    np.savetxt(place / "data.csv", table, delimiter=",", header=header, comments="", fmt="%.17g")
    X, y = fresh_rows(problem, 100)
    np.savez(place / "fresh.npz", X=X, y=y)
    return place


def test_a_certificate_as_json_is_one_document(folder: Path) -> None:
    result = invoke("certify", folder / "model.thresher", folder / "data.csv", "--target", "y", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["levels"]["unique on its support"] == "holds"
    assert document["rows"] == 150
    assert {"fits", "margin", "identity"} <= {each["name"] for each in document["conditions"]}


def test_a_certificate_to_read_comes_with_its_figure(folder: Path, tmp_path: Path) -> None:
    result = invoke(
        *(
            "certify",
            folder / "model.thresher",
            folder / "data.csv",
            "--target",
            "y",
            "--out",
            tmp_path / "out",
        ),
        *("--held-out", folder / "fresh.npz", "--dictionary", "own,sampled", "--seed", "3"),
    )
    assert result.exit_code == 0
    assert "unique in the dictionary (sampled)" in result.stdout
    assert "All 100 held-out rows agree" in result.stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["certificate.json", "certificate.png", "certificate.svg"]


def test_quiet_prints_nothing(folder: Path) -> None:
    result = invoke("certify", folder / "model.thresher", folder / "data.csv", "--target", "y", "--quiet")
    assert (result.exit_code, result.stdout) == (0, "")


def test_features_are_taken_by_name(folder: Path, tmp_path: Path) -> None:
    model = Network.load(folder / "model.thresher")
    Network(model.layers, features=("a", "b", "c", "d")).save(tmp_path / "named.thresher")
    lines = (folder / "data.csv").read_text().splitlines()
    turned = [",".join(reversed(line.split(","))) for line in lines]
    (tmp_path / "turned.csv").write_text("\n".join(turned))
    result = invoke(
        "certify", tmp_path / "named.thresher", tmp_path / "turned.csv", "--target", "y", "--json"
    )
    assert json.loads(result.stdout)["conditions"][0]["status"] == "holds"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a column of text, whose target is a network of it to the last digit, and its model."""
    place = tmp_path_factory.mktemp("fitted")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.standard_normal(300), "age": rng.standard_normal(300)})
    frame["colour"] = rng.choice(["blue", "red", "white"], 300)
    frame["price"] = 3 * np.maximum(frame["size"] - 0.25, 0) + 2.0 * (frame["colour"] == "red") + 1.0
    frame.to_csv(place / "data.csv", index=False)
    options = ("--target", "price", "--budget", "4", "--hidden", "2", "--no-compare", "--quiet")
    result = invoke("fit", place / "data.csv", *options, "--out", place / "model.thresher")
    assert result.exit_code == 0, result.stderr
    return place


def test_what_was_fitted_is_certified_on_the_rows_of_the_fit(fitted: Path) -> None:
    result = invoke("certify", fitted / "model.thresher", fitted / "data.csv", "--json")
    document = json.loads(result.stdout)
    assert (document["rows"], document["set_aside"], document["rows_of_the_fit"]) == (240, 60, True)
    status = {each["name"]: each["status"] for each in document["conditions"]}
    assert status["fits"] == status["stationary"] == status["held out"] == "holds"
    assert document["levels"]["unique on its support"] == "holds"
    assert document["levels"]["isolated"] == "holds"
    said = invoke("certify", fitted / "model.thresher", fitted / "data.csv").stdout
    assert "the 240 rows that the model was fitted to; the 60 that were set aside then are held out" in said


def test_another_table_is_certified_whole(fitted: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(fitted / "data.csv")
    frame[::-1].to_csv(tmp_path / "other.csv", index=False, columns=["price", "colour", "age", "size"])
    result = invoke("certify", fitted / "model.thresher", tmp_path / "other.csv", "--json")
    document = json.loads(result.stdout)
    assert (document["rows"], document["set_aside"], document["rows_of_the_fit"]) == (300, 0, False)
    assert document["conditions"][0]["status"] == "holds"


@pytest.mark.parametrize(
    ("renamed", "message"),
    [
        ({"size": "sizes"}, "the table lacks 1: size. Did you mean 'sizes'?"),
        ({"size": "age", "age": "size"}, None),
        ({"price": "cost"}, "no column 'price' for --target"),
    ],
)
def test_renamed_columns_are_refused_by_name(
    fitted: Path, tmp_path: Path, renamed: dict[str, str], message: str | None
) -> None:
    frame = pd.read_csv(fitted / "data.csv").rename(columns=renamed)
    frame.to_csv(tmp_path / "renamed.csv", index=False)
    result = invoke("certify", fitted / "model.thresher", tmp_path / "renamed.csv", "--json")
    if message is None:  # Names that exist are believed, and the network does not fit what they hold.
        assert json.loads(result.stdout)["conditions"][0]["status"] == "fails"
    else:
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr


def test_noisy_rows_are_told_which_conditions_make_sense(fitted: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(fitted / "data.csv")
    frame["price"] += 0.1 * np.random.default_rng(1).standard_normal(300)
    frame.to_csv(tmp_path / "noisy.csv", index=False)
    result = invoke("certify", fitted / "model.thresher", tmp_path / "noisy.csv")
    assert "makes sense with noise" in result.stdout
    assert "On rows with noise, uniqueness in a dictionary cannot be shown" in " ".join(result.stdout.split())
    document = json.loads(
        invoke("certify", fitted / "model.thresher", tmp_path / "noisy.csv", "--json").stdout
    )
    sense = {each["name"]: each["for_noisy_rows"] for each in document["conditions"]}
    assert sense["stationary"] and sense["independent"] and not sense["fits"] and not sense["tropp (own)"]


def test_rows_that_lack_a_value_are_refused_or_left_out_as_in_the_fit(fitted: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(fitted / "data.csv")
    frame.loc[3, "size"] = np.nan
    frame.to_csv(tmp_path / "gap.csv", index=False)
    result = invoke("certify", fitted / "model.thresher", tmp_path / "gap.csv")
    assert result.exit_code == 2
    assert "row 4 after the header, column 'size'" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "z"), "no column 'z' for --target. Its columns are a, b, c, d, y"),
        (("--target", "y,d"), "3 columns beside the target, but the network takes 4"),
        (("--target", "y", "--dictionary", "all"), "must be Patterns or one of own"),
        (("--target", "y", "--precision", "x"), "--precision 'x', but it takes a number"),
        (("--target", "y", "--seed", "-1"), "--seed '-1'"),
        (("--target", "y", "--held-out", "absent.csv"), "absent.csv"),
        ((), "no --target came"),
    ],
)
def test_bad_input_is_explained(folder: Path, options: tuple[str, ...], message: str) -> None:
    result = invoke("certify", folder / "model.thresher", folder / "data.csv", *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_help_has_an_example_and_the_common_options() -> None:
    text = invoke("certify", "--help").stdout
    assert "Example: thresher certify" in text
    for option in ("--json", "--quiet", "--debug", "--out", "--seed"):
        assert option in text
