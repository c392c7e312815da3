"""`thresher predict` for rows that stay on disk: predictions are written as they are made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from thresher.atomic import write_whole
from thresher.cli.model import details_of, encoding_of
from thresher.cli.predict_columns import Added
from thresher.data import open_rows
from thresher.data.opening import ROW_KINDS, files_of
from thresher.data.rows import OnDisk
from thresher.errors import DataFileError, ParameterError, writing
from thresher.network import Network

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


def predict_rows(network: Network, data: str, added: Added) -> Iterator[tuple[Any, ...]]:
    """Yield the names of the new columns, then the predictions of every row, reading a block at a time."""
    names = added.names(network)
    rows = _opened(network, data)
    yield tuple(names)
    for _, part in rows.chunks():
        yield from zip(*(values.tolist() for values in added.values(network, part)), strict=True)


def _opened(network: Network, data: str) -> OnDisk:
    """Open the inputs of a model: by name where there are names, else without the target it was fitted to."""
    kind = ROW_KINDS.get(files_of(Path(data))[0].suffix.lower())
    if kind == "parquet":
        return open_rows(data, columns=list(encoding_of(network).features))
    rows = open_rows(data, columns=network.inputs) if kind == "svmlight" else open_rows(data)
    target = details_of(network).get("target")
    if kind == "npy" and rows.shape[1] == network.inputs + 1 and isinstance(target, str):
        rows = open_rows(data, target)
    if rows.shape[1] != network.inputs:
        raise ParameterError(
            f"{data} has {rows.shape[1]:,} columns, but the model takes {network.inputs:,}: pass those of "
            "training."
        )
    return rows


def write_rows(found: Iterator[tuple[Any, ...]], out: str) -> int:
    """Write predictions line by line to a file or to standard output, and count the rows."""
    count = 0

    def lines(separator: str) -> Iterator[str]:
        nonlocal count
        for count, cells in enumerate(found):  # noqa: B007
            yield separator.join(map(str, cells)) + "\n"

    if out == "-":
        sys.stdout.writelines(lines(","))
        return count
    ending = Path(out).suffix.lower()
    if ending not in SEPARATORS:
        raise DataFileError(f"{out} ends in {ending!r}, but predictions of rows on disk are .csv or .tsv.")
    with writing(out, "Use --out with another file."):
        write_whole(out, (line.encode() for line in lines(SEPARATORS[ending])))
    return count


def announce(rows: int, out: str) -> None:
    """Say what was written."""
    typer.echo(f"{rows:,} rows predicted" + ("." if out == "-" else f", written to {out}."), err=True)
