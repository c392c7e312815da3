"""`thresher device`: a network compiled or synthesised for a device, run there, and measured."""

from __future__ import annotations

from pathlib import Path

import typer

from thresher._version import __version__
from thresher.cli.screen import print_json
from thresher.cli.whole import Rounding, integer_network
from thresher.errors import ParameterError
from thresher.hardware import Measured, target_named
from thresher.hardware.tools import need
from thresher.integer import IntegerNetwork

WORDS = {
    "flash": "flash, bytes",
    "ram": "RAM, bytes, inputs and stack included",
    "cycles": "cycles for a prediction",
    "cycles_at_most": "cycles at most",
    "milliseconds_at_16_MHz": "milliseconds at 16 MHz",
    "instructions": "instructions for a prediction",
    "luts": "LUTs",
    "registers": "registers",
    "carries": "carry cells",
    "carry4": "carry cells of four bits",
    "logic_cells_with_inputs": "logic cells with the inputs' shift register",
    "clock_MHz": "clock, MHz",
    "source_agree": "rows that the Verilog agrees on in Icarus Verilog",
    "cells_agree": "rows that the cells agree on there",
}


def run_device(
    model: Path,
    target: str,
    rows: Path,
    rounding: Rounding,
    *,
    most_rows: int,
    options: dict[str, bool],
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure a network on a device, and print what it needs and how many rows agree with Python.

    Parameters
    ----------
    model : path
        A model file, of floating point or of whole numbers.
    target : str
    rows : path
        Rows to run, which also calibrate where no others are given.
    rounding : Rounding
    most_rows : int
    options : dict
        What was chosen of the target's options.
    as_json, quiet : bool
        As on the command line.
    """
    device = target_named(target)
    chosen = {name: value for name, value in options.items() if value}
    for name in chosen:
        if name not in device.options:
            raise ParameterError(f"--{name.replace('_', '-')} means nothing to {device.name}.")
    need(device.tools, f"the target {device.name}")
    network, X = integer_network(model, rows, rounding)
    X = X[:most_rows]
    saturated = network.saturation(X)
    measured = device.measure(network, X, **chosen)
    if as_json:
        document = {"version": __version__, "model": str(model), "nonzeros": network.nonzeros}
        print_json({**document, "saturated": saturated, **measured.plain()})
    elif not quiet:
        typer.echo("\n".join(told(network, measured, saturated)))


def told(network: IntegerNetwork, measured: Measured, saturated: dict[str, int]) -> list[str]:
    """Return lines for people."""
    lines = [network.describe(), f"{measured.target}, by {measured.how}:"]
    for name, value in measured.figures.items():
        limit = f" of {measured.limits[name]:,.0f}" if name in measured.limits else ""
        written = f"{value:,.2f}" if isinstance(value, float) and value % 1 else f"{value:,.0f}"
        lines.append(f"  {WORDS.get(name, name)}: {written}{limit}")
    if not measured.fits:
        lines.append("  It does not fit.")
    lines.append(f"{measured.agree:,} of {measured.rows:,} rows agree with Python in every output.")
    if saturated["inputs"] or saturated["neurons"]:
        lines.append(
            f"Kept to their range on these rows: {saturated['inputs']:,} inputs, "
            f"{saturated['neurons']:,} neurons."
        )
    return lines
