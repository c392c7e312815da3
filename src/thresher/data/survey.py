"""A table looked over before it is used: how every column is read, and all that is wrong with it at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from thresher.data.cells import Figures, stripped
from thresher.data.column import Column
from thresher.data.columns import PLAIN, check_columns, listed
from thresher.data.encoding import Encoding, is_sparse
from thresher.data.figures import Notation, notation
from thresher.data.found import Found
from thresher.data.reading import holds_text, read_column
from thresher.data.wishes import Asked, Wishes
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

# Rows above a total, and columns that are looked at for one.
FEWEST_SUMMED, LOOKED_AT = 6, 100


class Table(Protocol):
    """A table that can be read again, with its letters."""

    @property
    def cells_apart(self) -> str | None:
        """What separates its cells; None where they are no text."""

    @property
    def repeated(self) -> tuple[str, ...]:
        """Names that several columns were given."""

    def frame(self, as_written: Sequence[str] = ()) -> pd.DataFrame:
        """Read all of it, these columns as text."""

    def written(self, names: Sequence[str]) -> pd.DataFrame:
        """Read some columns as text."""


@dataclass(frozen=True)
class Held:
    """A frame as a table, whose letters are gone where it holds numbers."""

    content: pd.DataFrame
    cells_apart: None = None
    repeated: tuple[str, ...] = ()

    def frame(self, as_written: Sequence[str] = ()) -> pd.DataFrame:
        """Give all of it."""
        return self.content

    def written(self, names: Sequence[str]) -> pd.DataFrame:
        """Give some columns."""
        return self.content[list(names)]


@dataclass(frozen=True)
class ColumnReport:
    """One line of what is said before a fit: how a column is read."""

    column: str
    read_as: str
    missing: int
    note: str
    override: str


@dataclass(frozen=True, eq=False)
class Survey:
    """A table that was looked over.

    Attributes
    ----------
    frame : DataFrame
        The table, with letters where they matter.
    encoding : Encoding
    target : Found
    reports : tuple of ColumnReport
    problems : tuple of str
    """

    frame: pd.DataFrame
    encoding: Encoding
    target: Found
    reports: tuple[ColumnReport, ...]
    problems: tuple[str, ...]


def survey(table: Table, target: str, wishes: Wishes) -> Survey:
    """Tell how every column of a table is read.

    Parameters
    ----------
    table : Table
    target : str
        The column that is not an input.
    wishes : Wishes
    """
    asked, frame = wishes.asked(), table.frame()
    check_columns(frame, tuple(wishes.ignore), "--ignore")
    check_columns(frame, tuple(wishes.text), "--text")
    check_columns(frame, tuple(wishes.readings), "--as")
    check_columns(frame, (target,), "--target")
    if asked.get(target, Asked()).how == "ignore":
        raise ParameterError(f"the target {target!r} is to be left out: choose another --target.")
    left_out = {target, *_row_labels(frame), *(name for name, how in asked.items() if how.how == "ignore")}
    names = [name for name in frame.columns if name not in left_out]
    if not names:
        raise DataError(
            f"the table holds no column but the target {target!r}, so there is nothing to learn from."
        )
    if not (wishes.text or wishes.readings) and is_sparse(frame[names]):
        found = read_column(frame[target], Asked(), None)
        return Survey(frame, Encoding.of_sparse(names, wishes.missing), found, (), ())
    frame, mark = _with_letters(frame, table, [*names, target], asked, wishes.decimal)
    found_all = {name: read_column(frame[name], asked.get(name, Asked()), mark) for name in (*names, target)}
    told = found_all.pop(target)
    read = [found.column for found in found_all.values() if found.column is not None]
    problems = [found.problem for found in found_all.values() if found.problem is not None]
    if target in table.repeated:
        problems.append(
            f"several columns are called {target!r}, and that is the target: give each its own name."
        )
    problems += _totals(frame[[*names, target]])
    if not read and not problems:
        _refuse_nothing(found_all, target)
    if mark == "," and table.cells_apart is not None:
        read = [_with_comma(column, frame[column.name]) for column in read]
    columns = tuple(
        column.with_indicator(wishes.missing == "indicator" and found_all[column.name].missing > 0)
        for column in read
    )
    reports = tuple(_report(name, found, table.repeated) for name, found in found_all.items())
    return Survey(frame, Encoding(columns, wishes.missing), told, reports, tuple(problems))


def learn_encoding(
    frame: pd.DataFrame,
    target: str,
    *,
    missing: str = "error",
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    readings: Mapping[str, str] | None = None,
    decimal: str | None = None,
) -> Encoding:
    """Learn how to turn the columns of a frame into inputs.

    Parameters are those of :func:`survey` and :class:`Wishes`.

    Raises
    ------
    DataError
        When some column cannot be read, telling of all of them.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": ["1,5", "2,25"], "new": ["yes", "no"], "y": [0, 1]})
    >>> encoding = learn_encoding(table, "y")
    >>> encoding.features, encoding.matrix(table).tolist()
    (('size', 'new=yes'), [[1.5, 1.0], [2.25, 0.0]])
    """
    wishes = Wishes(missing, tuple(ignore), tuple(text), readings or {}, decimal)
    seen = survey(Held(frame), target, wishes)
    refuse(seen.problems)
    return seen.encoding


def refuse(problems: Sequence[str]) -> None:
    """Refuse a table for all that is wrong with it, in one message."""
    if len(problems) == 1:
        raise DataError(problems[0])
    if problems:
        told = "\n".join(f"  - {problem}" for problem in problems)
        raise DataError(f"{len(problems):,} things about this table have to be settled:\n{told}")


def _refuse_nothing(found: Mapping[str, Found], target: str) -> None:
    """Say why each column beside the target is left out."""
    told = listed(
        [f"{name!r} ({each.note}; {each.override or 'nothing to read'})" for name, each in found.items()]
    )
    raise DataError(f"all columns beside the target {target!r} are left out: {told}.")


def _row_labels(frame: pd.DataFrame) -> tuple[str, ...]:
    """Name the first column if its header is empty: it numbers the rows, as pandas writes them."""
    return ("Unnamed: 0",) if frame.columns[0] == "Unnamed: 0" else ()


def _report(name: str, found: Found, repeated: tuple[str, ...]) -> ColumnReport:
    again = re.fullmatch(r"(.*) \(\d+\)", name, re.DOTALL)
    notes = [f"another column called {again[1]!r}"] if again and again[1] in repeated else []
    notes += [found.note] if found.note else []
    return ColumnReport(name, found.read_as, found.missing, "; ".join(notes), found.override)


def _with_letters(
    frame: pd.DataFrame, table: Table, names: list[str], asked: dict[str, Asked], decimal: str | None
) -> tuple[pd.DataFrame, str | None]:
    """Read columns as text where their letters matter, and tell the decimal mark of the table."""
    letters = [
        name for name in names if asked.get(name, Asked()).how in ("text", "date", "duration", "number")
    ]
    if letters:
        frame = frame.assign(**table.written(letters))
    kinds = frame.dtypes.to_dict()
    texts = [name for name in names if kinds[name] not in PLAIN and holds_text(frame[name])]
    written = [_notation(frame[name]) for name in texts]
    decided = {one.marks[0] for one in written if one is not None and len(one.marks) == 1}
    floats = [name for name in names if kinds[name] == np.float64 and table.cells_apart is not None]
    if "," in decided or decimal == ",":
        # What pandas took for decimals may be thousands where decimals begin with a comma.
        again = table.written(floats) if floats else frame[[]]
        frame = frame.assign(**again[[name for name in floats if _thousands(again[name])]])
    if decimal is not None:
        return frame, decimal
    if not decided and (table.cells_apart == "," or any(_fractions(frame[name]) for name in floats)):
        return frame, "."
    return frame, next(iter(decided)) if len(decided) == 1 else None


def _totals(frame: pd.DataFrame) -> list[str]:
    """Say that the last row adds up those above it, which would be fitted as if it were one of them."""
    numbers = frame.iloc[:, :LOOKED_AT].select_dtypes("number")
    if len(frame) < FEWEST_SUMMED:
        return []
    last, above = numbers.iloc[-1], numbers.iloc[:-1].sum()
    # Totals are rounded as their terms are.
    equal = (above - last).abs() <= 1e-9 * numbers.iloc[:-1].abs().sum()
    summed = [name for name in numbers if equal[name] and last[name] != 0]
    if len(summed) < 2:
        return []
    return [
        f"row {len(frame)}, the last one, holds the sums of all rows above it in {listed(summed)}: that is "
        "no row like the others. Take it out of the table."
    ]


def _notation(column: pd.Series) -> Notation | None:
    return notation(dict.fromkeys(text for text in stripped(column, marks=True).tolist() if text is not None))


def _thousands(column: pd.Series) -> bool:
    """Tell whether a column that holds points is all numbers where decimals begin with a comma."""
    written = _notation(column) if column.str.contains(".", regex=False).any() else None
    return written is not None and "," in written.marks


def _with_comma(column: Column, given: pd.Series) -> Column:
    """Remember the decimal comma of the table for whole numbers too: another table may hold 3,5 or 1.234."""
    whole = column.cells is None and column.values is None and given.dtype.kind == "i"
    return replace(column, cells=Figures(",")) if whole else column


def _fractions(column: pd.Series) -> bool:
    if column.dtype.kind != "f":
        return False
    values = column.dropna().to_numpy()
    return bool((values != np.floor(values)).any())
