"""`thresher reproduce`: run the cells of an experiment that are not done, and show what all of them say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from thresher._version import __version__
from thresher.cli.outcome import SOME_FAILED
from thresher.cli.screen import Progress, print_json, print_table
from thresher.errors import DataFileError
from thresher.experiments import Choices, Experiment, Outcome, Summary, Sweep, experiment_named
from thresher.files import write_whole


def run_reproduce(
    name: str, choices: Choices, out: Path, *, dry_run: bool, as_json: bool, quiet: bool, debug: bool
) -> None:
    """Run an experiment, write its summary and figure, and print them.

    Parameters
    ----------
    name : str
        Which experiment.
    choices : Choices
        What of it.
    out : path
        Its results go to a folder of its name in this one.
    dry_run : bool
        Whether to list the cells only.
    as_json, quiet, debug : bool
        As on the command line.
    """
    experiment = experiment_named(name)
    folder = out / name
    sweep = Sweep(experiment, experiment.chosen(choices), folder)
    if dry_run:
        _list(sweep, as_json)
        return
    with Progress(name, len(sweep), len(sweep.done), shown=not quiet) as progress:
        for cell in sweep.pending[:1]:
            progress.working_on(experiment.label(cell))
        for outcome in sweep.run(stop_on_error=debug):
            progress.advance(_told(experiment, outcome))
            for cell in sweep.pending[:1]:
                progress.working_on(experiment.label(cell))
    _show(sweep, folder, as_json, quiet)
    if sweep.failed:
        for outcome in sweep.failed:
            typer.echo(f"failed: {experiment.label(outcome.cell)}: {outcome.error}", err=True)
        typer.echo(
            f"{len(sweep.failed)} of {len(sweep)} cells failed. The same command tries them again.", err=True
        )
        raise typer.Exit(SOME_FAILED)


def _show(sweep: Sweep, folder: Path, as_json: bool, quiet: bool) -> None:
    """Write summary and figure, and print what was asked for."""
    summary = sweep.experiment.summarise(sweep.done) if sweep.done else Summary(())
    files = _written(sweep, summary, folder)
    if as_json:
        cells = [outcome.plain() for outcome in (*sweep.done, *sweep.failed)]
        files_as_text = [str(path) for path in files]
        print_json({**_head(sweep), **summary.plain(), "cells": cells, "files": files_as_text})
    elif not quiet:
        for table in summary.tables:
            print_table(table)
        for path in files:
            typer.echo(f"wrote {path}")


def _written(sweep: Sweep, summary: Summary, folder: Path) -> list[Path]:
    from thresher.report.figures import draw, save

    path = folder / "summary.json"
    text = json.dumps({**_head(sweep), **summary.plain()}, indent=2, allow_nan=False)
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise DataFileError(
            f"{path} cannot be written ({error.strerror or error}). Use another --out."
        ) from error
    figure = draw(sweep.experiment.name, sweep.done)
    drawn = [] if figure is None else save(figure, folder, sweep.experiment.name)
    return [sweep.file.path, path, *drawn]


def _head(sweep: Sweep) -> dict[str, Any]:
    counts = {"cells": len(sweep), "done": len(sweep.done), "failed": len(sweep.failed)}
    return {
        "experiment": sweep.experiment.name,
        "title": sweep.experiment.title,
        "version": __version__,
        "counts": counts,
    }


def _list(sweep: Sweep, as_json: bool) -> None:
    """List the cells: those that are done, and those that would be run."""
    pending = [sweep.experiment.label(cell) for cell in sweep.pending]
    done = [sweep.experiment.label(outcome.cell) for outcome in sweep.done]
    if as_json:
        print_json({**_head(sweep), "done": done, "pending": pending})
        return
    for label in done:
        typer.echo(f"done     {label}")
    for label in pending:
        typer.echo(f"to run   {label}")
    typer.echo(f"{len(done)} done, {len(pending)} to run")


def _told(experiment: Experiment, outcome: Outcome) -> str:
    """Say in a few words what came of a cell."""
    label = experiment.label(outcome.cell)
    if outcome.error is not None:
        return f"{label}: failed"
    found = outcome.result.get("psnr")
    return f"{label}: {found:.1f} dB" if found is not None else label
