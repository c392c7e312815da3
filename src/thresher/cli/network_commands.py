"""`thresher inspect`, `stability`, `export` and `certify` with options: what a model is and is worth."""

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
    Seed,
    Weights,
)


def inspect(
    model: Model,
    data: Annotated[
        Path | None, typer.Argument(help="A table to measure on what inputs and terms do.", metavar="DATA")
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(
            help="Print the network itself instead: words, rules, formula, latex, sympy or python.",
            metavar="HOW",
        ),
    ] = None,
    digits: Annotated[
        str | None,
        typer.Option(help="Significant digits, 1 to 17; with DATA as many as its rows tell.", metavar="N"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the graph to a .png, .svg or .pdf file.", metavar="FILE")
    ] = None,
    effects: Annotated[
        Path | None, typer.Option(help="Draw what each input does to such a file.", metavar="FILE")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Tell what a network is made of, which inputs it uses and how much each matters."""
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing was changed. Run it again with:"):
        from thresher.cli.inspect import run_inspect
        from thresher.cli.values import whole_number

        precision = None if digits is None else whole_number("--digits", digits, least=1)
        run_inspect(model, data, write, precision, plot, effects, as_json=as_json, quiet=quiet)


def stability(
    model: Model,
    data: Annotated[Path, typer.Argument(help="The table that it was fitted to.", metavar="DATA")],
    target: Annotated[
        str | None, typer.Option(help="Column of the target; what the model predicts.", metavar="NAME")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Nonzeros of each fit; by default those of the model.", metavar="N")
    ] = None,
    pairs: Annotated[str, typer.Option(help="Pairs of half-samples, two fits each.", metavar="N")] = "25",
    threshold: Annotated[
        str, typer.Option(help="Share of half-samples from which an input is stable.", metavar="SHARE")
    ] = "0.75",
    coverage: Annotated[str, typer.Option(help="Of intervals, in percent.", metavar="PERCENT")] = "90",
    resamples: Annotated[
        str, typer.Option(help="Rows are drawn so often for intervals; 0 for none.", metavar="N")
    ] = "200",
    pool: Annotated[
        str | None, typer.Option(help="Look for so many networks that do as well.", metavar="N")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for results as JSON and a figure.", metavar="DIR")
    ] = None,
    seed: Seed = "0",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say how sure the structure of a model is: what recurs in fits to half of the rows.

    Every input with the share of half-samples that select it, a bound on the expected number of false ones
    among those that are stable, every kink, and intervals of weights and thresholds.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing is kept of an interrupted run. Run it again with:"):
        from thresher.cli.stability import StabilityChoices, run_stability
        from thresher.cli.values import share_of, whole_number

        choices = StabilityChoices(
            model,
            data,
            target,
            None if budget is None else whole_number("--budget", budget, least=1),
            whole_number("--pairs", pairs, least=1),
            share_of("--threshold", threshold, 1.0),
            share_of("--coverage", coverage, 100.0) / 100.0,
            whole_number("--resamples", resamples, least=0),
            None if pool is None else whole_number("--pool", pool, least=2),
            whole_number("--seed", seed, least=0),
        )
        run_stability(choices, out, as_json, quiet)


def export(
    model: Model,
    to: Annotated[
        str, typer.Option("--to", help="c, onnx, torch, json, verilog or integer.", metavar="FORMAT")
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", help="File to write, - for standard output; by default beside MODEL.", metavar="FILE"
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What functions in the file are called after; by default MODEL.", metavar="NAME"),
    ] = None,
    integer: Annotated[
        bool, typer.Option("--integer", help="Round to whole numbers: C without floating point.")
    ] = False,
    calibrate: Calibrate = None,
    bits: Bits = "8",
    weights: Weights = None,
    activations: Activations = "16",
    inputs: Inputs = "auto",
    bias_bits: BiasBits = "32",
    passes: Passes = "0",
    rows: Annotated[
        Path | None, typer.Option(help="Rows for a test of integer C or Verilog.", metavar="DATA")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Integer C: arrays, which are faster and larger.")
    ] = False,
    used_inputs: Annotated[
        bool | None,
        typer.Option(
            "--used-inputs/--all-inputs",
            help="C: take the columns in use alone, as integer C does by default, or all of them.",
        ),
    ] = None,
    pipeline: Annotated[
        bool, typer.Option("--pipeline", help="Verilog: registers after every layer.")
    ] = False,
    serial: Annotated[
        bool, typer.Option("--serial", help="Verilog: also a module that takes one input at each clock.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a network as C, Verilog, ONNX, torch source or JSON, for use without Thresher."""
    from thresher.cli.outcome import reported

    with reported(debug, "No file was left half-written. Run it again with:"):
        from thresher.cli.export_integer import FORMS, run_export_integer

        if to in FORMS or integer:
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
            style = {
                name: value
                for name, value, chosen in (
                    ("packed", not plain, plain),
                    ("used_inputs", used_inputs is not False, used_inputs is not None),
                    ("pipeline", pipeline, pipeline),
                    ("serial", serial, serial),
                )
                if chosen
            }
            run_export_integer(model, to, out, name, rounding, rows, style, as_json=as_json, quiet=quiet)
            return
        from thresher.cli.export import refused_without_integer, run_export

        refused_without_integer(
            to,
            {
                "--calibrate": calibrate is not None,
                "--weights": weights is not None,
                "--rows": rows is not None,
                "--plain": plain,
                "--pipeline": pipeline,
                "--serial": serial,
            },
        )
        run_export(model, to, out, name, used_inputs=used_inputs, as_json=as_json, quiet=quiet)


def certify(
    model: Annotated[Path, typer.Argument(help="A saved network.", metavar="MODEL")],
    data: Annotated[Path, typer.Argument(help="A table of rows and targets; - reads it.", metavar="DATA")],
    target: Annotated[
        str | None,
        typer.Option(help="Column of the targets, or several: a,b; by default the model's.", metavar="NAME"),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(
            help="A table of fresh rows that were not trained on; by default those that the fit set aside.",
            metavar="FILE",
        ),
    ] = None,
    dictionary: Annotated[
        str | None,
        typer.Option(
            help="Gates over which uniqueness is asked: own, opposite, one-sided, one-sparse, two-sparse, "
            "sampled.",
            metavar="LIST",
        ),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Relative rounding of the targets, such as 1e-6.", metavar="X")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the certificate and its figure.", metavar="DIR")
    ] = None,
    seed: Annotated[str, typer.Option(help="Seed of sampled gates.", metavar="N")] = "0",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say what is proved about a network on given data, what is not, and over which dictionary of gates.

    Each condition holds, fails or is unknown, with its number. Three levels follow: unique on its support,
    isolated, unique in the dictionary.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing is kept of an interrupted certificate. Run it again with:"):
        from thresher.cli.certify import run_certify
        from thresher.cli.values import LARGEST_SEED, names, whole_number

        run_certify(
            model,
            data,
            target,
            held_out=held_out,
            dictionaries=names(dictionary),
            precision=precision,
            seed=whole_number("--seed", seed, least=0, most=LARGEST_SEED),
            out=out,
            as_json=as_json,
            quiet=quiet,
        )
