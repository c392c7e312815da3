"""Checkpoints: what a journal answers, when it is written, and files that are cut, changed or made up."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save

from thresher.errors import CheckpointError, CheckpointWarning, ParameterError
from thresher.linear.matrix import MatrixOperator
from thresher.linear.vector import SparseVector
from thresher.objective.linear import Linear
from thresher.solvers.checkpoint import Checkpoint, Every
from thresher.solvers.checkpoint_file import HEADER, TEXT, Stored, _digest, from_file, to_bytes
from thresher.solvers.iht import IHT
from thresher.solvers.journal import journal
from thresher.solvers.loop import run

IDENTITY = {"budget": "2", "X": "3 x 2"}


def checkpoint(path: Path, every: Every = Every(steps=1), **other: str) -> Checkpoint:  # noqa: B008 frozen
    return Checkpoint(path, every, {**IDENTITY, **other}, seed=7)


def number(state: Any) -> Any:
    return state


def same(one: Any, two: Any) -> bool:
    if isinstance(one, SparseVector):
        return one.size == two.size and same([one.indices, one.values], [two.indices, two.values])
    if isinstance(one, torch.Tensor):
        return one.dtype is two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(same(*pair) for pair in zip(one, two, strict=True))
    return type(one) is type(two) and (one == two or (one != one and two != two))


def test_a_file_gives_back_what_was_put_in(tmp_path: Path) -> None:
    states = {
        "numbers": [1, 2**127 + 1, 0.1, -math.inf, math.nan, True, None, "text"],
        "tensors": [torch.arange(3), torch.tensor(0.5), torch.zeros(0), torch.ones(2, 2, dtype=torch.bool)],
        "vector": SparseVector(torch.tensor([1, 5]), torch.tensor([0.1, 1e-300]).double(), 10**12),
        "random": np.random.default_rng(3).bit_generator.state,
    }
    path = tmp_path / "file"
    path.write_bytes(to_bytes(Stored(IDENTITY, 3, True, states)))
    found = from_file(path)
    assert found is not None
    assert (found.identity, found.seed, found.done) == (IDENTITY, 3, True)
    assert same(found.states, states)


def test_what_a_file_cannot_hold_is_named() -> None:
    with pytest.raises(
        ParameterError, match=r"cannot hold .* of type set. Let states and records be numbers"
    ):
        to_bytes(Stored({}, 0, False, {"mine": {1, 2}}))


def damaged(whole: bytes) -> dict[str, bytes]:
    start = 8 + int.from_bytes(whole[:8], "little")
    flipped = bytearray(whole)
    flipped[start + 9] ^= 1
    return {
        "empty": b"",
        "cut in the header": whole[:20],
        "cut in the data": whole[:-3],
        "longer": whole + b"more",
        "a bit flipped": bytes(flipped),
        "text": b"a checkpoint",
        "of something else": save({"w": np.zeros(3)}),
        "another version": forged(whole, version=99),
        "no identity": forged(whole, identity=None),
        "identity of numbers": forged(whole, identity={"budget": 2}),
        "no digest": forged(whole, digest=None),
        "a header that is no JSON": save({TEXT: np.zeros(1, np.uint8)}, metadata={HEADER: "{"}),
        "a header that is deep": save({TEXT: np.zeros(1, np.uint8)}, metadata={HEADER: "[" * 50_000}),
    }


def forged(
    whole: bytes, text: Any = None, arrays: dict[str, np.ndarray] | None = None, **header: Any
) -> bytes:
    """Make a file up: with another header, or other content and the digest that it should have."""
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(whole)
        file.flush()
        with safe_open(file.name, framework="numpy") as opened:
            told = json.loads(opened.metadata()[HEADER])
            named = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
    named.update(arrays or {})
    if text is not None:
        named[TEXT] = np.frombuffer(text if isinstance(text, bytes) else json.dumps(text).encode(), np.uint8)
    return save(named, metadata={HEADER: json.dumps({**told, "digest": _digest(named), **header})})


@pytest.mark.parametrize("kind", damaged(to_bytes(Stored(IDENTITY, 0, False, [torch.arange(9)]))))
def test_damaged_files_are_refused_in_words(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(damaged(to_bytes(Stored(IDENTITY, 0, False, [torch.arange(9)])))[kind])
    with pytest.raises(CheckpointError, match=r"(not a checkpoint|damaged).*(Delete it|another path)"):
        checkpoint(path)


@pytest.mark.parametrize(
    "states",
    [
        b"[" * 50_000,
        b"{",
        [[0, "steps"]],
        [["one", "steps", 0, None]],
        7,
        [[0, "steps", 0, {"$tensor": 5}]],
        [[0, "steps", 0, {"$vector": [0, 1]}]],
        [[0, "steps", 0, {"$vector": [0, 1, 2]}]],
        [[0, "steps", 0, {"$vector": [0, 0, 9]}]],
        [[0, "steps", 0, {"$vector": [1, 1, 9]}]],
        [[0, "steps", 0, {"$vector": [0, 1, "many"]}]],
        [[0, "training", 0, None]],
        [[0, "run", 0, None], [1, "steps", 0, {"history": "long"}]],
        [[0, "run", 0, {"w": 3}]],
        [
            [
                0,
                "run",
                0,
                {"w": {"$vector": [0, 1, 99]}, "signs": None, "loss": 0, "status": [], "history": []},
            ]
        ],
    ],
    ids=lambda states: str(states)[:40],
)
def test_made_up_states_are_refused_in_words(states: Any, tmp_path: Path) -> None:
    path, whole = tmp_path / "file", to_bytes(Stored(IDENTITY, 0, False, [torch.tensor([3, 1])]))
    path.write_bytes(forged(whole, states, {"0": np.array([3, 7]), "1": np.ones(2)}))
    with pytest.raises(CheckpointError, match="Delete it, or give another path"), checkpoint(path).open():
        run(IHT(), Linear(MatrixOperator(torch.eye(6)), torch.arange(6.0)), 2)


def test_a_folder_and_a_path_without_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="a folder or a device"):
        checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"cannot be written .No such file.*Make its folder"):
        checkpoint(tmp_path / "none" / "file").open().__enter__()


def test_the_checkpoint_of_another_fit_is_refused_with_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(KeyboardInterrupt), checkpoint(path).open():
        raise KeyboardInterrupt
    with pytest.raises(CheckpointError, match=r"budget was 2 and is 3; rows was nothing and is 5\. Fit as"):
        checkpoint(path, budget="3", rows="5")
    with pytest.raises(CheckpointError, match="finished: X differs"):
        checkpoint(path, X="long " * 20)


def test_a_finished_checkpoint_gives_way_to_another_fit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with checkpoint(path).open():
        assert journal().recall("work", lambda: 5, number, number) == 5
    with checkpoint(path).open():
        assert journal().recall("work", lambda: 6, number, number) == 5
    with checkpoint(path, budget="3").open():
        assert journal().recall("work", lambda: 6, number, number) == 6


def stopped(path: Path, work: Any) -> None:
    with pytest.raises(KeyboardInterrupt), checkpoint(path).open():
        work()
        raise KeyboardInterrupt


def test_work_within_work_is_kept_until_the_whole_is_done(tmp_path: Path) -> None:
    done: list[str] = []

    def part(name: str) -> int:
        return journal().recall(name, lambda: done.append(name) or len(done), number, number)

    def whole(stop: bool) -> int:
        found = part("first") + part("second")
        if stop:
            raise KeyboardInterrupt
        return found

    def all_of_it(stop: bool = False) -> list[int]:
        return [journal().recall("whole", lambda: whole(stop), number, number), part("after")]

    path = tmp_path / "file"
    with pytest.raises(KeyboardInterrupt), checkpoint(path).open():
        all_of_it(stop=True)
    assert done == ["first", "second"]
    stopped(path, all_of_it)
    assert done == ["first", "second", "after"]
    stored = from_file(path)
    assert stored is not None
    # What was within the whole is no longer there, and what comes after keeps its number.
    assert [entry[:2] for entry in stored.states] == [[0, "whole"], [3, "after"]]
    stopped(path, all_of_it)
    assert done == ["first", "second", "after"]


def test_quick_work_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with checkpoint(path, Every(seconds=1e6)).open():
        journal().recall("work", lambda: 5, number, number)
    stored = from_file(path)
    assert stored is not None
    assert stored.states == []


def test_a_full_disk_keeps_the_last_file_and_the_fit_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    with checkpoint(path).open() as kept:
        before = path.read_bytes()

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("thresher.solvers.checkpoint.write_whole", full)
        with pytest.warns(CheckpointWarning, match=r"No space left.*The fit goes on.*Make room"):
            assert journal().recall("work", lambda: 5, number, number) == 5
        assert path.read_bytes() == before
        monkeypatch.undo()
        kept.pause()
        assert path.read_bytes() != before


def test_ctrl_c_waits_for_a_pause_and_a_second_one_does_not(tmp_path: Path) -> None:
    path, reached = tmp_path / "file", []
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), checkpoint(path, Every(seconds=1e6)).open():
            signal.raise_signal(signal.SIGINT)
            reached.append("after the first")
            with journal().work("work", lambda: {"at": 3}, lambda state: None):
                journal().pause()
                reached.append("after the pause")
        stored = from_file(path)
        assert stored is not None
        assert stored.states == [[0, "work", 0, {"at": 3}]]
        with pytest.raises(KeyboardInterrupt), checkpoint(path, Every(seconds=1e6)).open():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            reached.append("after the second")
        assert reached == ["after the first"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, previous)
