"""Verilog of integer networks gives Python's outputs to the last bit; its test bench finds what differs."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from networks import ODD_NAMES, fused, rows_for
from scipy import sparse
from whole import CHOSEN, ROUNDINGS, rows, whole

from thresher.errors import ParameterError
from thresher.export.adders import Signal, signed_digits, sum_lines
from thresher.export.verilog import MOST_INPUTS, class_bits, latency, packed_rows, verilog
from thresher.export.verilog import test_bench as bench_of
from thresher.integer import InputCoding, IntegerLayer, IntegerNetwork

needs_iverilog = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="needs iverilog (the Debian package iverilog), which is not here"
)


def told(source: str, folder: Path, top: str = "net_test") -> str:
    (folder / "net.v").write_text(source, encoding="ascii")
    command = ["iverilog", "-g2001", "-Wall", "-s", top, "-o", "net", "net.v"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return subprocess.run(["vvp", "net"], cwd=folder, capture_output=True, text=True, check=True).stdout


def extreme_codes(network: IntegerNetwork, count: int = 40) -> np.ndarray:
    rng, (low, high) = np.random.default_rng(3), network.coding.range
    codes = rng.integers(low, high, size=(count, network.used.size), endpoint=True)
    codes[: count // 2] = rng.choice([low, high], size=(count // 2, network.used.size))
    return codes


@needs_iverilog
@pytest.mark.parametrize("pipeline", [False, True], ids=["plain", "pipeline"])
@pytest.mark.parametrize(
    ("name", "how"), [(name, list(ROUNDINGS)[place % len(ROUNDINGS)]) for place, name in enumerate(CHOSEN)]
)
def test_verilog_gives_the_outputs_of_python(name: str, how: str, pipeline: bool, tmp_path: Path) -> None:
    network = whole(name, how)
    bench = bench_of(network, "net", extreme_codes(network), pipeline=pipeline)
    assert told(verilog(network, "net", pipeline=pipeline) + bench, tmp_path).startswith("PASS 40")


@needs_iverilog
def test_the_test_bench_counts_rows_that_differ(tmp_path: Path) -> None:
    network = whole("direct, softmax", "int8")
    codes = extreme_codes(network)
    layer = network.layers[-1]
    moved = replace(layer, bias=layer.bias + 3)
    source = verilog(network, "net") + bench_of(
        replace(network, layers=(*network.layers[:-1], moved)), "net", codes
    )
    assert told(source, tmp_path).startswith("FAIL 40 of 40")


@needs_iverilog
def test_names_and_labels_of_any_kind_are_safe(tmp_path: Path) -> None:
    network = fused(features=ODD_NAMES, classes=["endmodule", "a\n`b"], link="logistic")
    found = network.quantise(rows_for(network, 100))
    source = found.to_verilog("module", rows(found, 5) / 4)
    assert told(source, tmp_path, "module_network_test").startswith("PASS 5")


@needs_iverilog
@pytest.mark.parametrize("pipeline", [False, True], ids=["plain", "pipeline"])
@pytest.mark.parametrize("name", ["softmax, deep, floats", "direct alone", "deep, many outputs"])
def test_a_network_behind_a_shift_register_answers_later(name: str, pipeline: bool, tmp_path: Path) -> None:
    network = whole(name, "int4, narrow")
    codes = extreme_codes(network, 6)
    outputs, wide = network.run(codes), network.ranges.layers[-1].bits
    lines = []
    for row, out in zip(codes.tolist(), outputs, strict=True):
        lines += [f"in = {value}; #1 clk = 1; #1 clk = 0;" for value in row]
        lines += ["#1 clk = 1; #1 clk = 0;"] * (1 + latency(network, pipeline))
        if network.classes is None:
            wanted = f"{len(out) * wide}'h{packed_rows(out[None], wide)[0]}"
        else:
            wanted = str(network.class_numbers(out[None])[0])
        lines.append(f'if (out !== {wanted}) $display("WRONG");')
    source = network.to_verilog("net", pipeline=pipeline, serial=True)
    width = class_bits(network) if network.classes is not None else network.outputs * wide
    bench = f"""
module net_test;
    reg clk = 0;
    reg [{network.coding.bits - 1}:0] in;
    wire [{width - 1}:0] out;
    net_serial whole(.clk(clk), .in(in), .out(out));
    initial begin {" ".join(lines)} $display("DONE"); end
endmodule
"""
    # With registers inside, inputs that move on in the meantime must not reach the answer.
    assert told(source + bench, tmp_path) == "DONE\n"


def test_wide_networks_are_refused() -> None:
    layer = IntegerLayer(sparse.csc_array(np.ones((MOST_INPUTS + 1, 1))), np.zeros(1, int), np.zeros(1, int))
    network = IntegerNetwork(
        (layer,), MOST_INPUTS + 1, np.arange(MOST_INPUTS + 1), InputCoding("int8"), 8, [1.0]
    )
    with pytest.raises(ParameterError, match=r"reads 4,097 inputs, and a module has 4,096 at most"):
        network.to_verilog()


def test_signed_digits_add_up_and_no_two_are_neighbours() -> None:
    for value in (*range(-300, 300), 12_345, -99_999):
        digits = signed_digits(value)
        assert sum(sign << place if sign > 0 else -(1 << place) for sign, place in digits) == value
        places = [place for _, place in digits]
        assert all(two - one >= 2 for one, two in itertools.pairwise(places))


@needs_iverilog
@pytest.mark.parametrize("bits", [1, 2, 3, 5, 6, 9])
@pytest.mark.parametrize("signed", [False, True])
def test_sums_are_exact_for_any_widths(bits: int, signed: bool, tmp_path: Path) -> None:
    if signed and bits == 1:
        return
    rng = np.random.default_rng(bits)
    signals = [Signal(f"x{n}", bits, signed) for n in range(5)]
    weights = [int(w) for w in rng.integers(-40, 40, size=5)]
    lines = list(sum_lines("total", list(zip(signals, weights, strict=True)), -17))
    low, high = signals[0].range
    checks = []
    for values in rng.integers(low, high, size=(60, 5), endpoint=True).tolist():
        wanted = sum(v * w for v, w in zip(values, weights, strict=True)) - 17
        put = " ".join(f"x{n} = {v};" for n, v in enumerate(values))
        checks.append(f'{put} #1 if (total != {wanted}) $display("WRONG");')
    kind = "signed " if signed else ""
    declared = "\n".join(f"reg {kind}[{bits - 1}:0] x{n};" for n in range(5))
    body = "\n".join([*lines, "initial begin", *checks, '$display("DONE"); end'])
    assert told(f"module net_test;\n{declared}\n{body}\nendmodule\n", tmp_path) == "DONE\n"
