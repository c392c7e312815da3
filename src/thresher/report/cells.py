"""Cells as the page shows them: which of them, in which words, and on which grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.experiments import Experiment, Outcome
from thresher.experiments.catalogue import FIGURES
from thresher.experiments.estimate import method_of
from thresher.experiments.methods import METHODS, NAMES
from thresher.report.heatmaps import scale_of


def place_of(outcome: Outcome, varies: Sequence[str]) -> list[tuple[bool, Any]]:
    """Give what cells are sorted by: what varies, numbers before words, and then the seed.

    Examples
    --------
    >>> from thresher.experiments import Cell
    >>> cell = Cell("toy", {"method": "auto", "m": 3}, 1)
    >>> place_of(Outcome(cell, "", "done", 1.0), ("method", "m", "k"))
    [(True, 'auto'), (False, 3), (True, ''), (False, 1)]
    """
    values = [outcome.cell.configuration.get(name, "") for name in varies]
    return [
        (False, value) if isinstance(value, (int, float)) else (True, str(value))
        for value in (*values, outcome.cell.seed)
    ]


def plain_cell(experiment: Experiment, outcome: Outcome, identity: str) -> dict[str, Any]:
    """Give a cell as what the page's script and table need."""
    return {
        "id": identity,
        "label": experiment.label(outcome.cell),
        "part": outcome.cell.configuration.get("part", ""),
        "method": method_of(outcome.cell) or "",
        "m": outcome.cell.configuration.get("hidden"),
        "s": outcome.cell.configuration.get("budget"),
        "seed": outcome.cell.seed,
        "status": outcome.status,
        "error": outcome.error,
        "configuration": dict(outcome.cell.configuration),
        "result": dict(outcome.result),
        "environment": dict(outcome.environment),
        "version": outcome.version,
    }


def quantities(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Describe the grids that can be explored: for each part its methods, quantities and colour scales."""
    if not outcomes or not all(_has_place(outcome) for outcome in outcomes):
        return []
    grids = []
    for part in dict.fromkeys(outcome.cell.configuration.get("part", "") for outcome in outcomes):
        chosen = [outcome for outcome in outcomes if outcome.cell.configuration.get("part", "") == part]
        present = {method_of(outcome.cell) for outcome in chosen}
        grids.append(
            {
                "part": part,
                "title": _title(chosen[0], part),
                "methods": [{"name": name, "title": NAMES[name]} for name in METHODS if name in present],
                "quantities": [_score(chosen[0], part), *_costs(chosen)],
            }
        )
    return grids


def _has_place(outcome: Outcome) -> bool:
    """Whether a cell belongs on a grid of widths and budgets, with a method and a score."""
    of = outcome.cell.configuration
    placed = {"hidden", "budget"} <= of.keys() and "line" not in of and method_of(outcome.cell) in METHODS
    return placed and ("score" in outcome.result or "psnr" in outcome.result)


def _title(outcome: Outcome, part: str) -> str:
    declared = {figure.name: figure for figure in FIGURES}.get(outcome.cell.experiment)
    if declared is None:
        return ""
    (found,) = [each for each in declared.parts if each.name == part]
    return f"{part}: {found.title}"


def _score(outcome: Outcome, part: str) -> dict[str, Any]:
    declared = {figure.name: figure for figure in FIGURES}.get(outcome.cell.experiment)
    if declared is None:
        return {"name": "psnr", "title": "PSNR (dB)", "low": 0.0, "high": 160.0, "digits": 0, "factor": 1}
    (found,) = [each for each in declared.parts if each.name == part]
    low, high = scale_of(found)
    if found.measure == "PSNR":
        return {"name": "score", "title": "PSNR (dB)", "low": low, "high": high, "digits": 0, "factor": 1}
    title = "accuracy (percent)"
    return {"name": "score", "title": title, "low": low, "high": high, "digits": 1, "factor": 100}


def _costs(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    found = []
    for name, title, factor in (
        ("fit_seconds", "seconds", 1.0),
        ("peak_bytes", "peak memory (MB)", 2.0**-20),
    ):
        values = [factor * outcome.result[name] for outcome in outcomes if name in outcome.result]
        if values:
            high = max(values) or 1.0
            found.append(
                {"name": name, "title": title, "low": 0.0, "high": high, "digits": 1, "factor": factor}
            )
    return found
