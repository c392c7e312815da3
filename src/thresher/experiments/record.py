"""Cells, what came of them, and the file that keeps it: one JSON line for each finished cell."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.errors import DataFileError, ThresherError
from thresher.network.metadata import plain_copy

DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class Cell:
    """One configuration of a sweep, with a seed.

    Attributes
    ----------
    experiment : str
        The sweep it belongs to.
    configuration : mapping
        Everything that decides the result but the seed, as plain JSON values.
    seed : int
        Seed of the data and of the solver.
    """

    experiment: str
    configuration: Mapping[str, Any]
    seed: int

    def __getitem__(self, name: str) -> Any:
        return self.configuration[name]

    def key(self, data: str, version: str = __version__) -> str:
        """Identify the cell's result: configuration, seed, fingerprint of the data, and version.

        Examples
        --------
        >>> Cell("table-1", {"k": 2}, seed=0).key("ab", "1.0")
        '["table-1", {"k": 2}, 0, "ab", "1.0"]'
        """
        parts = [self.experiment, dict(self.configuration), self.seed, data, version]
        return json.dumps(parts, sort_keys=True)


@dataclass(frozen=True)
class Outcome:
    """What came of a cell.

    Attributes
    ----------
    cell : Cell
    data : str
        Fingerprint of the data.
    status : {"done", "failed"}
    seconds : float
        All the time it took, drawing the data included.
    result : dict
        What was measured, as plain JSON values; empty where the cell failed.
    error : str or None
        What went wrong.
    environment : dict
        Versions and threads it ran with, which are no part of its key.
    version : str
        The version of this library.
    """

    cell: Cell
    data: str
    status: str
    seconds: float
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__

    @property
    def key(self) -> str:
        """Identify the cell, the data and the version."""
        return self.cell.key(self.data, self.version)

    def plain(self) -> dict[str, Any]:
        """Give the outcome as what JSON can hold."""
        return {
            "experiment": self.cell.experiment,
            "configuration": dict(self.cell.configuration),
            "seed": self.cell.seed,
            "data": self.data,
            "version": self.version,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "result": dict(self.result),
            "error": self.error,
            "environment": dict(self.environment),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Outcome:
        """Make an outcome of what `plain` gave."""
        _check(plain)
        cell = Cell(plain["experiment"], plain["configuration"], plain["seed"])
        rest = {name: plain[name] for name in ("data", "status", "seconds", "result", "error", "version")}
        return cls(cell, environment=plain["environment"], **rest)


# What the parts of a line are in JSON.
PARTS: dict[str, tuple[type, ...]] = {
    "experiment": (str,),
    "configuration": (dict,),
    "seed": (int,),
    "data": (str,),
    "version": (str,),
    "status": (str,),
    "seconds": (int, float),
    "result": (dict,),
    "error": (str, type(None)),
    "environment": (dict,),
}


def _check(plain: Mapping[str, Any]) -> None:
    """Refuse a line whose parts are of other types than those of an outcome."""
    for name, types in PARTS.items():
        if type(plain[name]) not in types:
            raise TypeError(f"{name} is of type {type(plain[name]).__name__}")
    if plain["status"] not in (DONE, FAILED):
        raise ValueError(f"a status is {plain['status']!r}")


class CellFile:
    """A file of outcomes, a JSON line each, that survives being cut off at any byte.

    Parameters
    ----------
    path : path
        The file; its folder is made when the first line is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read(self) -> dict[str, Outcome]:
        """Give the latest outcome of every cell by its key.

        A last line without an end was cut off while it was written, and its cell counts as not run.
        """
        return {outcome.key: outcome for outcome in self._parsed(self._whole_lines())}

    def refuse_strangers(self, experiment: str, outcomes: Iterable[Outcome]) -> None:
        """Refuse a folder that holds something else than cells of this experiment, before it is touched."""
        other = {outcome.cell.experiment for outcome in outcomes} - {experiment}
        if other:
            raise DataFileError(
                f"{self.path} holds cells of {', '.join(sorted(other))}, not of {experiment}. Use --out with "
                "another folder."
            )
        folder = self.path.parent
        if folder.is_dir() and not self.path.exists():
            strangers = sorted(path.name for path in folder.iterdir())
            if strangers:
                raise DataFileError(
                    f"{folder} is no folder of results: it holds {', '.join(strangers[:3])} but no "
                    f"{self.path.name}. Use --out with another folder."
                )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the file ready for lines, and keep other sweeps away from it meanwhile."""
        self._make_folder()
        with _locked(self.path.parent):
            self.prepare()
            yield

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def prepare(self) -> None:
        """Make the folder and the file, and drop a last line that was cut off, before anything is run."""
        self._make_folder()
        try:
            with open(self.path, "ab"):
                pass
            whole = b"".join(line + b"\n" for line in self._whole_lines())
            if len(whole) != self.path.stat().st_size:
                write_whole(self.path, whole)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def append(self, outcome: Outcome) -> None:
        """Add an outcome, on the disk when this returns."""
        line = json.dumps(outcome.plain(), allow_nan=False) + "\n"
        try:
            with open(self.path, "ab") as file:
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _whole_lines(self) -> list[bytes]:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DataFileError(
                f"{self.path} cannot be read ({error.strerror}). Use --out with another folder."
            ) from error
        return content.split(b"\n")[:-1]

    def _parsed(self, lines: Iterable[bytes]) -> Iterable[Outcome]:
        for number, line in enumerate(lines, start=1):
            try:
                # Numbers that no float holds are refused along with what is no result.
                yield Outcome.from_plain(plain_copy(json.loads(line)))
            except (ValueError, KeyError, TypeError, RecursionError):
                raise DataFileError(
                    f"line {number} of {self.path} is not the result of a cell. Remove that line, or use "
                    "--out with another folder."
                ) from None


@contextmanager
def summed_up(path: Path) -> Iterator[None]:
    """Turn what goes wrong where stored cells are summed up into an error that names their file.

    Cells are kept by people and by other programs, so what they hold may be anything.
    """
    try:
        yield
    except ThresherError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataFileError(
            f"{path} holds results that cannot be summed up ({type(error).__name__}: {error}). Remove the "
            "cells that were changed, or run them again with another --out."
        ) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:
        # Not every system can lock a folder; there it is up to the user to run one sweep at a time.
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataFileError(
                f"another sweep is writing to {folder}. Wait for it, or use --out with another folder."
            ) from None
        yield
    finally:
        os.close(handle)


def _unwritable(path: Path, error: OSError) -> DataFileError:
    reason = error.strerror or str(error)
    return DataFileError(
        f"{path} cannot be written ({reason}). Use --out with a folder where you may write and that has room."
    )
