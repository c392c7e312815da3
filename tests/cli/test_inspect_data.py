"""`thresher inspect` with a table: words, rules and effects as the rows tell them; `thresher stability`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.network import Network


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="thresher")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and the table that it was fitted to, some of its cells missing."""
    path = tmp_path_factory.mktemp("bills")
    rng = np.random.default_rng(0)
    minutes, photos = rng.integers(0, 300, 60), rng.integers(0, 40, 60)
    colour = rng.choice(["blue", "red"], 60)
    bill = 9 + 0.2 * np.maximum(minutes - 100, 0) + 3 * (colour == "red") + rng.normal(size=60) * 0.3
    lines = ["minutes,photos,colour,bill"]
    lines += [f"{a},{b},{c},{d:.3f}" for a, b, c, d in zip(minutes, photos, colour, bill, strict=True)]
    (path / "bills.csv").write_text("\n".join(lines) + "\n,3,red,12\n")
    columns = [{"name": "minutes"}, {"name": "photos"}, {"name": "colour", "values": ["blue", "red"]}]
    table = {"columns": columns, "missing": "drop", "means": None}
    network = Network.fused(
        [[0.2001], [0.0], [0.0], [0.0]],
        [-20.01],
        [1],
        direct=[0.0, 0.0, 0.0, 3.0001],
        output_bias=9.0,
        features=["minutes", "photos", "colour=blue", "colour=red"],
        details={"target": "bill", "table": table, "spread": [90.0, 12.0, 0.5, 0.5]},
    )
    network.save(path / "bills.thresher")
    (path / "only.csv").write_text("minutes,photos,colour\n120,3,red\n40,3,blue\n300,8,red\n")
    return path


def test_words_come_with_the_digits_that_rows_tell(folder: Path) -> None:
    result = invoke("inspect", folder / "bills.thresher", folder / "bills.csv")
    assert result.exit_code == 0
    assert "when each is held at its mean" in result.stdout
    assert "bill = 0.2*(minutes above 100) + 3*(colour is red) + 9" in result.stdout
    assert "on 60 rows" in result.stdout
    document = json.loads(invoke("inspect", folder / "bills.thresher", folder / "bills.csv", "--json").stdout)
    assert document["explained"]["exact"] == pytest.approx(document["explained"]["written"], abs=1e-3)
    without = json.loads(invoke("inspect", folder / "bills.thresher", "--json").stdout)
    assert without["explained"] is None


def test_words_and_rules_need_no_rows(folder: Path) -> None:
    words = invoke("inspect", folder / "bills.thresher", "--write", "words", "--digits", "3")
    assert words.stdout.splitlines()[0] == "bill = 0.2*(minutes above 100) + 3*(colour is red) + 9"
    rules = invoke("inspect", folder / "bills.thresher", "--write", "rules").stdout
    assert "if minutes above 100: 0.2001*(minutes - 100)" in rules
    assert "if colour is red: 3" in rules
    counted = invoke("inspect", folder / "bills.thresher", folder / "only.csv", "--write", "rules").stdout
    assert "(2 rows)" in counted


@pytest.mark.parametrize("name", ["effects.png", "effects.svg"])
def test_effects_are_drawn(folder: Path, tmp_path: Path, name: str) -> None:
    result = invoke("inspect", folder / "bills.thresher", folder / "bills.csv", "--effects", tmp_path / name)
    assert result.exit_code == 0
    assert (tmp_path / name).stat().st_size > 5_000
    assert f"wrote {tmp_path / name}" in result.stderr


def test_stability_is_told_and_written(folder: Path, tmp_path: Path) -> None:
    given = ("stability", folder / "bills.thresher", folder / "bills.csv", "--pairs", 1, "--resamples", 20)
    document = json.loads(invoke(*given, "--json", "--pool", 2, "--out", tmp_path / "sure").stdout)
    assert document["pairs"] == 1
    assert document["pool"]["tried"] == 4
    assert document["rows"] == 60
    assert ("threshold", "minutes") in {(each["kind"], each["name"]) for each in document["intervals"]}
    written = sorted(path.name for path in (tmp_path / "sure").iterdir())
    assert written == ["stability.json", "stability.png", "stability.svg"]
    assert json.loads((tmp_path / "sure" / "stability.json").read_text())["stable"] == document["stable"]


def test_stability_is_printed(folder: Path) -> None:
    given = ("stability", folder / "bills.thresher", folder / "bills.csv", "--pairs", 1, "--resamples", 0)
    result = invoke(*given, "--budget", 1)
    assert result.exit_code == 0
    assert "false inputs to be expected: at most" in result.stdout
    assert "interval" not in result.stdout


def test_tables_are_read_as_they_were_for_the_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    width, part = rng.uniform(0, 10, 60).round(2), rng.integers(1, 4, 60)
    lines = ["day;width;part;kind"]
    for number, (a, b) in enumerate(zip(width, part, strict=True)):
        kind = "01" if a > 5 else "02"
        lines.append(f"{number % 28 + 1:02d}.03.2024;{str(a).replace('.', ',')};P-{b:02d};{kind}")
    (tmp_path / "parts.csv").write_text("\n".join(lines) + "\n")
    model, data = tmp_path / "parts.thresher", tmp_path / "parts.csv"
    done = invoke("fit", data, "--target", "kind", "--budget", 2, "--out", model, "--no-compare", "--quiet")
    assert done.exit_code == 0, done.stderr
    document = json.loads(invoke("inspect", model, data, "--json").stdout)
    assert document["explained"]["rows"] == 60
    assert document["explained"]["measure"] == "accuracy"
    assert document["explained"]["exact"] > 0.9
    assert invoke("report", model, data, "--quiet").exit_code == 0
    page = model.with_suffix(".html").read_text()
    assert "as 02" in page
    assert "12 rows of parts.csv that were set aside when the model was fitted" in page


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("stability", "bills.thresher", "only.csv"), "has no column 'bill' for --target"),
        (("stability", "bills.thresher", "bills.csv", "--target", "cost"), "has no column 'cost'"),
        (("stability", "bills.thresher", "bills.csv", "--pairs", "0"), "--pairs '0'"),
        (("stability", "bills.thresher", "bills.csv", "--threshold", "0.5"), "above 0.5"),
        (("stability", "bills.thresher", "bills.csv", "--coverage", "many"), "--coverage 'many'"),
        (("stability", "bills.thresher", "bills.csv", "--pool", "1"), "--pool '1'"),
        (("inspect", "bills.thresher", "--effects", "a.txt"), "--effects a.txt should end in one of"),
        (("inspect", "bills.thresher", "--write", "word"), "Did you mean words?"),
    ],
)
def test_bad_input_is_explained(
    folder: Path, args: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = invoke(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
