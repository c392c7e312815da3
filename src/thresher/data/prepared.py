"""From a table to matrices to train and test on: what is missing is treated, and rows are set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.columns import check_columns
from thresher.data.encoding import Column, Encoding, complete_rows, learn_encoding
from thresher.data.rows import OnDisk
from thresher.data.targets import Target, read_target
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

    def details(self) -> dict[str, Any]:
        """Write what a model has to know of the table it came from, as plain values."""
        return {
            "target": self.target,
            "task": self.task,
            "spread": _spread(self.X),
            "table": self.encoding.to_details(),
        }


def prepare(
    frame: pd.DataFrame,
    target: str,
    *,
    task: str = "auto",
    missing: str = "error",
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    test: pd.DataFrame | None = None,
    test_share: float = 0.2,
    seed: int = 0,
) -> Prepared:
    """Turn a table into matrices.

    Parameters
    ----------
    frame : DataFrame
    target : str
        The column to predict.
    task : {"auto", "regression", "classification"}
    missing : {"error", "drop", "mean"}
        What to do with rows that lack a value. A row that lacks its target can only be left out.
    ignore, text : sequence of str
        Columns to leave out, and to take as text.
    test : DataFrame, optional
        A table to test on; without it a share of the rows is set aside.
    test_share : float
        That share; 0 sets none aside.
    seed : int
        Which rows are set aside.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": range(20), "price": [size * 1.5 for size in range(20)]})
    >>> ready = prepare(table, "price")
    >>> ready.task, ready.X.shape, ready.X_test.shape
    ('regression', (16, 1), (4, 1))
    """
    check_columns(frame, (target,), "--target")
    encoding = learn_encoding(frame, target, missing=missing, ignore=ignore, text=text)
    told = read_target(frame[target], task)
    X, y, dropped = _present(encoding, encoding.matrix(frame), told, target)
    if test is not None:
        check_columns(test, (target,), "the table to test on needs the target")
        answer = _like(read_target(test[target], told.task), told, target)
        X_test, y_test, test_dropped = _present(encoding, encoding.matrix(test), answer, target)
        dropped += test_dropped
    elif test_share > 0:
        X, X_test, y, y_test = _split(X, y, test_share, told.task, seed)
    else:
        X_test = y_test = None
    encoding = encoding.with_means(X)
    filled = None if X_test is None else encoding.filled(X_test)
    return Prepared(
        encoding, target, told.task, told.why, encoding.filled(X), y, filled, y_test, dropped=dropped
    )


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


def _present(encoding: Encoding, X: Any, told: Target, target: str) -> tuple[Any, np.ndarray, int]:
    """Leave out rows as told, or refuse them."""
    rows = np.arange(len(told.values))
    if encoding.missing == "error":
        if not told.present.all():
            row = int(np.flatnonzero(~told.present)[0])
            raise DataError(
                f"the target {target!r} is missing in {(~told.present).sum():,} of {len(rows):,} rows, the "
                f"first row {row + 1} after the header. Leave such rows out (--missing drop)."
            )
        encoding.refuse_missing(X, rows)
    kept = told.present & (complete_rows(X) if encoding.missing == "drop" else True)
    if not kept.any():
        raise DataError(
            f"no row is complete, so --missing drop leaves none of {len(rows):,}. Use --missing mean, or "
            "leave out the columns that are mostly empty (--ignore)."
        )
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


def _spread(X: Any) -> list[float]:
    """Give the standard deviation of every column, to six digits."""
    parts = (part for _, part in X.chunks()) if isinstance(X, OnDisk) else (X,)
    means, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part in parts:
        part, share = part.astype(np.float64), part.shape[0] / X.shape[0]
        means += share * np.asarray(part.mean(axis=0)).ravel()
        squares += share * np.asarray((part * part).mean(axis=0)).ravel()
    return [float(f"{value:.6g}") for value in np.sqrt(np.maximum(squares - means**2, 0.0))]
