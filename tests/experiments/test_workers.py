"""Cells in other processes and on a cluster: the same outcomes, and one that dies takes no other with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from thresher.errors import DataFileError
from thresher.experiments import EXPERIMENTS, Choices, Sweep
from thresher.experiments.record import Cell
from thresher.experiments.workers import Task, here, in_processes, on_dask, one_by_one

CELLS = [Cell("toy", {"k": k}, 0) for k in range(5)]


def tasks(measure: Callable[..., dict[str, Any]], **settings: Any) -> list[Task]:
    return [Task(((cell, "print"),), partial(one_by_one, measure), **settings) for cell in CELLS]


def toy() -> Callable[..., dict[str, Any]]:
    """Make a measurement that travels to other processes by value, since they know nothing of tests."""

    def measure(cell: Any) -> dict[str, Any]:
        import torch

        if cell["k"] == 3:
            raise ArithmeticError("three is too much")
        return {"square": cell["k"] ** 2, "threads": torch.get_num_threads()}

    return measure


def test_processes_give_what_one_process_gives() -> None:
    together = {o.cell["k"]: o for o in in_processes(tasks(toy()), jobs=2)}
    apart = {o.cell["k"]: o for o in here(tasks(toy()))}
    assert together.keys() == apart.keys() == set(range(5))
    for k, outcome in together.items():
        assert (outcome.status, outcome.error) == (apart[k].status, apart[k].error)
        assert outcome.result.get("square") == apart[k].result.get("square")
    assert {o.result["threads"] for o in together.values() if o.result} == {1}
    assert together[3].error == "ArithmeticError: three is too much"


def test_a_process_that_dies_is_one_failed_cell() -> None:
    def deadly(cell: Any) -> dict[str, Any]:
        import os

        if cell["k"] == 2:
            os._exit(1)
        return {"k": cell["k"]}

    outcomes = {outcome.cell["k"]: outcome for outcome in in_processes(tasks(deadly), jobs=2)}
    assert outcomes.keys() == set(range(5))
    assert {k for k, outcome in outcomes.items() if outcome.status == "failed"} == {2}
    assert "died" in str(outcomes[2].error)


def test_an_error_in_another_process_is_raised_when_asked() -> None:
    with pytest.raises(ArithmeticError, match=r"three is too much"):
        list(in_processes(tasks(toy(), stop_on_error=True), jobs=2))


def sweep(folder: Path) -> Sweep:
    """Declare a few small fits."""
    figure = EXPERIMENTS["figure-1"]
    choices = Choices(parts=("left",), methods=("paper",), m=(1, 2), s=(2, 5), rows=200, seeds=(0,))
    return Sweep(figure, figure.chosen(choices), folder)


# What the cluster's own packages warn of is theirs to mend.
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_two_workers_gives_what_one_process_gives(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        outcomes = list(on_dask(tasks(toy()), cluster.scheduler_address))
        fits = list(sweep(tmp_path / "cluster").run(dask=cluster.scheduler_address))
    assert sorted(outcome.cell["k"] for outcome in outcomes) == list(range(5))
    squares = {outcome.cell["k"]: outcome.result.get("square") for outcome in outcomes}
    assert squares == {0: 0, 1: 1, 2: 4, 3: None, 4: 16}
    expected = {outcome.key: outcome.result["score"] for outcome in sweep(tmp_path / "here").run()}
    assert {outcome.key: outcome.result["score"] for outcome in fits} == expected
    assert len(sweep(tmp_path / "cluster").done) == len(expected) == 4


@pytest.mark.filterwarnings("ignore")
def test_no_scheduler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs the extra `dask`")
    monkeypatch.setattr("thresher.experiments.workers.SECONDS_TO_CONNECT", 1)
    with pytest.raises(DataFileError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:9'"):
        next(on_dask(tasks(toy()), "tcp://127.0.0.1:9"))
