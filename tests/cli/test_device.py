"""`thresher device` and `thresher export --integer`: what they write, print and refuse."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from networks import random_network, rows_for
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.hardware import TARGETS
from thresher.hardware.tools import missing
from thresher.integer import IntegerNetwork

needs_arm = pytest.mark.skipif(
    bool(missing(TARGETS["cortex-m3"].tools)), reason="needs gcc-arm-none-eabi and qemu-system-arm"
)


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="thresher")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    features = [f"c{i}" for i in range(6)]
    network = random_network((6, 5, 3), seed=4, classes=["a", "b", "c"], link="softmax", features=features)
    network.save(tmp_path / "m.thresher")
    X = rows_for(network, 60)
    np.save(tmp_path / "x.npy", X)
    lines = [",".join(features), *(",".join(map(str, row)) for row in X.tolist())]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@needs_arm
@pytest.mark.parametrize("table", ["x.npy", "x.csv"])
def test_device_measures_and_compares(folder: Path, table: str) -> None:
    given = (folder / "m.thresher", "--target", "cortex-m3", "--rows", folder / table, "--most-rows", 20)
    result = invoke("device", *given, "--weights", "int4", "--activations", 8)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "20 of 20 rows agree with Python in every output." in result.stdout
    assert "weights: int4, 4 bits; activations: 8 bits" in result.stdout
    document = json.loads(invoke("device", *given, "--json").stdout)
    assert (document["rows"], document["agree"], document["target"]) == (20, 20, "cortex-m3")
    assert document["figures"]["flash"] > 100
    assert invoke("device", *given, "--quiet").stdout == ""


def test_export_writes_source_header_and_test(folder: Path) -> None:
    result = invoke(
        *("export", folder / "m.thresher", "--to", "c", "--integer", "--rows", folder / "x.csv"),
        *("--name", "net", "--out", folder / "made.c", "--bits", 5),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert "weights: int5, 5 bits" in result.stdout
    assert {"made.c", "net.h", "net_test.c"} <= {path.name for path in folder.iterdir()}
    if shutil.which("gcc"):
        command = ["gcc", "-std=c99", "-o", "test", "made.c", "net_test.c"]
        subprocess.run(command, cwd=folder, check=True)
        assert subprocess.run([str(folder / "test")], check=False).returncode == 0


def test_export_writes_verilog_with_its_bench(folder: Path) -> None:
    given = ("export", folder / "m.thresher", "--to", "verilog", "--rows", folder / "x.npy", "--pipeline")
    document = json.loads(invoke(*given, "--json").stdout)
    assert [Path(file).name for file in document["files"]] == ["m.v", "m_test.v"]
    assert "module m(" in (folder / "m.v").read_text()
    assert "module m_test;" in (folder / "m_test.v").read_text()


def test_standard_output_gets_what_was_asked_for(folder: Path) -> None:
    given = ("export", folder / "m.thresher", "--rows", folder / "x.npy", "--out", "-")
    packed, plain = (
        invoke(*given, "--to", "c", "--integer", *more).stdout for more in ((), ("--plain", "--all-inputs"))
    )
    assert "m_bits[" in packed
    assert "m_bits[" not in plain
    assert "m_weight0[" in plain
    assert "#define m_INPUTS 6\n" in plain
    written = invoke(*given, "--to", "verilog", "--serial").stdout
    assert [f"module {name}" in written for name in ("m(", "m_serial(", "m_test;")] == [True] * 3
    float_c = invoke("export", folder / "m.thresher", "--to", "c", "--used-inputs", "--out", "-").stdout
    assert "void m_predict(const m_input *in, m_output *out);" in float_c
    assert '#include "m.h"' not in float_c


def test_rows_beyond_the_inputs_are_told(folder: Path) -> None:
    np.save(folder / "far.npy", np.load(folder / "x.npy") * 100)
    given = ("export", folder / "m.thresher", "--to", "verilog", "--calibrate", folder / "x.npy")
    assert "are kept to the nearest" in invoke(*given, "--rows", folder / "far.npy").stdout
    assert "are kept to the nearest" not in invoke(*given, "--rows", folder / "x.npy").stdout


def test_an_integer_network_is_exported_inspected_and_taken_again(folder: Path) -> None:
    made = folder / "w.thresher"
    given = ("--calibrate", folder / "x.npy", "--weights", "pow2", "--out", made)
    assert invoke("export", folder / "m.thresher", "--to", "integer", *given).exit_code == 0
    network = IntegerNetwork.load(made)
    assert network.weight_kind == "pow2"
    assert "weights: pow2" in invoke("inspect", made).stdout
    assert json.loads(invoke("inspect", made, "--json").stdout)["nonzeros"] == network.nonzeros
    assert invoke("export", made, "--to", "c", "--integer", "--out", "-").stdout == network.to_c("w")
    assert "neither formula nor graph" in invoke("inspect", made, "--write", "latex").stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("export", "m.thresher", "--to", "c", "--integer"), "give calibration rows with --calibrate"),
        (("export", "m.thresher", "--to", "onnx", "--integer"), "--integer means nothing to --to onnx"),
        (("export", "m.thresher", "--to", "verilog", "--rows", "x.npy", "--bits", "1"), "--bits '1'"),
        (
            ("export", "m.thresher", "--to", "verilog", "--rows", "x.npy", "--weights", "int3"),
            "int8, int4, pow2",
        ),
        (("export", "m.thresher", "--to", "integer", "--rows", "x.npy", "--out", "-"), "--out - does not go"),
        (
            ("export", "m.thresher", "--to", "c", "--integer", "--rows", "x.npy", "--pipeline"),
            "--pipeline means nothing to --to c",
        ),
        (("export", "m.thresher", "--to", "verilog", "--rows", "x.npy", "--plain"), "--plain means nothing"),
        (("export", "m.thresher", "--to", "c", "--rows", "x.npy"), "--rows means nothing to --to c in float"),
        (
            ("export", "m.thresher", "--to", "json", "--used-inputs"),
            "--used-inputs means nothing to --to json",
        ),
        (("export", "m.thresher", "--to", "c", "--out", "m.h"), "--out m.h is where m.h goes"),
        (
            ("export", "m.thresher", "--to", "c", "--integer", "--rows", "x.npy", "--out", "m.h"),
            "--out m.h is where m.h goes",
        ),
        (("export", "m.thresher", "--to", "verilog", "--rows", "x.npy", "--passes", "-1"), "--passes '-1'"),
        (
            ("export", "m.thresher", "--to", "verilog", "--rows", "x.npy", "--bias-bits", "3"),
            "--bias-bits '3'",
        ),
        (("device", "m.thresher", "--target", "arduino", "--rows", "x.npy"), "there is no target 'arduino'"),
        (
            ("device", "m.thresher", "--target", "ice40", "--rows", "x.npy", "--packed"),
            "--packed means nothing to ice40",
        ),
        (
            ("device", "none.thresher", "--target", "xilinx", "--rows", "x.npy"),
            "none.thresher does not exist",
        ),
    ],
)
def test_bad_input_is_explained(
    folder: Path, args: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("thresher.cli.device.need", lambda *_: None)
    before = sorted(folder.iterdir())
    result = invoke(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(folder.iterdir()) == before


def test_missing_tools_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    result = invoke("device", folder / "m.thresher", "--target", "ice40", "--rows", folder / "x.npy")
    assert result.exit_code == 2
    assert "needs yosys, nextpnr-ice40, iverilog, vvp" in result.stderr
