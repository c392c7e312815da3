"""The rows of a table as a model takes them, and their targets where the table holds these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.cli.model import details_of, encoding_of
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

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


def model_rows(network: Network, path: Path, target: str | None = None, needed: bool = False) -> ModelRows:
    """Read a table as the inputs of a network, encoded as for its fit, and its targets.

    Parameters
    ----------
    network : Network
    path : path
    target : str, optional
        Names of the targets between commas; by default what the network says it predicts.
    needed : bool
        Whether a table without the target is refused.
    """
    from thresher.data.encoding import complete_rows
    from thresher.data.tables import read_table

    frame = read_table(path)
    names = _targets(network, frame, path, target, needed)
    encoding = encoding_of(network)
    X = encoding.filled(encoding.matrix(frame))
    kept = complete_rows(X)
    y = None
    if names:
        y, present = _answers(network, frame, names)
        kept = kept & present
    if not kept.any():
        raise DataError(
            f"{path} has no row without a missing value. Give rows with all inputs and the target."
        )
    told = ", ".join(names) if names else None
    return ModelRows(X[kept], None if y is None else y[kept], told, int((~kept).sum()))


def _targets(
    network: Network, frame: pd.DataFrame, path: Path, target: str | None, needed: bool
) -> list[str]:
    known = details_of(network).get("target")
    told: Any = known if target is None else [name.strip() for name in target.split(",")]
    names = [told] if isinstance(told, str) else [str(name) for name in told or ()]
    missing = [name for name in names if name not in frame.columns]
    columns = ", ".join(map(str, frame.columns[:20]))
    if missing and (needed or target is not None):
        raise DataError(f"{path} has no column {missing[0]!r}, the target. Its columns are {columns}.")
    if not names and needed:
        raise ParameterError(
            f"the model does not say what it predicts: name the column by --target. {path} has {columns}."
        )
    return [] if missing else names


def _answers(network: Network, frame: pd.DataFrame, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Give the targets as the network predicts them, and the rows in which they are there."""
    from thresher.data.targets import read_target

    task = "regression" if network.classes is None else "classification"
    told = [read_target(frame[name], task) for name in names]
    present = np.all([each.present for each in told], axis=0)
    values = told[0].values if len(told) == 1 else np.column_stack([each.values for each in told])
    return values, present
