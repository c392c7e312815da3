"""`thresher demo`: it recovers what it planted, prints it, and writes its figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.experiments import demo


@pytest.fixture(autouse=True)
def few_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit each dataset at one budget: what is tested is not how good the fits are."""
    monkeypatch.setattr(demo, "DIABETES_BUDGETS", (5,))
    monkeypatch.setattr(demo, "DIGITS_BUDGETS", (20,))


def invoke(*args: str) -> Result:
    return CliRunner().invoke(app, ["demo", *args], prog_name="thresher")


def test_the_demonstration_shows_and_draws(tmp_path: Path) -> None:
    result = invoke("--out", str(tmp_path / "new"))
    assert result.exit_code == 0, result.stderr
    assert "The same network" in result.stdout
    for name in ("planted.png", "planted.svg", "scores.png", "scores.svg"):
        assert (tmp_path / "new" / name).stat().st_size > 5_000
        assert name in result.stdout
    for text in ("recovered", "Diabetes", "Digits", "budget 5", "budget 20", "dense network"):
        assert text in result.stdout


def test_the_document_has_all_of_it(tmp_path: Path) -> None:
    result = invoke("--out", str(tmp_path), "--seed", "1", "--json")
    document = json.loads(result.stdout)
    assert document["seed"] == 1
    assert document["planted"]["verdict"] == "exact"
    assert len(document["planted"]["weights"]) == document["planted"]["nonzeros"] == 18
    for weight in document["planted"]["weights"]:
        assert weight["planted"] == pytest.approx(weight["recovered"], abs=1e-6)
    for name, budget in (("diabetes", 5), ("digits", 20)):
        sparse = [score for score in document[name] if score["sparse"]]
        assert [score["nonzeros"] <= budget for score in sparse] == [True]
        assert len(document[name]) == 3


def test_a_network_that_is_missed_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [demo.Score("budget 5", 5, 0.5, 0.1, True), demo.Score("dense", 100, 0.6, 0.1, False)]
    for name in ("fit_diabetes", "fit_digits"):
        monkeypatch.setattr(demo, name, lambda seed, after_each: scores)
    monkeypatch.setattr(demo, "RECOVERED", 1000.0)
    monkeypatch.setattr(demo, "SAME_WEIGHT", 0.0)
    result = invoke("--out", str(tmp_path))
    assert result.exit_code == 1
    assert "Not found" in result.stdout


def test_a_folder_that_cannot_be_written_fails_at_once(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    result = invoke("--out", str(tmp_path / "taken"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be written to" in result.stderr


def test_an_interrupted_demonstration_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from thresher.solvers.auto import Auto

    def interrupted(self: Auto, iterate: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(Auto, "step", interrupted)
    result = invoke("--out", str(tmp_path))
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert result.stdout == ""
