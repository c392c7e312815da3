"""What is said of a table before it is fitted: how each column is read, what it lacks, how to override."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from thresher.cli.screen import visible

if TYPE_CHECKING:
    from thresher.data.prepared import Prepared
    from thresher.data.survey import ColumnReport

# Columns that are listed one by one; of more than these, plain numbers are only counted.
LISTED = 30

# Columns that are listed at all.
MOST = 200


def print_columns(ready: Prepared) -> None:
    """Print one line for each column to standard error."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = (
        ready.columns if len(ready.columns) <= LISTED else tuple(filter(_remarkable, ready.columns))[:MOST]
    )
    if not ready.columns:
        return
    console = Console(stderr=True)
    # Where nobody looks, there is no edge to keep to.
    console = console if console.is_terminal else Console(stderr=True, width=200)
    if not shown:
        console.print(f"All {len(ready.columns):,} columns hold numbers, and none lacks a value.")
        return
    drawn = Table(box=box.SIMPLE_HEAD)
    drawn.add_column("column", overflow="fold")
    drawn.add_column("read as")
    drawn.add_column("missing", justify="right")
    drawn.add_column("note", overflow="fold")
    drawn.add_column("to override", overflow="fold")
    for each in shown:
        cells = (
            each.column,
            each.read_as,
            f"{each.missing:,}" if each.missing else "",
            each.note,
            each.override,
        )
        drawn.add_row(*(Text(visible(cell)) for cell in cells))
    others = len(ready.columns) - len(shown)
    if others:
        kind = "numbers" if len(shown) < MOST else "--json lists them"
        drawn.add_row(f"{others:,} others", kind, "", "", "")
    console.print(drawn)


def _remarkable(column: ColumnReport) -> bool:
    return column.read_as != "number" or bool(column.missing or column.note)


def columns_document(ready: Prepared) -> list[dict[str, Any]]:
    """Give the same as plain values."""
    return [asdict(column) for column in ready.columns]
