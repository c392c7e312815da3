"""`thresher predict`: a table with the predictions of a model added to it."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.cli.model import details_of, encoding_of, reads_from_disk
from thresher.cli.predict_columns import Added
from thresher.cli.predict_rows import SEPARATORS, announce, predict_rows, write_rows
from thresher.cli.rows import letters_of, target_in
from thresher.cli.screen import print_json, visible
from thresher.cli.writable import check_file
from thresher.data.aside import as_fitted
from thresher.data.encoding import complete_rows
from thresher.data.tables import STANDARD_INPUT, TableFile, open_table
from thresher.errors import DataError, DataFileError
from thresher.network import Network

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Predicted:
    """What was predicted: columns by name, None where a row lacks a value."""

    columns: dict[str, list[Any]]
    notes: list[str]
    score: dict[str, Any] | None


def run_predict(
    model: str,
    data: str,
    out: str,
    *,
    column: str,
    probabilities: bool,
    coverage: float | None = None,
    encoding: str | None = None,
    on_disk: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Predict every row of a table, and write the table with the predictions.

    Parameters
    ----------
    model, data : str
        A model file, and a table or ``-``.
    out : str
        Where to, or ``-`` for standard output.
    column : str
        Name of the column to add.
    probabilities : bool
        Whether to add the probability of each class.
    coverage : float, optional
        The share of targets that the intervals to add, or the sets of classes, are to hold.
    encoding : str, optional
        How the letters of the table are written.
    on_disk, as_json, quiet : bool
        As on the command line.
    """
    added = Added(column, probabilities, coverage)
    if reads_from_disk(data, on_disk):
        _predict_on_disk(model, data, out, added, as_json=as_json, quiet=quiet)
        return
    if out != STANDARD_INPUT:
        check_file(Path(out))
        _check_kind(Path(out))
    network = Network.load(model)
    table = open_table(data, encoding)
    frame = table.frame(as_written=letters_of(network))
    predicted = _predict(network, frame, added)
    if not quiet:
        for note in predicted.notes:
            typer.echo(visible(note), err=True)
    written = None if out == STANDARD_INPUT else out
    if written is not None:
        _write(Path(out), table, frame, predicted)
    if as_json:
        print_json(_document(model, data, written, len(frame), predicted))
    elif written is None:
        # A table is UTF-8 whatever the terminal is.
        sys.stdout.buffer.write(_text(table, frame, predicted, ",", original=True).encode())


def _predict_on_disk(model: str, data: str, out: str, added: Added, *, as_json: bool, quiet: bool) -> None:
    """Write predictions while rows are read; a JSON document holds all of them."""
    if out != STANDARD_INPUT:
        check_file(Path(out))
    found = predict_rows(Network.load(model), data, added)
    if as_json and out == STANDARD_INPUT:
        names = next(found)
        columns = dict(zip(names, map(list, zip(*found, strict=True)), strict=True))
        print_json(_document(model, data, None, len(columns[names[0]]), Predicted(columns, [], None)))
        return
    rows = write_rows(found, out)
    if as_json:
        print_json(_document(model, data, out, rows, Predicted({}, [], None)))
    elif not quiet:
        announce(rows, out)


def _check_kind(path: Path) -> None:
    if path.suffix.lower() not in (*SEPARATORS, ".parquet"):
        raise DataFileError(
            f"{path} ends in {path.suffix!r}, but tables are written as .csv, .tsv or .parquet."
        )


def _predict(network: Network, frame: pd.DataFrame, added: Added) -> Predicted:
    added.refuse_taken(network, list(frame.columns))
    encoding = encoding_of(network)
    X = encoding.filled(encoding.matrix(frame))
    complete = complete_rows(X)
    notes = [
        f"{count:,} rows hold a text in column {name!r} that was not there when the model was fitted."
        for name, count in encoding.unknown_texts(frame).items()
    ]
    if not complete.all():
        if encoding.missing != "drop":
            encoding.refuse_missing(X)
        notes.append(f"{(~complete).sum():,} rows lack a value and get no prediction.")
    found = added.values(network, X[complete])
    answers = found[0]
    columns = {
        name: _spread_out(values, complete) for name, values in zip(added.names(network), found, strict=True)
    }
    score = _score(network, frame, X, answers, complete)
    if score is not None:
        notes.append(_told(score))
    return Predicted(columns, notes, score)


def _spread_out(values: np.ndarray, complete: np.ndarray) -> list[Any]:
    """Put the values of complete rows into all rows, None elsewhere."""
    spread = np.full(len(complete), None, dtype=object)
    spread[complete] = values.tolist()
    return list(spread)


def _told(score: dict[str, Any]) -> str:
    """Say what predictions score, and on which rows."""
    measure, aside = score["measure"], score["set_aside"]
    said = f"{measure} {score['value']:.4f} on {score['rows']:,} rows that hold the target"
    if not score["fitted"]:
        return f"{said}."
    if aside is None:
        return f"{said}. The model was fitted to these rows: others would tell more."
    value = "not defined" if aside["value"] is None else f"{aside['value']:.4f}"
    return (
        f"{said}. The model was fitted to most of them: on the {aside['rows']:,} that were set aside then it "
        f"is {value}."
    )


def _score(
    network: Network, frame: pd.DataFrame, X: Any, answers: np.ndarray, complete: np.ndarray
) -> dict[str, Any] | None:
    """Score predictions where the table holds the target as the model knows it.

    Rows that the model was fitted to flatter it, so that those which were set aside then are scored apart.
    """
    name = details_of(network).get("target")
    if not isinstance(name, str) or name not in frame.columns:
        return None
    try:
        told = target_in(network, frame[name])
    except DataError:
        return None
    both = told.present & complete
    if not both.any():
        return None
    truth, guess = told.values[both], answers[told.present[complete]]
    value = _measured(network, truth, guess)
    if value is None:
        return None
    task = "regression" if network.classes is None else "classification"
    split = as_fitted(X[both], truth, task, details_of(network).get("rows"))
    aside = None
    if split.aside is not None:
        rows, answer = split.aside
        aside = {"value": _measured(network, answer, network.predict(rows)), "rows": len(answer)}
    measure = "R2" if network.classes is None else "accuracy"
    count = int(both.sum())
    return {"measure": measure, "value": value, "rows": count, "fitted": split.known, "set_aside": aside}


def _measured(network: Network, truth: np.ndarray, guess: np.ndarray) -> float | None:
    """Give the share of labels that are right, or R2, None where targets are all equal."""
    if network.classes is not None:
        return float((truth == guess).mean())
    rest = float(np.square(truth - truth.mean()).sum())
    return None if rest == 0 else 1.0 - float(np.square(truth - guess).sum()) / rest


def _write(path: Path, table: TableFile, frame: pd.DataFrame, predicted: Predicted) -> None:
    try:
        if path.suffix.lower() == ".parquet":
            content = io.BytesIO()
            _with_predictions(table, frame, predicted).to_parquet(content)
            write_whole(path, content.getvalue())
        else:
            separator = SEPARATORS[path.suffix.lower()]
            write_whole(path, _text(table, frame, predicted, separator, original=False).encode("utf-8"))
    except ImportError as error:
        raise DataFileError(f"{path}: writing Parquet needs pyarrow. Install it, or write .csv.") from error
    except OSError as error:
        raise DataFileError(f"{path} cannot be written ({error.strerror or error}).") from error


def _with_predictions(table: TableFile, frame: pd.DataFrame, predicted: Predicted) -> pd.DataFrame:
    """Give the table as plain cells of their types, with its index and the new columns."""
    frame, index = table.frame() if table.is_text else frame, table.index()
    return (frame if index is None else frame.set_axis(index)).assign(**predicted.columns)


def _text(table: TableFile, frame: pd.DataFrame, predicted: Predicted, separator: str, original: bool) -> str:
    """Write all cells as they came, with new ones after them; wide formats give the new columns only.

    With `original` the separator is that of the table, where it has one.
    """
    import pandas as pd

    text = io.StringIO()
    if table.cells_apart is not None:
        separator = table.cells_apart if original else separator
        writer = csv.writer(text, delimiter=separator, lineterminator="\n")
        lines = table.rows()
        writer.writerow([*next(lines), *predicted.columns])
        added = zip(*predicted.columns.values(), strict=True)
        writer.writerows([*cells, *map(_cell, new)] for cells, new in zip(lines, added, strict=True))
    elif table.kind == "parquet":
        whole = _with_predictions(table, frame, predicted)
        numbered = isinstance(whole.index, pd.RangeIndex) and whole.index.name is None
        whole.to_csv(text, sep=separator, index=not numbered, lineterminator="\n")
    else:
        writer = csv.writer(text, delimiter=separator, lineterminator="\n")
        writer.writerow(predicted.columns)
        writer.writerows(map(_cell, new) for new in zip(*predicted.columns.values(), strict=True))
    return text.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _document(model: str, data: str, out: str | None, rows: int, predicted: Predicted) -> dict[str, Any]:
    return {
        "version": __version__,
        "model": model,
        "data": data,
        "rows": rows,
        "predictions": predicted.columns,
        "score": predicted.score,
        "notes": predicted.notes,
        "out": out,
    }
