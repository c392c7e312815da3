"""Numbers as people write them: one value for each notation, and no guess where there are two."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.figures import figure, figures, notation

VALUES = np.array([0.0, 1.0, -7.5, 999.0, 1000.0, 1234.5, -98765.25, 1234567.0])

WAYS = {
    "plain": (lambda text: text.replace(",", ""), "."),
    "thousands by commas": (lambda text: text, "."),
    "thousands by points": (lambda text: text.translate(str.maketrans(",.", ".,")), ","),
    "thousands by spaces": (lambda text: text.replace(",", "\u202f").replace(".", ","), ","),
    "thousands by apostrophes": (lambda text: text.replace(",", "'"), "."),
    "a currency before": (lambda text: f"EUR {text}", "."),
    "a sign before": (lambda text: f"${text}", "."),
    "a currency after": (lambda text: f"{text} kr", "."),
    "percent": (lambda text: f"{text}%", "."),
    "a true minus": (lambda text: text.replace("-", "\u2212"), "."),
    "a minus at the end": (lambda text: f"{text[1:]}-" if text[0] == "-" else text, "."),
    "a unit after": (lambda text: f"{text} km/h", "."),
    "a unit close by": (lambda text: f"{text}°C", "."),
    "brackets for less than nothing": (lambda text: f"({text[1:]})" if text[0] == "-" else text, "."),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_written_is_read(way: str) -> None:
    write, decimal = WAYS[way]
    texts = [write(f"{value:,.2f}") for value in VALUES]
    assert figures(texts, decimal).tolist() == VALUES.tolist()
    found = notation(texts)
    assert found is not None
    assert decimal in found.marks
    assert not found.differ


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "12 rooms",
        "1,2,3",
        "1.2.3",
        "1,23,45",
        "12-5",
        "3/4",
        "$",
        "--5",
        "-5-",
        "12A",
        "5 km h",
        "1 2",
        "(5",
        "inf",
        "0x10",
    ],
)
def test_what_is_no_number_is_none(text: str) -> None:
    assert figure(text) is None
    assert np.isnan(figures([text, None], ".")).all()


def test_a_mark_before_three_digits_may_be_either() -> None:
    found = notation(["1,234", "999"])
    assert found is not None
    assert (found.marks, found.differ) == ((".", ","), True)
    for decided, mark in (("1,234,567", "."), ("0,5", ","), ("1,234.5", "."), ("1234,5", ",")):
        found = notation(["1,234", decided])
        assert found is not None
        assert found.marks == (mark,)


def test_marks_that_contradict_each_other_are_no_notation() -> None:
    assert notation(["1,5", "2.5"]) is None


def test_units_are_told_and_nothing_needs_none() -> None:
    found = notation(["$5", "0", "US$7"])
    assert found is not None
    assert found.units == ("USD",)
    found = notation(["5 EUR", "$5"])
    assert found is not None
    assert found.units == ("EUR", "USD")
