"""The paper's figures as data: its grids, what a quick run cuts, and how a cell is measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from thresher.errors import BudgetError, DataFileError, ParameterError
from thresher.experiments import EXPERIMENTS, Choices, methods
from thresher.experiments.catalogue import FIGURES, sizes
from thresher.experiments.estimate import weights_of
from thresher.experiments.grids import cut_of, cuts, measure
from thresher.experiments.methods import METHODS, PRUNING, SHOWN, fit_by_method, fit_path_by_method
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.tasks import Problem, check, load, print_of

PAPER = ("paper",)


def cells(name: str, **choices: Any) -> list[Cell]:
    return EXPERIMENTS[name].chosen(Choices(**choices))


def half(name: str, part: str) -> list[Cell]:
    return cells(name, methods=PAPER, parts=(part,), seeds=(0,))


def test_figure_1_left_has_the_300_fits_of_the_paper() -> None:
    found = cells("figure-1", methods=PAPER, parts=("left",))
    assert len(found) == 300
    assert Counter(cell.seed for cell in found) == {0: 100, 1: 100, 2: 100}
    assert {cell["hidden"] for cell in found} == {cell["budget"] for cell in found} == set(sizes(1, 1000))
    for cell in found:
        shape = [cell[name] for name in ("n", "d", "outputs", "layers", "passes", "batch_size")]
        assert shape == [50_000, 100, 1, 1, 15, None]


@pytest.mark.parametrize(
    ("figure", "part", "widths", "budgets", "settings"),
    [
        ("figure-1", "right", sizes(2, 1000), sizes(10, 1000), (50_000, 100, 1, 2, 15, None)),
        ("figure-2", "left", sizes(1, 1000), sizes(1, 1000), (50_000, 100, 10, 1, 100, 5_000)),
        ("figure-2", "right", sizes(2, 1000), sizes(10, 1000), (50_000, 100, 10, 2, 100, 5_000)),
        ("figure-3", "left", sizes(1, 1000), sizes(1, 200), (10_000, 784, 1, 1, 15, 1_000)),
        ("figure-3", "right", sizes(10, 1000), sizes(100, 2000), (50_000, 784, 10, 1, 50, 5_000)),
        ("figure-4", "left", sizes(1, 200), sizes(2, 2000), (784, 1_500, 1, 1, 100, None)),
        ("figure-4", "right", sizes(2, 200), sizes(2, 2000), (784, 1_500, 1, 2, 100, None)),
        ("figure-5", "left", sizes(1, 200), sizes(2, 2000), (3_072, 1_500, 1, 1, 100, None)),
        ("figure-5", "right", sizes(2, 200), sizes(2, 2000), (3_072, 1_500, 1, 2, 100, None)),
    ],
)
def test_grids_and_settings_are_the_papers(
    figure: str, part: str, widths: tuple[int, ...], budgets: tuple[int, ...], settings: tuple[Any, ...]
) -> None:
    found = half(figure, part)
    assert {cell["hidden"] for cell in found} == set(widths)
    assert {cell["budget"] for cell in found} == set(budgets)
    names = ("n", "d", "outputs", "layers", "passes", "batch_size")
    assert {tuple(cell[name] for name in names) for cell in found} == {settings}


@pytest.mark.parametrize("figure", [*(figure.name for figure in FIGURES), "runtimes"])
def test_baselines_that_are_given_a_chance_train_in_small_batches(figure: str) -> None:
    for cell in cells(figure, methods=("imp", "gmp", "rigl", "one-shot", "dense"), seeds=(0,)):
        assert cell["batch_size"] == 128
    assert {cell["batch_size"] for cell in cells(figure, methods=("imp-paper",), seeds=(0,))} == {
        cell["batch_size"] for cell in cells(figure, methods=PAPER, seeds=(0,))
    }


def test_deep_networks_are_never_denser_than_dense() -> None:
    found = half("figure-1", "right")
    assert all(cell["budget"] <= weights_of(cell) for cell in found)
    assert (2, 500) not in {(cell["hidden"], cell["budget"]) for cell in found}
    assert (5, 500) in {(cell["hidden"], cell["budget"]) for cell in found}


@pytest.mark.parametrize("figure", [figure.name for figure in FIGURES])
def test_both_prunings_are_in_every_figure(figure: str) -> None:
    for quick in (False, True):
        assert {"paper", "auto", "imp-paper", "imp"} <= {
            cell["method"] for cell in cells(figure, quick=quick)
        }
    everything = cells(figure, quick=True, methods=("all",))
    assert {cell["method"] for cell in everything} == set(METHODS)


def test_a_misspelt_method_or_part_gets_a_hint() -> None:
    with pytest.raises(ParameterError, match=r"--methods ipm, .*Did you mean imp\?"):
        cells("figure-1", methods=("ipm",))
    with pytest.raises(ParameterError, match=r"--parts lft, .*Did you mean left\?"):
        cells("figure-1", parts=("lft",))
    with pytest.raises(ParameterError, match=r"--rows 99999, but binary has 10,000 rows"):
        cells("figure-3", rows=99_999)


def test_a_cell_says_what_was_cut() -> None:
    quick = {cell["method"]: cell for cell in cells("figure-3", quick=True, parts=("left",))}
    assert cuts(quick["paper"]) == ["2,000 of 10,000 rows", "5 of 15 passes"]
    assert cuts(quick["auto"]) == ["2,000 of 10,000 rows", "6 of 50 seconds for each fit of auto"]
    assert cuts(half("figure-3", "left")[0]) == []


def test_a_part_says_what_was_cut() -> None:
    figure = FIGURES[3]
    chosen = cells("figure-4", quick=True, parts=("left",), methods=PAPER)
    outcomes = [Outcome(cell, "print", "done", 1.0, {"cut": cuts(cell)}) for cell in chosen]
    said = cut_of(figure, figure.parts[0], outcomes)
    assert said == ["3 of 8 m", "3 of 10 s", "1 of 3 seeds", "40 of 100 passes"]
    whole = [Outcome(c, "print", "done", 1.0, {"cut": []}) for c in cells("figure-4", parts=("left",))]
    assert cut_of(figure, figure.parts[0], whole) == []


@pytest.mark.parametrize("method", SHOWN)
def test_a_small_cell_is_measured_by_every_method(method: str) -> None:
    (cell,) = cells("figure-1", methods=(method,), parts=("left",), m=(2,), s=(5,), rows=200, seeds=(0,))
    result = measure(cell)
    assert {"score", "fit_seconds", "peak_bytes", "nonzeros", "passes", "status", "cut"} <= result.keys()
    assert result["nonzeros"] <= 5
    assert result["cut"][0] == "200 of 50,000 rows"


def test_iterative_pruning_walks_all_budgets_of_a_row_in_one_run() -> None:
    figure = EXPERIMENTS["figure-3"]
    found = cells("figure-3", parts=("left",), methods=("paper", *PRUNING), seeds=(0, 1), m=(1, 10))
    runs = figure.runs(found)
    assert sorted(cell.key("") for run in runs for cell in run) == sorted(cell.key("") for cell in found)
    for run in runs:
        row = {(cell["method"], cell["hidden"], cell.seed) for cell in run}
        budgets = [cell["budget"] for cell in run]
        assert (len(row), budgets) == (1, list(sizes(1, 200)) if run[0]["method"] in PRUNING else budgets[:1])
    # Planted networks, and so their rows' labels, are others for each budget.
    assert all(len(run) == 1 for run in EXPERIMENTS["figure-1"].runs(cells("figure-1", methods=PRUNING)))


@pytest.mark.parametrize("method", PRUNING)
def test_a_path_measures_what_its_cells_by_themselves_do(method: str) -> None:
    X = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
    y = np.maximum(X[:, 0], 0) - X[:, 1]
    problem = Problem("regression", X, y, X, y)
    settings = {"method": method, "hidden": 3, "layers": 1, "passes": 2, "batch_size": 20, "data": "image"}
    asked = [Cell("toy", {**settings, "budget": budget}, 0) for budget in (2, 5, 12, 100)]
    together = {cell["budget"]: result for cell, result in fit_path_by_method(asked, problem)}
    assert together.keys() == {2, 5, 12, 100}
    for cell in asked:
        alone = fit_by_method(cell, problem)
        for name in ("score", "nonzeros", "passes", "status"):
            assert together[cell["budget"]][name] == alone[name]
        assert together[cell["budget"]].keys() == alone.keys()
    assert together[2]["processor_seconds"] >= together[12]["processor_seconds"] > 0


def test_labels_that_are_all_zero_score_zero_and_are_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = cells("figure-2", methods=PAPER, parts=("left",), m=(1,), s=(1,), rows=50, seeds=(0,))
    assert not load(cell, None).y.any()
    monkeypatch.setattr(methods, "_model", lambda *args: pytest.fail("it was fitted"))
    result = measure(cell)
    assert (result["score"], result["nonzeros"], result["status"]) == (0.0, 0, "all labels are zero")


def test_a_network_over_its_budget_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Greedy:
        nonzeros_ = 9

        def fit(self, X: Any, y: Any) -> Greedy:
            return self

        def predict(self, X: Any) -> np.ndarray:
            return np.zeros(len(X))

    (cell,) = cells("figure-1", methods=PAPER, parts=("left",), m=(2,), s=(5,), rows=50, seeds=(0,))
    monkeypatch.setattr(methods, "_model", lambda *args: Greedy())
    with pytest.raises(BudgetError, match=r"paper handed out 9 nonzeros where 5 are allowed"):
        measure(cell)
    dense = replace(cell, configuration={**cell.configuration, "method": "dense"})
    assert measure(dense)["nonzeros"] == 9


def test_the_share_of_right_answers_is_the_score() -> None:
    problem = Problem("classification", None, None, np.zeros((4, 1)), np.array([0, 1, 1, 1]))
    assert problem.score(SimpleNamespace(predict=lambda X: np.array([0, 1, 0, 1]))) == 0.75


def test_prints_tell_data_apart() -> None:
    found = {print_of(half(figure.name, part.name)[0]) for figure in FIGURES for part in figure.parts}
    # Both halves of an image's figure fit the same image.
    assert len(found) == 8


def test_missing_data_is_told_before_any_work(tmp_path: Any) -> None:
    with pytest.raises(DataFileError):
        check(half("figure-3", "left"), tmp_path / "nowhere")
    check(half("figure-1", "left"), tmp_path / "nowhere")


@pytest.mark.parametrize("part", ["left", "right"])
def test_rows_of_mnist_are_shared_by_its_classes(mnist_folder: Any, part: str) -> None:
    (cell,) = cells("figure-3", methods=PAPER, parts=(part,), m=(10,), s=(100,), rows=200, seeds=(0,))
    problem = load(cell, mnist_folder)
    classes = 2 if part == "left" else 10
    assert Counter(problem.y.tolist()) == dict.fromkeys(range(classes), 200 // classes)
    assert problem.X_test.shape == (1000 * classes, 784)


def test_images_have_features_of_their_seed(mnist_folder: Any) -> None:
    first, second = (
        load(cell, mnist_folder)
        for cell in cells("figure-4", methods=PAPER, parts=("left",), m=(1,), s=(2,), seeds=(0, 1))
    )
    assert first.X.shape == (784, 1500)
    assert np.array_equal(first.y, second.y)
    assert not np.array_equal(first.X, second.X)
