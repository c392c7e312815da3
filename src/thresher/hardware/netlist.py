"""A synthesised netlist run on many rows at once: tables and carries evaluated with a bit for each row.

A simulator of Verilog takes a tenth of a second for a row of a network, and this a few for ten thousand of
them. It runs the very cells that would be placed on the chip.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np

from thresher.hardware.tools import ToolError

# Registers pass their input on, or what they are reset or set to: rows stay at the inputs until answers come.
REGISTERS = ("FD", "SB_DFF")
BUFFERS = ("IBUF", "OBUF", "BUFG")

# One bit for each row, eight in a byte.
Bits = np.ndarray


def run_netlist(path: Path, top: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a module for rows of its inputs.

    Parameters
    ----------
    path : path
        What ``write_json`` of Yosys wrote after synthesis.
    top : str
        The module.
    inputs : dict
        Whole numbers of every input port by name, one for each row; others are zero.

    Returns
    -------
    dict
        Numbers of every output port, at least zero: their signs are for the caller to tell.
    """
    module = json.loads(path.read_text())["modules"][top]
    rows = len(next(iter(inputs.values())))
    zero = np.zeros(-(-rows // 8), dtype=np.uint8)
    found: dict[Any, Bits] = {"0": zero, "1": ~zero, "x": zero}
    for name, port in module["ports"].items():
        if port["direction"] == "input":
            numbers = inputs.get(name, np.zeros(rows, dtype=np.int64))
            for place, bit in enumerate(port["bits"]):
                found[bit] = np.packbits((numbers >> place & 1).astype(np.uint8))
    for cell in _in_order(module["cells"]):
        found.update(_cell(cell, found))
    outputs = {}
    for name, port in module["ports"].items():
        if port["direction"] == "output":
            planes = (np.unpackbits(found[bit], count=rows).astype(np.int64) for bit in port["bits"])
            outputs[name] = sum((plane << place for place, plane in enumerate(planes)), start=np.int64(0))
    return outputs


def _in_order(cells: dict[str, Any]) -> Iterator[Any]:
    """Yield cells, each after those that feed it."""
    maker = {bit: name for name, cell in cells.items() for bit in _bits(cell, "output")}
    needs = {
        name: {maker[bit] for bit in _bits(cell, "input") if bit in maker} for name, cell in cells.items()
    }
    for name in TopologicalSorter(needs).static_order():
        yield cells[name]


def _bits(cell: Any, direction: str) -> list[Any]:
    ports = cell["port_directions"]
    return [bit for name, bits in cell["connections"].items() if ports[name] == direction for bit in bits]


def _cell(cell: Any, found: dict[Any, Bits]) -> dict[Any, Bits]:
    """Return the bits that a cell makes."""
    kind, joined = cell["type"], cell["connections"]

    def bit(port: str) -> Bits:
        return found[joined.get(port, ["0"])[0]]

    if kind.startswith(REGISTERS):
        return {joined["Q"][0]: bit("D") & ~bit("R") | bit("S")}
    if kind.startswith("LUT"):
        return {
            joined["O"][0]: _table(cell["parameters"]["INIT"], [bit(f"I{i}") for i in range(int(kind[3:]))])
        }
    if kind == "SB_LUT4":
        return {joined["O"][0]: _table(cell["parameters"]["LUT_INIT"], [bit(f"I{i}") for i in range(4)])}
    if kind == "INV":
        return {joined["O"][0]: ~bit("I")}
    if kind in BUFFERS:
        return {joined["O"][0]: bit("I")}
    if kind == "SB_CARRY":
        one, two, carry = bit("I0"), bit("I1"), bit("CI")
        return {joined["CO"][0]: one & two | (one | two) & carry}
    if kind == "CARRY4":
        carry = bit("CI") | bit("CYINIT")
        sums, carries = [], []
        for chosen, other in zip(joined["S"], joined["DI"], strict=True):
            sums.append(found[chosen] ^ carry)
            carry = found[chosen] & carry | ~found[chosen] & found[other]
            carries.append(carry)
        # A port that leads nowhere is not there.
        return {
            **dict(zip(joined.get("O", ()), sums, strict=False)),
            **dict(zip(joined.get("CO", ()), carries, strict=False)),
        }
    raise ToolError(f"the netlist has a cell {kind}, which this program does not know.")


def _table(content: str, inputs: list[Bits]) -> Bits:
    """Look a table up: the last character of its content is what stands for all inputs zero."""
    values: list[Any] = [None if digit == "0" else True for digit in reversed(content)]
    values = values[: 2 ** len(inputs)]
    for chosen in inputs:
        values = [_mux(chosen, *values[place : place + 2]) for place in range(0, len(values), 2)]
    if values[0] is None:
        return np.zeros_like(inputs[0])
    return np.full_like(inputs[0], 255) if values[0] is True else values[0]


def _mux(chosen: Bits, zero: Any, one: Any) -> Any:
    """Choose between two; None stands for zeros and True for ones, which most of a table is."""
    if zero is one:
        return zero
    if zero is None:
        return chosen if one is True else chosen & one
    if one is None:
        return ~chosen if zero is True else ~chosen & zero
    if zero is True:
        return ~chosen | one
    return chosen | zero if one is True else chosen & one | ~chosen & zero
