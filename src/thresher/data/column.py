"""One column of a table, and the inputs it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.cells import Cells, Texts, cells_of, stripped
from thresher.data.columns import as_numbers, as_texts, listed, plain
from thresher.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    values : tuple of str, optional
        What a column of text may hold, in order; None for numbers.
    cells : Cells, optional
        How its cells are written; None for plain numbers, and for text that came without its letters.
    indicator : bool
        Whether one more input says that a value is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> Column("colour", ("blue", "red")).encoded(pd.Series(["red", "blue", "green"])).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    """

    name: str
    values: tuple[str, ...] | None = None
    cells: Cells | None = None
    indicator: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs this column becomes, such as ``colour=red``."""
        if self.values is not None:
            names = tuple(f"{self.name}={value}" for value in self.values)
        elif self.cells is None or isinstance(self.cells, Texts):
            names = (self.name,)
        else:
            names = self.cells.inputs(self.name)
        return (*names, f"{self.name} is missing") if self.indicator else names

    def with_indicator(self, indicator: bool) -> Column:
        """Give the same column with one more input that says where a value is missing, or without."""
        return replace(self, indicator=indicator)

    def encoded(self, given: pd.Series) -> np.ndarray:  # (n, inputs)
        """Give the inputs that the cells of a table become, NaN where one is missing."""
        given = plain(given)
        if self.values is not None:
            X = self._one_hot(given, self.values)
        elif self.cells is None or isinstance(self.cells, Texts):
            X = as_numbers(given)[:, None]
        else:
            X = self.cells.numbers(given)
        return np.column_stack([X, np.isnan(X).any(axis=1)]) if self.indicator else X

    def texts(self, given: pd.Series) -> np.ndarray:
        """Give the cells of a table as the text that this column knows."""
        return as_texts(given) if self.cells is None else stripped(given, marks=False)

    def _one_hot(self, given: pd.Series, values: tuple[str, ...]) -> np.ndarray:
        texts = self.texts(given)
        places = {value: place for place, value in enumerate(values)}
        found = np.array([places.get(text, -1) for text in texts])
        present = np.array([text is not None for text in texts], dtype=bool)
        if present.any() and not (found >= 0).any():
            first = int(np.flatnonzero(present)[0])
            raise DataError(
                f"column {self.name!r} holds nothing that the model knows, such as {texts[first]!r} in row "
                f"{first + 1}; it knows {listed(values)}. The model was fitted on another data set."
            )
        inputs = (found[:, None] == np.arange(len(places))).astype(np.float64)
        inputs[~present] = np.nan
        return inputs

    def to_details(self) -> dict[str, Any]:
        """Write the column as plain values."""
        return {
            "name": self.name,
            **({} if self.values is None else {"values": list(self.values)}),
            **({} if self.cells is None else {"as": self.cells.kind, **self.cells.details()}),
            **({"indicator": True} if self.indicator else {}),
        }

    @classmethod
    def from_details(cls, details: Mapping[str, Any]) -> Column:
        """Read what :meth:`to_details` wrote; what makes no sense is a KeyError, TypeError or ValueError."""
        values = tuple(map(str, details["values"])) if "values" in details else None
        cells = cells_of(str(details["as"]), details) if "as" in details else None
        if isinstance(cells, Texts) != (values is not None) and cells is not None:
            raise ValueError(f"column {details['name']!r} is read as {cells.kind} and has other values")
        return cls(str(details["name"]), values, cells, bool(details.get("indicator", False)))
