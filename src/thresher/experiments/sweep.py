"""Running the cells of an experiment, one after the other, so that what is done is never done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from thresher.errors import ParameterError
from thresher.experiments.record import DONE, FAILED, Cell, CellFile, Outcome
from thresher.versions import versions

FILE = "cells.jsonl"


@dataclass(frozen=True)
class Choices:
    """What to run of an experiment; None is what the experiment itself declares.

    Attributes
    ----------
    seeds : tuple of int, optional
    quick : bool
        Whether to take a few cells and fewer rows.
    rows : int, optional
        Rows of data.
    k, m, s : tuple of int, optional
        Steps between updates of the gates, widths, budgets.
    solvers : tuple of str, optional
    """

    seeds: tuple[int, ...] | None = None
    quick: bool = False
    rows: int | None = None
    k: tuple[int, ...] | None = None
    m: tuple[int, ...] | None = None
    s: tuple[int, ...] | None = None
    solvers: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Table:
    """Rows of plain values under column names, with a sentence on how to read them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Summary:
    """What an experiment shows: tables to read, and numbers by name."""

    tables: tuple[Table, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Give the summary as what JSON can hold."""
        return {"tables": [asdict(table) for table in self.tables], "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Experiment:
    """The declaration of a sweep: its cells, how one is measured, and what they show together.

    Attributes
    ----------
    name, title : str
    cells : callable
        From choices to cells.
    fingerprint : callable
        From a cell to a short text that changes with its data.
    measure : callable
        From a cell to a dict of plain JSON values.
    summarise : callable
        From the outcomes that are done to a summary.
    varies : tuple of str
        The parts of a configuration that tell cells apart, for people.
    takes : tuple of str
        The choices, beyond seeds, quick and rows, that this experiment knows.
    """

    name: str
    title: str
    cells: Callable[[Choices], list[Cell]]
    fingerprint: Callable[[Cell], str]
    measure: Callable[[Cell], dict[str, Any]]
    summarise: Callable[[Sequence[Outcome]], Summary]
    varies: tuple[str, ...]
    takes: tuple[str, ...] = ()

    def chosen(self, choices: Choices) -> list[Cell]:
        """Give the cells that are to be run."""
        for name in ("k", "m", "s", "solvers"):
            if getattr(choices, name) is not None and name not in self.takes:
                known = ", ".join(f"--{option}" for option in ("seeds", "quick", "rows", *self.takes))
                raise ParameterError(f"--{name} means nothing to {self.name}. It knows {known}.")
        return self.cells(choices)

    def label(self, cell: Cell) -> str:
        """Name a cell in a few words."""
        parts = [f"{name}={cell[name]}" for name in self.varies if name in cell.configuration]
        return ", ".join([*parts, f"seed={cell.seed}"])


class Sweep:
    """The cells of an experiment and the folder that keeps their results.

    Parameters
    ----------
    experiment : Experiment
    cells : sequence of Cell
    folder : path
        Results go to the file cells.jsonl there. Cells that it holds already are not run again; those that
        failed are.
    """

    def __init__(self, experiment: Experiment, cells: Sequence[Cell], folder: Path) -> None:
        self.experiment = experiment
        self.file = CellFile(folder / FILE)
        self._cells = [(cell, experiment.fingerprint(cell)) for cell in cells]
        self._known = self.file.read()

    def __len__(self) -> int:
        return len(self._cells)

    @property
    def pending(self) -> list[Cell]:
        """Cells that are still to be run: those without a result, and those that failed."""
        return [cell for cell, data in self._cells if self._status(cell, data) != DONE]

    @property
    def done(self) -> list[Outcome]:
        """Outcomes of the cells that are done, in the order of the cells."""
        return self._with_status(DONE)

    @property
    def failed(self) -> list[Outcome]:
        """Outcomes of the cells that failed when they were run last."""
        return self._with_status(FAILED)

    def run(self, stop_on_error: bool = False) -> Iterator[Outcome]:
        """Run the cells that are not done, and give each outcome once it is on the disk.

        Parameters
        ----------
        stop_on_error : bool
            Whether an error ends the sweep; otherwise it is recorded and the next cell is run.
        """
        self.file.prepare()
        for cell, data in self._cells:
            if self._status(cell, data) == DONE:
                continue
            outcome = self._measured(cell, data, stop_on_error)
            self.file.append(outcome)
            self._known[outcome.key] = outcome
            yield outcome

    def _status(self, cell: Cell, data: str) -> str | None:
        outcome = self._known.get(cell.key(data))
        return None if outcome is None else outcome.status

    def _with_status(self, status: str) -> list[Outcome]:
        found = (self._known.get(cell.key(data)) for cell, data in self._cells)
        return [outcome for outcome in found if outcome is not None and outcome.status == status]

    def _measured(self, cell: Cell, data: str, stop_on_error: bool) -> Outcome:
        began = time.perf_counter()
        result: dict[str, Any] = {}
        error = None
        try:
            result = self.experiment.measure(cell)
        # Whatever goes wrong in one cell must not take the others with it.
        except Exception as problem:
            if stop_on_error:
                raise
            error = f"{type(problem).__name__}: {problem}"
        status = DONE if error is None else FAILED
        return Outcome(cell, data, status, time.perf_counter() - began, result, error, _environment())


def _environment() -> dict[str, Any]:
    import torch

    found = versions()
    return {
        "threads": torch.get_num_threads(),
        **{name: found[name] for name in ("python", "numpy", "torch")},
    }
