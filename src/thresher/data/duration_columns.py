"""Columns that hold durations: told from their cells, and the unit that their numbers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresher.data.cells import Durations
from thresher.data.column import Column
from thresher.data.columns import option
from thresher.data.durations import duration, unit_for
from thresher.data.found import Found, problem

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def durations(column: pd.Series, texts: np.ndarray) -> Found | None:
    """Read durations, None where some text is none."""
    seconds = {text: duration(text) for text in dict.fromkeys(texts.tolist()) if text is not None}
    if any(value is None for value in seconds.values()):
        return None
    name = str(column.name)
    cells = Durations(unit_for(seconds[text] or 0.0 for text in texts.tolist() if text is not None))
    note = f"{cells.unit}, written like {max(seconds, key=len)!r}"
    return Found(
        Column(name, cells=cells),
        "duration",
        note,
        option("text", name),
        sum(text is None for text in texts.tolist()),
    )


def durations_at_hand(column: pd.Series) -> Found:
    """Take durations, which the file knew to be some."""
    name, seconds = str(column.name), column.dt.total_seconds()
    cells = Durations(unit_for(seconds.dropna()))
    lacking = int(column.isna().sum())
    return Found(Column(name, cells=cells), "duration", cells.unit, option("ignore", name), lacking)


def no_duration(column: pd.Series) -> Found:
    """Say what stands where durations were asked for."""
    name, example = str(column.name), str(column.dropna().iloc[0])
    return problem(
        name,
        f"column {name!r} holds {example!r}, where durations such as 2 days, 1h 30min or 01:30:00 are asked "
        "for. Write it so, or give a number.",
    )
