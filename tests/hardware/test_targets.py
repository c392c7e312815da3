"""Networks on devices: what is compiled or synthesised agrees with Python, and what is missing is named."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from networks import random_network, rows_for
from whole import rows, whole

from thresher.errors import MissingToolError, ParameterError
from thresher.hardware import TARGETS, measure, target_named
from thresher.hardware.synthesis import cells
from thresher.hardware.tools import PACKAGES, ToolError, missing, need, run


def needs(target: str) -> pytest.MarkDecorator:
    absent = missing(TARGETS[target].tools)
    packages = ", ".join(sorted({PACKAGES[tool] for tool in absent}))
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)} (Debian: {packages})")


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
@pytest.mark.parametrize(
    ("name", "how"), [("direct, softmax", "int8"), ("fused", "int4, narrow"), ("deep, many outputs", "pow2")]
)
@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=needs(name)) for name in ("atmega328p", "cortex-m3")]
)
def test_processors_give_the_outputs_of_python(target: str, name: str, how: str, packed: bool) -> None:
    network = whole(name, how)
    found = measure(network, rows(network, 20), target, packed=packed, used_inputs=packed)
    assert (found.rows, found.agree) == (20, 20)
    assert 100 < found.figures["flash"] < 4_000
    assert 20 < found.figures["ram"] < 1_000
    assert found.fits
    assert json.dumps(found.plain())


@needs("atmega328p")
def test_larger_networks_take_more_flash_and_cycles() -> None:
    sizes = []
    for density in (0.1, 0.8):
        network = random_network((20, 10, 3), density=density, seed=1)
        whole_network = network.quantise(rows_for(network, 50))
        sizes.append(measure(whole_network, rows(whole_network, 3), "atmega328p", packed=True).figures)
    assert sizes[1]["flash"] > sizes[0]["flash"] + 50
    assert sizes[1]["cycles"] > 2 * sizes[0]["cycles"]
    assert sizes[0]["cycles_at_most"] >= sizes[0]["cycles"]


@needs("xilinx")
def test_the_cells_of_an_fpga_give_the_outputs_of_python() -> None:
    network = random_network((6, 3, 3), density=0.5, seed=4, classes=range(3), link="softmax")
    found = network.quantise(rows_for(network, 100), inputs="uint2", weights="int4", activation_bits=3)
    measured = measure(found, rows(found, 20), "xilinx", pipeline=True)
    assert (measured.rows, measured.agree, measured.figures["cells_agree"]) == (20, 20, 20)
    assert 5 < measured.figures["luts"] < 300
    assert measured.figures["registers"] > 0


@needs("ice40")
def test_an_ice40_is_placed_and_routed_with_a_clock() -> None:
    network = random_network((6, 3, 3), density=0.5, seed=4, classes=range(3), link="softmax")
    found = network.quantise(rows_for(network, 100), inputs="uint2", weights="int4", activation_bits=3)
    measured = measure(found, rows(found, 20), "ice40")
    assert (measured.rows, measured.agree, measured.figures["cells_agree"]) == (20, 20, 20)
    assert measured.figures["clock_MHz"] > 1
    assert measured.figures["logic_cells_with_inputs"] > measured.figures["luts"]
    assert measured.fits


def test_missing_tools_are_named_with_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    for target in TARGETS.values():
        with pytest.raises(MissingToolError, match="apt-get install"):
            target.measure(whole("fused", "int8"), np.zeros((1, 10)))
    with pytest.raises(MissingToolError, match=r"needs avr-gcc.*gcc-avr and avr-libc"):
        need(["avr-gcc"], "this")


def test_every_tool_has_a_package() -> None:
    for target in TARGETS.values():
        assert set(target.tools) <= set(PACKAGES)


def test_what_a_target_does_not_know_is_refused() -> None:
    network = whole("fused", "int8")
    with pytest.raises(ParameterError, match="Did you mean atmega328p"):
        target_named("atmega328")
    with pytest.raises(ParameterError, match="pipeline means nothing to cortex-m3, which has packed"):
        measure(network, rows(network, 2), "cortex-m3", pipeline=True)


def test_a_tool_that_fails_says_why(tmp_path) -> None:
    with pytest.raises(ToolError, match="ended with 3:\nno"):
        run(["sh", "-c", "echo no >&2; exit 3"], tmp_path)


def test_cells_are_counted_by_type() -> None:
    assert cells("   Number of cells:   9\n     CARRY4   2\n     LUT6    7\n\n") == {"CARRY4": 2, "LUT6": 7}
