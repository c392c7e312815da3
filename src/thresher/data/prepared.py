"""From a table to matrices to train and test on: what is missing is treated, and rows are set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.cells import Dates, Durations, Figures
from thresher.data.column import Column
from thresher.data.columns import check_columns, option
from thresher.data.encoding import Encoding, complete_rows
from thresher.data.rows import OnDisk
from thresher.data.sentinels import pointed_out
from thresher.data.survey import ColumnReport, Held, Survey, Table, refuse, survey
from thresher.data.targets import Target, read_target
from thresher.data.wishes import Asked, Wishes
from thresher.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table made ready.

    Attributes
    ----------
    encoding : Encoding
    target : str
        Name of the target.
    task : {"regression", "classification"}
    why : str
        What the task was told by.
    X, y : arrays
        What to train on.
    X_test, y_test : arrays, optional
        What to test on.
    dropped : int
        Rows left out because something was missing.
    columns : tuple of ColumnReport
        How each column is read.
    target_column : Column, optional
        How the target is written, where that is not plain.
    """

    encoding: Encoding
    target: str
    task: str
    why: str
    X: Any
    y: np.ndarray
    X_test: Any | None
    y_test: np.ndarray | None
    dropped: int
    columns: tuple[ColumnReport, ...] = ()
    target_column: Column | None = None

    def details(self) -> dict[str, Any]:
        """Write what a model has to know of the table it came from, as plain values."""
        return {
            "target": self.target,
            "task": self.task,
            "spread": _spread(self.X),
            "table": self.encoding.to_details(),
            **_written_target(self.target_column),
        }


def prepare(
    frame: pd.DataFrame | Table,
    target: str,
    *,
    task: str = "auto",
    missing: str = "error",
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    readings: Mapping[str, str] | None = None,
    decimal: str | None = None,
    test: pd.DataFrame | Table | None = None,
    test_share: float = 0.2,
    seed: int = 0,
) -> Prepared:
    """Turn a table into matrices.

    Parameters
    ----------
    frame : DataFrame or Table
        A table of :func:`thresher.data.tables.open_table` is read with its letters where they matter.
    target : str
        The column to predict.
    task : {"auto", "regression", "classification"}
    missing : {"error", "drop", "mean", "indicator"}
        What to do with rows that lack a value. A row that lacks its target can only be left out.
    ignore, text : sequence of str
        Columns to leave out, and to take as text.
    readings : mapping, optional
        How columns are read, by name: "date", "duration", "number", "text" or "ignore".
    decimal : {".", ","}, optional
        What decimals begin with.
    test : DataFrame or Table, optional
        A table to test on; without it a share of the rows is set aside.
    test_share : float
        That share; 0 sets none aside.
    seed : int
        Which rows are set aside.

    Raises
    ------
    DataError
        When the table cannot be read as it is, for all reasons at once.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": range(20), "price": [size * 1.5 for size in range(20)]})
    >>> ready = prepare(table, "price")
    >>> ready.task, ready.X.shape, ready.X_test.shape
    ('regression', (16, 1), (4, 1))
    """
    table = _table(frame)
    wishes = Wishes(missing, tuple(ignore), tuple(text), readings or {}, decimal)
    seen = survey(table, target, wishes)
    X, (told, cells, problems) = seen.encoding.matrix(seen.frame), _told(seen, table, target, task, wishes)
    refuse([*seen.problems, *problems, *_lacking(seen.encoding, X, told, target)])
    assert told is not None
    marks = wishes.asked().get(target, Asked()).missing
    doubt = pointed_out(told.values[told.present], target, marks) if told.task == "regression" else None
    X, y, dropped = _present(seen.encoding, X, told)
    encoding = seen.encoding
    if test is not None:
        X_test, y_test, test_dropped = _tested(_table(test), encoding, told, cells, target)
        dropped += test_dropped
    elif test_share > 0:
        X, X_test, y, y_test = _split(X, y, test_share, told.task, seed)
    else:
        X_test = y_test = None
    encoding = encoding.with_means(X)
    filled = None if X_test is None else encoding.filled(X_test)
    return Prepared(
        encoding,
        target,
        told.task,
        _why(told, cells, doubt),
        encoding.filled(X),
        y,
        filled,
        y_test,
        dropped=dropped,
        columns=seen.reports,
        target_column=Column(target, cells=cells),
    )


def _table(given: pd.DataFrame | Table) -> Table:
    import pandas as pd

    return Held(given) if isinstance(given, pd.DataFrame) else given


def _told(
    seen: Survey, table: Table, target: str, task: str, wishes: Wishes
) -> tuple[Target | None, Figures | Dates | Durations | None, list[str]]:
    """Read the target, and give what is wrong with it."""
    asked = wishes.asked().get(target, Asked()).how
    found, cells = seen.target, None
    if asked != "text" and task != "classification":
        if found.problem is not None:
            return None, None, [found.problem.replace("column", "the target", 1)]
        written = None if found.column is None else found.column.cells
        if isinstance(written, Dates) and asked != "date":
            how = f"{option('date', target)} for days since the first one, or {option('text', target)}"
            return None, None, [f"the target {target!r} holds dates: say {how} for classes."]
        cells = written if isinstance(written, (Figures, Dates, Durations)) else None
    try:
        letters = None if table.cells_apart is None else lambda: table.written([target])[target]
        return (
            read_target(seen.frame[target], task, cells=cells, letters=letters, as_text=asked == "text"),
            cells,
            [],
        )
    except DataError as error:
        return None, None, [str(error)]


def _why(told: Target, cells: Figures | Dates | Durations | None, doubt: tuple[str, str] | None) -> str:
    """Say what the task was told by, the unit of durations, and what looks like marks of missing values."""
    unit = f", durations in {cells.unit}" if isinstance(cells, Durations) else ""
    return f"{told.why}{unit}" + ("" if doubt is None else f"; {' '.join(doubt)}")


def _tested(
    table: Table, encoding: Encoding, told: Target, cells: Figures | Dates | Durations | None, target: str
) -> tuple[Any, np.ndarray, int]:
    """Read the table to test on as the other was."""
    as_text = told.values.dtype.kind == "U"
    frame = table.frame(
        as_written=(*encoding.as_written, *((target,) if as_text or cells is not None else ()))
    )
    check_columns(frame, (target,), "the table to test on needs the target")
    answer = _like(read_target(frame[target], told.task, cells=cells, as_text=as_text), told, target)
    X = encoding.matrix(frame)
    refuse(_lacking(encoding, X, answer, target))
    return _present(encoding, X, answer)


def prepare_on_disk(
    rows: OnDisk,
    target: str,
    *,
    task: str = "auto",
    test: OnDisk | None = None,
    test_share: float = 0.2,
    seed: int = 0,
) -> Prepared:
    """Make rows on disk ready: they are complete numbers already, and stay where they are.

    Parameters are those of :func:`prepare`; `rows` and `test` bring their targets along.
    """
    import pandas as pd

    if rows.target is None or (test is not None and test.target is None):
        raise DataError(f"the target {target!r} was not found beside the rows: name it.")
    told = read_target(pd.Series(rows.target, name=target), task)
    names = rows.columns or tuple(f"x{column}" for column in range(rows.shape[1]))
    encoding = Encoding(tuple(Column(name) for name in names), sparse=rows.sparse)
    X, y, X_test, y_test = rows, told.values, None, None
    if test is not None:
        answer = read_target(pd.Series(test.target, name=target), told.task)
        X_test, y_test = test, _like(answer, told, target).values
    elif test_share > 0:
        kept, out, y, y_test = _split(np.arange(len(y)), y, test_share, told.task, seed)
        # Rows are taken in their order, and so are their targets.
        X, X_test = rows.take(np.sort(kept)), rows.take(np.sort(out))
        y, y_test = y[np.argsort(kept)], y_test[np.argsort(out)]
    return Prepared(encoding, target, told.task, told.why, X, y, X_test, y_test, dropped=0)


def _lacking(encoding: Encoding, X: Any, told: Target | None, target: str) -> list[str]:
    """Say what is missing, where that is an error, and when it leaves nothing."""
    problems = []
    if encoding.missing == "error":
        if told is not None and not told.present.all():
            row = int(np.flatnonzero(~told.present)[0])
            problems.append(
                f"the target {target!r} is missing in {(~told.present).sum():,} of {len(told.present):,} "
                f"rows, the first row {row + 1} after the header. Leave such rows out (--missing drop)."
            )
        problems += encoding.lacking(X)
    elif told is not None and not _kept(encoding, X, told).any():
        problems.append(
            f"no row is complete, so --missing {encoding.missing} leaves none of {X.shape[0]:,}. Use "
            "--missing mean, or leave out the columns that are mostly empty (--ignore)."
        )
    return problems


def _kept(encoding: Encoding, X: Any, told: Target) -> np.ndarray:
    return told.present & (complete_rows(X) if encoding.missing == "drop" else True)


def _present(encoding: Encoding, X: Any, told: Target) -> tuple[Any, np.ndarray, int]:
    """Leave out rows as told."""
    kept = _kept(encoding, X, told)
    if kept.all():
        return X, told.values, 0
    return X[kept], told.values[kept], int((~kept).sum())


def _like(answer: Target, told: Target, target: str) -> Target:
    if answer.values.dtype.kind != told.values.dtype.kind:
        raise DataError(
            f"the target {target!r} holds {told.values[0]!r} in the first table and {answer.values[0]!r} in "
            "the one to test on: give both of one kind."
        )
    return answer


def _split(X: Any, y: np.ndarray, share: float, task: str, seed: int) -> Any:
    """Set a share of the rows aside, of every class alike where each has rows enough."""
    from sklearn.model_selection import train_test_split

    counts = np.unique(y, return_counts=True)[1]
    aside = round(share * len(y))
    if not 1 <= aside < len(y):
        raise DataError(
            f"{len(y)} rows cannot be split with --test-share {share:g}: use 0 to train on all, or give more "
            "rows."
        )
    even = task == "classification" and counts.min() >= 2 and len(counts) <= min(aside, len(y) - aside)
    return train_test_split(X, y, test_size=aside, random_state=seed, stratify=y if even else None)


def _written_target(column: Column | None) -> dict[str, Any]:
    return {} if column is None or column.cells is None else {"target_column": column.to_details()}


def _spread(X: Any) -> list[float]:
    """Give the standard deviation of every column, to six digits."""
    parts = (part for _, part in X.chunks()) if isinstance(X, OnDisk) else (X,)
    means, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part in parts:
        part, share = part.astype(np.float64), part.shape[0] / X.shape[0]
        means += share * np.asarray(part.mean(axis=0)).ravel()
        squares += share * np.asarray((part * part).mean(axis=0)).ravel()
    return [float(f"{value:.6g}") for value in np.sqrt(np.maximum(squares - means**2, 0.0))]
