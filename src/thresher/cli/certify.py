"""`thresher certify`: say what is proved about a saved network on the rows of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from thresher._version import __version__
from thresher.cli.model import details_of
from thresher.cli.rows import model_rows, target_names
from thresher.cli.screen import print_json, print_table
from thresher.errors import DataError, ParameterError, writing

if TYPE_CHECKING:
    import pandas as pd

    from thresher.data.aside import Rows
    from thresher.network import Network
    from thresher.theory.certificate import Certificate


def run_certify(
    model: Path,
    data: Path,
    target: str | None,
    *,
    held_out: Path | None,
    dictionaries: tuple[str, ...] | None,
    precision: str | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Certify a saved network and print the certificate.

    Parameters
    ----------
    model, data : path
        The network, and the table it is certified on.
    target : str, optional
        Names of the target columns, between commas; by default what the model predicts.
    held_out : path, optional
        A table of fresh rows; by default the rows that were set aside when the model was fitted.
    dictionaries : tuple of str, optional
        Over which gates uniqueness is asked.
    precision : str, optional
        Relative rounding of the targets.
    seed : int
        Seed of sampled gates.
    out : path, optional
        Folder for the certificate as JSON and its figure.
    as_json, quiet : bool
        As on the command line.
    """
    from thresher.network import Network
    from thresher.theory.certificate import certify

    network = Network.load(model)
    rows = rows_of(data, network, target)
    fresh = rows.aside
    if held_out is not None:
        given = rows_of(held_out, network, target)
        fresh = given.X, given.y
    chosen: dict[str, Any] = {} if dictionaries is None else {"dictionary": dictionaries}
    found = certify(
        network, rows.X, rows.y, held_out=fresh, precision=_share(precision), random_state=seed, **chosen
    )
    files = [] if out is None else _written(found, out)
    aside = 0 if rows.aside is None else len(rows.aside[1])
    if as_json:
        document = {"version": __version__, "model": str(model), "data": str(data), "rows": len(rows.y)}
        known = {"set_aside": aside, "rows_of_the_fit": rows.known}
        print_json({**document, **known, **found.plain(), "files": [str(path) for path in files]})
    elif not quiet:
        _print(found, files, _about(rows, aside))


def rows_of(path: Path, network: Network, target: str | None) -> Rows:
    """Read a table as the network's inputs and its targets; those of its fit as they were split for it.

    Parameters
    ----------
    path : path
    network : Network
        One that knows its columns takes them by name, and text as it was encoded for the fit; another takes
        all columns beside the targets, in order.
    target : str, optional
        Names of the targets between commas; by default what the network predicts.
    """
    from thresher.data.aside import Rows, as_fitted
    from thresher.data.tables import read_table

    details = details_of(network)
    if network.features is None and "table" not in details:
        table = read_table(path)
        targets = target_names(network, table, path, target, needed=True)
        return Rows(_in_order(table.drop(columns=targets), network, path), _numbers(table[targets]))
    rows = model_rows(network, path, target, needed=True, complete=True)
    assert rows.y is not None
    task = "regression" if network.classes is None else "classification"
    return as_fitted(rows.X, rows.y, task, details.get("rows"))


def _numbers(table: pd.DataFrame) -> np.ndarray:
    return table.iloc[:, 0].to_numpy() if table.shape[1] == 1 else table.to_numpy()


def _in_order(table: pd.DataFrame, network: Network, path: Path) -> np.ndarray:
    """Take all columns in order, for a network that does not know their names."""
    if table.shape[1] != network.inputs:
        raise DataError(
            f"{path} has {table.shape[1]} columns beside the target, but the network takes {network.inputs}. "
            f"Give the columns it was trained on, in the same order, and name all targets in --target."
        )
    odd = [name for name in table.columns if table[name].dtype.kind not in "biuf"]
    if odd:
        raise DataError(f"column {odd[0]!r} of {path} holds what is not a number. Encode it as in training.")
    return table.to_numpy(dtype=np.float64)


def _about(rows: Rows, aside: int) -> str:
    """Say which rows are certified on."""
    if not rows.known:
        return f"Certified on {len(rows.y):,} rows."
    if not aside:
        return f"Certified on the {len(rows.y):,} rows that the model was fitted to."
    return (
        f"Certified on the {len(rows.y):,} rows that the model was fitted to; the {aside:,} that were set "
        "aside then are held out."
    )


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--precision {text!r}, but it takes a number such as 1e-6.") from None


def _written(found: Certificate, out: Path) -> list[Path]:
    from thresher.atomic import write_whole
    from thresher.report.certificate import spectrum_and_margin
    from thresher.report.figures import save

    path = out / "certificate.json"
    with writing(path, "Use another --out."):
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{json.dumps(found.plain(), indent=2, allow_nan=False)}\n".encode())
    return [path, *save(spectrum_and_margin(found), out, "certificate")]


def _print(found: Certificate, files: list[Path], about: str) -> None:
    from thresher.experiments import Table

    typer.echo(about)
    rows: list[tuple[str, ...]] = [(each.name, each.status, each.sentence) for each in found.conditions]
    columns: tuple[str, ...] = ("condition", "status", "what was measured")
    if not found.conditions[0].holds:
        meant = ["yes" if each["for_noisy_rows"] else "no" for each in found.plain()["conditions"]]
        rows = [(*row[:2], sense, row[2]) for row, sense in zip(rows, meant, strict=True)]
        columns = (*columns[:2], "makes sense with noise", columns[2])
    print_table(Table("Conditions", columns, tuple(rows)))
    print_table(Table("Levels", ("level", "status"), tuple(found.levels.items())))
    typer.echo(found.verdict)
    for path in files:
        typer.echo(f"wrote {path}")
