"""`thresher fit --distributed`: several processes, one network, one file."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from thresher import Network
from thresher.cli.app import app


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).standard_normal((200, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] + np.maximum(0, X[:, 1]))
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def fit(table: Path, out: Path, *more: str) -> list[str]:
    settings = ("--budget", "4", "--hidden", "3", "--solver", "paper", "--no-compare")
    return ["fit", str(table), *settings, "--out", str(out), *more]


def test_the_first_of_two_writes_what_one_process_would(table: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    together, alone = tmp_path / "together.thresher", tmp_path / "alone.thresher"
    command = [sys.executable, "-m", "thresher", *fit(table, together, "--distributed")]
    place = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            command, env={**place, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for rank in range(2)
    ]
    told = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], told
    assert b"wrote" in told[0][0]
    assert told[1][0] == b""
    assert CliRunner().invoke(app, fit(table, alone), prog_name="thresher").exit_code == 0
    one, two = Network.load(together), Network.load(alone)
    np.testing.assert_allclose(one.coefs[0], two.coefs[0], atol=1e-8)


def test_without_a_launcher_it_says_how_to_start(table: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, fit(table, tmp_path / "m", "--distributed"), env={"RANK": None})
    assert result.exit_code == 2
    assert "torchrun --nproc-per-node" in result.stderr


def test_the_budget_cannot_be_chosen_by_several(table: Path, tmp_path: Path) -> None:
    arguments = [*fit(table, tmp_path / "m", "--distributed"), "--budget", "auto"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "--budget auto cannot be combined" in result.stderr
