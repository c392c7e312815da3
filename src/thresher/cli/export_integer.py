"""`thresher export` in whole numbers: C without floating point, Verilog, or the integer network itself."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.cli.export import placed
from thresher.cli.screen import print_json
from thresher.cli.whole import Rounding, integer_network
from thresher.errors import ParameterError, writing
from thresher.export.naming import checked_name, suggested_name
from thresher.integer import IntegerNetwork

# Formats of whole numbers alone, and how their files end; C is one of both kinds.
FORMS = {"verilog": ".v", "integer": ".integer.thresher"}
SUFFIXES = {**FORMS, "c": ".c"}

# What can be chosen of each form, and how it is called on the command line.
STYLES = {
    "c": {"packed": "--plain", "used_inputs": "--used-inputs or --all-inputs"},
    "verilog": {"pipeline": "--pipeline", "serial": "--serial"},
    "integer": {},
}
OPTIONS = {name: option for styles in STYLES.values() for name, option in styles.items()}


def run_export_integer(
    model: Path,
    to: str,
    out: str | None,
    name: str | None,
    rounding: Rounding,
    rows: Path | None,
    style: dict[str, bool],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Round a network where it is not yet, and write it with what belongs to it.

    Parameters
    ----------
    model : path
    to : {"c", "verilog", "integer"}
    out : str, optional
        Where to write; "-" is standard output. By default beside the model.
    name : str, optional
        What names in the files begin with; by default made from the name of the model.
    rounding : Rounding
    rows : path, optional
        Rows for a test program or a test bench.
    style : dict
        What was chosen of `packed`, `used_inputs`, `pipeline` and `serial`.
    as_json, quiet : bool
        As on the command line.
    """
    if to not in SUFFIXES:
        raise ParameterError(
            f"--integer means nothing to --to {to}: whole numbers go to {', '.join(SUFFIXES)}."
        )
    for style_name in style:
        if style_name not in STYLES[to]:
            raise ParameterError(f"{OPTIONS[style_name]} means nothing to --to {to}.")
    if out == "-" and (as_json or to == "integer"):
        raise ParameterError("--out - does not go with --json or --to integer: use --out with a file.")
    path = model.with_suffix(SUFFIXES[to]) if out is None else Path(out)
    if path.resolve() == model.resolve():
        raise ParameterError(f"--out {path} is the model itself, which is not overwritten: use another name.")
    stem = model.stem if out == "-" else path.stem
    called = suggested_name(stem.partition(".")[0]) if name is None else checked_name(name)
    network, X = integer_network(model, rows, rounding)
    if out == "-":
        sys.stdout.write(_one_text(network, to, called, X, style))
        return
    files = _contents(network, to, called, X, path, style)
    with writing(path, "Use --out with a folder that exists and where you may write."):
        if to == "integer":
            network.save(path)
        for place, content in files.items():
            write_whole(place, content)
    written = list(files) or [path]
    if as_json:
        document = {"version": __version__, "model": str(model), "format": to, "name": called}
        print_json({**document, "files": list(map(str, written)), "nonzeros": network.nonzeros})
    elif not quiet:
        typer.echo(network.describe())
        if X is not None and (outside := network.saturation(X)["inputs"]):
            typer.echo(f"{outside:,} numbers of --rows are beyond the inputs and are kept to the nearest.")
        typer.echo("wrote " + ", ".join(map(str, written)))


def _one_text(network: IntegerNetwork, to: str, name: str, X: object, style: dict[str, bool]) -> str:
    """Return what goes to standard output: C with its header, a module with its test bench."""
    if to == "c":
        return network.to_c(name, **style)
    return network.to_verilog(name, X, **style)


def _contents(
    network: IntegerNetwork, to: str, name: str, X: object, path: Path, style: dict[str, bool]
) -> dict[Path, bytes]:
    """Return what is to be written; C has its header and its test beside it, Verilog its test bench."""
    if to == "c":
        return placed(network.to_c_files(name, X, **style), f"{name}.c", path)
    if to == "verilog":
        from thresher.export.verilog import test_bench

        pipeline = style.get("pipeline", False)
        texts = {path.name: network.to_verilog(name, **style)}
        if X is not None:
            texts[f"{path.stem}_test.v"] = test_bench(network, name, network.codes(X), pipeline=pipeline)
        return placed(texts, path.name, path)
    return {}
