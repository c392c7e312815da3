"""A table on standard error that is drawn again as work goes on; elsewhere a plain line now and then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from thresher.cli.screen import SECONDS_BETWEEN_LINES, visible
from thresher.progress import Display

# A terminal is drawn on no more often than this, in seconds.
REDRAWN = 0.1


class LiveTable(Display):
    """Show the state of some work.

    Parameters
    ----------
    title : str
    columns : sequence of str
    shown : bool
        Whether to show anything at all.
    """

    def __init__(self, title: str, columns: Sequence[str], shown: bool = True) -> None:
        super().__init__(shown)
        self.title, self.columns = title, columns

    def _drawing(self) -> Any:
        from rich.console import Console
        from rich.live import Live

        return Live(console=Console(stderr=True), transient=True, auto_refresh=False)

    def update(self, rows: Sequence[Sequence[str]], line: str) -> None:
        """Draw the table, or say where the work is.

        Parameters
        ----------
        rows : sequence of sequences of str
            All cells.
        line : str
            The same in a few words.
        """
        if not self._due(SECONDS_BETWEEN_LINES if self._drawn is None else REDRAWN):
            return
        if self._drawn is None:
            typer.echo(f"{self.title}: {line}", err=True)
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        drawn = Table(title=Text(visible(self.title)), box=box.SIMPLE_HEAD, title_justify="left")
        for column in self.columns:
            drawn.add_column(column, justify="right")
        for row in rows:
            drawn.add_row(*(Text(visible(cell)) for cell in row))
        self._drawn.update(drawn, refresh=True)
