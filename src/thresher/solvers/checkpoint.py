"""The journal that is a file: a fit that is stopped in any way goes on from it, with the same bits."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from thresher.atomic import write_whole
from thresher.errors import CheckpointError, CheckpointWarning, warn_user
from thresher.solvers.checkpoint_file import Stored, from_file, to_bytes
from thresher.solvers.journal import Journal, State, T, using

# Answers are kept of work that took this share of the time between two checkpoints; the rest is done again.
WORTH = 0.02
# What an identity may be long to be shown.
SHOWN = 60


@dataclass(frozen=True, eq=False)
class Every:
    """How often to write: after so many seconds, or so many steps."""

    seconds: float = 0.0
    steps: int = 0


@dataclass(eq=False)
class Entry:
    """Some work: its name, how many numbers the work within it took, and its state or how to get it."""

    name: str
    within: int
    state: Callable[[], State]


def _kept(name: str, within: int, state: State) -> Entry:
    return Entry(name, within, lambda: state)


class Checkpoint(Journal):
    """A journal in a file.

    Parameters
    ----------
    path : str or path
        The file. One of the same fit is gone on from; one of another unfinished fit is refused.
    every : Every
        How often it is written, at most.
    identity : dict of str
        What the fit is of, by name: a file is of the same fit where all of it is the same.
    seed : int
        The seed of the fit, in place of which the one in the file is taken.

    Attributes
    ----------
    seed : int
        The seed to fit with.
    """

    def __init__(
        self, path: str | os.PathLike[str], every: Every, identity: dict[str, str], seed: int
    ) -> None:
        self.path, self.every, self.identity, self.seed = os.fspath(path), every, identity, seed
        # Work by number, in the order in which it began; what was read and what was done since.
        self.entries: dict[int, Entry] = {}
        self.next, self.steps, self.written = 0, 0, time.monotonic()
        self.closed = self.asked = False
        stored = from_file(path)
        if stored is not None and (stored.identity == identity or not stored.done):
            self._refuse_another(stored)
            self.seed = stored.seed
            with self._fitting():
                for number, name, within, state in stored.states:
                    self.entries[int(number)] = _kept(str(name), int(within), state)

    @contextmanager
    def open(self) -> Iterator[Checkpoint]:
        """Use this journal; the file is marked as that of a finished fit at the end, if it comes to that."""
        try:
            self._write()
        except OSError as error:
            raise CheckpointError(
                f"{self.path} cannot be written ({error.strerror or error}). Make its folder, with room, or "
                "give another path as checkpoint."
            ) from error
        with using(self), self._interruptible():
            yield self
        if not self.closed:
            self._write_or_warn(done=True)
            if self.asked:
                raise KeyboardInterrupt

    def recall(
        self,
        name: str,
        compute: Callable[[], T],
        save: Callable[[T], State],
        load: Callable[[State], T],
    ) -> T:
        """Give the answer of some work; what was kept of the work within it is then no longer needed."""
        if self.closed:
            return compute()
        number, known = self._begin(name)
        if known is not None:
            with self._fitting():
                answer = load(known.state())
            self.next += known.within
            return answer
        began = time.monotonic()
        answer = compute()
        if not self.closed and time.monotonic() - began >= WORTH * self.every.seconds:
            for inner in range(number + 1, self.next):
                self.entries.pop(inner, None)
            self.entries[number] = _kept(name, self.next - number - 1, save(answer))
        self.pause()
        return answer

    @contextmanager
    def work(self, name: str, save: Callable[[], State], load: Callable[[State], None]) -> Iterator[None]:
        """Do work that can go on from its state."""
        if self.closed:
            yield
            return
        number, known = self._begin(name)
        if known is not None:
            with self._fitting():
                load(known.state())
        self.entries[number] = Entry(name, 0, save)
        try:
            yield
        except GeneratorExit:
            self._end(number, name, save)
            raise
        self._end(number, name, save)

    def pause(self) -> None:
        """Write if it is time, and let Ctrl-C end the fit here."""
        if self.closed:
            return
        self.steps += 1
        due = (
            self.steps % self.every.steps == 0
            if self.every.steps
            else time.monotonic() - self.written >= self.every.seconds
        )
        if due or self.asked:
            self._write_or_warn()
        if self.asked:
            self.closed = True
            raise KeyboardInterrupt

    def leave(self) -> None:
        """Write what there is and keep no more."""
        if not self.closed:
            self._write_or_warn()
        self.closed = True

    def break_off(self) -> None:
        """Keep the file as it is."""
        self.closed = True

    def _begin(self, name: str) -> tuple[int, Entry | None]:
        number = self.next
        self.next += 1
        known = self.entries.get(number)
        if known is not None and known.name != name:
            raise self._strange()
        return number, known

    def _end(self, number: int, name: str, save: Callable[[], State]) -> None:
        """Keep the last state of work, and not the work itself."""
        if not self.closed:
            self.entries[number] = _kept(name, 0, save())

    def _write(self, done: bool = False) -> None:
        states = [
            [number, entry.name, entry.within, entry.state()]
            for number, entry in sorted(self.entries.items())
        ]
        write_whole(self.path, to_bytes(Stored(self.identity, self.seed, done, states)))
        self.written = time.monotonic()

    def _write_or_warn(self, done: bool = False) -> None:
        """Write; where that fails, the last good file stays, the fit goes on, and it is tried again later."""
        try:
            self._write(done)
        except OSError as error:
            self.written = time.monotonic()
            warn_user(
                f"{self.path} could not be written ({error.strerror or error}). The fit goes on, and the "
                "last checkpoint is kept. Make room in its folder.",
                CheckpointWarning,
            )

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let the first Ctrl-C wait for a pause, where states are whole; a second one does not wait."""
        inside = threading.current_thread() is threading.main_thread()
        if not inside or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def ask(number: int, frame: FrameType | None) -> None:
            self.asked = True
            signal.signal(signal.SIGINT, signal.default_int_handler)

        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Refuse states that are not what their names promise."""
        try:
            yield
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise self._strange() from error

    def _strange(self) -> CheckpointError:
        return CheckpointError(
            f"{self.path} holds states that do not belong to this fit, although it says so. Delete it, or "
            "give another path as checkpoint."
        )

    def _refuse_another(self, stored: Stored) -> None:
        """Refuse the checkpoint of another fit, naming what differs."""
        names = [*self.identity, *(name for name in stored.identity if name not in self.identity)]
        told = [
            _difference(name, stored.identity.get(name, "nothing"), self.identity.get(name, "nothing"))
            for name in names
            if stored.identity.get(name) != self.identity.get(name)
        ]
        if told:
            raise CheckpointError(
                f"{self.path} is the checkpoint of another fit, which is not finished: {'; '.join(told)}. "
                "Fit as before to go on with it, delete it, or give another path as checkpoint."
            )


def _difference(name: str, before: Any, now: Any) -> str:
    if max(len(before), len(now)) > SHOWN:
        return f"{name} differs"
    return f"{name} was {before} and is {now}"
