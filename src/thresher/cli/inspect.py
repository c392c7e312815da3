"""`thresher inspect`: what a network is made of and does, as text, as a formula, as figures."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thresher._version import __version__
from thresher.cli.screen import print_json, visible
from thresher.errors import ParameterError, writing
from thresher.integer import IntegerNetwork
from thresher.integer.files import config_of as integer_config
from thresher.integer.files import is_integer
from thresher.network import Network
from thresher.network.description import describe, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thresher.cli.rows import ModelRows
    from thresher.explain import Explanation

# Digits of formulas where no rows tell how many matter.
DIGITS = 4


def _words(network: Network, rows: ModelRows | None, digits: int | None) -> str:
    from thresher.explain import explain

    X, y = (None, None) if rows is None else (rows.X, rows.y)
    return str(explain(network, X, y, digits=digits))


def _rules(network: Network, rows: ModelRows | None, digits: int | None) -> str:
    from thresher.explain import rules

    found, lines = rules(network, None if rows is None else rows.X, digits=digits), list[str]()
    for rule in found:
        head = f"{rule.name}, output {rule.output}" if network.outputs > 1 else rule.name
        if head not in lines:
            lines.append(head)
        count = "" if rule.rows is None else f"  ({rule.rows:,} rows)"
        lines.append(f"  if {rule.condition}: {rule.then}{count}")
    return "\n".join(lines)


WRITTEN: dict[str, Callable[[Network, Any, int | None], str]] = {
    "words": _words,
    "rules": _rules,
    "formula": lambda network, _rows, digits: network.formula(digits=digits or DIGITS),
    "latex": lambda network, _rows, digits: network.latex(digits=digits or DIGITS),
    "sympy": lambda network, _rows, _digits: str(network.sympy()),
    "python": lambda network, _rows, _digits: network.to_python().rstrip("\n"),
}
FIGURES = (".png", ".svg", ".pdf")


def run_inspect(
    model: Path,
    data: Path | None,
    write: str | None,
    digits: int | None,
    plot: Path | None,
    effects: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Load a network and print what was asked for.

    Parameters
    ----------
    model : path
        The model file.
    data : path, optional
        A table to measure on.
    write : str, optional
        A way to write the network out, instead of its description.
    digits : int, optional
        Significant digits of a formula.
    plot, effects : path, optional
        Where to draw the graph, and what each input does.
    as_json, quiet : bool
        As on the command line.
    """
    if write is not None and write not in WRITTEN:
        close = get_close_matches(write.lower(), WRITTEN, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ParameterError(f"--write {write!r} is not known.{hint} Use one of {', '.join(WRITTEN)}.")
    for option, path in (("--plot", plot), ("--effects", effects)):
        if path is not None and path.suffix.lower() not in FIGURES:
            raise ParameterError(f"{option} {path} should end in one of {', '.join(FIGURES)}.")
    if is_integer(model):
        _tell_integer(model, asks=bool(write or plot or effects), as_json=as_json, quiet=quiet)
        return
    network = Network.load(model)
    rows = None
    if data is not None:
        from thresher.cli.rows import model_rows

        rows = model_rows(network, data)
    X = None if rows is None else rows.X
    written = None if write is None else WRITTEN[write](network, rows, digits)
    if plot is not None:
        _save(network.plot(), plot, "--plot")
    if effects is not None:
        _save(_effects(network, X), effects, "--effects")
    files = [path for path in (plot, effects) if path is not None]
    if as_json:
        found = {
            "version": __version__,
            "model": str(model),
            **summary(network, X),
            "details": network.details,
        }
        explained = _explained(network, rows, digits)
        told = None if explained is None else explained.plain()
        print_json({**found, "explained": told, "written": written, "files": list(map(str, files))})
    elif not quiet:
        explained = None if written is not None else _explained(network, rows, digits)
        typer.echo(visible(describe(network, X, formula=explained is None) if written is None else written))
        if explained is not None:
            typer.echo(visible(f"\n{explained}"))
        for path in files:
            typer.echo(f"wrote {path}", err=True)


def _tell_integer(model: Path, *, asks: bool, as_json: bool, quiet: bool) -> None:
    """Print what an integer network is made of."""
    if asks:
        raise ParameterError(f"{model} is an integer network: it has neither formula nor graph.")
    network = IntegerNetwork.load(model)
    if as_json:
        found = {"version": __version__, "model": str(model), **integer_config(network)}
        print_json({**found, "nonzeros": network.nonzeros, "details": network.details})
    elif not quiet:
        typer.echo(network.describe())


def _explained(network: Network, rows: ModelRows | None, digits: int | None) -> Explanation | None:
    """Give the network in words, where rows came and it is short enough."""
    from thresher.explain import explain

    if rows is None:
        return None
    try:
        return explain(network, rows.X, rows.y, digits=digits)
    except ParameterError:
        return None


def _effects(network: Network, X: Any) -> Figure:
    from thresher.explain import effects
    from thresher.network.formula import left_sides
    from thresher.report.effects import plot_effects

    return plot_effects(effects(network, X), left_sides(network, str, str))


def _save(figure: Figure, path: Path, option: str) -> None:
    from thresher.atomic import write_whole

    content = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box, which says enough.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(content, format=path.suffix.lower()[1:], dpi=150, facecolor="white")
    with writing(path, f"Use {option} with a folder that exists and where you may write."):
        write_whole(path, content.getvalue())
