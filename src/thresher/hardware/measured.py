"""What a device was measured to need, and how far it agrees with Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Measured:
    """A network on a device.

    Attributes
    ----------
    target : str
    rows : int
        Rows that the device ran.
    agree : int
        Rows on which every output was that of Python.
    figures : dict
        What it needs: bytes, cycles, LUTs, by name.
    limits : dict
        What the device has of each, where that is fixed.
    how : str
        What ran it.
    """

    target: str
    rows: int
    agree: int
    figures: Mapping[str, float]
    limits: Mapping[str, float] = field(default_factory=dict)
    how: str = ""

    @property
    def fits(self) -> bool:
        """Whether the device has as much as is needed."""
        return all(self.figures[name] <= limit for name, limit in self.limits.items())

    def plain(self) -> dict[str, Any]:
        """Return everything as JSON holds it."""
        return {
            "target": self.target,
            "rows": self.rows,
            "agree": self.agree,
            "figures": dict(self.figures),
            "limits": dict(self.limits),
            "fits": self.fits,
            "how": self.how,
        }
