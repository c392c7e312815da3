"""Verilog run by Icarus Verilog and synthesised by Yosys, with adders kept as adders."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np

from thresher.hardware.netlist import run_netlist
from thresher.hardware.tools import ToolError, run
from thresher.integer import IntegerNetwork
from thresher.integer.ranges import WIDEST

# Rows that Icarus Verilog runs through the source, and through the cells one by one: it takes a tenth of a
# second for each.
SOURCE_ROWS, CELL_ROWS = 200, 20

# Yosys joins additions that follow each other into one large compressor, of two tables for each bit. Carry
# chains take one, and the tables before them are free; so every addition becomes a chain before that.
ADDERS = """\
(* techmap_celltype = "$add $sub" *)
module carry_chain(A, B, Y);
    parameter A_SIGNED = 0;
    parameter B_SIGNED = 0;
    parameter A_WIDTH = 1;
    parameter B_WIDTH = 1;
    parameter Y_WIDTH = 1;
    parameter _TECHMAP_CELLTYPE_ = "";
    input [A_WIDTH-1:0] A;
    input [B_WIDTH-1:0] B;
    output [Y_WIDTH-1:0] Y;
    localparam subtracts = _TECHMAP_CELLTYPE_ == "$sub";
    wire [Y_WIDTH-1:0] x, co;
    \\$alu #(
        .A_SIGNED(A_SIGNED), .B_SIGNED(B_SIGNED), .A_WIDTH(A_WIDTH), .B_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)
    ) alu(.A(A), .B(B), .CI(subtracts), .BI(subtracts), .Y(Y), .X(x), .CO(co));
endmodule
"""
WRITTEN = ("write_verilog -noattr cells.v", "write_json cells.json")
PREPARED = "hierarchy -top {top}; proc; flatten; opt -full; wreduce; opt_clean; techmap -map adders.v"


def agreement(source: str, top: str, rows: int, folder: Path, library: Path | None = None) -> int:
    """Simulate a module with its test bench, and count the rows that agree.

    Parameters
    ----------
    source : str
        Module and test bench.
    top : str
        Name of the test bench.
    rows : int
    folder : path
        Where files go.
    library : path, optional
        Cells of a chip, for a module that was synthesised.
    """
    (folder / "simulated.v").write_text(source, encoding="ascii")
    files = ["simulated.v", *([] if library is None else [str(library)])]
    run(
        ["iverilog", "-g2012", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-s", top, "-o", "simulated", *files], folder
    )
    told = run(["vvp", "simulated"], folder)[0].decode()
    found = re.search(r"^(PASS|FAIL) (\d+)", told, re.MULTILINE)
    if found is None:
        raise ToolError(f"the simulation told nothing of its rows: {told[-300:]}")
    return rows if found[1] == "PASS" else rows - int(found[2])


def synthesised(source: str, top: str, command: str, folder: Path, *written: str) -> dict[str, int]:
    """Synthesise a module and count its cells by type.

    Parameters
    ----------
    source : str
    top : str
        Name of the module.
    command : str
        What Yosys does after additions are carry chains.
    folder : path
        Where files go.
    written : str
        Commands that write results.
    """
    (folder / "module.v").write_text(source, encoding="ascii")
    (folder / "adders.v").write_text(ADDERS, encoding="ascii")
    steps = ["read_verilog module.v", PREPARED.format(top=top), command, "tee -o cells.txt stat", *written]
    run(["yosys", "-q", "-p", "; ".join(steps)], folder)
    return cells((folder / "cells.txt").read_text())


def netlist_agreement(network: IntegerNetwork, codes: np.ndarray, path: Path, top: str) -> int:
    """Count the rows on which a synthesised netlist gives every output, and the class, that Python does.

    Parameters
    ----------
    network : IntegerNetwork
    codes : ndarray of shape (n, inputs in use)
    path : path
        The netlist as JSON.
    top : str
        Its module.
    """
    found = run_netlist(path, top, {f"x{number}": column for number, column in enumerate(codes.T)})
    outputs = network.run(codes)
    # Outputs are compared bit by bit: as numbers of so many bits without a sign.
    mask = np.int64(-1) if (bits := network.ranges.layers[-1].bits) == WIDEST else np.int64(2**bits - 1)
    agree = np.ones(len(codes), dtype=bool)
    for number, column in enumerate(outputs.T):
        agree &= found[f"y{number}"] == column & mask
    if network.classes is not None:
        agree &= found["class_number"] == network.class_numbers(outputs)
    return int(agree.sum())


def cells(text: str) -> dict[str, int]:
    """Read the cells that Yosys counted, by type.

    Examples
    --------
    >>> cells('Number of cells: 3\\n  SB_LUT4    2\\n  SB_CARRY   1\\n')
    {'SB_LUT4': 2, 'SB_CARRY': 1}
    """
    return {
        name: int(count)
        for name, count in re.findall(r"^\s+(\$?[A-Za-z]\w*)\s+(\d+)\s*$", text, re.MULTILINE)
    }


def library_of(family: str) -> Path | None:
    """Return the file of a family's cells that comes with Yosys, if it is where it usually is."""
    program = shutil.which("yosys")
    if program is None:
        return None
    path = Path(program).resolve().parents[1] / "share" / "yosys" / family / "cells_sim.v"
    return path if path.exists() else None
