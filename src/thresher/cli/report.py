"""`thresher report`: one page of a model, or of the results in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from thresher._version import __version__
from thresher.cli.screen import print_json
from thresher.errors import ParameterError

PAGE = "report.html"


@dataclass(frozen=True)
class ModelChoices:
    """What was chosen for the page of a model.

    Attributes
    ----------
    data : path, optional
        A table to measure on.
    target : str, optional
        Its target, where the model does not say.
    stability : bool
        Whether to fit to halves of the rows.
    pairs : int
        How many pairs of them.
    seed : int
    """

    data: Path | None = None
    target: str | None = None
    stability: bool = False
    pairs: int = 25
    seed: int = 0


def run_report(place: Path, choices: ModelChoices, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Write a page, and say where it is.

    Parameters
    ----------
    place : path
        A model file; or results of one experiment, or a folder of such folders.
    choices : ModelChoices
        For a model.
    out : path, optional
        The file to write, by default beside the model, or `report.html` in the folder.
    as_json, quiet : bool
        As on the command line.
    """
    if place.is_file():
        page = _model_page(place, choices, out or place.with_suffix(".html"), quiet)
    else:
        if choices.data is not None or choices.stability or choices.target is not None:
            raise ParameterError(
                f"{place} is no model file, but a table, --target and --stability are for the page of a "
                "model: give the file that `thresher fit` wrote."
            )
        from thresher.report.page import write_page

        page = write_page(place, out or place / PAGE)
    if as_json:
        print_json({"version": __version__, "page": str(page), "bytes": page.stat().st_size})
    elif not quiet:
        typer.echo(f"wrote {page}")


def _model_page(model: Path, choices: ModelChoices, out: Path, quiet: bool) -> Path:
    from thresher.cli.outcome import typed_command
    from thresher.cli.rows import model_rows
    from thresher.cli.stability import StabilityChoices, Work, stability_of
    from thresher.cli.writable import check_file
    from thresher.data.aside import as_fitted
    from thresher.network import Network
    from thresher.report.model_page import Told, write_model_page

    if choices.stability and choices.data is None:
        raise ParameterError(
            "--stability fits to halves of the rows of a table: give the table after the model."
        )
    check_file(out)
    network = Network.load(model)
    if choices.data is None:
        return write_model_page(network, Told(model, command=typed_command()), out)
    rows = model_rows(network, choices.data, choices.target, needed=choices.stability)
    found = None
    if choices.stability:
        asked = StabilityChoices(
            model, choices.data, choices.target, None, choices.pairs, 0.75, 0.9, 200, None, choices.seed
        )
        with Work(shown=not quiet) as work:
            found, _ = stability_of(network, asked, work)
    fitted = aside = None
    if rows.y is not None:
        task = "regression" if network.classes is None else "classification"
        split = as_fitted(rows.X, rows.y, task, network.details.get("rows"))
        fitted, aside = (split.X, split.y), split.aside
    told = Told(
        model,
        choices.data.name,
        rows.X,
        rows.y,
        rows.left_out,
        fitted,
        aside,
        stability=found,
        command=typed_command(),
    )
    return write_model_page(network, told, out)
