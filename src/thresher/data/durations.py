"""Durations as people and programs write them, and as numbers of a unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

SECONDS = {"days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0}

# What stands behind a number, with the seconds of one; months and years have no fixed length.
UNITS = {
    word: seconds
    for words, seconds in (
        ("w wk wks week weeks", 604_800.0),
        ("d day days", 86_400.0),
        ("h hr hrs hour hours", 3_600.0),
        ("m min mins minute minutes", 60.0),
        ("s sec secs second seconds", 1.0),
        ("ms millisecond milliseconds", 1e-3),
    )
    for word in words.split()
}

NUMBER = r"\d+(?:[.,]\d+)?"
PART = re.compile(rf"({NUMBER})\s*([a-z]+)\.?", re.IGNORECASE)
PARTS = re.compile(rf"(?:{PART.pattern}(?:\s*,\s*|\s+and\s+|\s*))+", re.IGNORECASE)
CLOCK = re.compile(r"(\d+):([0-5]\d)(?::([0-5]\d(?:[.,]\d+)?))?")
# As pandas writes them: -1 days +02:00:00
DAYS_AND_CLOCK = re.compile(rf"(-?)(\d+) days?,?\s+([+-]?)({CLOCK.pattern})", re.IGNORECASE)
ISO = re.compile(
    rf"P(?=.)(?:({NUMBER})W)?(?:({NUMBER})D)?(?:T(?=.)(?:({NUMBER})H)?(?:({NUMBER})M)?(?:({NUMBER})S)?)?"
)
ISO_UNITS = (604_800.0, 86_400.0, 3_600.0, 60.0, 1.0)


def duration(text: str) -> float | None:
    """Give the seconds of a duration, None where a text is none.

    Of two numbers with a colon between them the first is hours.

    Examples
    --------
    >>> [duration(text) for text in ("2 days", "1h 30min", "36:15:00", "-1 days +02:00:00", "PT1H30M")]
    [172800.0, 5400.0, 130500.0, -79200.0, 5400.0]
    >>> [duration(text) for text in ("2 apples", "3 months", "12", "1:75")]
    [None, None, None, None]
    """
    text = text.strip()
    days = DAYS_AND_CLOCK.fullmatch(text)
    if days is not None:
        whole = float(f"{days[1]}{days[2]}") * 86_400.0
        # A sign of its own is the clock's; without one it goes the way of the days.
        sign = days[3] or days[1]
        return whole + (-1.0 if sign == "-" else 1.0) * _clock(days[4])
    sign, bare = (-1.0, text[1:].lstrip()) if text[:1] in ("-", "\u2212") else (1.0, text.lstrip("+"))
    seconds = _unsigned(bare)
    return None if seconds is None else sign * seconds


def _unsigned(text: str) -> float | None:
    if CLOCK.fullmatch(text):
        return _clock(text)
    iso = ISO.fullmatch(text)
    if iso is not None:
        return sum(
            _number(count) * unit for count, unit in zip(iso.groups(), ISO_UNITS, strict=True) if count
        )
    if not PARTS.fullmatch(text):
        return None
    found = [(_number(count), UNITS.get(word.lower())) for count, word in PART.findall(text)]
    units = [unit for _, unit in found if unit is not None]
    # Larger units come first, each once.
    if len(units) < len(found) or units != sorted(set(units), reverse=True):
        return None
    return sum(count * unit for (count, _), unit in zip(found, units, strict=True))


def _clock(text: str) -> float:
    hours, minutes, seconds = CLOCK.fullmatch(text).groups()  # type: ignore[union-attr]
    return 3_600.0 * float(hours) + 60.0 * float(minutes) + (_number(seconds) if seconds else 0.0)


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def unit_for(seconds: Iterable[float]) -> str:
    """Choose the unit of a column: the largest of which half of the durations last one or longer.

    Examples
    --------
    >>> unit_for([90.0, 5400.0, 7200.0]), unit_for([0.2, 0.4])
    ('hours', 'seconds')
    """
    sizes = [abs(value) for value in seconds if value and math.isfinite(value)]
    middle = float(np.median(sizes)) if sizes else 0.0
    return next((unit for unit, size in SECONDS.items() if middle >= size), "seconds")
