"""Xilinx FPGAs of the seventh series and later, whose tables have six inputs: synthesised by Yosys."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from thresher.export.verilog import test_bench, verilog
from thresher.hardware.measured import Measured
from thresher.hardware.synthesis import agreement, library_of, synthesised
from thresher.hardware.tools import need
from thresher.integer import IntegerNetwork

TOOLS = ("yosys", "iverilog", "vvp")
COMMAND = "synth_xilinx -flatten -nowidelut -nodsp -top net"

# Rows that the synthesised module is run on as well: its cells are simulated one by one.
NETLIST_ROWS = 20


def measure(network: IntegerNetwork, X: Any, *, pipeline: bool = False) -> Measured:
    """Synthesise a network, and run rows through its Verilog, some of them through the cells as well.

    Parameters
    ----------
    network : IntegerNetwork
    X : array-like of shape (n, inputs)
        Rows.
    pipeline : bool
        Whether registers follow every layer.
    """
    need(TOOLS, "the target xilinx")
    codes = network.codes(X)
    source = verilog(network, "net", pipeline=pipeline)
    with TemporaryDirectory() as place:
        folder = Path(place)
        bench = test_bench(network, "net", codes, pipeline=pipeline)
        agree = agreement(source + bench, "net_test", len(codes), folder)
        counted = synthesised(source, "net", COMMAND, folder, "write_verilog -noattr cells.v")
        library = library_of("xilinx")
        netlist = len(codes[:NETLIST_ROWS])
        if library is not None:
            cells = (folder / "cells.v").read_text()
            some = test_bench(network, "net", codes[:NETLIST_ROWS], pipeline=pipeline)
            netlist = agreement(cells + some, "net_test", netlist, folder, library)
    luts = {f"LUT{size}": counted.get(f"LUT{size}", 0) for size in range(1, 7)}
    figures = {
        "luts": sum(luts.values()),
        "registers": sum(count for name, count in counted.items() if name.startswith("FD")),
        "carry4": counted.get("CARRY4", 0),
        "cells_agree": netlist,
    }
    return Measured("xilinx", len(codes), agree, {**figures, **luts}, {}, f"yosys {COMMAND}, iverilog")
