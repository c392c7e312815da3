"""Ways in which the cells of a column are written, and the numbers each becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from thresher.data.columns import PLAIN, as_numbers, as_texts, listed, option
from thresher.data.dates import PARTS, is_time, moments, numbers
from thresher.data.durations import SECONDS, duration
from thresher.data.figures import MARKS, figures, without
from thresher.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

# What people write where a number is missing, beside what pandas knows, in lower case.
MARKS_OF_NOTHING = """
? ?? - -- --- \u2013 \u2014 . .. ... * n.a. n.a n/a. nil none missing unknown k.a.
#value! #div/0! #ref! #name? #num!
"""

# Words for yes and for no that go together, in lower case.
WORDS: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(yes.split()), frozenset(no.split()))
    for yes, no in (
        *(
            ("yes y", "no n"),
            ("true t", "false f"),
            ("on", "off"),
            ("ja j", "nein nee n"),
            ("oui o", "non n"),
        ),
        *(("si s\u00ed s", "no n"), ("sim s", "n\u00e3o nao n"), ("wahr", "falsch"), ("vrai", "faux")),
        ("\u0434\u0430", "\u043d\u0435\u0442"),
    )
)


def stripped(column: pd.Series, marks: bool) -> np.ndarray:
    """Give cells as text without spaces around it, None where one is missing.

    Parameters
    ----------
    column : Series
    marks : bool
        Whether marks such as ``?`` say that a value is missing.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.StringDtype):
        # Text comes again and again: each is looked at once.
        places, different = pd.factorize(column)
        return np.append(_bare(different.tolist(), marks), [None])[places]
    return _bare(as_texts(column).tolist(), marks)


def _bare(texts: list[Any], marks: bool) -> np.ndarray:
    nothing = set(MARKS_OF_NOTHING.split()) if marks else set()
    found = [None if text is None else str(text).strip() for text in texts]
    return np.array([None if not text or text.lower() in nothing else text for text in found], dtype=object)


@dataclass(frozen=True)
class Texts:
    """Text to the letter, but for spaces around it."""

    kind: ClassVar[str] = "text"

    def details(self) -> dict[str, Any]:
        """Give what a model has to remember, as plain values."""
        return {}


@dataclass(frozen=True)
class Figures:
    """Numbers as people write them.

    Attributes
    ----------
    decimal : {".", ","}
    lenient : bool
        Whether what is no number is missing, rather than refused.
    missing : tuple of float
        Numbers that stand for a missing value.
    suffix : str
        What stands behind every number, where it is no unit that is known.
    """

    decimal: str
    lenient: bool = False
    missing: tuple[float, ...] = ()
    suffix: str = ""
    kind: ClassVar[str] = "number"

    def details(self) -> dict[str, Any]:
        """Give what a model has to remember, as plain values."""
        marks = {"missing": list(self.missing)} if self.missing else {}
        suffix = {"suffix": self.suffix} if self.suffix else {}
        return {"decimal": self.decimal, "lenient": self.lenient, **marks, **suffix}

    def inputs(self, name: str) -> tuple[str, ...]:
        """Name the inputs that a column becomes."""
        return (name,)

    def numbers(self, column: pd.Series) -> np.ndarray:  # (n, 1)
        """Read the cells of a column, NaN where one is missing; what came as numbers is not read again."""
        if column.dtype in PLAIN:
            return self._without_marks(as_numbers(column))[:, None]
        texts = stripped(column, marks=True)
        values = figures((without(self.suffix, text) for text in texts.tolist()), self.decimal)
        if not self.lenient:
            _refuse_others(
                column, texts, np.isnan(values), f"numbers with {self.decimal!r} before the decimals"
            )
        return self._without_marks(values)[:, None]

    def _without_marks(self, values: np.ndarray) -> np.ndarray:
        return np.where(np.isin(values, self.missing), np.nan, values)


@dataclass(frozen=True)
class YesNo:
    """Yes and no in words.

    Attributes
    ----------
    yes, no : str
        The words, as they came first; others of the same language are known as well.
    """

    yes: str
    no: str
    kind: ClassVar[str] = "yes-no"

    def details(self) -> dict[str, Any]:
        """Give what a model has to remember, as plain values."""
        return {"yes": self.yes, "no": self.no}

    def inputs(self, name: str) -> tuple[str, ...]:
        """Name the inputs that a column becomes."""
        return (f"{name}={self.yes}",)

    def numbers(self, column: pd.Series) -> np.ndarray:  # (n, 1)
        """Read the cells of a column: 1 for yes, 0 for no, NaN where one is missing."""
        if column.dtype == bool:
            return column.to_numpy(dtype=np.float64)[:, None]
        yes, no = words_of(self.yes, self.no) or ({self.yes.lower()}, {self.no.lower()})
        values: dict[str | None, float] = {None: np.nan, **dict.fromkeys(yes, 1.0), **dict.fromkeys(no, 0.0)}
        texts = stripped(column, marks=True)
        found = np.array([values.get(text and text.lower(), np.nan) for text in texts.tolist()])
        _refuse_others(column, texts, np.isnan(found), f"{listed(sorted(yes))}, {listed(sorted(no))}")
        return found[:, None]


def words_of(yes: str, no: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """Give the words for yes and no of the language that has these two."""
    return next((pair for pair in WORDS if yes.lower() in pair[0] and no.lower() in pair[1]), None)


def yes_or_no(texts: list[str]) -> YesNo | None:
    """Tell whether different texts are words for yes and for no of one language.

    Examples
    --------
    >>> yes_or_no(["No", "Yes", "Y"]), yes_or_no(["yes", "off"])
    (YesNo(yes='Yes', no='No'), None)
    """
    for yes, no in WORDS:
        if all(text.lower() in yes | no for text in texts):
            first = [next((text for text in texts if text.lower() in part), None) for part in (yes, no)]
            if first[0] is not None and first[1] is not None:
                return YesNo(first[0], first[1])
    return None


@dataclass(frozen=True)
class Dates:
    """Dates or times of a day.

    Attributes
    ----------
    form : str, optional
        The format, as of `strptime`; None where they came as points in time.
    origin : str
        The day that days are counted from.
    parts : tuple of {"days", "year", "week", "day"}
        The numbers that a date becomes.
    """

    form: str | None
    origin: str
    parts: tuple[str, ...] = ("days",)
    kind: ClassVar[str] = "date"

    def details(self) -> dict[str, Any]:
        """Give what a model has to remember, as plain values."""
        return {"form": self.form, "origin": self.origin, "parts": list(self.parts)}

    def meanings(self) -> tuple[str, ...]:
        """Say what each number means."""
        if is_time(self.form):
            return ("hours",)
        return tuple(PARTS[part].format(origin=self.origin) for part in self.parts)

    def inputs(self, name: str) -> tuple[str, ...]:
        """Name the inputs that a column becomes."""
        return tuple(f"{name} ({meaning})" for meaning in self.meanings())

    def numbers(self, column: pd.Series) -> np.ndarray:  # (n, parts)
        """Read the cells of a column, NaN where one is missing."""
        import pandas as pd

        if column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype):
            found = pd.to_datetime(column, utc=True)
        else:
            texts = stripped(column, marks=True)
            found = moments(pd.Series(texts, index=column.index, dtype=object), self.form)
            _refuse_others(column, texts, found.isna().to_numpy(), f"dates written {self.form}")
        parts = ("hours",) if is_time(self.form) else self.parts
        return np.column_stack([numbers(found, self.origin, part) for part in parts])


@dataclass(frozen=True)
class Durations:
    """Durations, as numbers of a unit.

    Attributes
    ----------
    unit : {"days", "hours", "minutes", "seconds"}
    """

    unit: str
    kind: ClassVar[str] = "duration"

    def details(self) -> dict[str, Any]:
        """Give what a model has to remember, as plain values."""
        return {"unit": self.unit}

    def inputs(self, name: str) -> tuple[str, ...]:
        """Name the inputs that a column becomes."""
        return (f"{name} ({self.unit})",)

    def numbers(self, column: pd.Series) -> np.ndarray:  # (n, 1)
        """Read the cells of a column, NaN where one is missing."""
        if column.dtype.kind == "m":
            return (column.dt.total_seconds().to_numpy(dtype=np.float64) / SECONDS[self.unit])[:, None]
        texts = stripped(column, marks=True)
        found = [None if text is None else duration(text) for text in texts.tolist()]
        seconds = np.array([np.nan if one is None else one for one in found], dtype=np.float64)
        _refuse_others(column, texts, np.isnan(seconds), "durations such as 2 days or 01:30:00")
        return (seconds / SECONDS[self.unit])[:, None]


Cells = Texts | Figures | YesNo | Dates | Durations


def cells_of(kind: str, details: Mapping[str, Any]) -> Cells:
    """Make what :meth:`details` wrote; a value that makes no sense is a ValueError."""
    if kind == "text":
        return Texts()
    if kind == "number" and details["decimal"] in MARKS:
        missing = tuple(map(float, details.get("missing", ())))
        return Figures(details["decimal"], bool(details["lenient"]), missing, str(details.get("suffix", "")))
    if kind == "duration" and details["unit"] in SECONDS:
        return Durations(details["unit"])
    if kind == "yes-no":
        return YesNo(str(details["yes"]), str(details["no"]))
    if kind == "date":
        parts = tuple(map(str, details["parts"]))
        form = details["form"]
        if parts and set(parts) <= PARTS.keys() and (form is None or isinstance(form, str)):
            return Dates(form, _day(str(details["origin"])), parts)
    raise ValueError(f"it reads a column as {kind!r}, which makes no sense")


def _day(text: str) -> str:
    """Check that a text is a day."""
    from datetime import date

    return str(date.fromisoformat(text))


def _refuse_others(column: pd.Series, texts: np.ndarray, unread: np.ndarray, wanted: str) -> None:
    """Refuse cells that hold something, but nothing that could be read."""
    present = np.array([text is not None for text in texts.tolist()], dtype=bool)
    odd = np.flatnonzero(present & unread)
    if odd.size:
        raise DataError(
            f"column {column.name!r} holds {texts[odd[0]]!r} in row {column.index[odd[0]] + 1}, where "
            f"{wanted} are needed: correct the cell, or leave the column out "
            f"({option('ignore', str(column.name))})."
        )
