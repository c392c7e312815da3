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
    """A cell to be measured, with all that a process of its own needs to know.

    Attributes
    ----------
    cell : Cell
    data : str
        Fingerprint of the data.
    measure : callable
        From the cell to plain values.
    stop_on_error : bool
        Whether an error is raised instead of recorded.
    """

    cell: Cell
    data: str
    measure: Callable[..., dict[str, Any]]
    stop_on_error: bool = False

    def run(self) -> Outcome:
        """Measure the cell; what goes wrong becomes part of the outcome."""
        began = time.perf_counter()
        result: dict[str, Any] = {}
        error = None
        try:
            result = self.measure(self.cell)
        # Whatever goes wrong in one cell must not take the others with it.
        except Exception as problem:
            if self.stop_on_error:
                raise
            error = f"{type(problem).__name__}: {problem}"
        return self._outcome(time.perf_counter() - began, result, error)

    def lost(self) -> Outcome:
        """Say that the process that measured the cell died."""
        return self._outcome(0.0, {}, "the process that measured it died; it may have run out of memory")

    def _outcome(self, seconds: float, result: dict[str, Any], error: str | None) -> Outcome:
        status = DONE if error is None else FAILED
        return Outcome(self.cell, self.data, status, seconds, result, error, environment())


def here(tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Measure one cell after the other in this process."""
    for task in tasks:
        yield task.run()


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
            suspects = [task for task in handed_out if task.cell.key(task.data) not in finished]
            for task in suspects:
                yield _alone(task)
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
    yield from outcomes


def _apart(task: Task, parent: int) -> Outcome:
    """Measure a cell in a process that is there for nothing else."""
    import torch

    torch.set_num_threads(1)
    if os.getppid() == parent:
        _end_with_parent(parent)
    return task.run()


def _alone(task: Task) -> Outcome:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        (outcome,) = _parallel([task], 2, "loky", inner_max_num_threads=1)
    except TerminatedWorkerError:
        return task.lost()
    return outcome


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
