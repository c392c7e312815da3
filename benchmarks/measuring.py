"""What every benchmark shares: how to time, what a measurement is, and how it compares with its bar."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Options:
    """How to measure.

    Attributes
    ----------
    threads : int
        Threads of every matrix product, ours and theirs.
    repeats : int
        Timings behind each median.
    quick : bool
        Whether slow peers may be timed on a few steps and extrapolated; the output then says so.
    """

    threads: int = 2
    repeats: int = 5
    quick: bool = False


@dataclass(frozen=True)
class Measurement:
    """One line of the table.

    Attributes
    ----------
    what : str
        What was measured, in words.
    value : float
        The ratio, or the number of `unit`.
    bar : float or None
        What it must reach, or None for a number that is only reported.
    unit : str
        "x" for a ratio, else the unit.
    at_least : bool
        Whether the value must be at least the bar; at most otherwise.
    detail : dict
        The numbers behind the value, plain enough for JSON.
    """

    what: str
    value: float
    bar: float | None
    unit: str = "x"
    at_least: bool = False
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool | None:
        """Whether the bar is met; None where there is no bar."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def medians(works: Mapping[str, Callable[[], object]], repeats: int, warmups: int = 1) -> dict[str, float]:
    """Time several pieces of work in turns, so that whatever else the machine does falls on all alike.

    Returns
    -------
    dict
        The median seconds of each.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(warmups + repeats):
        for name, work in works.items():
            spent = seconds(work)
            if turn >= warmups:
                times[name].append(spent)
    return {name: statistics.median(spent) for name, spent in times.items()}
