"""`thresher device` with its options: what a network needs on a microcontroller or an FPGA."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli.options import (
    Activations,
    BiasBits,
    Bits,
    Calibrate,
    Debug,
    Inputs,
    Json,
    Model,
    Passes,
    Quiet,
    Weights,
)


def device(
    model: Model,
    target: Annotated[str, typer.Option(help="atmega328p, cortex-m3, ice40 or xilinx.", metavar="DEVICE")],
    rows: Annotated[
        Path, typer.Option(help="Rows to run: a table, or a .npy file of inputs.", metavar="DATA")
    ],
    most_rows: Annotated[
        str, typer.Option(help="The first rows of them that are run.", metavar="N")
    ] = "1000",
    calibrate: Calibrate = None,
    bits: Bits = "8",
    weights: Weights = None,
    activations: Activations = "16",
    inputs: Inputs = "auto",
    bias_bits: BiasBits = "32",
    passes: Passes = "0",
    packed: Annotated[bool, typer.Option("--packed", help="Processors: tables as a stream of bits.")] = False,
    used_inputs: Annotated[
        bool, typer.Option("--used-inputs", help="Processors: give the inputs in use alone.")
    ] = False,
    pipeline: Annotated[bool, typer.Option("--pipeline", help="FPGAs: registers after every layer.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compile or synthesise a network for a device, run rows on it, and say what it needs.

    Compilers, simulators and synthesis are those that are installed; what is missing is named.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing is kept of it. Run it again with:"):
        from thresher.cli.device import run_device
        from thresher.cli.values import whole_number
        from thresher.cli.whole import Rounding

        rounding = Rounding(
            calibrate,
            whole_number("--bits", bits, least=2),
            weights,
            whole_number("--activations", activations, least=1),
            inputs,
            whole_number("--bias-bits", bias_bits, least=4),
            whole_number("--passes", passes, least=0),
        )
        run_device(
            model,
            target,
            rows,
            rounding,
            most_rows=whole_number("--most-rows", most_rows, least=1),
            options={"packed": packed, "used_inputs": used_inputs, "pipeline": pipeline},
            as_json=as_json,
            quiet=quiet,
        )
