"""What people see: tables on standard output, progress on standard error."""

from __future__ import annotations

import json
import math
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
    typer.echo(json.dumps(_finite(document), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """Put null where a number is none that JSON has, such as the R2 of a single row."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def visible(text: str) -> str:
    r"""Write what would steer a terminal, or cannot be seen, as its escape; lines may break and tabs stand.

    Examples
    --------
    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    kept = "\n\t"
    return "".join(
        each if each in kept or each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def print_table(table: Table) -> None:
    """Print a table of plain values, its note below it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD)
    for name, value in zip(table.columns, table.rows[0], strict=True):
        drawn.add_column(Text(visible(name)), justify="left" if isinstance(value, str) else "right")
    for row in table.rows:
        # Brackets are no markup: names of columns have units in them.
        drawn.add_row(*(Text(visible(_text(value))) for value in row))
    console = Console()
    # Where nobody looks, there is no edge to keep to.
    console = console if console.is_terminal else Console(width=200)
    console.print(visible(table.title), style="bold", highlight=False, markup=False)
    console.print(drawn)
    if table.note:
        console.print(f"{visible(table.note)}\n", highlight=False, markup=False)


def _text(value: Any) -> str:
    """Write a value: three digits below one, two above, and thousands apart."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
