"""`thresher export`: a network as a file that other programs read."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.cli.screen import print_json
from thresher.errors import ParameterError, writing
from thresher.export import exported, format_named
from thresher.export.naming import checked_name, suggested_name
from thresher.network import Network


def run_export(
    model: Path, to: str, out: str | None, name: str | None, *, as_json: bool, quiet: bool
) -> None:
    """Load a network and write it in another form, whole or not at all.

    Parameters
    ----------
    model : path
        The model file.
    to : str
        The format.
    out : str, optional
        Where to write; "-" is standard output. By default beside the model, with the format's ending.
    name : str, optional
        What names in the file begin with; by default made from the name of the model.
    as_json, quiet : bool
        As on the command line.
    """
    form = format_named(to)
    called = suggested_name(model.stem) if name is None else checked_name(name)
    if out == "-" and as_json:
        raise ParameterError("--out - and --json both want standard output: use --out with a file.")
    network = Network.load(model)
    content = exported(network, form.name, called)
    if out == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path = model.with_suffix(form.suffix) if out is None else Path(out)
    if path.resolve() == model.resolve():
        raise ParameterError(f"--out {path} is the model itself, which is not overwritten: use another name.")
    with writing(path, "Use --out with a folder that exists and where you may write."):
        write_whole(path, content)
    if as_json:
        document = {"version": __version__, "model": str(model), "format": form.name, "name": called}
        print_json({**document, "file": str(path), "bytes": len(content), "nonzeros": network.nonzeros})
    elif not quiet:
        typer.echo(f"wrote {path} ({len(content):,} bytes, {network.nonzeros:,} nonzeros)")
