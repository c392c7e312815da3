"""What a column of a table holds: numbers or text, never both."""

from __future__ import annotations

import shlex
from datetime import date, timedelta
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

# Names listed in a message.
LISTED = 8

# Types of columns that are numbers for sure, which keeps tables of very many columns quick.
PLAIN = tuple(map(np.dtype, ("int64", "float64", "bool")))


def check_columns(frame: pd.DataFrame, names: tuple[str, ...], option: str) -> None:
    """Refuse names of columns that a table does not have.

    Parameters
    ----------
    frame : DataFrame
    names : tuple of str
    option : str
        Where the names came from, for the message.
    """
    for name in names:
        if name not in frame.columns:
            raise ParameterError(
                f"{option} {name!r}, but the table has no such column.{did_you_mean(name, frame.columns)} "
                f"Its columns are {listed(frame.columns)}.{_title_above(frame)}"
            )


def _title_above(frame: pd.DataFrame) -> str:
    """Say where a header that is mostly empty may come from."""
    empty = sum(str(name).startswith("Unnamed: ") for name in frame.columns)
    if 2 * empty < len(frame.columns):
        return ""
    return " Most of that header is empty: where a title stands above the names of the columns, take it away."


def did_you_mean(name: str, known: Any) -> str:
    """Suggest the name that is closest, upper and lower case alike.

    Examples
    --------
    >>> did_you_mean("Pries", ["price", "rooms"])
    " Did you mean 'price'?"
    """
    folded: dict[str, str] = {str(other).strip().lower(): str(other) for other in known}
    close = get_close_matches(name.strip().lower(), folded, 1)
    return f" Did you mean {folded[close[0]]!r}?" if close else ""


def listed(names: Any) -> str:
    """List the first few names.

    Examples
    --------
    >>> listed(["a", "b"]), listed(range(1000))
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7 and 992 more')
    """
    shown = ", ".join(str(name) for name in names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED:,} more"


def option(how: str, name: str) -> str:
    """Write the option that takes a column as asked, so that it can be pasted into a shell.

    Examples
    --------
    >>> option("ignore", "total price"), option("text", "a,b"), option("date", "day")
    ("--ignore 'total price'", '--as a,b=text', '--as day=date')
    """
    # Between commas there is no room for names with a comma.
    if how not in ("ignore", "text") or "," in name:
        return f"--as{_joined(f'{name}={how}')}"
    return f"--{how}{_joined(name)}"


def _joined(value: str) -> str:
    """Write the value of an option; one that begins with a dash would be taken for another option."""
    return f"={shlex.quote(value)}" if value.startswith("-") else f" {shlex.quote(value)}"


def plain(column: pd.Series) -> pd.Series:
    """Give dates, durations and decimals that came as objects, as in Parquet files, as pandas has them.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = Decimal("1.5"), date(2024, 1, 2), timedelta(hours=1)
    >>> [plain(pd.Series([cell, None])).dtype.kind for cell in cells]
    ['f', 'M', 'm']
    """
    import pandas as pd

    cells = column.dropna() if column.dtype == object else ()
    if len(cells) == 0:
        return column
    if all(isinstance(cell, Decimal) for cell in cells):
        return pd.to_numeric(column.map(float, na_action="ignore"))
    if all(isinstance(cell, timedelta) for cell in cells):
        return pd.to_timedelta(column)
    if all(isinstance(cell, date) for cell in cells):
        zones = any(getattr(cell, "tzinfo", None) is not None for cell in cells)
        return pd.to_datetime(column, utc=zones)
    return column


def is_text(column: pd.Series) -> bool:
    """Tell whether a column holds text; one without any value does not.

    Raises
    ------
    DataError
        When it holds text and numbers, naming the row, or something that is neither.
    """
    import pandas as pd

    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else getattr(column.dtype, "kind", "O")
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        if kind == "c":
            raise DataError(f"column {column.name!r} holds complex numbers: give real and imaginary parts.")
        return False
    if kind in "mM" or isinstance(column.dtype, (pd.DatetimeTZDtype, pd.PeriodDtype, pd.IntervalDtype)):
        raise DataError(
            f"column {column.name!r} holds {column.dtype}, but numbers or text are needed: convert it, or "
            f"leave it out ({option('ignore', str(column.name))})."
        )
    values = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = values.astype(column.dtype.categories.dtype)
        if values.dtype != object and not pd.api.types.is_string_dtype(values.dtype):
            return is_text(values.rename(column.name))
    return len(values) > 0 and _cells_are_text(values)


def _cells_are_text(values: pd.Series) -> bool:
    """Look at cells one by one; numbers written as text count as numbers."""
    import pandas as pd

    refuse_objects(values)
    numbers = pd.to_numeric(values, errors="coerce").notna()
    if numbers.all() or not numbers.any():
        return not numbers.any()
    rare = values[~numbers] if (~numbers).sum() <= numbers.sum() else values[numbers]
    usual = values[numbers] if rare.index[0] not in numbers.index[numbers] else values[~numbers]
    raise DataError(
        f"column {values.name!r} mixes numbers and text: row {rare.index[0] + 1} holds {rare.iloc[0]!r}, row "
        f"{usual.index[0] + 1} holds {usual.iloc[0]!r} (rows are counted from 1 after the header). Correct "
        f"the cell (an empty one is a missing value), take the column as text "
        f"({option('text', str(values.name))}) or as numbers, with anything else missing "
        f"({option('number', str(values.name))}), or leave it out ({option('ignore', str(values.name))})."
    )


def refuse_objects(values: pd.Series) -> None:
    """Refuse cells that are neither text nor numbers, such as lists."""
    strange = values[~values.map(lambda cell: isinstance(cell, (str, bool, int, float, np.generic)))]
    if len(strange):
        raise DataError(
            f"column {values.name!r} holds {type(strange.iloc[0]).__name__} in row {strange.index[0] + 1}, "
            f"but numbers or text are needed: convert it, or leave it out "
            f"({option('ignore', str(values.name))})."
        )


def as_numbers(column: pd.Series) -> np.ndarray:
    """Give a column of numbers as float64, NaN where a value is missing; infinity is refused.

    Raises
    ------
    DataError
        When it holds anything else, naming the row.
    """
    import pandas as pd

    if column.dtype in PLAIN:
        return _finite(column, column.to_numpy(dtype=np.float64))
    if is_text(column):
        found = column.dropna()
        raise DataError(
            f"column {column.name!r} holds text, such as {found.iloc[0]!r} in row {found.index[0] + 1}, "
            "where numbers are needed."
        )
    plain = column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column
    return _finite(column, pd.to_numeric(plain).to_numpy(dtype=np.float64, na_value=np.nan))


def _finite(column: pd.Series, values: np.ndarray) -> np.ndarray:
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise DataError(
            f"column {column.name!r} holds {values[row]} in row {column.index[row] + 1}, but numbers must be "
            "finite: correct it, or leave the cell empty."
        )
    return values


def as_texts(column: pd.Series) -> np.ndarray:
    """Give the cells of a column as text, None where a value is missing; 3.0 is written 3.

    Examples
    --------
    >>> import pandas as pd
    >>> as_texts(pd.Series([3.0, None, 2.5])).tolist()
    ['3', None, '2.5']
    """
    cells, present = column.astype(object).to_numpy(), column.notna().to_numpy()
    return np.array(
        [_text(cell) if there else None for cell, there in zip(cells, present, strict=True)], dtype=object
    )


def _text(cell: Any) -> str:
    whole = isinstance(cell, (float, np.floating)) and float(cell).is_integer()
    return str(int(cell)) if whole else str(cell)
