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

from thresher.data.column import Column
from thresher.data.columns import did_you_mean, listed, option
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("error", "drop", "mean", "indicator")

HOW_MISSING = (
    "Leave such rows out (--missing drop), fill in the column's mean (--missing mean), or fill it in and "
    "add an input that says where (--missing indicator)."
)


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become the inputs of a network.

    Attributes
    ----------
    columns : tuple of Column
    missing : {"error", "drop", "mean", "indicator"}
        What to do with rows in which a value is missing; "indicator" fills in the mean, and one more input
        of the column says where.
    means : tuple of float, optional
        What missing values are replaced by, one for each input.
    sparse : bool
        Whether the table was sparse: then all columns are numbers, and one that is not there is zero.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.5, 2.0], "colour": ["red", "blue"]})
    >>> encoding = Encoding((Column("size"), Column("colour", ("blue", "red"))))
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

    @classmethod
    def of_sparse(cls, names: Sequence[str], missing: str = "error") -> Encoding:
        """Give the encoding of a sparse table."""
        return cls(tuple(Column(name) for name in names), missing, sparse=True)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all inputs, in order."""
        return tuple(name for column in self.columns for name in column.inputs)

    @property
    def as_written(self) -> tuple[str, ...]:
        """Names of the columns of which the letters matter, so that they are to be read as text."""
        return tuple(column.name for column in self.columns if column.cells is not None)

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
            X[:, first : first + width] = column.encoded(frame[column.name])
            first += width
        return X

    @property
    def fills(self) -> bool:
        """Whether missing values are filled in."""
        return self.missing in ("mean", "indicator")

    def with_means(self, X: Any) -> Encoding:
        """Remember the mean of every input over the rows of X, if missing values are to be filled in.

        Raises
        ------
        DataError
            When an input has no value in any row.
        """
        if not self.fills:
            return self
        sums, counts = _sums(X)
        empty = np.flatnonzero(counts == 0)
        if empty.size:
            name = self._owners()[empty[0]]
            raise DataError(
                f"column {name!r} has no value in any row, so no mean: leave it out "
                f"({option('ignore', name)})."
            )
        return replace(self, means=tuple((sums / counts).tolist()))

    def filled(self, X: Any) -> Any:
        """Put the means where values are missing, if that is what is to be done with them."""
        if not self.fills or self.means is None or complete_rows(X).all():
            return X
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_array(X, copy=True)
            gaps = np.isnan(X.data)
            X.data[gaps] = np.asarray(self.means)[X.indices[gaps]]
            return X
        return np.where(np.isnan(X), self.means, X)

    def refuse_missing(self, X: Any) -> None:
        """Refuse missing values in X, naming the first."""
        for problem in self.lacking(X):
            raise DataError(problem)

    def lacking(self, X: Any) -> list[str]:
        """Say which rows of X lack a value, the first of them by row and column; nothing if none does."""
        rows = np.flatnonzero(~complete_rows(X))
        if rows.size == 0:
            return []
        row = X[[rows[0]]]
        place = np.flatnonzero(np.isnan(row.toarray() if scipy.sparse.issparse(row) else row).ravel())[0]
        return [
            f"{rows.size:,} of {X.shape[0]:,} rows lack a value, the first in row {rows[0] + 1} "
            f"after the header, column {self._owners()[place]!r}. {HOW_MISSING}"
        ]

    def _owners(self) -> list[str]:
        """Name the column behind every input."""
        return [column.name for column in self.columns for _ in column.inputs]

    def unknown_texts(self, frame: pd.DataFrame) -> dict[str, int]:
        """Count, for each column of text, the rows whose text was not there when the encoding was learned."""
        counts = {}
        for column in self.columns:
            if column.values is not None:
                texts = column.texts(frame[column.name])
                counts[column.name] = sum(text is not None and text not in column.values for text in texts)
        return {name: count for name, count in counts.items() if count}

    def to_details(self) -> dict[str, Any]:
        """Write the encoding as plain values; the columns of a sparse table are the network's inputs."""
        return {
            "columns": None if self.sparse else [column.to_details() for column in self.columns],
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
                else tuple(Column.from_details(part) for part in given)
            )
            means = None if details["means"] is None else tuple(float(mean) for mean in details["means"])
            encoding = cls(columns, str(details["missing"]), means, sparse=given is None)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
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
            # One name may be a slip; of many, none is.
            hint = did_you_mean(absent[0], frame.columns) if len(absent) == 1 else ""
            if not hint and len(absent) == len(self.columns):
                hint = " It was fitted on another data set."
            count = len(self.columns)
            raise DataError(
                f"the model needs {count:,} column{'s' * (count != 1)}, of which the table lacks "
                f"{len(absent):,}: {listed(absent)}.{hint} The table's columns are {listed(frame.columns)}."
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
