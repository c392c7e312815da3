"""Where cells are measured: in this process, in several on this machine, or on a Dask cluster.

Each way takes tasks and gives outcomes as they come; nothing but the process that asked writes to the disk.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from thresher.errors import DataFileError, ParameterError
from thresher.experiments.machine import environment
from thresher.experiments.record import DONE, FAILED, Cell, Outcome

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_TO_CONNECT = 20


@dataclass(frozen=True)
class Task:
    """Cells that one run measures, with all that a process of its own needs to know.

    Attributes
    ----------
    cells : tuple
        Pairs of a cell and the fingerprint of its data.
    measure : callable
        From a list of cells to pairs of a cell and its measurement, plain values, as they come.
    stop_on_error : bool
        Whether an error is raised instead of recorded.
    """

    cells: tuple[tuple[Cell, str], ...]
    measure: Callable[[list[Cell]], Iterable[tuple[Cell, dict[str, Any]]]]
    stop_on_error: bool = False

    @property
    def keys(self) -> set[str]:
        """Identify the cells and their data."""
        return {cell.key(data) for cell, data in self.cells}

    def run(self) -> Iterator[Outcome]:
        """Measure the cells; what goes wrong becomes part of the outcome of all that are still to come."""
        waiting = {asked[0].key(""): asked for asked in self.cells}
        began = time.perf_counter()
        try:
            for cell, result in self.measure([cell for cell, _ in self.cells]):
                asked = waiting.pop(cell.key(""))
                seconds, began = time.perf_counter() - began, time.perf_counter()
                yield _outcome(asked, seconds, result)
        # Whatever goes wrong in one run must not take the others with it.
        except Exception as problem:
            if self.stop_on_error:
                raise
            seconds = time.perf_counter() - began
            for asked in waiting.values():
                yield _outcome(asked, seconds, {}, f"{type(problem).__name__}: {problem}")

    def lost(self) -> Iterator[Outcome]:
        """Say that the process that measured the cells died."""
        for asked in self.cells:
            yield _outcome(asked, 0.0, {}, "the process that measured it died; it may have run out of memory")


def _outcome(
    asked: tuple[Cell, str], seconds: float, result: dict[str, Any], error: str | None = None
) -> Outcome:
    status = DONE if error is None else FAILED
    return Outcome(*asked, status, seconds, result, error, environment())


def one_by_one(
    measure: Callable[[Cell], dict[str, Any]], cells: Iterable[Cell]
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Measure cells that share nothing."""
    for cell in cells:
        yield cell, measure(cell)


def here(tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Measure one cell after the other in this process."""
    for task in tasks:
        yield from task.run()


def in_processes(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """Measure cells in several processes, one torch thread each, and give outcomes as they come.

    Parameters
    ----------
    tasks : sequence of Task
    jobs : int
        Processes at a time.
    """
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    remaining = list(tasks)
    while remaining:
        handed_out: list[Task] = []
        finished: set[str] = set()

        def hand_out(
            remaining: list[Task] = remaining, handed_out: list[Task] = handed_out
        ) -> Iterator[Task]:
            for task in remaining:
                handed_out.append(task)
                yield task

        try:
            for outcome in _parallel(hand_out(), jobs, "loky", inner_max_num_threads=1):
                finished.add(outcome.key)
                yield outcome
            return
        except TerminatedWorkerError:
            # One of those under way killed its process. Each is tried again by itself, to find out which.
            suspects = [task for task in handed_out if not task.keys <= finished]
            for task in suspects:
                yield from _alone(task)
            remaining = remaining[len(handed_out) :]


def on_dask(tasks: Sequence[Task], address: str) -> Iterator[Outcome]:
    """Measure cells on a Dask cluster, and give outcomes as they come.

    Parameters
    ----------
    tasks : sequence of Task
    address : str
        That of the scheduler, such as ``tcp://host:8786``. Its workers need this library, and a data folder
        of their own (``THRESHER_DATA``) where cells need data files.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ParameterError(
            "--dask needs the packages of the extra `dask`. Install them with: pip install 'thresher[dask]'"
        ) from None
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataFileError(
            f"no Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler` and "
            "`dask worker`, and give its address, such as tcp://127.0.0.1:8786."
        ) from error
    with client:
        slots = sum(client.nthreads().values())
        if slots == 0:
            raise DataFileError(
                f"the Dask scheduler at {address!r} has no workers. Start some and try again."
            )
        yield from _parallel(tasks, slots, "dask", client=client)


def _parallel(tasks: Iterable[Task], jobs: int, backend: str, **settings: Any) -> Iterator[Outcome]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend=backend, **settings):
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        with _children_ignoring_interrupts():
            outcomes = pool(delayed(_apart)(task, os.getpid()) for task in tasks)
    for found in outcomes:
        yield from found


def _apart(task: Task, parent: int) -> list[Outcome]:
    """Measure cells in a process that is there for nothing else."""
    import torch

    torch.set_num_threads(1)
    if os.getppid() == parent:
        _end_with_parent(parent)
    return list(task.run())


def _alone(task: Task) -> Iterator[Outcome]:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield from _parallel([task], 2, "loky", inner_max_num_threads=1)
    except TerminatedWorkerError:
        yield from task.lost()


@contextmanager
def _children_ignoring_interrupts() -> Iterator[None]:
    """Let processes that are started meanwhile leave Ctrl-C to the one that started them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@cache
def _end_with_parent(parent: int) -> None:
    """End this process when the one that started it is gone: nobody would write down what it finds."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
