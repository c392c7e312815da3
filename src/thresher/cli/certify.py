"""`thresher certify`: say what is proved about a saved network on the rows of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from thresher._version import __version__
from thresher.cli.screen import print_json, print_table
from thresher.errors import DataError, ParameterError, writing

if TYPE_CHECKING:
    import pandas as pd

    from thresher.network import Network
    from thresher.theory.certificate import Certificate


def run_certify(
    model: Path,
    data: Path,
    target: str,
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
    target : str
        Names of the target columns, between commas.
    held_out : path, optional
        A table of fresh rows.
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
    X, y = rows_of(data, network, target)
    fresh = None if held_out is None else rows_of(held_out, network, target)
    chosen: dict[str, Any] = {} if dictionaries is None else {"dictionary": dictionaries}
    found = certify(network, X, y, held_out=fresh, precision=_share(precision), random_state=seed, **chosen)
    files = [] if out is None else _written(found, out)
    document = {"version": __version__, "model": str(model), "data": str(data), "rows": len(X)}
    if as_json:
        print_json({**document, **found.plain(), "files": [str(path) for path in files]})
    elif not quiet:
        _print(found, files)


def rows_of(path: Path, network: Network, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a table and split it into the network's inputs and the targets."""
    from thresher.data.tables import read_table

    table = read_table(path)
    targets = [name.strip() for name in target.split(",")]
    missing = [name for name in targets if name not in table.columns]
    if missing:
        known = ", ".join(map(str, table.columns[:20]))
        raise DataError(f"{path} has no column {missing[0]!r} for --target. Its columns are {known}.")
    y = table[targets[0]] if len(targets) == 1 else table[targets]
    return _inputs(table.drop(columns=targets), network, path), y.to_numpy()


def _inputs(table: pd.DataFrame, network: Network, path: Path) -> np.ndarray:
    """Take the network's features by name where it knows them, else all columns in order."""
    if network.features is not None and set(network.features) <= set(table.columns):
        table = table[list(network.features)]
    if table.shape[1] != network.inputs:
        raise DataError(
            f"{path} has {table.shape[1]} columns beside the target, but the network takes {network.inputs}. "
            f"Give the columns it was trained on, in the same order, and name all targets in --target."
        )
    odd = [name for name in table.columns if table[name].dtype.kind not in "biuf"]
    if odd:
        raise DataError(f"column {odd[0]!r} of {path} holds what is not a number. Encode it as in training.")
    return table.to_numpy(dtype=np.float64)


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


def _print(found: Certificate, files: list[Path]) -> None:
    from thresher.experiments import Table

    rows = tuple((each.name, each.status, each.sentence) for each in found.conditions)
    print_table(Table("Conditions", ("condition", "status", "what was measured"), rows))
    print_table(Table("Levels", ("level", "status"), tuple(found.levels.items())))
    typer.echo(found.verdict)
    for path in files:
        typer.echo(f"wrote {path}")
