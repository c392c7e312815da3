"""`thresher fit`: a table becomes a model file, with its score beside those of its peers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner, Result

from thresher import Network
from thresher.cli.app import app
from thresher.cli.live import LiveTable
from thresher.solvers.loop import Iterate

QUICK = ("--budget", "6", "--hidden", "2")
PRICE = ("--target", "price", "--ignore", "dear", *QUICK)


def invoke(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["fit", *map(str, args)], prog_name="thresher")


def document(*args: str | Path) -> dict[str, Any]:
    result = invoke(*args, "--json")
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    """Write a table with numbers and text, and a target of each kind."""
    draw = np.random.default_rng(0)
    size, colour = draw.normal(size=80), draw.choice(["red", "blue", "green"], size=80)
    price = 3 * np.maximum(size, 0) + (colour == "red") + 0.01 * draw.normal(size=80)
    frame = pd.DataFrame({"size": size, "colour": colour, "noise": draw.normal(size=80), "price": price})
    frame["dear"] = np.where(price > 1, "yes", "no")
    path = tmp_path / "houses.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_table_becomes_a_model_file(houses: Path, tmp_path: Path) -> None:
    out = tmp_path / "houses.thresher"
    result = invoke(houses, *PRICE, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert (
        "Regression: the target holds numbers of 80 different values (--task classification" in result.stderr
    )
    assert "64 rows to train on, 16 to test on, 5 inputs." in result.stderr
    shown = ("R2 on 16 rows", "Thresher, budget 6", "RMSE", "MAE", "95% interval of R2", f"wrote {out}")
    for text in (*shown, "the mean", "ridge regression", "dense network", "boosted trees"):
        assert text in result.stdout
    network = Network.load(out)
    assert network.nonzeros <= 6
    assert network.features == ("size", "colour=blue", "colour=green", "colour=red", "noise")


def test_the_document_has_all_of_it(houses: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.thresher"
    found = document(houses, "--target", "dear", "--ignore", "price", *QUICK, "--out", out)
    assert (found["task"], found["measure"], found["why"]) == (
        "classification",
        "accuracy",
        "the target is text",
    )
    assert found["rows"] == {"train": 64, "test": 16, "dropped": 0}
    assert found["nonzeros"] <= found["budget"] == 6
    assert 0 <= found["score"] <= 1
    assert set(found["inputs_used"]) <= set(Network.load(out).features or ())
    numbers = {peer["model"]: peer["numbers"] for peer in found["peers"]}
    assert numbers == {
        "the most frequent class": None,
        "logistic regression": 6,
        "dense network, 100 neurons": 701,
        "boosted trees": None,
    }
    assert all(peer["measures"]["accuracy"] == peer["score"] for peer in found["peers"])
    assert set(found["measures"]) == {"accuracy", "balanced accuracy", "AUC", "log loss"}
    low, high = found["interval"]
    assert low <= found["score"] <= high
    assert found["confusion"]["labels"] == ["no", "yes"]
    counts = np.array(found["confusion"]["counts"])
    assert (counts.sum(), np.trace(counts) / 16) == (16, found["score"])
    assert any("Only 16 rows to test on" in note for note in found["notes"])
    assert Network.load(out).classes.tolist() == ["no", "yes"]


def test_a_budget_can_be_chosen(houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.estimators.choosing.BUDGETS", (2, 4))
    pd.read_csv(houses).head(40).to_csv(houses, index=False)
    options = ("--budget", "auto", "--hidden", "1", "--no-compare", "--out", tmp_path / "m.thresher")
    found = document(houses, "--target", "price", "--ignore", "dear", *options)
    assert found["budget"] in found["path"]["budgets"] == [2, 4]
    assert np.shape(found["path"]["scores"]) == (2, 5)
    assert found["peers"] == []
    assert found["nonzeros"] <= found["budget"]
    # What is printed is the same whichever solver it was.
    shown = invoke(houses, "--target", "price", "--ignore", "dear", *options, "--solver", "paper").stdout
    assert "Cross-validated on 5 folds" in shown
    assert "chosen" in shown


def test_ctrl_c_on_a_path_writes_the_best_network_and_says_what_is_missing(
    houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.estimators.choosing.BUDGETS", (2, 4))
    pd.read_csv(houses).head(40).to_csv(houses, index=False)
    update, told = LiveTable.update, list[str]()

    def interrupting(self: LiveTable, rows: Any, line: str) -> None:
        told.append(line)
        if len(told) == 3:
            raise KeyboardInterrupt
        update(self, rows, line)

    monkeypatch.setattr(LiveTable, "update", interrupting)
    out = tmp_path / "m.thresher"
    options = ("--target", "price", "--ignore", "dear", "--budget", "auto", "--hidden", "1", "--out", out)
    result = invoke(houses, *options, "--json")
    assert result.exit_code == 130
    assert " left" in told[0]
    assert "interrupted on fold 2 of 5: 3 of 10 fits were scored" in result.stderr
    found = json.loads(result.stdout)
    assert found["path"]["missing"] in result.stderr
    assert found["path"]["scores"][0][1:] == [None] * 4
    assert found["peers"] == []
    assert Network.load(out).nonzeros == found["nonzeros"] <= found["budget"]


def test_a_table_may_come_through_a_pipe(houses: Path, tmp_path: Path) -> None:
    args = ["fit", "-", *PRICE, "--no-compare", "--json"]
    args += ["--out", str(tmp_path / "m.thresher")]
    result = CliRunner().invoke(app, args, prog_name="thresher", input=houses.read_text())
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"]["train"] == 64


@pytest.mark.parametrize("kind", ["tsv", "parquet", "npz", "svmlight", "sparse npz"])
def test_every_kind_of_table_is_fitted(kind: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(40, 4)) * (draw.random((40, 4)) < 0.7)
    y = np.where(X[:, 1] > 0, 1, -1)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(4)]).assign(y=y)
    path = tmp_path / f"table.{kind.split()[-1]}"
    sparse = scipy.sparse.csr_array(X)
    if kind == "tsv":
        frame.to_csv(path, sep="\t", index=False)
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif kind == "npz":
        np.savez(path, X=X, y=y)
    elif kind == "svmlight":
        dump_svmlight_file(sparse, y, str(path))
    else:
        np.savez(path, data=sparse.data, indices=sparse.indices, indptr=sparse.indptr, shape=X.shape, y=y)
    found = document(path, *QUICK, "--out", tmp_path / "m.thresher")
    assert (found["task"], found["inputs"]) == ("classification", 4)
    assert found["score"] > 0.8


def test_a_table_may_be_tested_on_another(houses: Path, tmp_path: Path) -> None:
    options = (*PRICE, "--no-compare", "--out", tmp_path / "m.thresher")
    found = document(houses, "--test", houses, *options)
    assert found["rows"] == {"train": 80, "test": 80, "dropped": 0}
    assert document(houses, "--test-share", "0", *options)["score"] is None


def test_the_task_can_be_overridden(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30) % 3}).to_csv(path, index=False)
    options = (*QUICK, "--no-compare", "--out", tmp_path / "m.thresher")
    assert document(path, "--task", "regression", *options)["measure"] == "R2"


def test_missing_values_are_treated_as_told(houses: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(houses)
    frame.loc[[3, 7], "size"] = None
    frame.to_csv(houses, index=False)
    options = (*PRICE, "--no-compare", "--out", tmp_path / "m.thresher")
    result = invoke(houses, *options)
    assert result.exit_code == 2
    assert "row 4 after the header, column 'size'" in result.stderr
    assert document(houses, *options, "--missing", "drop")["rows"]["dropped"] == 2
    assert document(houses, *options, "--missing", "mean")["rows"]["dropped"] == 0


def test_the_same_seed_gives_the_same_bytes(houses: Path, tmp_path: Path) -> None:
    models = []
    for name in ("one", "two"):
        out = tmp_path / f"{name}.thresher"
        options = ("--target", "price", "--ignore", "dear", "--no-compare", "--out", out, "--seed", "3")
        assert invoke(houses, *QUICK, *options).exit_code == 0
        models.append(out.read_bytes())
    assert models[0] == models[1]


def test_quiet_is_quiet(houses: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.thresher"
    result = invoke(houses, *PRICE, "--quiet", "--out", out)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert out.exists()


def test_an_interrupted_fit_writes_nothing(
    houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thresher.solvers.auto import Auto

    def interrupted(self: Auto, iterate: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(Auto, "step", interrupted)
    result = invoke(houses, "--target", "price", *QUICK, "--out", tmp_path / "m.thresher")
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["houses.csv"]


def test_ctrl_c_leaves_a_checkpoint_and_the_same_command_goes_on(
    houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thresher.solvers.auto import Auto

    kept, out, whole = tmp_path / "fit.checkpoint", tmp_path / "one.thresher", tmp_path / "whole.thresher"
    command = (houses, *PRICE, "--no-compare", "--quiet", "--out")
    assert invoke(*command, whole).exit_code == 0
    options = ("--checkpoint", kept, "--checkpoint-every", "1")
    step, steps = Auto.step, [0]

    def interrupted(self: Auto, iterate: Iterate) -> Iterate:
        steps[0] += 1
        if steps[0] == 9:
            raise KeyboardInterrupt
        return step(self, iterate)

    with monkeypatch.context() as patch:
        patch.setattr(Auto, "step", interrupted)
        patch.setattr("sys.argv", ["thresher", "fit", *map(str, (*command, out, *options))])
        result = invoke(*command, out, *options)
    assert result.exit_code == 130
    assert "Go on from the checkpoint with:\n  thresher fit " in result.stderr
    assert f"--checkpoint {kept} --checkpoint-every 1" in result.stderr
    assert kept.exists()
    assert not out.exists()
    # Another fit than the one that was interrupted is refused.
    other = invoke(*command, out, *options, "--seed", "1")
    assert (other.exit_code, out.exists()) == (2, False)
    assert (
        "is the checkpoint of another fit, which is not finished: random_state was 0 and is 1" in other.stderr
    )
    assert invoke(*command, out, *options).exit_code == 0
    assert out.read_bytes() == whole.read_bytes()
    assert not kept.exists()


def test_a_checkpoint_that_cannot_be_written_is_refused(houses: Path, tmp_path: Path) -> None:
    options = ("--out", tmp_path / "m.thresher", "--checkpoint")
    missing = invoke(houses, *PRICE, *options, tmp_path / "none" / "fit.checkpoint")
    assert missing.exit_code == 2
    assert "cannot be written" in missing.stderr
    late = invoke(houses, *PRICE, *options, tmp_path / "fit.checkpoint", "--checkpoint-every", "late")
    assert late.exit_code == 2
    assert "checkpoint_every='late', but it must be a time such as '5min'" in late.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["houses.csv"]


TABLES = {
    "empty": "",
    "header": "a,y\n",
    "no target": "a,y\n" + "1,\n" * 5,
    "mixed": "a,y\n1,0.5\n2,1.5\nmany,2.5\n4,3.5\n",
    "names": "name,y\n" + "".join(f"person {i},{i}.5\n" for i in range(30)),
    "date": "a,y\n1,0\n2,inf\n3,1.5\n",
    "one class": "a,y\n" + "1,2\n" * 20,
    "lacking": "a,y\n1,0.5\n,1.5\n3,2.5\n",
}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("empty", (), "is empty"),
        ("header", (), "0 rows"),
        ("no target", (), "the target 'y' has no value in any of 5 rows"),
        ("mixed", (), "column 'a' mixes numbers and text: row 3 holds 'many'"),
        ("names", (), "--text name"),
        ("date", (), "holds inf in row 2"),
        ("one class", (), "one class only"),
        ("lacking", (), "1 of 3 rows lack a value, the first in row 2 after the header, column 'a'"),
        ("mixed", ("--target", "Y"), "Did you mean 'y'?"),
        ("mixed", ("--ignore", "b"), "--ignore 'b', but the table has no such column"),
        ("mixed", ("--budget", "0"), "--budget '0', but it takes a whole number of 1 or more"),
        ("mixed", ("--budget", "some"), "--budget 'some'"),
        ("mixed", ("--hidden", "5,x"), "--hidden 'x'"),
        ("mixed", ("--alpha", "-1"), "--alpha '-1', but it takes a number of 0 or more"),
        ("mixed", ("--alpha", "much"), "--alpha 'much'"),
        ("mixed", ("--test-share", "1"), "--test-share '1', but it takes a number"),
        ("mixed", ("--task", "regresion"), "Did you mean regression?"),
        ("mixed", ("--missing", "men"), "Did you mean mean?"),
        ("lacking", ("--missing", "drop", "--test-share", "0", "--solver", "papr"), "Did you mean 'paper'?"),
        ("mixed", ("--test", "nowhere.csv"), "nowhere.csv does not exist"),
    ],
)
def test_bad_input_is_explained_and_nothing_written(
    table: str, options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLES[table])
    result = invoke(path, "--out", tmp_path / "m.thresher", *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("Error: ") == 1
    assert "Traceback" not in result.stderr
    assert [found.name for found in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("nowhere/m.thresher", "does not exist. Make it"),
        (".", "is a folder"),
        ("table.csv/m.thresher", "does not exist"),
    ],
)
def test_a_place_that_cannot_be_written_fails_at_once(out: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,y\n1,2\n")
    result = invoke(tmp_path / "table.csv", "--out", tmp_path / out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_missing_file_and_an_unknown_kind(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").write_text("a,y\n1,2\n")
    result = invoke(tmp_path / "house.csv")
    assert result.exit_code == 2
    assert "Did you mean" in result.stderr
    (tmp_path / "houses.xls").write_text("a,y\n1,2\n")
    assert "ends in '.xls'" in invoke(tmp_path / "houses.xls").stderr


def test_progress_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("thresher.cli.live.SECONDS_BETWEEN_LINES", 0.0)
    with LiveTable("fitting", ("a", "b"), shown=True) as table:
        table.update([("1", "2")], "1 and 2")
    with LiveTable("fitting", ("a", "b"), shown=False) as table:
        table.update([("3", "4")], "3 and 4")
    assert capsys.readouterr().err == "fitting: 1 and 2\n"


def test_progress_is_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("thresher.cli.live.REDRAWN", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with LiveTable("fitting", ("passes", "loss"), shown=True) as table:
        table.update([("1", "0.25")], "")
    shown = capsys.readouterr().err
    assert "passes" in shown
    assert "0.25" in shown


def test_what_is_required_by_name_is_kept_in_the_file(houses: Path, tmp_path: Path) -> None:
    out = tmp_path / "houses.thresher"
    asked = ("--max-inputs", "2", "--max-fan-in", "1", "--monotone", "size=+1", "--feature-cost", "colour=3")
    answer = document(houses, *PRICE, *asked, "--max-cost", "3", "--out", out, "--no-compare")
    # The three colours are one input.
    assert len({name.partition("=")[0] for name in answer["inputs_used"]}) <= 2
    told = Network.load(out).describe()
    for part in ("of at most 2 inputs", "of at most 1 inputs", "of at most 3;", "never falls with 'size'"):
        assert part in told


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--monotone", "sice=1"), "--monotone names 'sice'"),
        (("--monotone", "sice=1"), "Did you mean 'size'?"),
        (("--monotone", "colour=1"), "becomes 3 inputs. Name one of them: colour=blue"),
        (("--monotone", "size=2"), "--monotone 'size=2', but it takes size=+1"),
        (("--monotone", "size=up"), "'up' is no number"),
        (("--monotone", "dear=1"), "--monotone names 'dear'"),
        (("--max-inputs", "0"), "--max-inputs '0'"),
        (("--feature-cost", "size=2"), "feature_costs came without max_cost"),
        (
            ("--feature-cost", "size=2", "--max-cost", "1", "--monotone", "size=1"),
            "'size', but that column is",
        ),
        (("--monotone", "size=1", "--solver", "paper"), "monotone came, but IHT"),
    ],
)
def test_what_cannot_be_required_is_refused_by_name(houses: Path, asked: tuple[str, ...], said: str) -> None:
    result = invoke(houses, *PRICE, "--no-compare", "--quiet", *asked)
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")
