"""A table on standard error that is drawn again as work goes on; elsewhere a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import typer

from thresher.cli.screen import SECONDS_BETWEEN_LINES

# A terminal is drawn on no more often than this, in seconds.
REDRAWN = 0.1


class LiveTable:
    """Show the state of some work.

    Parameters
    ----------
    title : str
    columns : sequence of str
    shown : bool
        Whether to show anything at all.
    """

    def __init__(self, title: str, columns: Sequence[str], shown: bool = True) -> None:
        self.title, self.columns, self.shown = title, columns, shown
        self._live: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> LiveTable:
        if self.shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
            self._live.start()
        return self

    def update(self, rows: Sequence[Sequence[str]], line: str) -> None:
        """Draw the table, or say where the work is.

        Parameters
        ----------
        rows : sequence of sequences of str
            All cells.
        line : str
            The same in a few words.
        """
        pause = REDRAWN if self._live is not None else SECONDS_BETWEEN_LINES
        if not self.shown or time.monotonic() - self._last < pause:
            return
        self._last = time.monotonic()
        if self._live is None:
            typer.echo(f"{self.title}: {line}", err=True)
            return
        from rich import box
        from rich.table import Table

        drawn = Table(title=self.title, box=box.SIMPLE_HEAD, title_justify="left")
        for column in self.columns:
            drawn.add_column(column, justify="right")
        for row in rows:
            drawn.add_row(*row)
        self._live.update(drawn, refresh=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
