"""Dates and times as numbers: days since a day, and on request the day of the year or week."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

ISO = "ISO8601"
ISO_SHAPE = re.compile(
    r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)? ?(?:Z|[+-]\d{2}:?\d{2})?)?)?"
)

# The same day in the other order: which of the two is meant has to be told by the data.
ORDERS = {f"%d{mark}%m{mark}{year}": f"%m{mark}%d{mark}{year}" for mark, year in product("/-", ("%Y", "%y"))}
DAYS = (
    *ORDERS,
    *ORDERS.values(),
    *("%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%Y.%m.%d", "%m/%Y", "%d. %B %Y", "%d. %b %Y"),
    *("%d %B %Y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%B %d, %Y", "%b %d, %Y", "%B %Y", "%b %Y"),
    *("%a %d %b %Y", "%a, %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
)
CLOCKS = (
    *("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M%p", "%I:%M:%S %p"),
    *("%H:%M:%S %z", "%H:%M:%S %Z", "%H:%M %Z"),
)
# How far a clock is from UTC, where it is written behind it.
ZONE = re.compile(r"(?<=\d) ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})$")

# Looked at only where a column is said to hold dates: these are numbers as well.
COMPACT = ("%Y%m%d", "%Y%m", "%Y")

# Texts of which a format has to fit most before all of them are read.
FIRST = 20

UNIX = "1970-01-01"
NANOSECONDS_A_DAY = 86_400e9

# Numbers that a date can become, and what they are called.
PARTS = {
    "days": "days since {origin}",
    "year": "day of the year",
    "week": "day of the week",
    "day": "hour of the day",
}


def formats_of(texts: pd.Series, compact: bool = False) -> list[str]:
    """List the formats under which all texts are dates or times of a day.

    Parameters
    ----------
    texts : Series of str
        None is missing.
    compact : bool
        Whether plain digits may be a date.

    Examples
    --------
    >>> import pandas as pd
    >>> formats_of(pd.Series(["13/05/2024", "02/06/2024"])), formats_of(pd.Series(["1/2/24", "3/4/24"]))
    (['%d/%m/%Y'], ['%d/%m/%y', '%m/%d/%y'])
    """
    first = texts.dropna().head(1).tolist()
    likely = [form for form in _candidates(compact) if all(_reads(form, text) for text in first)]
    return [form for form in likely if bool(moments(texts, form).notna()[texts.notna()].all())]


def nearly(texts: pd.Series) -> float:
    """Give the share of texts that one format reads, the best one's."""
    first = texts.head(FIRST).tolist()
    tried = [
        form for form in _candidates(False) if 2 * sum(_reads(form, text) for text in first) > len(first)
    ]
    return max((float(moments(texts, form).notna().mean()) for form in tried), default=0.0)


def _candidates(compact: bool) -> Iterator[str]:
    yield ISO
    for day in DAYS:
        yield day
        yield from (f"{day}{gap}{clock}" for gap, clock in product((" ", ", ", "T"), CLOCKS))
    yield from CLOCKS
    if compact:
        yield from COMPACT


def _reads(form: str, text: str) -> bool:
    """Try one text, which is quick."""
    if form == ISO:
        return ISO_SHAPE.fullmatch(text) is not None
    # Compiling a format takes longer than seeing that its marks are others.
    bare = ZONE.sub("", text) if form.lower().endswith("%z") else text
    if _marks(re.sub("%[a-zA-Z]", "", form)) != _marks(bare):
        return False
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def _marks(text: str) -> set[str]:
    return set(re.sub(r"[^\W_]|\s", "", text))


def contradicting(formats: list[str]) -> tuple[str, str] | None:
    """Give two formats of which one takes for the day what the other takes for the month."""
    for day_first, month_first in ORDERS.items():
        for form in formats:
            other = form.replace(day_first, month_first)
            if day_first in form and other in formats:
                return form, other
    return None


def names_zone(text: str) -> bool:
    """Tell whether a date with a time says how far its clock is from UTC.

    Examples
    --------
    >>> [names_zone(text) for text in ("2024-02-01T10:00+01:00", "2024-02-01 10:00 UTC", "2024-02-01 10:00")]
    [True, True, False]
    """
    return ":" in text and ZONE.search(text) is not None


def is_time(form: str | None) -> bool:
    """Tell whether a format has a time of the day and no day."""
    return form is not None and form != ISO and not re.search("%[dmbBYy]", form)


def moments(texts: pd.Series, form: str | None) -> pd.Series:
    """Read texts as points in time (in UTC), NaT where they are missing or none."""
    import pandas as pd

    if form is None:
        return pd.to_datetime(texts, utc=True)
    if form == ISO:
        texts = texts.where(texts.str.fullmatch(ISO_SHAPE))
    try:
        found = pd.to_datetime(texts, format=form, errors="coerce", utc=True)
    except ValueError:
        return pd.Series(pd.NaT, index=texts.index).dt.tz_localize("UTC")
    # Calendars of people begin with the year 1.
    return found.where(found.dt.year.between(1, 9999))


def first_day(found: pd.Series) -> str:
    """Name the earliest day."""
    first = found.min()
    return UNIX if first is None or first != first else str(first.date())


def numbers(found: pd.Series, origin: str, part: str) -> np.ndarray:
    """Give points in time as numbers.

    Parameters
    ----------
    found : Series of points in time
    origin : str
        The day that days are counted from.
    part : {"days", "year", "week", "day", "hours"}
        Days since the origin, the day of the year (1 to 366), of the week (1 is Monday), or the hour of the
        day, all with their fractions but the day of the week.

    Examples
    --------
    >>> import pandas as pd
    >>> found = pd.to_datetime(pd.Series(["2024-02-01 12:00", None]), utc=True)
    >>> [numbers(found, "2024-01-01", part).tolist() for part in PARTS]
    [[31.5, nan], [32.5, nan], [4.0, nan], [12.0, nan]]
    """
    import pandas as pd

    since = pd.Timestamp(origin, tz="UTC") if part == "days" else found.dt.normalize()
    days = ((found - since) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64, na_value=np.nan)
    if part == "year":
        return days + found.dt.day_of_year.to_numpy(dtype=np.float64, na_value=np.nan)
    if part == "week":
        return 1.0 + found.dt.day_of_week.to_numpy(dtype=np.float64, na_value=np.nan)
    return 24.0 * days if part in ("day", "hours") else days
