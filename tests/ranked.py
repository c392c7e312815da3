"""Processes that fit together: workers of one group, each of which does what it is told with its own rows."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch.distributed as dist

import thresher.objective.ranks
from thresher import SparseMLPClassifier, SparseMLPRegressor


@dataclass
class Failed:
    """What went wrong on a rank."""

    kind: str
    words: str
    trace: str


class Group:
    """Some processes in one gloo group, with an address of their own."""

    def __init__(self, count: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        context, self.pipes, self.processes = multiprocessing.get_context("spawn"), [], []
        for rank in range(count):
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, rank, count, port), daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def run(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Call a function of a module on each rank, with arguments of its own; gives what came out."""
        self.send(work, *arguments)
        return [self.result(rank) for rank in range(len(self.pipes))]

    def send(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> None:
        """Tell each rank what to do."""
        for pipe, *own in zip(self.pipes, *arguments, strict=True):
            pipe.send((work, own))

    def result(self, rank: int, within: float = 60.0) -> Any:
        """Wait for what a rank gives."""
        assert self.pipes[rank].poll(within), f"rank {rank} has not answered"
        return self.pipes[rank].recv()

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.kill()
            process.join()


def serve(pipe: Connection, rank: int, count: int, port: int) -> None:
    """Do what comes through the pipe, until the process is ended."""
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=count)
    while True:
        work, own = pipe.recv()
        try:
            pipe.send(work(*own))
        except Exception as error:
            pipe.send(Failed(type(error).__name__, str(error), traceback.format_exc()))


def fitted(kind: str, settings: dict[str, Any], X: Any, y: Any, weight: Any = None) -> Any:
    """Fit an estimator to the rows of this rank; gives what came out as plain numbers."""
    model: Any = {"regressor": SparseMLPRegressor, "classifier": SparseMLPClassifier}[kind](**settings)
    model.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    return summary(model)


def refitted(kind: str, settings: dict[str, Any], X: Any, y: Any) -> Any:
    """Go through the rows of this rank twice, by `partial_fit`."""
    model: Any = {"regressor": SparseMLPRegressor, "classifier": SparseMLPClassifier}[kind](**settings)
    classes = {"classes": [0, 1, 2]} if kind == "classifier" else {}
    for _ in range(2):
        model.partial_fit(X, y, **classes)
    return summary(model)


def summary(model: Any) -> dict[str, Any]:
    """Give what was found."""
    layers = [*model.coefs_, *model.intercepts_, model.direct_coef_]
    return {
        "weights": np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in layers]),
        "status": model.status_.name,
        "loss": model.loss_,
        "classes": getattr(model, "classes_", None),
    }


def silent(seconds: float, kind: str, settings: dict[str, Any], X: Any, y: Any, end: bool) -> Any:
    """Fit with little patience, on a rank that ends or falls silent on the way, if it is to."""
    thresher.objective.ranks.SILENCE = thresher.objective.ranks.ROLL_CALL = seconds

    def stop(record: dict[str, Any]) -> None:
        if end and record["step"] == 2:
            os.kill(os.getpid(), 9 if end == "dies" else 19)

    return fitted(kind, {**settings, "callback": stop}, X, y)
