"""What people see: tables on standard output, progress on standard error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from thresher.progress import Display, bar

if TYPE_CHECKING:
    from thresher.experiments import Table

SECONDS_BETWEEN_LINES = 5.0


class Progress(Display):
    """Show how many of the parts of some work are done.

    On a terminal a bar stays on standard error; elsewhere a plain line comes now and then.

    Parameters
    ----------
    title : str
    total : int
        Parts there are.
    done : int
        Parts that were done before.
    shown : bool
    """

    def __init__(self, title: str, total: int, done: int = 0, shown: bool = True) -> None:
        super().__init__(shown)
        self.title, self.total, self.done = title, total, done
        self._task: Any = None

    def _drawing(self) -> Any:
        from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

        drawn = bar(MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        self._task = drawn.add_task(self.title, total=self.total, completed=self.done, now="")
        return drawn

    def __enter__(self) -> Progress:
        super().__enter__()
        if self.shown and self._drawn is None:
            typer.echo(f"{self.title}: {self.done} of {self.total} done", err=True)
        return self

    def working_on(self, what: str) -> None:
        """Say what comes next."""
        if self._drawn is not None:
            self._drawn.update(self._task, now=what)

    def advance(self, what: str) -> None:
        """Count one part as done."""
        self.done += 1
        if self._drawn is not None:
            self._drawn.update(self._task, completed=self.done)
        elif self._due(SECONDS_BETWEEN_LINES):
            typer.echo(f"{self.title}: {self.done} of {self.total} done, last {what}", err=True)


def print_json(document: dict[str, Any]) -> None:
    """Write the one JSON document."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def print_table(table: Table) -> None:
    """Print a table of plain values, its note below it."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    drawn = RichTable(box=box.SIMPLE_HEAD)
    for name, value in zip(table.columns, table.rows[0], strict=True):
        drawn.add_column(escape(name), justify="left" if isinstance(value, str) else "right")
    for row in table.rows:
        drawn.add_row(*(escape(_text(value)) for value in row))
    console = Console()
    # Where nobody looks, there is no edge to keep to.
    console = console if console.is_terminal else Console(width=200)
    console.print(table.title, style="bold", highlight=False, markup=False)
    console.print(drawn)
    if table.note:
        console.print(f"{table.note}\n", highlight=False, markup=False)


def _text(value: Any) -> str:
    """Write a value: three digits below one, two above, and thousands apart."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
