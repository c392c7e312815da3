"""What long work tells as it goes, so that work that is stopped can go on from there.

A fit is the same computation whenever it is run again. So nothing needs to be kept but what took long: the
answers of work that is done, and the state of work under way. To go on, a fit runs from its beginning: what
the journal has is not computed again, and all else is, with the same bits. Work is known by its order.

The journal here keeps nothing; that of `checkpoint.py` writes a file. Solvers ask for the one in use, and
never which it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

State = Any
"""Numbers, text, None, tensors and sparse vectors, in lists and in dictionaries whose keys are text."""

T = TypeVar("T")


class Journal:
    """Where work tells what it has done; this one forgets it all."""

    def recall(
        self,
        name: str,
        compute: Callable[[], T],
        save: Callable[[T], State],
        load: Callable[[State], T],
    ) -> T:
        """Give the answer of some work, computed unless it is known.

        Parameters
        ----------
        name : str
            What it is, to tell that a journal is of something else.
        compute : callable
            Does the work; gives the same answer whenever it is called at this place of a fit.
        save, load : callable
            Turn an answer into a state and back.
        """
        return compute()

    def work(
        self, name: str, save: Callable[[], State], load: Callable[[State], None]
    ) -> AbstractContextManager[None]:
        """Do work that can go on from its state; it begins with `load` where a state is known.

        Parameters
        ----------
        name : str
            What it is.
        save : callable
            Gives the state; asked whenever this work, or what it hands out to, calls `pause`, and at its end.
        load : callable
            Takes a state up.
        """
        return nullcontext()

    def pause(self) -> None:
        """Say that the state of all work is whole: it may be written now, and Ctrl-C may end it."""

    def leave(self) -> None:
        """Say that the work ends here unfinished, its state whole, and is to go on some other day."""

    def break_off(self) -> None:
        """Say that the work ends here unfinished, its state perhaps torn."""


_in_use: ContextVar[Journal] = ContextVar("journal", default=Journal())  # noqa: B039 it has no state


def journal() -> Journal:
    """Give the journal in use."""
    return _in_use.get()


@contextmanager
def using(other: Journal) -> Iterator[None]:
    """Use another journal for a while."""
    token = _in_use.set(other)
    try:
        yield
    finally:
        _in_use.reset(token)


def forgetting() -> AbstractContextManager[None]:
    """Keep what is done for a while out of the journal: another's work, or that of a single step."""
    return using(Journal())
