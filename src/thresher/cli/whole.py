"""What commands share that make or take integer networks: the model, calibration rows, rows to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.cli.model import encoding_of, reads_from_disk
from thresher.data.encoding import complete_rows
from thresher.data.tables import open_table
from thresher.errors import ParameterError
from thresher.integer import IntegerNetwork
from thresher.integer.files import is_integer
from thresher.network import Network

# Rows of a file of NumPy's or of a folder that are read.
MOST_ROWS = 100_000


@dataclass(frozen=True)
class Rounding:
    """How a network is to be rounded, as it came on the command line.

    Attributes
    ----------
    calibrate : path, optional
        Calibration rows; by default the rows that are run.
    bits : int
    weights : str, optional
    activations : int
    inputs : str
    bias_bits, passes : int
    """

    calibrate: Path | None
    bits: int
    weights: str | None
    activations: int
    inputs: str
    bias_bits: int
    passes: int


def rows_of(path: Path, network: Network | IntegerNetwork) -> Any:
    """Read the inputs of a model from a table, or from an array of NumPy's.

    Rows of a table that lack a value are left out.
    """
    if reads_from_disk(str(path), False):
        from thresher.data import open_rows

        rows = open_rows(str(path))
        return rows[: min(rows.shape[0], MOST_ROWS)]
    encoding = encoding_of(network)
    X = encoding.filled(encoding.matrix(open_table(str(path)).frame(as_written=encoding.as_written)))
    return X[complete_rows(X)]


def integer_network(model: Path, rows: Path | None, rounding: Rounding) -> tuple[IntegerNetwork, Any]:
    """Return the integer network of a model, and rows to run where there are any.

    A model of whole numbers is taken as it is; another one is rounded on calibration rows.
    """
    if is_integer(model):
        if rounding.calibrate is not None:
            raise ParameterError(
                f"{model} is an integer network already, so --calibrate does nothing: leave it out."
            )
        whole = IntegerNetwork.load(model)
        return whole, None if rows is None else rows_of(rows, whole)
    network = Network.load(model)
    source = rounding.calibrate or rows
    if source is None:
        raise ParameterError(
            f"{model} is a network of floating point: give calibration rows with --calibrate, such as those "
            "of training."
        )
    X = rows_of(source, network)
    run = X if rows is None or rows == source else rows_of(rows, network)
    whole = network.quantise(
        X,
        rounding.bits,
        weights=rounding.weights,
        activation_bits=rounding.activations,
        inputs=rounding.inputs,
        bias_bits=rounding.bias_bits,
        passes=rounding.passes,
    )
    return whole, None if rows is None else run
