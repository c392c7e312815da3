"""The target of a table: which task it asks for, and its values as labels or numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from thresher.data.cells import Dates, Durations, Figures, stripped
from thresher.data.columns import as_numbers, is_text, plain
from thresher.data.reading import holds_text
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

TASKS = ("auto", "regression", "classification")

# Whole numbers that take no more values than this are taken for the names of classes.
FEW_NUMBERS = 10

# Labels with zeros before them, and the first whole number whose neighbour a float cannot tell from it.
LEADING_ZERO = r"\s*[+-]?0\d+\s*"
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class Target:
    """The target of a table.

    Attributes
    ----------
    task : {"regression", "classification"}
    why : str
        What the task was told by, in words.
    values : array of shape (n,)
        Numbers, or labels: text, whole numbers or booleans. What stands in rows that are not `present` means
        nothing.
    present : boolean array of shape (n,)
        Rows in which the target is there.
    """

    task: str
    why: str
    values: np.ndarray
    present: np.ndarray

    @property
    def classes(self) -> int:
        """How many different labels there are."""
        return len(np.unique(self.values[self.present]))


def read_target(
    column: pd.Series,
    task: str = "auto",
    *,
    cells: Figures | Dates | Durations | None = None,
    letters: Callable[[], pd.Series] | None = None,
    as_text: bool = False,
) -> Target:
    """Tell what kind of task a target asks for, and read it.

    Parameters
    ----------
    column : Series
    task : {"auto", "regression", "classification"}
        With "auto", text, yes-or-no and whole numbers of at most ten values are classes; anything else is
        a number to predict.
    cells : Figures, Dates or Durations, optional
        How its numbers are written, where not plainly.
    letters : callable, optional
        Reads the same column as text, so that labels such as ``007`` are kept to the letter.
    as_text : bool
        Whether labels are text whatever they hold.

    Raises
    ------
    DataError
        When no value is there, or values do not fit the task.

    Examples
    --------
    >>> import pandas as pd
    >>> read_target(pd.Series(["yes", "no", "yes"])).task
    'classification'
    >>> read_target(pd.Series([1.5, 2.25, 0.5])).task
    'regression'
    """
    if task not in TASKS:
        raise ParameterError(f"--task {task!r}, but it must be one of {', '.join(TASKS)}.")
    column = plain(column)
    present = column.notna().to_numpy()
    if not present.any():
        raise DataError(
            f"the target {column.name!r} has no value in any of {len(column):,} rows: choose another column "
            "(--target)."
        )
    if cells is not None and task != "classification":
        values = cells.numbers(column)[:, 0]
        return _numbers(column, values, ~np.isnan(values), task, letters)
    if as_text or _is_text(column, task):
        return _texts(column, task)
    return _numbers(column, as_numbers(column), present, task, letters)


def _is_text(column: pd.Series, task: str) -> bool:
    """Tell whether a target is text; where classes are asked for, numbers among text are labels as well."""
    try:
        return is_text(column)
    except DataError:
        if task == "classification" and holds_text(column):
            return True
        raise


def _texts(column: pd.Series, task: str) -> Target:
    texts = stripped(column, marks=False)
    present = np.array([text is not None for text in texts.tolist()], dtype=bool)
    if task == "regression":
        raise DataError(
            f"the target {column.name!r} holds text, such as {texts[present][0]!r}, and regression "
            "needs numbers: use --task classification."
        )
    labels = np.array(["" if text is None else text for text in texts.tolist()])
    return Target("classification", "the target is text", labels, present)


def _numbers(
    column: pd.Series,
    values: np.ndarray,
    present: np.ndarray,
    task: str,
    letters: Callable[[], pd.Series] | None,
) -> Target:
    yes_or_no = column.dtype.kind == "b" or str(column.dtype) == "boolean"
    found, why = _task_of(values[present], yes_or_no)
    if task not in ("auto", found):
        found, why = task, "as asked"
    if found == "regression":
        return Target(found, why, values, present)
    spelled = column if holds_text(column) else None if letters is None else letters()
    if not yes_or_no and _needs_letters(column, values[present], spelled):
        told = _texts(column if spelled is None else spelled, task)
        return Target(found, f"{why}, kept to the letter", told.values, told.present)
    return Target(found, why, _number_labels(column, values, present, yes_or_no), present)


def _task_of(values: np.ndarray, yes_or_no: bool) -> tuple[str, str]:
    if yes_or_no:
        return "classification", "the target is true or false"
    different = len(np.unique(values))
    if (values == np.floor(values)).all() and different <= FEW_NUMBERS:
        return "classification", f"the target holds whole numbers of {different} different values"
    return "regression", f"the target holds numbers of {different:,} different values"


def _needs_letters(column: pd.Series, values: np.ndarray, spelled: pd.Series | None) -> bool:
    """Tell whether labels would not come back as they were: 007, and whole numbers that no float holds."""
    if spelled is not None and spelled.dropna().astype(str).str.fullmatch(LEADING_ZERO).any():
        return True
    return column.dtype.kind != "i" and bool((np.abs(values) >= LARGEST_WHOLE).any())


def _number_labels(column: pd.Series, values: np.ndarray, present: np.ndarray, yes_or_no: bool) -> np.ndarray:
    if column.dtype.kind == "i" and present.all():
        # Through floats, 9007199254740993 would become its neighbour.
        return column.to_numpy(dtype=np.int64)
    filled = np.where(present, values, 0.0)
    if yes_or_no:
        return filled.astype(bool)
    if not (filled == np.floor(filled)).all():
        row = int(np.flatnonzero(filled != np.floor(filled))[0])
        raise DataError(
            f"the target {column.name!r} holds {filled[row]:g} in row {row + 1}, which is no name of a "
            "class: use --task regression, or text for the classes."
        )
    return filled.astype(np.int64)
