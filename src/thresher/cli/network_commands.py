"""`thresher inspect`, `export` and `certify` with their options: what a model file holds and is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli.options import Debug, Json, Model, Quiet


def inspect(
    model: Model,
    write: Annotated[
        str | None,
        typer.Option(
            help="Print the network itself instead: formula, latex, sympy or python.", metavar="HOW"
        ),
    ] = None,
    digits: Annotated[str, typer.Option(help="Significant digits of a formula, 1 to 17.", metavar="N")] = "4",
    plot: Annotated[
        Path | None, typer.Option(help="Draw the graph to a .png, .svg or .pdf file.", metavar="FILE")
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

        precision = whole_number("--digits", digits, least=1)
        run_inspect(model, write, precision, plot, as_json=as_json, quiet=quiet)


def export(
    model: Model,
    to: Annotated[str, typer.Option("--to", help="c, onnx, torch or json.", metavar="FORMAT")],
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
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a network as C source, ONNX, torch source or JSON, for use without Thresher."""
    from thresher.cli.outcome import reported

    with reported(debug, "No file was left half-written. Run it again with:"):
        from thresher.cli.export import run_export

        run_export(model, to, out, name, as_json=as_json, quiet=quiet)


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
        from thresher.cli.values import names, whole_number

        run_certify(
            model,
            data,
            target,
            held_out=held_out,
            dictionaries=names(dictionary),
            precision=precision,
            seed=whole_number("--seed", seed, least=0),
            out=out,
            as_json=as_json,
            quiet=quiet,
        )
