"""The rows of a table as a model takes them, and their targets where the table holds these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.cli.model import details_of, encoding_of
from thresher.data.column import Column
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from thresher.data.targets import Target
    from thresher.network import Network


@dataclass(frozen=True, eq=False)
class ModelRows:
    """Rows of a table, those left out that lack a value.

    Attributes
    ----------
    X : array or sparse array of shape (n, inputs)
    y : array of shape (n,) or (n, targets), optional
        None where the table does not hold the target.
    target : str, optional
        What it is called, several between commas.
    left_out : int
        Rows that lack a value.
    """

    X: Any
    y: np.ndarray | None
    target: str | None
    left_out: int


def model_rows(
    network: Network, path: Path, target: str | None = None, *, needed: bool = False, complete: bool = False
) -> ModelRows:
    """Read a table as the inputs of a network, encoded as for its fit, and its targets.

    Parameters
    ----------
    network : Network
    path : path
    target : str, optional
        Names of the targets between commas; by default what the network says it predicts.
    needed : bool
        Whether a table without the target is refused.
    complete : bool
        Whether rows that lack a value are refused where the fit has refused them, too.
    """
    from thresher.data.encoding import complete_rows
    from thresher.data.tables import open_table

    frame = open_table(str(path)).frame(as_written=letters_of(network))
    names = target_names(network, frame, path, target, needed)
    encoding = encoding_of(network)
    X = encoding.filled(encoding.matrix(frame))
    kept = complete_rows(X)
    y = None
    if names:
        y, present = _answers(network, frame, names)
        kept = kept & present
    if complete and encoding.missing == "error":
        encoding.refuse_missing(X)
    if not kept.any():
        raise DataError(
            f"{path} has no row without a missing value. Give rows with all inputs and the target."
        )
    told = ", ".join(names) if names else None
    return ModelRows(X[kept], None if y is None else y[kept], told, int((~kept).sum()))


def letters_of(network: Network) -> tuple[str, ...]:
    """Name the columns that a model reads by their letters, the target among them where it is text."""
    names, target = encoding_of(network).as_written, details_of(network).get("target")
    spelled = _is_text(network) or _target_cells(network)
    return (*names, target) if isinstance(target, str) and spelled else names


def target_in(network: Network, column: pd.Series) -> Target:
    """Read a column as the target that a network predicts, written as for its fit."""
    from thresher.data.targets import read_target

    task = "regression" if network.classes is None else "classification"
    return read_target(column, task, cells=_target_cells(network), as_text=_is_text(network))


def _is_text(network: Network) -> bool:
    return network.classes is not None and network.classes.dtype.kind in "UO"


def _target_cells(network: Network) -> Any:
    """Tell how the target of a model is written, where not plainly."""
    told = details_of(network).get("target_column")
    try:
        return None if told is None else Column.from_details(told).cells
    except (KeyError, TypeError, ValueError):
        return None


def target_names(
    network: Network, frame: pd.DataFrame, path: Path, target: str | None, needed: bool
) -> list[str]:
    """Name the targets, as told or as the model knows; none where the table does not hold them."""
    known = details_of(network).get("target")
    told: Any = known if target is None else [name.strip() for name in target.split(",")]
    names = [told] if isinstance(told, str) else [str(name) for name in told or ()]
    missing = [name for name in names if name not in frame.columns]
    columns = ", ".join(map(str, frame.columns[:20]))
    if missing and (needed or target is not None):
        raise DataError(f"{path} has no column {missing[0]!r} for --target. Its columns are {columns}.")
    if not names and needed:
        raise ParameterError(
            f"no --target came, and the model does not know what it predicts: name the column. {path} has "
            f"{columns}."
        )
    return [] if missing else names


def _answers(network: Network, frame: pd.DataFrame, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Give the targets as the network predicts them, and the rows in which they are there."""
    told = [target_in(network, frame[name]) for name in names]
    present = np.all([each.present for each in told], axis=0)
    values = told[0].values if len(told) == 1 else np.column_stack([each.values for each in told])
    return values, present
