"""Lattice iCE40 FPGAs: synthesised by Yosys, placed and routed by nextpnr.

No package has pins for all inputs, so a shift register takes a row in, one input at each clock, as a
converter or a camera would give it; it is counted beside the network.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from thresher.export.verilog import test_bench, verilog
from thresher.export.verilog_serial import serial
from thresher.hardware.measured import Measured
from thresher.hardware.synthesis import (
    CELL_ROWS,
    SOURCE_ROWS,
    WRITTEN,
    agreement,
    library_of,
    netlist_agreement,
    synthesised,
)
from thresher.hardware.tools import need, run
from thresher.integer import IntegerNetwork

TOOLS = ("yosys", "nextpnr-ice40", "iverilog", "vvp")
COMMAND = "synth_ice40 -top {top}"

# Chips with their packages and logic cells, the smaller first.
CHIPS = {"up5k": ("sg48", 5_280), "hx8k": ("ct256", 7_680)}


def measure(network: IntegerNetwork, X: Any, *, pipeline: bool = False, chip: str | None = None) -> Measured:
    """Place and route a network, and run all rows through its cells, and some through its Verilog.

    Parameters
    ----------
    network : IntegerNetwork
    X : array-like of shape (n, inputs)
        Rows.
    pipeline : bool
        Whether registers follow every layer.
    chip : {"up5k", "hx8k"}, optional
        The chip; by default the first that the network and its inputs fit into.
    """
    need(TOOLS, "the target ice40")
    codes = network.codes(X)
    source = verilog(network, "net", pipeline=pipeline)
    with TemporaryDirectory() as place:
        folder = Path(place)
        some = codes[:SOURCE_ROWS]
        bench = test_bench(network, "net", some, pipeline=pipeline)
        simulated = agreement(source + bench, "net_test", len(some), folder)
        alone = synthesised(source, "net", COMMAND.format(top="net"), folder, *WRITTEN)
        library = library_of("ice40")
        agree = netlist_agreement(network, codes, folder / "cells.json", "net")
        some = codes[:CELL_ROWS]
        checked = len(some)
        if library is not None:
            cells = (folder / "cells.v").read_text()
            bench = test_bench(network, "net", some, pipeline=pipeline)
            checked = agreement(cells + bench, "net_test", checked, folder, library)
        whole = source + serial(network, "net", pipeline=pipeline)
        synthesised(whole, "net_serial", COMMAND.format(top="net_serial"), folder, "write_json design.json")
        routed = _placed(folder, chip)
    figures = {
        "luts": alone.get("SB_LUT4", 0),
        "carries": alone.get("SB_CARRY", 0),
        "registers": sum(count for name, count in alone.items() if name.startswith("SB_DFF")),
        "source_agree": simulated,
        "cells_agree": checked,
        "logic_cells_with_inputs": routed["cells"],
        "clock_MHz": routed["clock"],
    }
    limits = {"logic_cells_with_inputs": float(CHIPS[routed["chip"]][1])}
    how = f"yosys synth_ice40, nextpnr-ice40 --{routed['chip']}, iverilog"
    return Measured("ice40", len(codes), agree, figures, limits, how)


def _placed(folder: Path, chip: str | None) -> dict[str, Any]:
    """Place and route; where no chip is named, the next larger one follows one that is too small."""
    candidates = list(CHIPS) if chip is None else [chip]
    for number, name in enumerate(candidates):
        package, _ = CHIPS[name]
        given = [f"--{name}", "--package", package, "--json", "design.json", "--report", "report.json"]
        ends = (0, 1, 255) if number < len(candidates) - 1 else (0,)
        (folder / "report.json").unlink(missing_ok=True)
        run(["nextpnr-ice40", "-q", "--seed", "1", "--pcf-allow-unconstrained", *given], folder, ends=ends)
        if (folder / "report.json").exists():
            break
    report = json.loads((folder / "report.json").read_text())
    clocks = [clock["achieved"] for clock in report["fmax"].values()]
    cells = report["utilization"]["ICESTORM_LC"]["used"]
    return {"chip": name, "cells": int(cells), "clock": float(min(clocks, default=0.0))}
