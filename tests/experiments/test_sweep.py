"""A sweep runs every cell once, keeps what is done, and tries again what failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from thresher.errors import DataFileError, ParameterError
from thresher.experiments import EXPERIMENTS, experiment_named
from thresher.experiments.experiment import Choices, Experiment, Summary, Table, known
from thresher.experiments.record import Cell, CellFile, Outcome
from thresher.experiments.sweep import Sweep

CELLS = [Cell("toy", {"k": k}, seed) for seed in (0, 1) for k in (1, 2)]


@dataclass
class Bench:
    """A toy measurement that remembers what it was asked, and breaks where it is told to."""

    asked: list[Cell] = field(default_factory=list)
    breaks_at: dict[int, BaseException] = field(default_factory=dict)
    data: str = "print"

    def measure(self, cell: Cell) -> dict[str, Any]:
        self.asked.append(cell)
        if error := self.breaks_at.get(cell["k"]):
            raise error
        return {"psnr": 10.0 * cell["k"]}

    def experiment(self) -> Experiment:
        return Experiment(
            "toy",
            "A toy",
            lambda choices: [cell for cell in CELLS if choices.k is None or cell["k"] in choices.k],
            lambda cell: self.data,
            self.measure,
            _summary,
            varies=("k",),
            takes=("k",),
        )

    def sweep(self, folder: Path) -> Sweep:
        return Sweep(self.experiment(), CELLS, folder)


def _summary(outcomes: Sequence[Outcome]) -> Summary:
    return Summary((Table("Toy", ("k",), tuple((outcome.cell["k"],) for outcome in outcomes)),))


def test_every_cell_is_run_once_and_kept(tmp_path: Path) -> None:
    bench = Bench()
    sweep = bench.sweep(tmp_path)
    given = list(sweep.run())
    assert bench.asked == CELLS == [outcome.cell for outcome in given]
    assert (sweep.done, sweep.pending, sweep.failed, len(sweep)) == (given, [], [], 4)
    again = bench.sweep(tmp_path)
    assert list(again.run()) == []
    # Seconds are rounded on the disk; everything else is what was measured.
    assert [outcome.result for outcome in again.done] == [outcome.result for outcome in given]


@pytest.mark.parametrize("change", ["data", "version"])
def test_other_data_or_another_version_is_run_again(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(Bench().sweep(tmp_path).run())
    bench = Bench(data="another print") if change == "data" else Bench()
    if change == "version":
        path = tmp_path / "cells.jsonl"
        path.write_text(path.read_text().replace('"version": "', '"version": "older than '))
    assert len(list(bench.sweep(tmp_path).run())) == 4


def test_a_failure_is_recorded_and_the_rest_is_run(tmp_path: Path) -> None:
    bench = Bench(breaks_at={1: ArithmeticError("no luck")})
    sweep = bench.sweep(tmp_path)
    list(sweep.run())
    assert [outcome.cell["k"] for outcome in sweep.done] == [2, 2]
    assert [outcome.error for outcome in sweep.failed] == ["ArithmeticError: no luck"] * 2
    bench.breaks_at.clear()
    retried = bench.sweep(tmp_path)
    assert [cell["k"] for cell in retried.pending] == [1, 1]
    list(retried.run())
    assert (len(retried.done), retried.failed) == (4, [])


def test_an_error_ends_the_sweep_when_asked(tmp_path: Path) -> None:
    sweep = Bench(breaks_at={2: ArithmeticError("no luck")}).sweep(tmp_path)
    with pytest.raises(ArithmeticError, match=r"no luck"):
        list(sweep.run(stop_on_error=True))
    assert len(sweep.done) == 1


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    bench = Bench(breaks_at={2: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        list(bench.sweep(tmp_path).run())
    going_on = Bench()
    list(going_on.sweep(tmp_path).run())
    assert going_on.asked == CELLS[1:]


def test_nothing_is_written_before_a_sweep_runs(tmp_path: Path) -> None:
    sweep = Bench().sweep(tmp_path / "new")
    assert len(sweep.pending) == 4
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_fails_before_any_cell(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    bench = Bench()
    with pytest.raises(DataFileError):
        list(bench.sweep(tmp_path / "taken").run())
    assert bench.asked == []


def test_choices_that_mean_nothing_are_refused() -> None:
    experiment = Bench().experiment()
    assert experiment.chosen(Choices(k=(2,))) == [cell for cell in CELLS if cell["k"] == 2]
    with pytest.raises(ParameterError, match=r"--methods means nothing to toy. It knows .*--k"):
        experiment.chosen(Choices(methods=("auto",)))
    everything = Choices(k=(2,), methods=("auto",), rows=7, seeds=(3,))
    assert experiment.understood(everything) == Choices(k=(2,), seeds=(3,))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataFileError, match=r"no folder of results: it holds thesis.tex but no cells.jsonl"):
        Bench().sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_cells_of_another_experiment_are_left_alone(tmp_path: Path) -> None:
    other = Outcome(replace(CELLS[0], experiment="other"), "print", "done", 1.0)
    CellFile(tmp_path / "cells.jsonl").append(other)
    with pytest.raises(DataFileError, match=r"holds cells of other, not of toy"):
        Bench().sweep(tmp_path)


def test_two_sweeps_do_not_write_to_one_folder(tmp_path: Path) -> None:
    first = Bench().sweep(tmp_path).run()
    next(first)
    with pytest.raises(DataFileError, match=r"another sweep is writing to"):
        next(Bench().sweep(tmp_path).run())
    assert len(list(first)) == 3
    assert list(Bench().sweep(tmp_path).run()) == []


def test_only_experiments_that_read_files_are_given_the_data_folder(tmp_path: Path) -> None:
    seen: list[Any] = []

    def reads(cell: Cell, folder: Path | None) -> dict[str, Any]:
        seen.append(folder)
        return {}

    checked: list[Any] = []
    experiment = replace(
        Bench().experiment(), measure=reads, check=lambda cells, folder: checked.append((len(cells), folder))
    )
    sweep = Sweep(experiment, CELLS, tmp_path)
    sweep.check(tmp_path)
    list(sweep.run(data=tmp_path))
    assert (seen, checked) == ([tmp_path] * 4, [(4, tmp_path)])


def test_what_was_left_out_is_said() -> None:
    experiment = Bench().experiment()
    some = [Outcome(cell, "print", "done", 1.0) for cell in CELLS if cell["k"] == 1 and cell.seed == 0]
    assert experiment.left_out(some) == ["1 of 2 values of k", "1 of 2 seeds"]
    assert experiment.left_out([Outcome(cell, "print", "done", 1.0) for cell in CELLS]) == []


def test_all_is_every_name() -> None:
    assert known("--methods", ("all",), ("a", "b")) == ("a", "b")
    with pytest.raises(ParameterError, match=r"--methods aa, but there are a, b, and all. Did you mean a\?"):
        known("--methods", ("aa",), ("a", "b"))


def test_labels_tell_cells_apart() -> None:
    experiment = Bench().experiment()
    assert len({experiment.label(cell) for cell in CELLS}) == len(CELLS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("tabel-1", "table-1"),
        ("Table_2", "table-2"),
        ("recover", "recovery"),
        ("figure1", "figure-1"),
        ("fig-3", "figure-3"),
        ("runtime", "runtimes"),
        ("al", "all"),
    ],
)
def test_a_misspelt_experiment_gets_a_hint(typed: str, meant: str) -> None:
    with pytest.raises(ParameterError, match=f"Did you mean {meant}\\?"):
        experiment_named(typed)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_cells_of_an_experiment_have_keys_of_their_own(name: str) -> None:
    experiment = experiment_named(name)
    for choices in (Choices(), Choices(quick=True)):
        cells = experiment.chosen(choices)
        assert len({cell.key(experiment.fingerprint(cell)) for cell in cells}) == len(cells)
        assert len({experiment.label(cell) for cell in cells}) == len(cells)
    quick = experiment.chosen(Choices(quick=True))
    assert len(quick) < len(experiment.chosen(Choices()))
    assert all(cell.seed == 0 for cell in quick)
    assert {cell.seed for cell in experiment.chosen(Choices(quick=True, seeds=(5,)))} == {5}


def test_a_summary_is_plain() -> None:
    outcome = Outcome(CELLS[0], "print", "done", 0.0, {})
    plain = replace(_summary([outcome]), numbers={"share": 1.0}).plain()
    assert plain["numbers"] == {"share": 1.0}
    assert plain["tables"][0]["rows"] == ((1,),)


def test_the_cells_of_a_path_are_measured_in_one_run(tmp_path: Path) -> None:
    runs: list[list[Cell]] = []

    def along(cells: list[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        runs.append(list(cells))
        # A path has an order of its own.
        for cell in reversed(cells):
            if cell["k"] == 1 and cell.seed == 1:
                raise ArithmeticError("no luck")
            yield cell, {"psnr": 20.0 * cell["k"]}

    bench = Bench()
    experiment = replace(bench.experiment(), path=lambda cell: cell.seed, along=along)
    sweep = Sweep(experiment, CELLS, tmp_path)
    given = list(sweep.run())
    assert [outcome.cell for outcome in given] == [CELLS[1], CELLS[0], CELLS[3], CELLS[2]]
    assert [outcome.result.get("psnr") for outcome in given] == [40.0, 20.0, 40.0, None]
    assert (runs, bench.asked) == ([CELLS[:2], CELLS[2:]], [])
    assert [outcome.cell for outcome in sweep.failed] == [CELLS[2]]
    # What is left of a path is a cell like any other.
    list(Sweep(experiment, CELLS, tmp_path).run())
    assert (len(runs), bench.asked) == (2, [CELLS[2]])
