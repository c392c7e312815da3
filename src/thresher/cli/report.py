"""`thresher report`: one page of the results in a folder."""

from __future__ import annotations

from pathlib import Path

import typer

from thresher._version import __version__
from thresher.cli.screen import print_json

PAGE = "report.html"


def run_report(folder: Path, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Write the page of a folder of results, and say where it is.

    Parameters
    ----------
    folder : path
        Results of one experiment, or a folder of such folders.
    out : path, optional
        The file to write, `report.html` in that folder by default.
    as_json, quiet : bool
        As on the command line.
    """
    from thresher.report.page import write_page

    page = write_page(folder, out or folder / PAGE)
    if as_json:
        print_json({"version": __version__, "page": str(page), "bytes": page.stat().st_size})
    elif not quiet:
        typer.echo(f"wrote {page}")
