"""`thresher reproduce`: run the cells of experiments that are not done, and show what all of them say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.cli.outcome import SOME_FAILED, typed_command
from thresher.cli.screen import Progress, print_json, print_table
from thresher.errors import writing
from thresher.experiments import ALL, Choices, Experiment, Outcome, Summary, Sweep, experiments_named
from thresher.experiments.estimate import duration, estimate
from thresher.experiments.machine import cores
from thresher.experiments.record import DONE, summed_up
from thresher.experiments.settings import Settings, write_settings

if TYPE_CHECKING:
    from thresher.experiments.estimate import Estimate

PAGE = "report.html"
# Failed cells that are listed; more would hide what was said before.
FAILURES = 20


@dataclass(frozen=True)
class How:
    """How a command is to run and to talk, as on the command line.

    Attributes
    ----------
    jobs : int, optional
        Processes at a time; as many as there are cores by default.
    dask : str, optional
        Address of a Dask scheduler.
    data : path, optional
        The data folder.
    dry_run, as_json, quiet, debug : bool
    """

    jobs: int | None = None
    dask: str | None = None
    data: Path | None = None
    dry_run: bool = False
    as_json: bool = False
    quiet: bool = False
    debug: bool = False

    @property
    def processes(self) -> int:
        """Processes at a time."""
        return self.jobs or cores()


def run_reproduce(name: str, choices: Choices, out: Path, how: How) -> None:
    """Run an experiment or all of them, write summaries and figures, and print them.

    Parameters
    ----------
    name : str
        Which experiment, or "all".
    choices : Choices
        What of it.
    out : path
        Results of an experiment go to a folder of its name in this one.
    how : How
    """
    experiments = experiments_named(name)
    sweeps = [
        Sweep(each, each.chosen(each.understood(choices) if name == ALL else choices), out / each.name)
        for each in experiments
    ]
    if how.dry_run:
        _list(name, sweeps, how)
        return
    # What is wrong with folders or data is told before the first cell runs. A cluster has data of its own.
    if how.dask is None:
        for sweep in sweeps:
            sweep.check(how.data)
    documents = [_run(sweep, out / sweep.experiment.name, choices, how) for sweep in sweeps]
    if name == ALL:
        _show_all(documents, out, how)
    elif how.as_json:
        print_json(documents[0])
    _tell_failures(sweeps)


def _run(sweep: Sweep, folder: Path, choices: Choices, how: How) -> dict[str, Any]:
    """Run one sweep to its end, write what it shows, and give it as a document."""
    experiment = sweep.experiment
    settings = Settings(typed_command(), experiment.understood(choices).given(), how.processes)
    with Progress(experiment.name, len(sweep), len(sweep.done), shown=not how.quiet) as progress:
        for cell in sweep.pending[:1]:
            progress.working_on(experiment.label(cell))
        for outcome in sweep.run(how.debug, jobs=how.processes, dask=how.dask, data=how.data):
            write_settings(folder, settings)
            progress.advance(_told(experiment, outcome))
            for cell in sweep.pending[:1]:
                progress.working_on(experiment.label(cell))
    return _show(sweep, folder, how)


def _show(sweep: Sweep, folder: Path, how: How) -> dict[str, Any]:
    """Write summary and figures of all that is stored, and print the tables if they are asked for."""
    with summed_up(sweep.file.path):
        stored, left_out = sweep.stored()
        done = [outcome for outcome in stored if outcome.status == DONE]
        summary = sweep.experiment.summarise(done) if done else Summary(())
        files = _written(sweep, stored, summary, folder)
    if not how.as_json and not how.quiet:
        for table in summary.tables:
            print_table(table)
        for path in files:
            typer.echo(f"wrote {path}")
    if left_out and not how.quiet:
        text = f"{left_out} cells of smaller runs in {folder} are left out of tables and figures"
        typer.echo(text, err=True)
    cells = [outcome.plain() for outcome in (*sweep.done, *sweep.failed)]
    return {
        **_head(sweep),
        **summary.plain(),
        "left_out": left_out,
        "cells": cells,
        "files": [str(path) for path in files],
    }


def _show_all(documents: list[dict[str, Any]], out: Path, how: How) -> None:
    """Write the page of everything that was run."""
    from thresher.report.page import write_page

    page = write_page(out, out / PAGE)
    if how.as_json:
        print_json({"version": __version__, "experiments": documents, "files": [str(page)]})
    elif not how.quiet:
        typer.echo(f"wrote {page}")


def _written(sweep: Sweep, stored: list[Outcome], summary: Summary, folder: Path) -> list[Path]:
    from thresher.report.figures import draw, save

    done = [outcome for outcome in stored if outcome.status == DONE]
    counts = {"cells": len(stored), "done": len(done), "failed": len(stored) - len(done)}
    path = folder / "summary.json"
    text = json.dumps({**_head(sweep), "counts": counts, **summary.plain()}, indent=2, allow_nan=False)
    with writing(path, "Use another --out."):
        write_whole(path, f"{text}\n".encode())
    figures = draw(sweep.experiment.name, done)
    drawn = [file for name, figure in figures.items() for file in save(figure, folder, name)]
    return [sweep.file.path, path, *drawn]


def _head(sweep: Sweep) -> dict[str, Any]:
    counts = {"cells": len(sweep), "done": len(sweep.done), "failed": len(sweep.failed)}
    return {
        "experiment": sweep.experiment.name,
        "title": sweep.experiment.title,
        "version": __version__,
        "counts": counts,
    }


def _list(name: str, sweeps: list[Sweep], how: How) -> None:
    """List the cells: those that are done, and those that would be run; and what they will take."""
    estimates = [estimate(sweep.experiment, sweep.pending, sweep.done, how.processes) for sweep in sweeps]
    documents = [_plan(sweep, expected) for sweep, expected in zip(sweeps, estimates, strict=True)]
    if how.as_json:
        print_json(documents[0] if name != ALL else {"version": __version__, "experiments": documents})
        return
    for sweep, document, expected in zip(sweeps, documents, estimates, strict=True):
        if name != ALL:
            for label in document["done"]:
                typer.echo(f"done     {label}")
            for label in document["pending"]:
                typer.echo(f"to run   {label}")
        head = f"{sweep.experiment.name}: " if name == ALL else ""
        remaining = f"; {expected.text()}" if document["pending"] else ""
        typer.echo(f"{head}{len(document['done'])} done, {len(document['pending'])} to run{remaining}")
    if name == ALL:
        typer.echo(f"all together about {duration(sum(each.seconds for each in estimates))}")


def _plan(sweep: Sweep, expected: Estimate) -> dict[str, Any]:
    return {
        **_head(sweep),
        "done": [sweep.experiment.label(outcome.cell) for outcome in sweep.done],
        "pending": [sweep.experiment.label(cell) for cell in sweep.pending],
        "estimate": {"seconds": round(expected.seconds, 1), "memory_bytes": round(expected.memory)},
    }


def _tell_failures(sweeps: list[Sweep]) -> None:
    failed = [(sweep, outcome) for sweep in sweeps for outcome in sweep.failed]
    if not failed:
        return
    for sweep, outcome in failed[:FAILURES]:
        label = sweep.experiment.label(outcome.cell)
        where = f"{sweep.experiment.name}: " if len(sweeps) > 1 else ""
        typer.echo(f"failed: {where}{label}: {outcome.error}", err=True)
    if len(failed) > FAILURES:
        typer.echo(f"... and {len(failed) - FAILURES} more, all of them in the files cells.jsonl", err=True)
    cells = sum(len(sweep) for sweep in sweeps)
    typer.echo(f"{len(failed)} of {cells} cells failed. The same command tries them again.", err=True)
    raise typer.Exit(SOME_FAILED)


def _told(experiment: Experiment, outcome: Outcome) -> str:
    """Say in a few words what came of a cell."""
    label = experiment.label(outcome.cell)
    if outcome.error is not None:
        return f"{label}: failed"
    found = outcome.result.get("psnr")
    if found is not None:
        return f"{label}: {found:.1f} dB"
    score = outcome.result.get("score")
    return label if score is None else f"{label}: {score:.4g}"
