"""Progress of long work on standard error: drawn on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import math
import sys
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, TypeVar

SECONDS_BETWEEN_LINES = 10.0

Kind = TypeVar("Kind", bound="Display")


class Display(ABC):
    """Something that is drawn while a `with` block runs, where standard error is a terminal.

    Parameters
    ----------
    shown : bool
        Whether to show anything at all.
    """

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._drawn: Any = None
        self._last = time.monotonic()

    @abstractmethod
    def _drawing(self) -> Any:
        """Make what is drawn: something of rich's that starts and stops."""

    def _due(self, pause: float) -> bool:
        """Say whether something may be shown again, `pause` seconds after the last time."""
        if not self.shown or time.monotonic() - self._last < pause:
            return False
        self._last = time.monotonic()
        return True

    def __enter__(self: Kind) -> Kind:
        if self.shown and sys.stderr.isatty():
            self._drawn = self._drawing()
            self._drawn.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn is not None:
            self._drawn.stop()


def readable_loss(loss: float) -> str:
    """Write a loss; before anything has been measured it is infinite.

    Examples
    --------
    >>> readable_loss(0.12345), readable_loss(float("inf"))
    ('0.1235', 'not yet known')
    """
    return f"{loss:.4g}" if math.isfinite(loss) else "not yet known"


def bar(*columns: Any) -> Any:
    """Make a bar that goes away when it ends, with a title before it and these columns of rich's after it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    first = (TextColumn("{task.description}"), BarColumn())
    return Progress(*first, *columns, console=Console(stderr=True), transient=True)


class Progress(Display):
    """Show how far a fit has come.

    Parameters
    ----------
    total : int
        Passes over the data that the fit may take.
    shown : bool
        Whether to show anything at all.
    """

    def __init__(self, total: int, shown: bool) -> None:
        super().__init__(shown)
        self.total = total
        self._task: Any = None
        # When the phase that is running was heard of first, and the passes that it had left then.
        self._phase: tuple[str, float, float] | None = None

    def _drawing(self) -> Any:
        from rich.progress import TextColumn, TimeElapsedColumn

        told = "{task.completed:.0f}/{task.total:.0f} passes, loss {task.fields[loss]}{task.fields[left]}"
        drawn = bar(TextColumn(told), TimeElapsedColumn())
        self._task = drawn.add_task("fitting", total=self.total, loss=readable_loss(math.nan), left="")
        return drawn

    def update(self, record: dict[str, Any]) -> None:
        """Show one record of the history."""
        left, loss = self._time_left(record), readable_loss(record["loss"])
        if self._drawn is not None:
            self._drawn.update(self._task, completed=record["passes"], loss=loss, left=left)
        elif self._due(SECONDS_BETWEEN_LINES):
            print(
                f"fitting: {record['passes']:.0f}/{self.total} passes, loss {loss}{left}",
                file=sys.stderr,
                flush=True,
            )

    def _time_left(self, record: dict[str, Any]) -> str:
        """Say how long a phase that knows its passes will still take, at the pace it has had so far."""
        if "left" not in record:
            self._phase = None
            return ""
        left, way, now = record["left"], record["way"], time.monotonic()
        if self._phase is None or self._phase[0] != way or left >= self._phase[2]:
            self._phase = way, now, left
            return ""
        _, began, planned = self._phase
        seconds = left * (now - began) / (planned - left)
        return f", {duration(seconds)} of {way} left"


def duration(seconds: float) -> str:
    """Say about how long something takes.

    Examples
    --------
    >>> duration(42.3), duration(600)
    ('about 42 s', 'about 10 min')
    """
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"
