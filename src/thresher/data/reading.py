"""What one column of a table holds, told by its cells: numbers, yes and no, dates, text, or no use."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from thresher.data.cells import Dates, Figures, Texts, stripped, yes_or_no
from thresher.data.column import Column
from thresher.data.columns import PLAIN, as_numbers, is_text, option, plain, refuse_objects
from thresher.data.dates import (
    ISO,
    UNIX,
    contradicting,
    first_day,
    formats_of,
    is_time,
    moments,
    names_zone,
    nearly,
)
from thresher.data.duration_columns import durations, durations_at_hand, no_duration
from thresher.data.figures import Notation, figure, notation, suffix_of, without
from thresher.data.found import Found, problem
from thresher.data.sentinels import pointed_out
from thresher.data.wishes import Asked
from thresher.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

# A text column in which most rows differ says who a row is, not what it is like.
FEW_TEXTS = 20

# Words that make a text of a name.
WORDS_OF_TEXT = 3.0

# Where this share of the cells or more are dates or numbers, the others are mistakes; where as many differ as
# identifiers do, this share is enough for plain numbers.
MOST, MANY = 0.8, 0.5

# What columns are called that number the rows; they count as such where every row has another whole number.
IDENTIFIERS = re.compile(
    r"(?:.*[_\s.-])?(?:id|ids|uuid|guid|identifier|index|row|rownum|row[_\s]?(?:no|number|id))", re.I
)
CAMEL = re.compile(r".*[a-z]I[dD]")


def read_column(column: pd.Series, asked: Asked, mark: str | None) -> Found:
    """Tell what a column holds, and point out numbers that look like marks of missing values.

    Parameters
    ----------
    column : Series
    asked : Asked
    mark : {".", ","}, optional
        The decimal mark of the table, where it is known.
    """
    column = plain(column)
    found = _read(column, asked, mark)
    if found.read_as != "number" or found.column is None or (asked.how == "number" and not asked.missing):
        return found
    doubt = pointed_out(found.column.encoded(column)[:, 0], str(column.name), asked.missing)
    if doubt is None:
        return found
    note, how = doubt
    return replace(found, note="; ".join(filter(None, [found.note, note])), override=how)


def _read(column: pd.Series, asked: Asked, mark: str | None) -> Found:
    name = str(column.name)
    if column.dtype in PLAIN and asked.how is None:
        values = column.to_numpy()
        lacking = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
    else:
        lacking = int(column.isna().sum())
    if lacking == len(column):
        return Found(None, "left out", "no value in any row", "", lacking)
    try:
        if asked.how == "text":
            return _text(column, forced=True)
        if column.dtype.kind == "m":
            return durations_at_hand(column)
        if asked.how in ("date", "duration", "number") and holds_text(column):
            return _as_asked(column, stripped(column, marks=True), asked, mark)
        if is_moment(column):
            return _moments(column, asked)
        if asked.how in ("date", "duration"):
            return _no_date(column) if asked.how == "date" else no_duration(column)
        if not holds_text(column):
            return _plain(column, lacking, asked)
        return _told(column, mark)
    except DataError as error:
        return problem(name, str(error))


def _as_asked(column: pd.Series, texts: np.ndarray, asked: Asked, mark: str | None) -> Found:
    """Read a column of text as dates, durations or numbers, as told."""
    if _gaps(texts) == len(texts):
        return Found(None, "left out", "no value in any row", "", len(texts))
    if asked.how == "date":
        return _dates(column, texts, asked) or _no_date(column)
    if asked.how == "duration":
        return durations(column, texts) or no_duration(column)
    return _figures(column, texts, mark, lenient=True, missing=asked.missing)


def is_moment(column: pd.Series) -> bool:
    """Tell whether a column came as points in time."""
    import pandas as pd

    return column.dtype.kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype)


def holds_text(column: pd.Series) -> bool:
    """Tell whether a column came as text, be it of numbers."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        kind = kind.categories.dtype
    if not (pd.api.types.is_object_dtype(kind) or pd.api.types.is_string_dtype(kind)):
        return False
    return any(isinstance(cell, str) for cell in column.dropna())


def _no_date(column: pd.Series) -> Found:
    name, example = str(column.name), str(column.dropna().iloc[0])
    how = option("date:%d/%m/%Y", name)
    return problem(
        name, f"column {name!r} holds {example!r}, a date in no known format. Tell it, as in {how}."
    )


def _plain(column: pd.Series, lacking: int, asked: Asked) -> Found:
    """Take numbers as they are, but for those that number the rows."""
    name, values = str(column.name), as_numbers(column)
    named = IDENTIFIERS.fullmatch(name) or CAMEL.fullmatch(name)
    if asked.how is None and named and column.dtype.kind in "iu" and column.is_unique and len(column) > 1:
        note = f"identifier: {len(column):,} different numbers in {len(column):,} rows"
        return Found(None, "left out", note, option("number", name))
    if asked.missing:
        cells = Figures(".", missing=asked.missing)
        lacking = int(np.isnan(cells.numbers(column)).sum())
        return Found(Column(name, cells=cells), "number", _marks_told(asked.missing), "", lacking)
    note = "one value only" if lacking == 0 and (values == values[0]).all() else ""
    return Found(Column(name), "number", note, option("ignore", name) if note else "", lacking)


def _told(column: pd.Series, mark: str | None) -> Found:
    """Tell what a column of text holds."""
    refuse_objects(column.dropna())
    name, texts = str(column.name), stripped(column, marks=True)
    different = list(dict.fromkeys(text for text in texts.tolist() if text is not None))
    if not different:
        return Found(None, "left out", "no value in any row", "", len(column))
    written = notation(different)
    # Where decimals begin with a comma, 1.234 is no plain number.
    thousands = mark == "," and written is not None and written.differ
    if not thousands and _are_plain(different):
        bare = column.notna().to_numpy()
        if all(text is not None for text in texts[bare]):
            as_numbers(column)
            return Found(Column(name), "number", "", "", int((~bare).sum()))
    truth = yes_or_no(list(dict.fromkeys(t for t in stripped(column, marks=False).tolist() if t is not None)))
    if truth is not None:
        return Found(
            Column(name, cells=truth), "yes or no", f"1 is {truth.yes}", option("text", name), _gaps(texts)
        )
    if written is not None and sum(map(bool, written.units)) > 1:
        # Durations of several units can be compared.
        spans = durations(column, texts)
        if spans is not None:
            return spans
    if written is not None:
        return _figures(column, texts, mark, lenient=False)
    found = _dates(column, texts, Asked()) or durations(column, texts)
    if found is not None:
        return found
    if suffix := suffix_of(different):
        return _figures(column, texts, mark, lenient=False, suffix=suffix)
    _refuse_mixture(column, texts, different)
    return _text(column, forced=False)


def _gaps(texts: np.ndarray) -> int:
    return sum(text is None for text in texts.tolist())


def _figures(
    column: pd.Series,
    texts: np.ndarray,
    mark: str | None,
    lenient: bool,
    missing: tuple[float, ...] = (),
    suffix: str = "",
) -> Found:
    """Read numbers as people write them."""
    name = str(column.name)
    different = dict.fromkeys(bare for text in texts.tolist() if (bare := without(suffix, text)) is not None)
    read = [text for text in different if figure(text) is not None] if lenient else list(different)
    written = notation(read)
    if not read or written is None:
        raise DataError(
            f"column {name!r} holds no numbers that are written in one way, such as "
            f"{next(iter(different))!r}: leave it out ({option('ignore', name)}), or take it as text "
            f"({option('text', name)})."
        )
    _refuse_units(name, written, lenient)
    decimal = mark if mark in written.marks else written.marks[0]
    if written.differ and mark is None:
        example = max(read, key=lambda text: "," in text or "." in text)
        raise DataError(
            f"column {name!r} holds {example!r}, whose mark may begin the decimals or set thousands apart, "
            "and nothing in the table tells which. Say --decimal . or --decimal , for all of it, or take the "
            f"column as text ({option('text', name)})."
        )
    unread = int(np.isnan(Figures(decimal, lenient, (), suffix).numbers(column)).sum()) - _gaps(texts)
    cells = Figures(decimal, lenient, missing, suffix)
    lacking = int(np.isnan(cells.numbers(column)).sum())
    if lenient and unread == 0 and not missing and decimal == "." and _are_plain(read):
        return Found(Column(name), "number", "", "", lacking)
    # Brackets and a minus behind a number are how books are kept, and may be read over.
    below = next((text for text in different if text.startswith("(") or text.endswith("-")), None)
    notes = [
        f"{below!r} is below zero" if below else "",
        "decimal comma" if decimal == "," and "," in "".join(different) else "",
        suffix,
        "percent" if "%" in written.units else ", ".join(filter(None, written.units)),
        f"{unread:,} cells are no numbers, and count as missing" if unread else "",
        _marks_told(missing),
    ]
    note = ", ".join(filter(None, notes)) or f"written like {max(different, key=len)!r}"
    return Found(Column(name, cells=cells), "number", note, option("text", name), lacking)


def _marks_told(missing: tuple[float, ...]) -> str:
    return f"{', '.join(f'{value:.15g}' for value in missing)} means missing" if missing else ""


def _are_plain(texts: list[str]) -> bool:
    """Tell whether pandas reads all of these as numbers."""
    import pandas as pd

    return bool(pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").notna().all())


def _refuse_units(name: str, written: Notation, lenient: bool) -> None:
    """Refuse numbers of several units, which cannot be compared."""
    units = [unit for unit in written.units if unit]
    if len(units) > 1:
        raise DataError(
            f"column {name!r} mixes units: {', '.join(units)}. Give all cells one of them, or take the "
            f"column as text ({option('text', name)})."
        )
    if len(written.units) > 1 and not lenient:
        raise DataError(
            f"column {name!r} holds numbers with {units[0]} and without. Write all of them alike, or take "
            f"the column as the numbers that stand there ({option('number', name)})."
        )


def _dates(column: pd.Series, texts: np.ndarray, asked: Asked) -> Found | None:
    """Read dates, None where there is no format for all of them."""
    import pandas as pd

    name = str(column.name)
    series = pd.Series(texts, dtype=object)
    different = series.dropna().drop_duplicates()
    if asked.form is None:
        formats = formats_of(different, compact=asked.how == "date")
        both = contradicting(formats)
        if both is not None and not moments(different, both[0]).equals(moments(different, both[1])):
            raise DataError(
                f"column {name!r} holds {different.iloc[0]!r}, and no row tells the day from the month. Say "
                f"{option(f'date:{both[0]}', name)} or {option(f'date:{both[1]}', name)}."
            )
        if not formats:
            return None
        form = formats[0]
    else:
        form = asked.form
        odd = different[moments(different, form).isna()]
        if len(odd):
            row = column.index[odd.index[0]] + 1
            raise DataError(
                f"column {name!r} holds {odd.iloc[0]!r} in row {row}, which is not written {form}. Correct "
                "the cell, or give another format."
            )
    origin = UNIX if is_time(form) else first_day(moments(different, form))
    cells = Dates(form, origin, asked.parts)
    written = "" if form == ISO else f", written {form}"
    zone = ", in UTC" if any(map(names_zone, different)) else ""
    note = f"{' and '.join(cells.meanings())}{zone}{written}"
    return Found(Column(name, cells=cells), "date", note, option("text", name), _gaps(texts))


def _moments(column: pd.Series, asked: Asked) -> Found:
    """Take points in time, which the file knew to be some."""
    import pandas as pd

    cells = Dates(None, first_day(pd.to_datetime(column, utc=True)), asked.parts)
    name = str(column.name)
    zone = ", in UTC" if isinstance(column.dtype, pd.DatetimeTZDtype) else ""
    note = f"{' and '.join(cells.meanings())}{zone}"
    return Found(Column(name, cells=cells), "date", note, option("ignore", name), int(column.isna().sum()))


def _refuse_mixture(column: pd.Series, texts: np.ndarray, different: list[str]) -> None:
    """Refuse what is nearly all numbers or dates, and numbers among a few texts."""
    import pandas as pd

    name = str(column.name)
    present = [text for text in texts.tolist() if text is not None]
    numbers = pd.to_numeric(pd.Series(present, dtype=object), errors="coerce").notna().to_numpy()
    if numbers.any() and (numbers.mean() >= MANY or len(different) <= _most_values(len(present))):
        is_text(pd.Series(texts, index=column.index, name=name, dtype=object))
    odd = [text for text in different if figure(text) is None]
    share = 1 - sum(text in set(odd) for text in present) / len(present)
    told = "numbers"
    if share < MOST:
        _refuse_dates_apart(column, texts, different)
        share, told = nearly(pd.Series(present, dtype=object)), "dates"
        if share >= MOST:
            odd = [
                text for text in different if not formats_of(pd.Series([text], dtype=object))
            ] or different[:1]
    if share >= MOST and odd:
        row = column.index[texts.tolist().index(odd[0])] + 1
        raise DataError(
            f"column {name!r} mixes {told} and text: row {row} holds {odd[0]!r}. Correct the cell (an empty "
            f"one is a missing value), take the column as text ({option('text', name)}), or leave it out "
            f"({option('ignore', name)})."
        )


def _refuse_dates_apart(column: pd.Series, texts: np.ndarray, different: list[str]) -> None:
    """Refuse dates of which some are written in another way than the first."""
    import pandas as pd

    def forms(*some: str) -> list[str]:
        return formats_of(pd.Series(some, dtype=object))

    if not all(map(forms, different[:FEW_TEXTS])):
        return
    name = str(column.name)
    other = next((text for text in different[:FEW_TEXTS] if not forms(different[0], text)), None)
    if other is not None:
        first, second = (column.index[texts.tolist().index(text)] + 1 for text in (different[0], other))
        raise DataError(
            f"column {name!r} holds dates that are not written alike: {different[0]!r} in row {first}, "
            f"{other!r} in row {second}. Write all in one way, take the column as text "
            f"({option('text', name)}), or leave it out ({option('ignore', name)})."
        )


def _most_values(rows: int) -> int:
    return max(FEW_TEXTS, rows // 2)


def _text(column: pd.Series, forced: bool) -> Found:
    """Take text as one input for each value; what names or describes each row is left out."""
    name = str(column.name)
    texts = [text for text in stripped(column, marks=False).tolist() if text is not None]
    values, lacking = tuple(sorted(set(texts))), len(column) - len(texts)
    if not forced:
        if len(values) > _most_values(len(texts)):
            words = sum(len(text.split()) for text in texts) / len(texts)
            what = "free text" if words >= WORDS_OF_TEXT else "identifier"
            note = f"{what}: {len(values):,} different texts in {len(texts):,} rows"
            return Found(None, "left out", note, option("text", name), lacking)
        if len(values) == 1 and lacking == 0:
            return Found(None, "left out", "one value only", option("text", name), lacking)
    note = "one value" if len(values) == 1 else f"{len(values):,} values"
    return Found(Column(name, values, Texts()), "text", note, option("ignore", name), lacking)
