"""Time by the clock, and of the processor, which does not grow when others use the machine."""

from __future__ import annotations

import time
from typing import NamedTuple


class Seconds(NamedTuple):
    """Two times, or the two spans between two moments.

    Examples
    --------
    >>> Seconds(5.0, 3.0).less(Seconds(1.0, 2.0))
    Seconds(wall=4.0, processor=1.0)
    """

    wall: float
    processor: float

    @classmethod
    def now(cls) -> Seconds:
        """Give this moment; the processor's time is that of all threads of this process."""
        return cls(time.perf_counter(), time.process_time())

    @classmethod
    def since(cls, began: Seconds) -> Seconds:
        """Give what has passed since a moment."""
        return cls.now().less(began)

    def less(self, span: Seconds) -> Seconds:
        """Take a span away."""
        return Seconds(self.wall - span.wall, self.processor - span.processor)

    def later(self, span: Seconds) -> Seconds:
        """Put a span on top."""
        return Seconds(self.wall + span.wall, self.processor + span.processor)
