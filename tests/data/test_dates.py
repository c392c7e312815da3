"""Dates and times: one format for all of a column, and numbers with a stated meaning."""

from __future__ import annotations

import pandas as pd
import pytest

from thresher.data.dates import (
    COMPACT,
    DAYS,
    ISO,
    contradicting,
    formats_of,
    is_time,
    moments,
    nearly,
    numbers,
)

DAYS_OF_2023 = pd.Series(pd.date_range("2023-01-13", periods=40, freq="9D"))


@pytest.mark.parametrize("form", [ISO, *DAYS, "%d/%m/%Y %H:%M", "%Y-%m-%dT%H:%M:%S", "%H:%M", "%I:%M %p"])
def test_what_a_format_writes_it_reads(form: str) -> None:
    written = DAYS_OF_2023.dt.strftime("%Y-%m-%d" if form == ISO else form)
    found = formats_of(written)
    assert (ISO if form.startswith("%Y-") else form) in found
    # January 13 tells days from months wherever both are there.
    assert contradicting(found) is None
    read = moments(written, found[0])
    assert read.dt.strftime("%Y-%m-%d" if form == ISO else form).tolist() == written.tolist()


def test_days_and_months_that_nothing_tells_apart_contradict_each_other() -> None:
    both = contradicting(formats_of(pd.Series(["01/02/2024", "03/04/2024"])))
    assert both == ("%d/%m/%Y", "%m/%d/%Y")


@pytest.mark.parametrize(
    "texts", [["1.5", "2.5"], ["10/20", "5/6"], ["1-2-3"], ["red"], ["2024"], ["12345678"]]
)
def test_numbers_and_words_are_no_dates(texts: list[str]) -> None:
    assert formats_of(pd.Series(texts)) == []


def test_plain_digits_are_dates_where_that_is_asked() -> None:
    assert formats_of(pd.Series(["20240229"]), compact=True) == [COMPACT[0]]


def test_parts_mean_what_they_are_called() -> None:
    found = moments(pd.Series(["2024-03-01T18:00:00+02:00", None, "2024-12-31"]), ISO)
    expected = {
        "days": [60 + 16 / 24, 365],
        "year": [61 + 16 / 24, 366],
        "week": [5, 2],
        "day": [16, 0],
    }
    for part, values in expected.items():
        assert pd.Series(numbers(found, "2024-01-01", part)).dropna().tolist() == pytest.approx(values)
    assert numbers(moments(pd.Series(["06:45"]), "%H:%M"), "1970-01-01", "hours").tolist() == [6.75]
    assert is_time("%H:%M")
    assert not is_time(ISO)


def test_nearly_all_is_a_share() -> None:
    assert nearly(pd.Series(["2024-01-01"] * 9 + ["soon"])) == pytest.approx(0.9)
    assert nearly(pd.Series(["red", "blue"])) == 0
