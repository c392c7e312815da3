"""What was found out about a column before a fit: how it is read, in words too, or why it cannot be."""

from __future__ import annotations

from dataclasses import dataclass

from thresher.data.column import Column
from thresher.data.columns import option


@dataclass(frozen=True)
class Found:
    """What a column holds.

    Attributes
    ----------
    column : Column, optional
        How it is read; None where it is left out.
    read_as, note : str
        The same in words.
    override : str
        The option that has it read otherwise.
    missing : int
        Cells without a value.
    problem : str, optional
        Why it cannot be read, and what to do.
    """

    column: Column | None
    read_as: str
    note: str = ""
    override: str = ""
    missing: int = 0
    problem: str | None = None


def problem(name: str, why: str) -> Found:
    """Say why a column cannot be read."""
    return Found(None, "not read", "see below", option("ignore", name), 0, why)
