"""What the user said about reading a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from thresher.data.dates import PARTS
from thresher.data.figures import MARKS
from thresher.errors import ParameterError

READINGS = ("date", "duration", "number", "text", "ignore")


@dataclass(frozen=True)
class Asked:
    """How a column is to be read: by what it holds (None) or as told.

    Dates have parts and a format, and numbers may stand for missing values.
    """

    how: str | None = None
    parts: tuple[str, ...] = ("days",)
    form: str | None = None
    missing: tuple[float, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """What the user said about reading a table.

    Attributes
    ----------
    missing : {"error", "drop", "mean", "indicator"}
    ignore, text : tuple of str
        Columns to leave out, and to take as text.
    readings : mapping
        How columns are read, by name: "date", "duration", "number", "text" or "ignore".
    decimal : {".", ","}, optional
    """

    missing: str = "error"
    ignore: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    readings: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, *MARKS):
            raise ParameterError(f"--decimal {self.decimal!r}, but it is a point (.) or a comma (,).")

    def asked(self) -> dict[str, Asked]:
        """Give what is asked of columns by their names."""
        told = {name: asked_of(name, reading) for name, reading in self.readings.items()}
        return {
            **dict.fromkeys(self.ignore, Asked("ignore")),
            **dict.fromkeys(self.text, Asked("text")),
            **told,
        }


def asked_of(name: str, reading: str) -> Asked:
    """Read what ``--as`` says of a column.

    Examples
    --------
    >>> asked_of("sold", "date+week:%d/%m/%Y")
    Asked(how='date', parts=('days', 'week'), form='%d/%m/%Y', missing=())
    >>> asked_of("age", "number:-999,9999").missing
    (-999.0, 9999.0)
    """
    told, _, form = reading.partition(":")
    how, *parts = told.split("+")
    extra = [part for part in parts if part not in PARTS]
    if how == "number" and form and not parts and (marks := _numbers(form)):
        return Asked(how, missing=marks)
    if how not in READINGS or extra or (how != "date" and (parts or form)) or (form and "%" not in form):
        raise ParameterError(
            f"--as {name}={reading!r}, but a column is read as one of {', '.join(READINGS)}; a date also as "
            "date+year, date+week or date+day (of the year, the week, the hour) and by a format, such as "
            "date:%d/%m/%Y; a number also with those that stand for a missing value, as in number:-999,9999."
        )
    return Asked(how, tuple(dict.fromkeys(("days", *parts))), form or None)


def _numbers(text: str) -> tuple[float, ...]:
    """Read numbers with commas between them; none where some is none."""
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        return ()
    return found if all(map(math.isfinite, found)) else ()
