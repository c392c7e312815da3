"""From a figure of the catalogue to an experiment: its cells, their measurement, and what they show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from thresher.errors import ParameterError
from thresher.experiments import tasks
from thresher.experiments.catalogue import FIGURES, SEEDS, Figure, Part
from thresher.experiments.claims import check_claims
from thresher.experiments.estimate import planted_cost, weights_of
from thresher.experiments.experiment import Choices, Cost, Experiment, Summary, Table, known
from thresher.experiments.fits import RECOVERED, median
from thresher.experiments.methods import METHODS, NAMES, PRUNING, batch_of, fit_by_method, fit_path_by_method
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.tasks import IMAGES, PLANTED


def experiment_of(figure: Figure) -> Experiment:
    """Turn the declaration of a figure into an experiment that a sweep can run."""
    images = any(part.data in IMAGES for part in figure.parts)
    return Experiment(
        figure.name,
        f"{figure.title} ({figure.name.replace('-', ' ')} of the paper)",
        lambda choices: cells_of(figure, choices),
        tasks.print_of,
        measure,
        lambda outcomes: summarise(figure, outcomes),
        varies=("part", "method", "hidden", "budget"),
        takes=(*(() if images else ("rows",)), "m", "s", "methods", "parts"),
        cost=_cost,
        check=tasks.check,
        path=_path,
        along=measure_path,
    )


def cells_of(figure: Figure, choices: Choices) -> list[Cell]:
    """List the cells of a figure: for each seed and part the grid, and at each place every method."""
    methods = known("--methods", choices.methods or figure.methods, METHODS)
    names = [part.name for part in figure.parts]
    wanted = known("--parts", choices.parts or names, names)
    seeds = choices.seeds or (SEEDS[:1] if choices.quick else SEEDS)
    return [
        cell
        for seed in seeds
        for part in figure.parts
        if part.name in wanted
        for m, s, method in itertools.product(*_grid(part, choices), methods)
        for cell in [Cell(figure.name, _configuration(part, m, s, method, choices), seed)]
        if not _denser_than_dense(cell)
    ]


def _grid(part: Part, choices: Choices) -> tuple[tuple[int, ...], tuple[int, ...]]:
    declared = part.quick if choices.quick else part
    return choices.m or declared.m, choices.s or declared.s


def _configuration(part: Part, m: int, s: int, method: str, choices: Choices) -> dict[str, Any]:
    quick = part.quick if choices.quick else None
    rows = choices.rows or (quick and quick.rows) or part.rows
    if part.data != PLANTED and rows > part.rows:
        raise ParameterError(f"--rows {rows}, but {part.data} has {part.rows:,} rows.")
    passes = (quick and quick.passes) or part.passes
    if method == "auto":
        passes = part.auto_passes
    configuration = {
        "part": part.name,
        "data": part.data,
        "n": rows,
        "d": part.inputs,
        "outputs": part.outputs,
        "layers": part.layers,
        "hidden": m,
        "budget": s,
        "method": method,
        "passes": passes,
        "batch_size": batch_of(method, part.batch_size, rows),
    }
    return configuration | ({"seconds": quick.seconds if quick else part.seconds} if method == "auto" else {})


def _denser_than_dense(cell: Cell) -> bool:
    """Whether a deep network has fewer weights than it may keep; the paper leaves those cells out."""
    return bool(cell["layers"] > 1 and cell["budget"] > weights_of(cell))


def _cost(cell: Cell) -> Cost:
    return planted_cost(cell, cell["method"], cell["passes"])


def measure(cell: Cell, folder: Path | None = None) -> dict[str, Any]:
    """Fit the problem of a cell by its method, and say what was cut."""
    return {**fit_by_method(cell, tasks.load(cell, folder)), "cut": cuts(cell)}


def measure_path(cells: Sequence[Cell], folder: Path | None = None) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Fit cells that differ by their budget alone, and say what was cut."""
    for cell, result in fit_path_by_method(cells, tasks.load(cells[0], folder)):
        yield cell, {**result, "cut": cuts(cell)}


def _path(cell: Cell) -> str | None:
    """Tell which cells one run of iterative pruning fits: those whose data does not depend on the budget."""
    if cell["method"] not in PRUNING or cell["data"] == PLANTED:
        return None
    return Cell(cell.experiment, {**cell.configuration, "budget": None}, cell.seed).key("")


def cuts(cell: Cell) -> list[str]:
    """Say how a cell falls short of the paper's settings, or of ours for the default solver."""
    (part,) = [
        part
        for figure in FIGURES
        if figure.name == cell.experiment
        for part in figure.parts
        if part.name == cell["part"]
    ]
    found = []
    if cell["n"] < part.rows:
        found.append(f"{cell['n']:,} of {part.rows:,} rows")
    if cell["method"] == "auto":
        if cell["seconds"] < part.seconds:
            found.append(f"{cell['seconds']:g} of {part.seconds:g} seconds for each fit of auto")
    elif cell["passes"] < part.passes:
        found.append(f"{cell['passes']} of {part.passes} passes")
    return found


def cut_of(figure: Figure, part: Part, outcomes: Sequence[Outcome]) -> list[str]:
    """Say all that was cut from a part of a figure: grid, seeds, rows, passes."""
    found = []
    for name, declared, letter in (("hidden", part.m, "m"), ("budget", part.s, "s")):
        shown = {outcome.cell[name] for outcome in outcomes}
        if not shown >= set(declared):
            found.append(f"{len(shown)} of {len(declared)} {letter}")
    seeds = {outcome.cell.seed for outcome in outcomes}
    if len(seeds) < len(SEEDS):
        found.append(f"{len(seeds)} of {len(SEEDS)} seeds")
    for cut in dict.fromkeys(text for outcome in outcomes for text in outcome.result.get("cut", ())):
        found.append(cut)
    return found


def summarise(figure: Figure, outcomes: Sequence[Outcome]) -> Summary:
    """Sum up a figure: a table for each part, and the paper's claims about it, checked."""
    tables = []
    for part in figure.parts:
        of_part = [outcome for outcome in outcomes if outcome.cell["part"] == part.name]
        if of_part:
            tables.append(_table(figure, part, of_part))
    claims = check_claims(figure, outcomes)
    rows = tuple((claim.statement, claim.verdict, claim.evidence) for claim in claims)
    if rows:
        tables.append(Table("What the paper says, checked", ("claim", "verdict", "what was measured"), rows))
    return Summary(tuple(tables), {"claims": [claim.plain() for claim in claims]})


def _table(figure: Figure, part: Part, outcomes: Sequence[Outcome]) -> Table:
    unit, factor = ("median dB", 1) if part.measure == "PSNR" else ("median %", 100)
    rows = []
    best = _best(outcomes)
    for method in [method for method in METHODS if any(o.cell["method"] == method for o in outcomes)]:
        chosen = [outcome for outcome in outcomes if outcome.cell["method"] == method]
        rows.append(
            (
                NAMES[method],
                len(chosen),
                factor * median(outcome.result["score"] for outcome in chosen),
                sum(_capped(outcome) >= best[_place(outcome)] for outcome in chosen),
                median(outcome.result["fit_seconds"] for outcome in chosen),
                round(median(outcome.result["peak_bytes"] for outcome in chosen) / 2**20, 1),
            )
        )
    cut = cut_of(figure, part, outcomes)
    return Table(
        f"{figure.title}, {part.title}",
        ("method", "cells", unit, "best of all in", "median s", "median peak MB"),
        tuple(rows),
        f"cut: {'; '.join(cut)}" if cut else "nothing was cut from the paper's grid",
    )


def _place(outcome: Outcome) -> tuple[int, int, int]:
    return outcome.cell["hidden"], outcome.cell["budget"], outcome.cell.seed


def _capped(outcome: Outcome) -> float:
    """Give a score, or what counts as recovered where it is more: beyond, only rounding differs."""
    return float(min(outcome.result["score"], RECOVERED))


def _best(outcomes: Sequence[Outcome]) -> dict[tuple[int, int, int], float]:
    """Give the best score that any method but the dense one reaches at each place."""
    best: dict[tuple[int, int, int], float] = {}
    for outcome in outcomes:
        if outcome.cell["method"] != "dense":
            place = _place(outcome)
            best[place] = max(best.get(place, _capped(outcome)), _capped(outcome))
    # Where only the dense network was trained there is nothing to compare.
    return {_place(outcome): best.get(_place(outcome), float("inf")) for outcome in outcomes}
