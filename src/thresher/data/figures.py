"""Numbers as people write them: thousands apart, a decimal comma, a currency, a unit, a percent sign."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# What stands for a currency, by its code; signs that several countries share are told apart by nothing else.
CURRENCIES = {
    **{
        code: code
        for code in ("EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "NZD", "SEK", "NOK")
    },
    **{
        code: code
        for code in ("DKK", "PLN", "CZK", "HUF", "RUB", "TRY", "BRL", "MXN", "ZAR", "KRW", "SGD", "HKD")
    },
    **{
        "€": "EUR",
        "$": "USD",
        "US$": "USD",
        "£": "GBP",
        "¥": "JPY",
        "₹": "INR",
        "R$": "BRL",
        "₩": "KRW",
        "₺": "TRY",
    },
    **{
        "₽": "RUB",
        "zł": "PLN",
        "Kč": "CZK",
        "Ft": "HUF",
        "Fr.": "CHF",
        "Rs": "INR",
        "Rs.": "INR",
        "kr": "SEK",
    },
}
MONEY = "|".join(re.escape(mark) for mark in sorted(CURRENCIES, key=len, reverse=True))

# Units of measurement that people write behind each number of a column; single capitals are left to codes.
UNITS = """
m cm mm km ft yd mi in m\u00b2 km\u00b2 m2 km2 ft2 sqft sqm qm ha acres m\u00b3 m3 cc l ml dl
g mg kg t lb lbs oz s ms sec secs min mins h hr hrs hours days weeks months years yrs
km/h kmh kph mph m/s rpm \u00b0 \u00b0C \u00b0F \u00baC \u00baF Hz kHz MHz GHz kW MW
Wh kWh MWh kV mA hp bhp PS Nm Pa hPa kPa MPa bar mbar psi
kJ kcal cal mg/dl mmol/l ppm dB px KB MB GB TB Mbit/s kmpl mpg
"""
UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS.split(), key=len, reverse=True))

# Spaces, plain and unbreakable and narrow, and apostrophes set thousands apart whatever the decimal mark is.
APART = "\u0020\u00a0\u2009\u202f'\u2019"
MINUS = "\u2212\u2013-"

FIGURE = re.compile(
    rf"(?P<bracket>\()?\s*(?P<sign>[+{MINUS}])?\s*(?P<before>{MONEY})?\s*(?P<inner>[+{MINUS}])?\s*"
    rf"(?P<body>\d(?:[\d.,{APART}]*\d)?[.,]?|[.,]\d+)(?P<power>[eE][+-]?\d{{1,3}})?"
    rf"(?P<last>-)?\s*(?P<after>%|{MONEY}|{UNIT})?(?P<close>\))?"
)

# What stands behind the last digit, such as a unit that is not among those.
SUFFIX = re.compile(r"[^\d.,()-]\D*$")

MARKS = (".", ",")
OTHER = {".": ",", ",": "."}
BODIES = {
    mark: re.compile(
        rf"(?P<whole>\d+|\d{{1,3}}(?P<gap>[{re.escape(OTHER[mark])}{APART}])\d{{2,3}}(?:(?P=gap)\d{{2,3}})*(?<=\d\d\d)|)"
        rf"(?:{re.escape(mark)}(?P<rest>\d*))?"
    )
    for mark in MARKS
}


@dataclass(frozen=True)
class Figure:
    """A number as it was written: its value under either decimal mark (None if it has none), and its unit."""

    values: tuple[float | None, float | None]
    unit: str


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written.

    Attributes
    ----------
    marks : tuple of {".", ","}
        Decimal marks under which every cell is a number; two where nothing tells them apart.
    differ : bool
        Whether it matters which of the two is meant.
    units : tuple of str
        Currencies, units and percent signs that stand beside them.
    """

    marks: tuple[str, ...]
    differ: bool
    units: tuple[str, ...]


def figure(text: str) -> Figure | None:
    """Read a number as people write them.

    Examples
    --------
    >>> figure("EUR 1.234,50"), figure("(12%)")
    (Figure(values=(None, 1234.5), unit='EUR'), Figure(values=(-12.0, -12.0), unit='%'))
    >>> figure("1,234").values, figure("12 rooms")
    ((1234.0, 1.234), None)
    """
    found = FIGURE.fullmatch(text.strip())
    if found is None:
        return None
    # Some programs write the minus last: 12,50-
    signs = [part for part in (found["sign"], found["inner"], found["last"]) if part]
    if len(signs) > 1 or bool(found["bracket"]) != bool(found["close"]) or (found["bracket"] and signs):
        return None
    if found["before"] and found["after"]:
        return None
    negative = bool(found["bracket"]) or (bool(signs) and signs[0] != "+")
    values = tuple(_value(found["body"], mark, found["power"] or "", negative) for mark in MARKS)
    if values == (None, None):
        return None
    unit = found["before"] or found["after"] or ""
    return Figure((values[0], values[1]), CURRENCIES.get(unit, unit))


def _value(body: str, mark: str, power: str, negative: bool) -> float | None:
    parts = BODIES[mark].fullmatch(body)
    if parts is None or not (parts["whole"] or parts["rest"]):
        return None
    whole = re.sub(r"\D", "", parts["whole"]) or "0"
    value = float(f"{whole}.{parts['rest'] or '0'}{power}")
    if math.isinf(value):
        return None
    return -value if negative else value


def notation(texts: Iterable[str]) -> Notation | None:
    """Tell how numbers are written, None where some text is no number or no mark serves all of them."""
    marks, differ, units = set(MARKS), False, set()
    for text in texts:
        found = figure(text)
        if found is None:
            return None
        marks -= {mark for mark, value in zip(MARKS, found.values, strict=True) if value is None}
        if not marks:
            return None
        differ |= found.values[0] != found.values[1]
        # Nothing is nothing in any unit.
        units |= {found.unit} if found.values[0] != 0 or found.unit else set()
    return Notation(
        tuple(mark for mark in MARKS if mark in marks), differ and len(marks) == 2, tuple(sorted(units))
    )


def figures(texts: Iterable[str | None], decimal: str) -> np.ndarray:
    """Give numbers as float64, NaN where a text is None or no number.

    Examples
    --------
    >>> figures(["1.234,5", "7 %", None, "many"], ",").tolist()
    [1234.5, 7.0, nan, nan]
    """
    place = MARKS.index(decimal)
    known: dict[str | None, float] = {None: math.nan}
    found = []
    for text in texts:
        if text not in known:
            read = None if text is None else figure(text)
            value = None if read is None else read.values[place]
            known[text] = math.nan if value is None else value
        found.append(known[text])
    return np.array(found, dtype=np.float64)


def suffix_of(texts: Sequence[str]) -> str:
    """Give what stands behind every number of a column, where it is the same everywhere, else nothing.

    Examples
    --------
    >>> suffix_of(["71 \u00b5g/L", "8 \u00b5g/L"]), suffix_of(["71k", "8"]), suffix_of(["A1", "B1"])
    ('\u00b5g/L', '', '')
    """
    found = SUFFIX.search(texts[0]) if texts else None
    suffix = "" if found is None else found[0].strip()
    alike = suffix and all(text.endswith(suffix) and figure(text.removesuffix(suffix)) for text in texts)
    return suffix if alike else ""


def without(suffix: str, text: str | None) -> str | None:
    """Take what stands behind a number away; a text that does not end in it stays as it is."""
    return text.removesuffix(suffix).rstrip() if text is not None and suffix else text
