"""From a table to a matrix: text becomes one input for each value it takes, and all of it can be repeated.

An :class:`Encoding` is learned once and goes along with the model, as plain values that JSON can hold, so
that a model takes raw tables by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from thresher.data.columns import as_numbers, as_texts, check_columns, did_you_mean, is_text, listed
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("error", "drop", "mean")

# A text column in which most rows differ says who a row is, not what it is like.
FEW_TEXTS = 20


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    values : tuple of str, optional
        What a column of text may hold, in order; None for numbers.
    """

    name: str
    values: tuple[str, ...] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs this column becomes, such as ``colour=red``."""
        return (self.name,) if self.values is None else tuple(f"{self.name}={value}" for value in self.values)


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become the inputs of a network.

    Attributes
    ----------
    columns : tuple of Column
    missing : {"error", "drop", "mean"}
        What to do with rows in which a value is missing.
    means : tuple of float, optional
        What missing values are replaced by, one for each input.
    sparse : bool
        Whether the table was sparse: then all columns are numbers, and one that is not there is zero.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.5, 2.0], "colour": ["red", "blue"], "y": [0, 1]})
    >>> encoding = learn_encoding(table, "y")
    >>> encoding.features
    ('size', 'colour=blue', 'colour=red')
    >>> encoding.matrix(table)
    array([[1.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """

    columns: tuple[Column, ...]
    missing: str = "error"
    means: tuple[float, ...] | None = None
    sparse: bool = False

    def __post_init__(self) -> None:
        if self.missing not in MISSING:
            raise ParameterError(f"missing={self.missing!r}, but it must be one of {', '.join(MISSING)}.")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all inputs, in order."""
        return tuple(name for column in self.columns for name in column.inputs)

    def matrix(self, frame: pd.DataFrame) -> Any:
        """Give the rows of a table as inputs: float64, NaN where a value is missing; sparse if it was sparse.

        Text that was not there when the encoding was learned counts as none of its values.

        Raises
        ------
        DataError
            When columns are absent, or hold something else than they did.
        """
        if self.sparse:
            return self._sparse_matrix(frame)
        self._check(frame)
        X = np.empty((len(frame), len(self.features)))
        first = 0
        for column in self.columns:
            width = len(column.inputs)
            X[:, first : first + width] = _encoded(column, frame[column.name])
            first += width
        return X

    def with_means(self, X: Any) -> Encoding:
        """Remember the mean of every input over the rows of X, if missing values are to be filled in.

        Raises
        ------
        DataError
            When an input has no value in any row.
        """
        if self.missing != "mean":
            return self
        sums, counts = _sums(X)
        empty = np.flatnonzero(counts == 0)
        if empty.size:
            name = self._owners()[empty[0]]
            raise DataError(
                f"column {name!r} has no value in any row, so no mean: leave it out (--ignore {name})."
            )
        return replace(self, means=tuple((sums / counts).tolist()))

    def filled(self, X: Any) -> Any:
        """Put the means where values are missing, if that is what is to be done with them."""
        if self.missing != "mean" or self.means is None or complete_rows(X).all():
            return X
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_array(X, copy=True)
            gaps = np.isnan(X.data)
            X.data[gaps] = np.asarray(self.means)[X.indices[gaps]]
            return X
        return np.where(np.isnan(X), self.means, X)

    def refuse_missing(self, X: Any, rows: np.ndarray) -> None:
        """Refuse missing values in X, naming the first; `rows` are the places of its rows in the file."""
        lacking = np.flatnonzero(~complete_rows(X))
        if lacking.size == 0:
            return
        row = X[[lacking[0]]]
        place = np.flatnonzero(np.isnan(row.toarray() if scipy.sparse.issparse(row) else row).ravel())[0]
        raise DataError(
            f"{lacking.size:,} of {X.shape[0]:,} rows lack a value, the first in row {rows[lacking[0]] + 1} "
            f"after the header, column {self._owners()[place]!r}. Leave such rows out (--missing drop), or "
            "fill in the column's mean (--missing mean)."
        )

    def _owners(self) -> list[str]:
        """Name the column behind every input."""
        return [column.name for column in self.columns for _ in column.inputs]

    def unknown_texts(self, frame: pd.DataFrame) -> dict[str, int]:
        """Count, for each column of text, the rows whose text was not there when the encoding was learned."""
        counts = {}
        for column in self.columns:
            if column.values is not None:
                texts = as_texts(frame[column.name])
                counts[column.name] = sum(text is not None and text not in column.values for text in texts)
        return {name: count for name, count in counts.items() if count}

    def to_details(self) -> dict[str, Any]:
        """Write the encoding as plain values; the columns of a sparse table are the network's inputs."""
        columns = [
            {"name": column.name, **({} if column.values is None else {"values": list(column.values)})}
            for column in self.columns
        ]
        return {
            "columns": None if self.sparse else columns,
            "missing": self.missing,
            "means": None if self.means is None else list(self.means),
        }

    @classmethod
    def from_details(cls, details: Mapping[str, Any], features: Sequence[str]) -> Encoding:
        """Read what :meth:`to_details` wrote, for a network with these inputs.

        Raises
        ------
        DataError
            When it is not what that method writes, or makes other inputs.
        """
        try:
            given = details["columns"]
            columns = (
                tuple(Column(name) for name in features)
                if given is None
                else tuple(
                    Column(str(part["name"]), tuple(map(str, part["values"])) if "values" in part else None)
                    for part in given
                )
            )
            means = None if details["means"] is None else tuple(float(mean) for mean in details["means"])
            encoding = cls(columns, str(details["missing"]), means, sparse=given is None)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the model does not say how to encode a table ({error}): fit it again."
            ) from error
        if encoding.features != tuple(features) or (means is not None and len(means) != len(features)):
            raise DataError(
                f"the model's notes describe {len(encoding.features):,} inputs, but its network takes "
                f"{len(features):,} of other names: fit it again."
            )
        return encoding

    def _check(self, frame: pd.DataFrame) -> None:
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            other = " It was fitted on another data set." if len(absent) == len(self.columns) else ""
            raise DataError(
                f"the model needs {len(self.columns):,} columns, of which the table lacks {len(absent):,}: "
                f"{listed(absent)}.{other}{did_you_mean(absent[0], frame.columns)} The table's columns are "
                f"{listed(frame.columns)}."
            )

    def _sparse_matrix(self, frame: pd.DataFrame) -> scipy.sparse.csr_array:
        places = {column.name: place for place, column in enumerate(self.columns)}
        known = [name for name in frame.columns if name in places]
        if not known or not (is_sparse(frame[known]) or len(known) == len(places)):
            self._check(frame)
        part = frame[known]
        X = scipy.sparse.coo_array(part.sparse.to_coo() if is_sparse(part) else part.to_numpy(np.float64))
        # scikit-learn takes 32-bit indices only.
        columns = np.array([places[name] for name in known], dtype=np.int32)[X.coords[1]]
        entries = X.data.astype(np.float64), (X.coords[0].astype(np.int32), columns)
        return scipy.sparse.csr_array(entries, shape=(len(frame), len(places)))


def learn_encoding(
    frame: pd.DataFrame,
    target: str,
    *,
    missing: str = "error",
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
) -> Encoding:
    """Learn how to turn the columns of a table into inputs.

    Parameters
    ----------
    frame : DataFrame
    target : str
        The column that is not an input.
    missing : {"error", "drop", "mean"}
    ignore : sequence of str
        Columns to leave out.
    text : sequence of str
        Columns to take as text, whatever they hold.

    Raises
    ------
    DataError
        When a column mixes numbers and text, differs in nearly every row, or is neither number nor text.
    """
    check_columns(frame, tuple(ignore), "--ignore")
    check_columns(frame, tuple(text), "--text")
    left_out = {target, *ignore, *row_labels(frame)}
    names = [name for name in frame.columns if name not in left_out]
    if not names:
        raise DataError(
            f"the table holds no column but the target {target!r}, so there is nothing to learn from."
        )
    if not text and is_sparse(frame[names]):
        return Encoding(tuple(Column(name) for name in names), missing, sparse=True)
    columns = tuple(_learned(frame[name], name in text) for name in names)
    return Encoding(columns, missing)


def row_labels(frame: pd.DataFrame) -> tuple[str, ...]:
    """Name the first column if its header is empty: it numbers the rows, as pandas writes them."""
    return ("Unnamed: 0",) if frame.columns[0] == "Unnamed: 0" else ()


def is_sparse(frame: pd.DataFrame) -> bool:
    """Tell whether all columns of a table are sparse."""
    import pandas as pd

    return all(isinstance(dtype, pd.SparseDtype) for dtype in frame.dtypes)


def complete_rows(X: Any) -> np.ndarray:
    """Tell which rows of a matrix have no missing value."""
    if not scipy.sparse.issparse(X):
        return ~np.isnan(X).any(axis=1)
    complete = np.ones(X.shape[0], dtype=bool)
    entries = X.tocoo()
    complete[entries.coords[0][np.isnan(entries.data)]] = False
    return complete


def _sums(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sum every column over the values that are there, and count those."""
    if not scipy.sparse.issparse(X):
        present = ~np.isnan(X)
        return np.where(present, X, 0.0).sum(axis=0), present.sum(axis=0)
    gaps = np.isnan(X.data)
    sums = np.bincount(X.indices[~gaps], weights=X.data[~gaps], minlength=X.shape[1])
    return sums, X.shape[0] - np.bincount(X.indices[gaps], minlength=X.shape[1])


def _learned(column: pd.Series, forced: bool) -> Column:
    name = str(column.name)
    if not forced and not is_text(column):
        as_numbers(column)
        return Column(name)
    texts = [text for text in as_texts(column) if text is not None]
    values = tuple(sorted(set(texts)))
    if not forced and len(values) > max(FEW_TEXTS, len(texts) // 2):
        raise DataError(
            f"column {name!r} holds {len(values):,} different texts in {len(texts):,} rows, each of which "
            f"would be an input. Leave it out (--ignore {name}), or ask for it (--text {name})."
        )
    return Column(name, values)


def _encoded(column: Column, given: pd.Series) -> np.ndarray:
    """Give the inputs that one column becomes, of shape (n, inputs)."""
    if column.values is None:
        return as_numbers(given)[:, None]
    texts = as_texts(given)
    places = {value: place for place, value in enumerate(column.values)}
    found = np.array([places.get(text, -1) for text in texts])
    present = np.array([text is not None for text in texts], dtype=bool)
    if present.any() and not (found >= 0).any():
        first = int(np.flatnonzero(present)[0])
        raise DataError(
            f"column {column.name!r} holds nothing that the model knows, such as {texts[first]!r} in row "
            f"{first + 1}; it knows {listed(column.values)}. The model was fitted on another data set."
        )
    inputs = (found[:, None] == np.arange(len(places))).astype(np.float64)
    inputs[~present] = np.nan
    return inputs
