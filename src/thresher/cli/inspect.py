"""`thresher inspect`: what a network is made of, as text, as a formula, as a figure."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

import typer

from thresher._version import __version__
from thresher.cli.screen import print_json, visible
from thresher.errors import ParameterError, writing
from thresher.network import Network
from thresher.network.description import summary

WRITTEN: dict[str, Callable[[Network, int], str]] = {
    "formula": lambda network, digits: network.formula(digits=digits),
    "latex": lambda network, digits: network.latex(digits=digits),
    "sympy": lambda network, _digits: str(network.sympy()),
    "python": lambda network, _digits: network.to_python().rstrip("\n"),
}
FIGURES = (".png", ".svg", ".pdf")


def run_inspect(
    model: Path, write: str | None, digits: int, plot: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Load a network and print what was asked for.

    Parameters
    ----------
    model : path
        The model file.
    write : str, optional
        A way to write the network out, instead of its description.
    digits : int
        Significant digits of a formula.
    plot : path, optional
        Where to draw the graph.
    as_json, quiet : bool
        As on the command line.
    """
    if write is not None and write not in WRITTEN:
        close = get_close_matches(write.lower(), WRITTEN, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ParameterError(f"--write {write!r} is not known.{hint} Use one of {', '.join(WRITTEN)}.")
    if plot is not None and plot.suffix.lower() not in FIGURES:
        raise ParameterError(f"--plot {plot} should end in one of {', '.join(FIGURES)}.")
    network = Network.load(model)
    written = None if write is None else WRITTEN[write](network, digits)
    if plot is not None:
        _draw(network, plot)
    if as_json:
        files = [] if plot is None else [str(plot)]
        found = {"version": __version__, "model": str(model), **summary(network), "details": network.details}
        print_json({**found, "written": written, "files": files})
    elif not quiet:
        typer.echo(visible(network.describe() if written is None else written))
        if plot is not None:
            typer.echo(f"wrote {plot}", err=True)


def _draw(network: Network, path: Path) -> None:
    from thresher.atomic import write_whole

    content = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box, which says enough.
        warnings.filterwarnings("ignore", message="Glyph")
        network.plot().savefig(content, format=path.suffix.lower()[1:], dpi=150, facecolor="white")
    with writing(path, "Use --plot with a folder that exists and where you may write."):
        write_whole(path, content.getvalue())
