"""Progress of a long fit on standard error: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Show how far a fit has come.

    Parameters
    ----------
    total : int
        Passes over the data that the fit may take.
    shown : bool
        Whether to show anything at all.
    """

    def __init__(self, total: int, shown: bool) -> None:
        self.total, self.shown = total, shown
        self._bar: Any = None
        self._task: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        if self.shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:.0f}/{task.total:.0f} passes, loss {task.fields[loss]:.4g}"),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("fitting", total=self.total, loss=float("nan"))
        return self

    def update(self, record: dict[str, Any]) -> None:
        """Show one record of the history."""
        if self._bar is not None:
            self._bar.update(self._task, completed=record["passes"], loss=record["loss"])
        elif self.shown and time.monotonic() - self._last > SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            print(
                f"fitting: {record['passes']:.0f}/{self.total} passes, loss {record['loss']:.4g}",
                file=sys.stderr,
                flush=True,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
