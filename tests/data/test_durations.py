"""Durations are numbers with a stated unit, however they are written."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from thresher.data.column import Column
from thresher.data.encoding import Encoding
from thresher.data.prepared import prepare
from thresher.data.survey import Held, learn_encoding, survey
from thresher.data.wishes import Wishes
from thresher.errors import DataError

HOURS = [1.5, 26.25, 3.0, 40.0]
WRITTEN = {
    "as pandas writes them": ["0 days 01:30:00", "1 days 02:15:00", "0 days 03:00:00", "1 days 16:00:00"],
    "in words": ["1 hour 30 min", "1 day, 2 h and 15 minutes", "3 hrs", "40 hours"],
    "clocks": ["01:30:00", "26:15:00", "3:00", "40:00:00"],
    "ISO 8601": ["PT1H30M", "P1DT2H15M", "PT3H", "PT40H"],
    "different units": ["90 min", "26,25 h", "180 min", "2400 min"],
    "points in a file": pd.to_timedelta(HOURS, unit="h"),
    "objects": [timedelta(hours=hours) for hours in HOURS],
}


@pytest.mark.parametrize("way", WRITTEN)
def test_every_way_gives_the_same_numbers(way: str) -> None:
    kind = None if way.startswith("points") else object
    table = pd.DataFrame({"took": pd.Series(WRITTEN[way], dtype=kind), "y": range(4)})
    encoding = learn_encoding(table, "y", decimal="," if way == "different units" else None)
    assert encoding.features == ("took (hours)",)
    np.testing.assert_allclose(encoding.matrix(table)[:, 0], HOURS)
    # A model keeps the unit, whatever later tables hold, and however they hold it.
    again = Encoding(tuple(Column.from_details(column.to_details()) for column in encoding.columns))
    later = pd.DataFrame({"took": pd.to_timedelta(["90 s", None])})
    np.testing.assert_allclose(again.matrix(later)[:, 0], [0.025, np.nan])


def test_the_unit_is_that_of_the_column_and_is_said() -> None:
    table = pd.DataFrame(
        {"a": ["2 days", "1 day", "9 days"], "b": ["0:00:20", "0:01:10", "30:00:00"], "y": [1, 2, 3]}
    )
    seen = survey(Held(table), "y", Wishes())
    assert [(each.read_as, each.note) for each in seen.reports] == [
        ("duration", "days, written like '2 days'"),
        ("duration", "minutes, written like '30:00:00'"),
    ]


def test_what_is_no_duration_is_refused_where_one_is_asked_for() -> None:
    table = pd.DataFrame({"a": ["1 day", "soon", "9 days"], "y": [1, 2, 3]})
    with pytest.raises(DataError, match="durations such as 2 days"):
        learn_encoding(table, "y", readings={"a": "duration"})
    encoding = learn_encoding(table.drop(index=1).reset_index(drop=True), "y")
    with pytest.raises(DataError, match="'soon' in row 2, where durations"):
        encoding.matrix(table)


def test_a_target_of_durations_says_its_unit() -> None:
    table = pd.DataFrame({"x": range(20), "took": [f"{hours + 30}:15:00" for hours in range(20)]})
    ready = prepare(table, "took", test_share=0.0)
    assert ready.why == "the target holds numbers of 20 different values, durations in days"
    np.testing.assert_allclose(ready.y, [(hours + 30.25) / 24 for hours in range(20)])
