"""Which stored cells may be summed up together: a quick run and a full one may not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from thresher.experiments.estimate import method_of
from thresher.experiments.record import Outcome

# What tells runs of the same cell apart: the fullest counts.
EXTENT = ("n", "passes", "training", "seconds")


def fullest(outcomes: Sequence[Outcome], varies: Sequence[str] = ()) -> tuple[list[Outcome], int]:
    """Keep, of each part and method, the cells with most rows, passes and time; and count the others.

    A folder may hold a quick run and a full one, and results of older versions: a figure of both would mix
    what cannot be compared. What `varies` from cell to cell tells no runs apart.
    """
    latest: dict[str, Outcome] = {}
    for outcome in outcomes:
        text = json.dumps([outcome.cell.configuration, outcome.cell.seed], sort_keys=True)
        latest.pop(text, None)
        latest[text] = outcome
    largest: dict[tuple[Any, ...], tuple[float, ...]] = {}
    for outcome in latest.values():
        group, extent = _group(outcome), _extent(outcome, varies)
        largest[group] = max(largest.get(group, extent), extent)
    kept = [outcome for outcome in latest.values() if _extent(outcome, varies) == largest[_group(outcome)]]
    return kept, len(latest) - len(kept)


def _group(outcome: Outcome) -> tuple[Any, ...]:
    of = outcome.cell.configuration
    return of.get("part"), of.get("variant"), of.get("line"), method_of(outcome.cell)


def _extent(outcome: Outcome, varies: Sequence[str]) -> tuple[float, ...]:
    told = [name for name in EXTENT if name not in varies]
    return tuple(outcome.cell.configuration.get(name) or 0 for name in told)
