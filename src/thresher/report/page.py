"""One HTML page of a sweep that needs nothing else: figures, heatmaps to explore, cells, how it was made."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.errors import DataFileError, writing
from thresher.experiments import EXPERIMENTS, Outcome, Summary
from thresher.experiments.fullest import fullest
from thresher.experiments.record import DONE, CellFile, summed_up
from thresher.experiments.settings import read_settings
from thresher.experiments.sweep import FILE
from thresher.report.cells import place_of, plain_cell, quantities
from thresher.report.figures import STYLE, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"


def write_page(folder: Path, path: Path) -> Path:
    """Write the page of a folder of results, whole or not at all.

    Parameters
    ----------
    folder : path
        Results of one experiment, or a folder of such folders.
    path : path
        The file to write.

    Returns
    -------
    path
        What was written.
    """
    sections = []
    for each in result_folders(folder):
        with summed_up(each / FILE):
            sections.append(_section(each))
    with summed_up(folder):
        content = _render(sections)
    with writing(path, "Use --out with a file in a folder where you may write and that has room."):
        write_whole(path, content.encode())
    return path


def result_folders(folder: Path) -> list[Path]:
    """Find the results in a folder: its own, or those of its folders, in the order of the catalogue."""
    if not folder.is_dir():
        found = "is a file, not a folder" if folder.exists() else "does not exist"
        raise DataFileError(
            f"{folder} {found}. Give a model file, or the folder that `thresher reproduce --out DIR` "
            "wrote to."
        )
    # A sweep that has been started and has not finished a cell yet has nothing to show.
    below = [place.parent for place in folder.glob(f"*/{FILE}") if place.stat().st_size > 0]
    places = [folder] if (folder / FILE).is_file() else below
    if not places:
        raise DataFileError(
            f"{folder} holds no results: there is no {FILE} in it, nor in its folders. Make some with: "
            f"thresher reproduce all --quick --out {folder}"
        )
    order = list(EXPERIMENTS)
    return sorted(
        places, key=lambda place: (order.index(place.name) if place.name in order else 99, place.name)
    )


def _section(folder: Path) -> dict[str, Any]:
    """Gather what the page says about one experiment."""
    outcomes = list(CellFile(folder / FILE).read().values())
    names = {outcome.cell.experiment for outcome in outcomes}
    if len(names) != 1 or not names <= EXPERIMENTS.keys():
        held = ", ".join(sorted(names)) or "nothing yet"
        raise DataFileError(
            f"{folder / FILE} holds {held}, where results of one of {', '.join(EXPERIMENTS)} are expected. "
            "Run `thresher reproduce` first, or give another folder."
        )
    experiment = EXPERIMENTS[names.pop()]
    shown, left_out = fullest(outcomes, experiment.varies)
    shown.sort(key=lambda outcome: place_of(outcome, experiment.varies))
    done = [outcome for outcome in shown if outcome.status == DONE]
    summary = experiment.summarise(done) if done else Summary(())
    return {
        "name": experiment.name,
        "title": experiment.title,
        "done": len(done),
        "failed": len(shown) - len(done),
        "left_out": left_out,
        "cut": experiment.left_out(done) if done else [],
        "tables": summary.tables,
        "figures": [
            {"name": name, "source": inline(figure)} for name, figure in draw(experiment.name, done).items()
        ],
        "columns": _columns(shown),
        "cells": [
            plain_cell(experiment, outcome, f"{experiment.name}-{number}")
            for number, outcome in enumerate(shown)
        ],
        "heatmaps": quantities(done),
        "commands": read_settings(folder),
        "environments": _environments(shown),
    }


def _columns(outcomes: Sequence[Outcome]) -> list[str]:
    """Name what is measured, in the order in which it comes, leaving out what no table can hold."""
    plain = [
        name
        for outcome in outcomes
        for name, value in outcome.result.items()
        if isinstance(value, (int, float, str)) or value is None
    ]
    return list(dict.fromkeys(plain))


def _environments(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Give what cells ran with, each combination once, with the number of its cells."""
    counted: dict[str, int] = {}
    for outcome in outcomes:
        text = json.dumps({**outcome.environment, "thresher": outcome.version})
        counted[text] = counted.get(text, 0) + 1
    return [{**json.loads(text), "cells": count} for text, count in counted.items()]


def inline(figure: Figure) -> str:
    """Turn a figure into the address of an image that holds it whole."""
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context(STYLE):
        figure.savefig(content, format="svg", metadata={"Date": None}, facecolor="white")
    return f"data:image/svg+xml;base64,{base64.b64encode(content.getvalue()).decode()}"


def _render(sections: list[dict[str, Any]]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["readable"] = readable
    explored = {
        section["name"]: {"cells": section["cells"], "heatmaps": section["heatmaps"]} for section in sections
    }
    return environment.get_template("page.html").render(
        sections=sections,
        version=__version__,
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "page.js").read_text(encoding="utf-8"),
        # Nothing in the data may end the script that holds it.
        data=json.dumps(explored, allow_nan=False).replace("<", "\\u003c"),
    )


def readable(value: Any) -> str:
    """Write a value for people: thousands apart, four digits of what is not whole.

    Examples
    --------
    >>> readable(12345), readable(0.123456), readable(None), readable("auto")
    ('12,345', '0.1235', '-', 'auto')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
