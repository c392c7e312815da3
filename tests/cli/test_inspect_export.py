"""`thresher inspect` and `thresher export`: what they print and write, and how they refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from networks import NETWORKS, fused, in_whole_letters, random_network, rows_for
from typer.testing import CliRunner, Result

from thresher.cli.app import app


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="thresher")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "my model.thresher"
    fused(features=[f"column {i}" for i in range(10)], details={"target": "y"}).save(path)
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_inspect_prints_the_description(model: Path) -> None:
    result = invoke("inspect", model)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "inputs used" in result.stdout
    assert "regression of y" in result.stdout


@pytest.mark.parametrize(
    ("how", "begins"), [("formula", "y = "), ("latex", "y = "), ("sympy", ""), ("python", '"""A ReLU')]
)
def test_inspect_writes_the_network_out(model: Path, how: str, begins: str) -> None:
    result = invoke("inspect", model, "--write", how)
    assert result.exit_code == 0
    assert result.stdout.startswith(begins)
    assert "column" in result.stdout


def test_inspect_takes_digits(model: Path) -> None:
    short, long = (invoke("inspect", model, "--write", "formula", "--digits", d).stdout for d in ("1", "17"))
    assert len(short) < len(long)


@pytest.mark.parametrize("name", NETWORKS)
def test_inspect_gives_one_json_document(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.thresher"
    in_whole_letters(NETWORKS[name]).save(path)
    result = invoke("inspect", path, "--json")
    document = json.loads(result.stdout)
    assert (document["nonzeros"], document["details"]) == (NETWORKS[name].nonzeros, NETWORKS[name].details)


@pytest.mark.parametrize("name", ["direct, named", "direct alone", "log, direct", "direct, softmax"])
def test_networks_with_direct_connections_are_told_written_drawn_and_exported(
    tmp_path: Path, name: str
) -> None:
    network, path = in_whole_letters(NETWORKS[name]), tmp_path / "a.thresher"
    network.save(path)
    told = invoke("inspect", path)
    assert told.exit_code == 0
    assert f"linear part: {network.direct_coef.any(axis=1).sum()} input" in told.stdout
    assert ("exp(" in told.stdout.splitlines()[-1]) == (network.link == "log")
    assert invoke("inspect", path, "--plot", tmp_path / "a.svg", "--quiet").exit_code == 0
    assert "linear part" in (tmp_path / "a.svg").read_text()
    for form in ("c", "torch", "json"):
        assert invoke("export", path, "--to", form, "--quiet").exit_code == 0
    assert json.loads(path.with_suffix(".json").read_text())["version"] == 2
    assert "start_direct" in path.with_suffix(".c").read_text()
    assert "WithDirect" in path.with_suffix(".py").read_text()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_inspect_draws(model: Path, tmp_path: Path, suffix: str) -> None:
    fused(features=[f"\u5e74\u9f62 {i}" for i in range(10)]).save(model)
    path = tmp_path / f"graph{suffix}"
    result = invoke("inspect", model, "--plot", path, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert path.stat().st_size > 2_000


@pytest.mark.parametrize(
    ("form", "suffix"), [("c", ".c"), ("onnx", ".onnx"), ("torch", ".py"), ("json", ".json")]
)
def test_export_writes_beside_the_model(model: Path, form: str, suffix: str) -> None:
    if form == "onnx":
        pytest.importorskip("onnx", reason="needs the package onnx: pip install 'thresher[onnx]'")
    result = invoke("export", model, "--to", form)
    path = model.with_suffix(suffix)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"wrote {path}" in result.stdout
    beside = ["my_model.h"] if form == "c" else []
    assert names_in(model.parent) == sorted([model.name, path.name, *beside])
    content = path.read_bytes()
    if form == "c":
        declared = "void my_model_predict(const my_model_input *in, my_model_output *out)"
        assert f"{declared};" in (model.parent / "my_model.h").read_text()
        assert declared.encode() in content
    if form == "torch":
        assert b"def my_model()" in content


def test_export_takes_a_name_and_a_file(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    result = invoke("export", model, "--to", "c", "--name", "abc", "--out", path, "--json")
    document = json.loads(result.stdout)
    assert (document["file"], document["bytes"]) == (str(path), path.stat().st_size)
    assert "abc_predict" in path.read_text()
    assert invoke("export", model, "--to", "c", "--out", path, "--quiet").stdout == ""


def test_export_writes_to_a_pipe(model: Path) -> None:
    command = [sys.executable, "-m", "thresher", "export", str(model), "--to", "json", "--out", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["format"] == "thresher"
    assert names_in(model.parent) == [model.name]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("inspect", "none.thresher"), "none.thresher does not exist"),
        (("inspect", "empty.thresher"), "damaged, or not a model file"),
        (("inspect", "."), "folder"),
        (("inspect", "MODEL", "--write", "formla"), "Did you mean formula?"),
        (("inspect", "MODEL", "--write", "formula", "--digits", "x"), "--digits 'x'"),
        (("inspect", "MODEL", "--write", "formula", "--digits", "18"), "digits=18"),
        (("inspect", "MODEL", "--plot", "graph.gif"), "should end in one of .png, .svg, .pdf"),
        (("inspect", "MODEL", "--plot", "no/such/graph.png"), "cannot be written"),
        (("inspect", "big.thresher", "--write", "formula"), "too long to read"),
        (("export", "none.thresher", "--to", "c"), "does not exist"),
        (("export", "empty.thresher", "--to", "c"), "damaged"),
        (("export", "MODEL", "--to", "onx"), "Did you mean onnx?"),
        (("export", "MODEL"), "Missing option '--to'"),
        (("export", "MODEL", "--to", "c", "--name", "a b"), "try 'a_b'"),
        (("export", "MODEL", "--to", "c", "--out", "no/such/a.c"), "no/such/a.c cannot be written"),
        (("export", "MODEL", "--to", "c", "--out", "."), "cannot be written"),
        (("export", "MODEL", "--to", "c", "--out", "empty.thresher/a.c"), "(Not a directory)"),
        (("export", "MODEL", "--to", "c", "--out", "MODEL"), "is the model itself"),
        (("export", "MODEL", "--to", "json", "--out", "-", "--json"), "both want standard output"),
        (("export", "huge.thresher", "--to", "c"), "largest float32"),
    ],
)
def test_bad_input_is_explained_and_leaves_no_file(
    model: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(model.parent)
    (model.parent / "empty.thresher").touch()
    random_network((300, 1, 1), density=1.0).save("big.thresher")
    huge = random_network((2, 1), density=1.0)
    huge.layers[0].weights.data[:] = 1e200
    huge.save("huge.thresher")
    before = names_in(model.parent)
    result = invoke(*(model.name if arg == "MODEL" else arg for arg in args))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in " ".join(result.stderr.replace("\u2502", " ").split())
    assert "Traceback" not in result.stderr
    assert names_in(model.parent) == before


def test_a_missing_extra_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = invoke("export", model, "--to", "onnx")
    assert result.exit_code == 2
    assert "pip install 'thresher[onnx]'" in result.stderr
    assert names_in(model.parent) == [model.name]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_export_leaves_what_was_there(
    model: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = model.with_suffix(".c")
    path.write_text("before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    result = invoke("export", model, "--to", "c")
    assert (result.exit_code, path.read_text()) == (2, "before")
    assert "No space left on device" in result.stderr
    assert names_in(model.parent) == sorted([model.name, path.name])


def test_what_is_exported_predicts(model: Path) -> None:
    assert invoke("export", model, "--to", "torch", "--name", "net").exit_code == 0
    space: dict = {}
    exec(model.with_suffix(".py").read_text(), space)
    network = fused()
    X = rows_for(network).astype(float)
    import torch

    with torch.no_grad():
        found = space["net"]()(torch.from_numpy(X)).numpy()
    assert np.allclose(found, network.forward(X))
