"""A rank that dies or falls silent ends the fit on all others, and is named."""

from __future__ import annotations

import socket
import time

import numpy as np
import pytest
from ranked import Failed, Group, silent

from thresher.errors import RankError
from thresher.objective.ranks import MARGIN, ROLL_CALL, SILENCE, Alone, meeting

X = np.random.default_rng(0).standard_normal((90, 3))


@pytest.mark.parametrize(("how", "lost"), [("dies", 2), ("falls silent", 0)])
def test_a_lost_rank_is_named_by_all_others(how: str, lost: int) -> None:
    group, ranks, patience = Group(3), range(3), 1.0
    settings = {"budget": 3, "hidden": 2, "solver": "paper", "max_iter": 10**6, "tol": 0.0}
    group.run(len, [[]] * 3)
    began = time.monotonic()
    fates = [how if rank == lost else "" for rank in ranks]
    group.send(silent, [patience] * 3, ["regressor"] * 3, [settings] * 3, [X] * 3, [X[:, 0]] * 3, fates)
    told = [group.result(rank) for rank in ranks if rank != lost]
    seconds = time.monotonic() - began
    group.close()
    assert all(isinstance(one, Failed) and one.kind == "RankError" for one in told), told
    assert all(f"rank {lost} of 3 died or fell silent" in one.words for one in told), told
    # All stages of patience, and some time to compute.
    assert seconds < 20


def test_an_address_that_nobody_listens_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.objective.ranks.MEETING", 0.3)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        with pytest.raises(RankError, match=rf"2 ranks did not find one another .* at {address}"):
            meeting(address, 1, 2).__enter__()


def test_ranks_wait_a_minute_at_most() -> None:
    assert SILENCE <= ROLL_CALL
    assert SILENCE + ROLL_CALL + MARGIN <= 60


def test_alone_there_is_nothing_to_complete() -> None:
    rows = np.array([2, 0])
    alone, part = Alone(), np.arange(3.0)
    assert alone.pick(lambda own: part[own], rows).tolist() == [2.0, 0.0]
    assert alone.every(part) is part
    assert alone.objects("one") == ["one"]
    with pytest.raises(ValueError, match="as it came"):
        alone.together(lambda: (_ for _ in ()).throw(ValueError("as it came")))
