"""Running the cells of an experiment so that what is done is never done again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from thresher._version import __version__
from thresher.experiments.experiment import Choices, Experiment
from thresher.experiments.fullest import fullest
from thresher.experiments.record import DONE, FAILED, Cell, CellFile, Outcome
from thresher.experiments.workers import Task, here, in_processes, on_dask, one_by_one

FILE = "cells.jsonl"


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
        self.file.refuse_strangers(experiment.name, self._known.values())

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

    def stored(self) -> tuple[list[Outcome], int]:
        """Give all outcomes of the folder that belong together, and count those of smaller runs.

        Whichever commands ran them: they are of this version and of the data that there is, and come in the
        order in which the experiment declares its cells. A quick run is left out beside a full one.
        """
        current = [
            outcome
            for outcome in self._known.values()
            if outcome.version == __version__ and outcome.data == self.experiment.fingerprint(outcome.cell)
        ]
        kept, left_out = fullest(current, self.experiment.varies)
        declared = [*self.experiment.cells(Choices()), *self.experiment.cells(Choices(quick=True))]
        order = {cell.key(""): number for number, cell in enumerate(declared)}
        kept.sort(key=lambda outcome: order.get(outcome.cell.key(""), len(order)))
        return kept, left_out

    def check(self, data: Path | None) -> None:
        """Raise now if the data files that pending cells need are missing or damaged."""
        if self.experiment.check is not None:
            self.experiment.check(self.pending, data)

    def run(
        self,
        stop_on_error: bool = False,
        *,
        jobs: int = 1,
        dask: str | None = None,
        data: Path | None = None,
    ) -> Iterator[Outcome]:
        """Run the cells that are not done, and give each outcome once it is on the disk.

        Parameters
        ----------
        stop_on_error : bool
            Whether an error ends the sweep; otherwise it is recorded and the next cell is run.
        jobs : int
            Processes at a time; with 1 everything happens in this one.
        dask : str, optional
            Address of a Dask scheduler, whose workers run the cells instead.
        data : path, optional
            The data folder.
        """
        with self.file.opened():
            tasks = self._tasks(stop_on_error, data)
            for outcome in self._outcomes(tasks, jobs, dask):
                self.file.append(outcome)
                self._known[outcome.key] = outcome
                yield outcome

    def _tasks(self, stop_on_error: bool, data: Path | None) -> list[Task]:
        """Make the runs that measure what is not done: a path takes one, if two of its cells are missing."""
        experiment = self.experiment
        measure, along = experiment.measure, experiment.along
        if experiment.check is not None:
            measure = partial(measure, folder=data)
            along = along and partial(along, folder=data)
        single = partial(one_by_one, measure)
        prints = {cell.key(""): print_ for cell, print_ in self._cells}
        return [
            Task(
                tuple((cell, prints[cell.key("")]) for cell in run),
                single if along is None or len(run) == 1 else along,
                stop_on_error,
            )
            for run in experiment.runs(self.pending)
        ]

    def _outcomes(self, tasks: Sequence[Task], jobs: int, dask: str | None) -> Iterator[Outcome]:
        if dask is not None and tasks:
            return on_dask(tasks, dask)
        # Where time is the result, nothing else may run beside it; and a single cell needs no other process.
        if self.experiment.alone or min(jobs, len(tasks)) <= 1:
            return here(tasks)
        return in_processes(tasks, min(jobs, len(tasks)))

    def _status(self, cell: Cell, data: str) -> str | None:
        outcome = self._known.get(cell.key(data))
        return None if outcome is None else outcome.status

    def _with_status(self, status: str) -> list[Outcome]:
        found = (self._known.get(cell.key(data)) for cell, data in self._cells)
        return [outcome for outcome in found if outcome is not None and outcome.status == status]
