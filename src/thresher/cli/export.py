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
    model: Path,
    to: str,
    out: str | None,
    name: str | None,
    *,
    used_inputs: bool | None,
    as_json: bool,
    quiet: bool,
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
    used_inputs : bool, optional
        C: whether functions take the inputs in use alone; not by default.
    as_json, quiet : bool
        As on the command line.
    """
    form = format_named(to)
    called = suggested_name(model.stem) if name is None else checked_name(name)
    if out == "-" and as_json:
        raise ParameterError("--out - and --json both want standard output: use --out with a file.")
    if used_inputs is not None and form.name != "c":
        flag = "--used-inputs" if used_inputs else "--all-inputs"
        raise ParameterError(f"{flag} means nothing to --to {form.name}.")
    network = Network.load(model)
    if out == "-":
        content = (
            network.to_c(called, used_inputs=bool(used_inputs)).encode("ascii")
            if form.name == "c"
            else exported(network, form.name, called)
        )
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path = model.with_suffix(form.suffix) if out is None else Path(out)
    if path.resolve() == model.resolve():
        raise ParameterError(f"--out {path} is the model itself, which is not overwritten: use another name.")
    files = _contents(network, form.name, called, path, bool(used_inputs))
    with writing(path, "Use --out with a folder that exists and where you may write."):
        for place, content in files.items():
            write_whole(place, content)
    size = len(files[path])
    if as_json:
        document = {"version": __version__, "model": str(model), "format": form.name, "name": called}
        written = {"file": str(path), "files": list(map(str, files)), "bytes": size}
        print_json({**document, **written, "nonzeros": network.nonzeros})
    elif not quiet:
        beside = "".join(f", and {place} beside it" for place in files if place != path)
        typer.echo(f"wrote {path} ({size:,} bytes, {network.nonzeros:,} nonzeros){beside}")


def refused_without_integer(to: str, given: dict[str, bool]) -> None:
    """Refuse options, by whether they were given, that mean something to whole numbers alone."""
    chosen = [option for option, was in given.items() if was]
    if chosen:
        raise ParameterError(
            f"{', '.join(chosen)} means nothing to --to {to} in floating point: use --integer with --to c, "
            "or --to verilog."
        )


def _contents(network: Network, to: str, name: str, path: Path, used_inputs: bool) -> dict[Path, bytes]:
    """Return what is to be written; C has its header beside it."""
    if to != "c":
        return {path: exported(network, to, name)}
    return placed(network.to_c_files(name, used_inputs=used_inputs), f"{name}.c", path)


def placed(files: dict[str, str], first: str, path: Path) -> dict[Path, bytes]:
    """Return texts by where they go: the first of them to a path, the others beside it.

    Raises
    ------
    ParameterError
        When two of them would be one file.
    """
    # First the one whose path was given: where it cannot be written, nothing is.
    found = {path: files[first].encode()}
    found.update({path.parent / name: text.encode() for name, text in files.items() if name != first})
    if len(found) < len(files):
        raise ParameterError(
            f"--out {path} is where {path.name} goes, which belongs to it: use a name that ends in "
            f"{Path(first).suffix}."
        )
    return found
