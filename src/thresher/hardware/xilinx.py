"""Xilinx FPGAs of the seventh series and later, whose tables have six inputs: synthesised by Yosys."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from thresher.export.verilog import test_bench, verilog
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
from thresher.hardware.tools import need
from thresher.integer import IntegerNetwork

TOOLS = ("yosys", "iverilog", "vvp")
COMMAND = "synth_xilinx -flatten -nowidelut -nodsp -top net"


def measure(network: IntegerNetwork, X: Any, *, pipeline: bool = False) -> Measured:
    """Synthesise a network, and run all rows through its cells, and some through its Verilog.

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
        some = codes[:SOURCE_ROWS]
        bench = test_bench(network, "net", some, pipeline=pipeline)
        simulated = agreement(source + bench, "net_test", len(some), folder)
        counted = synthesised(source, "net", COMMAND, folder, *WRITTEN)
        library = library_of("xilinx")
        agree = netlist_agreement(network, codes, folder / "cells.json", "net")
        some = codes[:CELL_ROWS]
        checked = len(some)
        if library is not None:
            cells = (folder / "cells.v").read_text()
            bench = test_bench(network, "net", some, pipeline=pipeline)
            checked = agreement(cells + bench, "net_test", checked, folder, library)
    luts = {f"LUT{size}": counted.get(f"LUT{size}", 0) for size in range(1, 7)}
    figures = {
        "luts": sum(luts.values()),
        "registers": sum(count for name, count in counted.items() if name.startswith("FD")),
        "carry4": counted.get("CARRY4", 0),
        "source_agree": simulated,
        "cells_agree": checked,
    }
    return Measured("xilinx", len(codes), agree, {**figures, **luts}, {}, f"yosys {COMMAND}, iverilog")
