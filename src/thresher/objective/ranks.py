"""Rows split over processes: what each has of them, and how sums over rows are completed.

Whatever sums over rows passes its sums through `sum` or `mean`, so that each process, a *rank*, decides on
the same numbers. Rows are numbered through all ranks: first those of rank 0, then those of rank 1.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cached_property
from threading import Thread
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse
import torch
import torch.distributed as dist
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.errors import ParameterError, RankError

# Seconds that ranks wait for one that takes no part in a sum; those in which all others, who may still be
# waiting for it, then say that they are there; and those left to whoever keeps addresses: a minute at most.
SILENCE, ROLL_CALL, MARGIN = 25.0, 28.0, 3.0
# Seconds in which all ranks must have found one another.
MEETING = 50.0
# Seconds between two looks at who has answered.
PAUSE = 0.1
# Numbers in float64 that are added up where they are: a copy would be as large.
LARGE = 2**16
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Letters of a setting that are shown where ranks differ.
SHOWN = 60

T = TypeVar("T")


class Alone:
    """One process has all rows: nothing is to be completed."""

    number, count, first = 0, 1, 0

    def holding(self, held: int) -> Alone:
        """Say how many rows this rank has."""
        return self

    def rows(self, held: int) -> int:
        """Give the rows of all ranks; `held` are those of this one."""
        return held

    def most(self, held: int) -> int:
        """Give the most rows of any rank."""
        return held

    def own(self, rows: np.ndarray) -> np.ndarray:
        """Give those of some rows that this rank has, by their places here."""
        return rows

    def pick(self, read: Callable[[np.ndarray], Any], rows: np.ndarray) -> Any:
        """Give what a function reads for some rows, in their order, to every rank."""
        return read(rows)

    def every(self, part: Any) -> Any:
        """Give an array or tensor that has an entry for each row of this rank, for the rows of all."""
        return part

    def stacked(self, X: Any) -> Any:
        """Give the rows of all ranks, in memory."""
        return X

    def sum(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Add up what the ranks have, in float64; tensors may be changed."""
        return parts

    def added(self, number: int) -> int:
        """Add up a number of each rank."""
        return sum(self.objects(number))

    def mean(self, weight: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        """Take the mean of what the ranks have, by a weight of each."""
        return parts

    def highest(self, numbers: Tensor) -> Tensor:
        """Give the highest of what the ranks have, place by place."""
        return numbers

    def union(self, numbers: np.ndarray) -> np.ndarray:
        """Give the distinct numbers, ascending, that any rank has."""
        return numbers

    def objects(self, own: T) -> list[T]:
        """Give what each rank has."""
        return [own]

    def together(self, work: Callable[[], T]) -> T:
        """Do something that may fail: where it fails on one rank, all raise an error that says so."""
        return work()

    def refuse_differences(self, described: dict[str, Any]) -> None:
        """Refuse ranks that do not agree, naming what differs."""
        return None


@dataclass(frozen=True)
class Ranks(Alone):
    """One of several processes, each of which has a part of the rows.

    Parameters
    ----------
    group : ProcessGroup
        Of `torch.distributed`.
    counts : tuple of int
        The rows of each rank.
    """

    group: Any
    counts: tuple[int, ...] = ()

    @cached_property
    def number(self) -> int:  # type: ignore[override]
        """Which rank this is."""
        return dist.get_rank(self.group)

    @cached_property
    def count(self) -> int:  # type: ignore[override]
        """How many there are."""
        return dist.get_world_size(self.group)

    @cached_property
    def first(self) -> int:  # type: ignore[override]
        """The number of this rank's first row."""
        return sum(self.counts[: self.number])

    def holding(self, held: int) -> Ranks:
        """Say how many rows this rank has."""
        return Ranks(self.group, tuple(self.objects(held)))

    def rows(self, held: int) -> int:
        """Give the rows of all ranks; `held` are those of this one."""
        return sum(self.counts)

    def most(self, held: int) -> int:
        """Give the most rows of any rank."""
        return max(self.counts)

    def _mine(self, rows: np.ndarray) -> np.ndarray:  # bool
        return (rows >= self.first) & (rows < self.first + self.counts[self.number])

    def own(self, rows: np.ndarray) -> np.ndarray:
        """Give those of some rows that this rank has, by their places here."""
        return rows[self._mine(rows)] - self.first

    def pick(self, read: Callable[[np.ndarray], Any], rows: np.ndarray) -> Any:
        """Give what a function reads for some rows, in their order, to every rank."""
        mine = self._mine(rows)
        part = read(rows[mine] - self.first)
        if scipy.sparse.issparse(part):
            owner = np.searchsorted(np.cumsum(self.counts), rows, side="right")
            order = np.argsort(np.argsort(owner, kind="stable"), kind="stable")
            return self.stacked(part)[order]
        held = from_host(np.require(part, requirements="W")) if isinstance(part, np.ndarray) else part
        found = torch.zeros(len(rows), *held.shape[1:], dtype=held.dtype)
        found[from_host(mine)] = held
        # All others hold zeros there, in every byte.
        self._reduce(found.view(-1).view(torch.uint8))
        return to_host(found) if isinstance(part, np.ndarray) else found

    def every(self, part: Any) -> Any:
        """Give an array or tensor that has an entry for each row of this rank, for the rows of all."""
        return self.pick(lambda own: part, np.arange(self.rows(len(part))))

    def stacked(self, X: Any) -> Any:
        """Give the rows of all ranks, in memory."""
        parts = self.objects(X if scipy.sparse.issparse(X) else np.asarray(X))
        stack: Callable[[Sequence[Any]], Any] = (
            scipy.sparse.vstack if scipy.sparse.issparse(X) else np.concatenate
        )
        return stack(parts)

    def sum(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Add up what the ranks have, in float64; tensors may be changed."""
        if any(
            part.dtype is torch.float64 and part.is_contiguous() and part.numel() > LARGE for part in parts
        ):
            return tuple(self._flat((part,))[0] for part in parts)
        return self._flat(parts)

    def _flat(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        flat = [part.reshape(-1).double() for part in parts]
        whole = flat[0] if len(flat) == 1 else torch.cat(flat)
        self._reduce(whole)
        pieces = whole.split([part.numel() for part in parts])
        return tuple(piece.view(part.shape).to(part.dtype) for piece, part in zip(pieces, parts, strict=True))

    def mean(self, weight: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        """Take the mean of what the ranks have, by a weight of each."""
        *sums, total = self.sum(*(part.double() * weight.double() for part in parts), weight.double())
        return tuple((one / total).to(part.dtype) for one, part in zip(sums, parts, strict=True))

    def highest(self, numbers: Tensor) -> Tensor:
        """Give the highest of what the ranks have, place by place."""
        numbers = numbers.clone()
        self._reduce(numbers, "MAX")
        return numbers

    def union(self, numbers: np.ndarray) -> np.ndarray:
        """Give the distinct numbers, ascending, that any rank has."""
        return np.unique(np.concatenate(self.objects(numbers)))

    def objects(self, own: T) -> list[T]:
        """Give what each rank has."""
        found: list[Any] = [None] * self.count
        self._joined(lambda: dist.all_gather_object(found, own, group=self.group))
        return found

    def together(self, work: Callable[[], T]) -> T:
        """Do something that may fail: where it fails on one rank, all raise an error that says so."""
        failed: Exception | None = None
        try:
            done = work()
        except Exception as error:
            failed = error
        told = self.objects(None if failed is None else str(failed))
        if failed is not None:
            raise failed
        for number, words in enumerate(told):
            if words is not None:
                raise RankError(f"rank {number} cannot take part: {words}")
        return done

    def refuse_differences(self, described: dict[str, Any]) -> None:
        """Refuse ranks that do not agree, naming what differs."""
        told = self.objects({name: _written(value) for name, value in described.items()})
        for name, value in told[0].items():
            for number, other in enumerate(told):
                if other.get(name) != value:
                    there = f"{str(other.get(name))[:SHOWN]} on rank {number}"
                    raise ParameterError(
                        f"{name} is {value[:SHOWN]} on rank 0, but {there}. Give every rank the same, and "
                        "rows of one kind."
                    )

    def _reduce(self, numbers: Tensor, how: str = "SUM") -> None:
        self._joined(lambda: dist.all_reduce(numbers, getattr(dist.ReduceOp, how), group=self.group))

    def _joined(self, call: Callable[[], Any]) -> None:
        """Do what all ranks do, or say which of them does not."""
        try:
            call()
        except RuntimeError as error:
            self._refuse_lost(error)

    def _refuse_lost(self, error: RuntimeError) -> NoReturn:
        """Name those who do not answer when the roll is called."""
        told: list[list[int]] = []
        # Whoever keeps the addresses may be silent as well, and a question to it has no end.
        caller = Thread(target=self._call_roll, args=(told,), daemon=True)
        caller.start()
        caller.join(ROLL_CALL + MARGIN)
        # Unless a launcher does, rank 0 keeps them.
        missing = told[0] if told else [0]
        lost = " and ".join(f"rank {number}" for number in missing)
        what = f"{lost} of {self.count} died or fell silent" if lost else f"the {self.count} ranks lost touch"
        raise RankError(
            f"{what}, so the fit has ended on all of them. Ranks wait {SILENCE:.0f} seconds for one another: "
            "see what happened there, and fit again."
        ) from error

    def _call_roll(self, told: list[list[int]]) -> None:
        """Tell who has not answered once there is one such rank, or after a while."""
        until = time.monotonic() + ROLL_CALL
        try:
            common = dist.distributed_c10d._get_default_store()
            store = dist.PrefixStore(f"thresher/{self.group.group_name}", common)
            store.set(str(self.number), "here")
            while True:
                missing = [number for number in range(self.count) if not store.check([str(number)])]
                if len(missing) <= 1 or time.monotonic() > until:
                    return told.append(missing)
                time.sleep(PAUSE)
        except RuntimeError:
            return None


def _written(value: Any) -> str:
    """Write a setting as every process does: the order of a set differs, and so do places in memory."""
    if isinstance(value, (set, frozenset)):
        return str(sorted(map(_written, value)))
    if is_dataclass(value):
        parts = (f"{part.name}={_written(getattr(value, part.name))}" for part in fields(value))
        return f"{type(value).__name__}({', '.join(parts)})"
    return ADDRESS.sub("", repr(value))


@contextmanager
def present() -> Iterator[Alone]:
    """Give the ranks of the process group that the caller is in, or one rank alone where there is none.

    Sums have a group of their own, whose patience is known.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        yield Alone()
        return
    several = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    group = dist.new_group(backend=several, timeout=timedelta(seconds=SILENCE))
    try:
        yield Ranks(group)
    finally:
        dist.destroy_process_group(group)


@contextmanager
def meeting(address: str, number: int = -1, count: int = -1) -> Iterator[Alone]:
    """Make the process group that :func:`present` finds, and give its ranks, whose patience is long.

    Parameters
    ----------
    address : str
        ``"tcp://host:port"``, where rank 0 listens, or ``"env://"``: as a launcher has set it.
    number, count : int
        Which rank this is, and how many there are, unless the launcher says so.
    """
    if dist.is_initialized():
        raise RankError(
            "this process is in a process group already, and can be one rank of one group only. Give each "
            "rank a process of its own."
        )
    if address == "env://":
        try:
            number, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        except (KeyError, ValueError) as error:
            raise ParameterError(
                f"no launcher has said which rank this is ({error} in the environment). Start all ranks with "
                "one command, such as torchrun --nproc-per-node 2 --no-python thresher fit ..."
            ) from error
    # A launcher may listen for all ranks itself.
    listens = number == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    patience, where = timedelta(seconds=MEETING), urlsplit(address)
    try:
        if not listens:
            _reach(where.hostname or "", where.port or 0)
        store = dist.TCPStore(where.hostname or "", where.port or 0, count, listens, patience)
        dist.init_process_group("gloo", store=store, rank=number, world_size=count)
    except (RuntimeError, OSError) as error:
        raise RankError(
            f"the {count} ranks did not find one another within {MEETING:.0f} seconds at {address} "
            f"({error}). Start all of them, with the address of rank 0, which must be free there and "
            "reachable from here."
        ) from error
    try:
        yield Ranks(dist.group.WORLD)
    finally:
        dist.destroy_process_group()


def _reach(host: str, port: int) -> None:
    """Wait until somebody listens, which takes a moment where all start at once."""
    until = time.monotonic() + MEETING
    while True:
        try:
            socket.create_connection((host, port), MEETING).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE)
