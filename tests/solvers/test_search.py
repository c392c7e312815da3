"""The search behind solver="auto", part by part."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import Watch, normal
from torch import Tensor

from thresher.data.images import image_problem
from thresher.data.planted import planted
from thresher.errors import DataError
from thresher.linear.vector import SparseVector
from thresher.objective.design import Design, column_scale
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom
from thresher.objective.linear import Objective
from thresher.objective.losses import Logistic, Loss, SquaredError
from thresher.solvers.candidate import fuse, loss_of, polish
from thresher.solvers.grow import grow_relus
from thresher.solvers.iht import paper_iht
from thresher.solvers.loop import Solution, Start, run
from thresher.solvers.screen import working_features
from thresher.solvers.search import Search
from thresher.solvers.settle import Rows, backward, eliminate, factor, refit
from thresher.solvers.sides import to_relu
from thresher.solvers.student import Student, merge, shrinking
from thresher.solvers.working import Working

MEGABYTE = 2**20


def tensor(array: object) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float64)


def objective(
    X: np.ndarray,
    y: np.ndarray,
    hidden: int = 4,
    *,
    bias: bool = False,
    loss: Loss | None = None,
    weight: np.ndarray | None = None,
    memory: int = MEGABYTE,
) -> Objective:
    """Make an objective in float64."""
    design = Design(X, column_scale(X), bias, torch.float64)
    operator = GatedOperator(design, DenseRandom(X.shape[1] + bias, hidden), memory)
    share = None if weight is None else tensor(weight)
    return Objective(operator, tensor(y), loss or SquaredError(), share, 0.0 if loss is None else 1.0)


def random_student(features: int, neurons: int, lines: bool, seed: int = 0) -> Student:
    W = tensor(normal(features, neurons, seed=seed)) * (tensor(normal(features, neurons, seed=seed + 1)) > 0)
    v = torch.ones(neurons, dtype=torch.float64)
    v[1::2] = -1
    axes = [tensor(normal(features, seed=seed + 2)), tensor(normal(features, seed=seed + 3))]
    return Student(W, v, *(axes if lines else ()))


# Lines and sides.


@pytest.mark.parametrize("seed", range(5))
def test_any_student_of_lines_is_a_relu_network(seed: int) -> None:
    X, student = tensor(normal(50, 6)), random_student(6, 4, lines=True, seed=seed)
    W, v = to_relu(student, 0.0)
    assert torch.allclose(Student(W, v).output(X), student.output(X))


@pytest.mark.parametrize("seed", range(8))
def test_the_right_sides_cost_nothing(seed: int) -> None:
    relu = random_student(12, 4, lines=False, seed=seed).compact()
    # relu(z) = (z + |z|) / 2, turned to either side.
    side = torch.where(tensor(normal(relu.neurons, seed=seed + 9)) > 0, 1.0, -1.0)
    axis = torch.zeros(12, dtype=torch.float64)
    lines = Student(0.5 * relu.W * side, relu.v, 0.5 * relu.W @ relu.v, axis)
    W, v = to_relu(lines, 1e-9)
    X = tensor(normal(60, 12, seed=1))
    assert int((W != 0).sum()) <= int((relu.W != 0).sum())
    assert torch.allclose(Student(W, v).output(X), relu.output(X))


@pytest.mark.parametrize("lines", [False, True], ids=["relus", "lines"])
def test_pruning_keeps_the_largest(lines: bool) -> None:
    student = random_student(8, 5, lines)
    pruned = student.prune(7)
    assert pruned.nonzeros <= 7
    magnitude = (
        student.W.abs().flatten()
        if student.folds is None
        else torch.cat([student.W.abs().flatten(), student.folds.abs()])
    )
    least = magnitude.sort(descending=True).values[6]
    kept = pruned.W[pruned.W != 0].abs()
    assert bool((kept >= least).all())


@pytest.mark.parametrize("lines", [False, True], ids=["relus", "lines"])
def test_neurons_alike_are_merged_and_others_are_not(lines: bool) -> None:
    student = random_student(6, 3, lines)
    twice = replace(
        student, W=torch.cat([student.W / 3, 2 * student.W / 3], 1), v=torch.cat([student.v, student.v])
    )
    X = tensor(normal(100, 6))
    merged = merge(X, twice, 1e-6)
    assert merged.neurons == student.compact().neurons
    assert torch.allclose(merged.output(X), student.output(X))


def test_a_shrinking_budget_ends_at_its_end() -> None:
    budget = shrinking(1000, 10, 0.7)
    steps = [budget(share / 20) for share in range(21)]
    assert steps[0] == 1000
    assert steps[-1] == steps[-6] == 10
    assert steps == sorted(steps, reverse=True)


# Refitting, removing, growing.


def rows_of(X: np.ndarray, y: np.ndarray, loss: Loss | None = None, weight: np.ndarray | None = None) -> Rows:
    return Rows(tensor(X), tensor(y), None if weight is None else tensor(weight), loss or SquaredError())


@pytest.mark.parametrize("weighted", [False, True])
def test_refitting_solves_least_squares_while_gates_stay(weighted: bool) -> None:
    X, y = np.abs(normal(60, 3)), normal(60, seed=1) + 8
    weight = np.linspace(0.1, 2, 60) if weighted else None
    student = Student(torch.ones(3, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    fitted, error = refit(rows_of(X, y, weight=weight), student, 5)
    root = np.ones(60) if weight is None else np.sqrt(weight)
    expected = np.linalg.lstsq(X * root[:, None], y * root, rcond=None)[0]
    assert (expected > 0).all()
    assert fitted.W[:, 0].numpy() == pytest.approx(expected, rel=1e-4)
    assert error == pytest.approx(np.mean((root * (X @ expected - y)) ** 2), rel=1e-6)


@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=["squared", "logistic"])
def test_refitting_never_makes_worse(loss: Loss) -> None:
    X = normal(80, 5)
    y = (X[:, 0] > 0).astype(float)
    student, rows = random_student(5, 3, lines=False), rows_of(X, y, loss)
    fitted, error = refit(rows, student, 5)
    assert error <= rows.error(student)
    assert error == pytest.approx(rows.error(fitted))
    assert bool(((fitted.W != 0) <= (student.W != 0)).all())


def test_backward_elimination_finds_what_is_cheapest() -> None:
    A = tensor(normal(40, 6, seed=4))
    values = tensor([3.0, 0.02, -2.0, 0.01, 1.0, -4.0])
    removed = backward(A.T @ A, values, torch.ones(6, dtype=torch.bool), 2)
    assert set(removed) == {1, 3}


def test_backward_elimination_spares_what_is_not_free() -> None:
    A = tensor(normal(40, 4, seed=4))
    free = torch.tensor([True, False, True, True])
    assert 1 not in backward(A.T @ A, tensor([3.0, 0.0, 2.0, 1.0]), free, 3)


def test_elimination_reaches_the_budget() -> None:
    X, y = normal(100, 8), normal(100, seed=1)
    student = random_student(8, 6, lines=False)
    assert student.nonzeros > 9
    assert eliminate(rows_of(X, y), student, 9, slack=0.0).nonzeros == 9


@pytest.mark.parametrize("matrix", [np.zeros((3, 3)), np.ones((4, 4)), np.diag([1.0, 0.0, 1e-12])], ids=str)
def test_singular_matrices_are_factored(matrix: np.ndarray) -> None:
    triangle = factor(tensor(matrix))
    assert torch.isfinite(triangle).all()
    assert torch.allclose(triangle @ triangle.T, tensor(matrix), atol=1e-4)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_matrix_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(DataError, match="not finite"):
        factor(tensor([[1.0, value], [value, 1.0]]))


@pytest.mark.parametrize("negative", [True, False])
def test_growing_takes_the_best_half_axis(negative: bool) -> None:
    X = normal(200, 5)
    y = 3 * np.maximum(-X[:, 2], 0) - 5 * np.maximum(X[:, 4], 0)
    empty = Student(torch.zeros(5, 0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
    grown = grow_relus(rows_of(X, y), empty, 1, 1, negative)
    assert grown.nonzeros == 1
    feature = int(grown.W[:, 0].nonzero())
    found = feature, float(grown.W[feature, 0].sign()), float(grown.v[0])
    assert found == ((4, 1.0, -1.0) if negative else (2, -1.0, 1.0))


def test_growing_respects_the_places() -> None:
    X, y = normal(100, 5), normal(100, seed=1)
    student = random_student(5, 2, lines=False)
    grown = grow_relus(rows_of(X, y), student, 4, 1, negative=True)
    assert grown.neurons <= 3
    assert student.nonzeros < grown.nonzeros <= student.nonzeros + 4


# Students as fused weights.


@pytest.mark.parametrize("places", [0, 1])
def test_an_output_bias_needs_no_place_and_gets_no_input(places: int) -> None:
    X = torch.cat([tensor(normal(200, 3)), torch.ones(200, 1, dtype=torch.float64)], 1)
    y = X[:, 0].clamp(min=0) - 2 * X[:, 1].clamp(min=0) + 3 + 0.1 * X[:, 2]
    rows = Rows(X, y, None, SquaredError())
    empty = Student(torch.zeros(4, 0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
    grown = grow_relus(rows, empty, 4, places, negative=True, bias=True)
    for _ in range(3):
        real = (grown.W[:-1] != 0).any(0)
        assert int(real.sum()) <= places
        assert int((~real).sum()) == 1
        grown = grow_relus(rows, refit(rows, grown, 1)[0], 4, 0, negative=True, bias=True)


def test_fused_weights_say_the_same() -> None:
    X, y = normal(50, 6), normal(50, seed=1)
    task = objective(X, y, hidden=5)
    student = random_student(6, 5, lines=False)
    w, signs = fuse(student.W, student.v, torch.arange(6), 6, 5, bias=False)
    output = student.output(tensor(X / column_scale(X)))
    assert loss_of(task, w, signs) == pytest.approx(0.5 * float((output - tensor(y)).square().sum()))


def test_constants_fuse_into_one_output_bias() -> None:
    W = tensor([[1.0, 0.0, 0.0], [0.5, 2.0, 3.0]])
    v = tensor([1.0, 1.0, -1.0])
    w, signs = fuse(W, v, torch.arange(2), 2, 1, bias=True)
    # The neuron, then one bias of 2 - 3 in the place after the last neuron.
    assert w.to_dense().tolist() == [1.0, 0.5, 0.0, -1.0]
    assert signs.tolist() == [1.0, -1.0]


def test_polishing_helps_and_keeps_the_support() -> None:
    X = normal(200, 6)
    problem = random_student(6, 3, lines=False)
    w, signs = fuse(problem.W, problem.v, torch.arange(6), 6, 3, bias=False)
    task = objective(X, problem.output(tensor(X / column_scale(X))).numpy(), hidden=3)
    rough = w.with_values(w.values * (1 + 0.02 * tensor(normal(w.nonzeros, seed=5))))
    polished, loss = polish(task, rough, signs)
    assert polished.same_support(w)
    assert loss < 1e-12 * loss_of(task, SparseVector.zeros(w.size, torch.float64), signs)


# The working set.


def test_all_features_work_where_there_is_room() -> None:
    task = objective(normal(50, 30), normal(50, seed=1))
    assert working_features(task, 10**6, 20).tolist() == list(range(30))


def test_the_features_that_matter_are_among_the_working_ones() -> None:
    X = normal(500, 300)
    y = X[:, 17] - np.maximum(X[:, 203], 0) + 0.5 * np.maximum(-X[:, 288], 0)
    chosen = working_features(objective(X, y, bias=True), 400, 20).tolist()
    assert len(chosen) < 301
    assert {17, 203, 288, 300} <= set(chosen)
    assert chosen == sorted(chosen)


@pytest.mark.parametrize("memory", [0, MEGABYTE], ids=["read", "copied"])
def test_batches_go_through_all_rows_once(memory: int) -> None:
    X, y = normal(600, 7), np.arange(600.0)
    task = objective(X, y, bias=True)
    features = torch.tensor([1, 4, 7])
    data = Working.of(task, features, memory, seed=3)
    seen = list(data.batches(100, epoch=2))
    targets = torch.cat([part for _, part, _ in seen])
    assert sorted(targets.tolist()) == y.tolist()
    assert targets.tolist() != y.tolist()
    expected = np.column_stack([(X / column_scale(X))[:, [1, 4]], np.ones(600)])
    for rows, part, _ in seen:
        assert torch.allclose(rows, tensor(expected[part.long().numpy()]))


def test_the_copy_obeys_the_memory_limit() -> None:
    task = objective(normal(600, 7), normal(600, seed=1))
    features = torch.arange(7)
    exact = 8 * 600 * 7
    copied, read = (Working.of(task, features, limit, seed=0) for limit in (exact, exact - 1))
    assert copied._copy is not None
    assert read._copy is None
    for one, two in zip(copied.batches(64, 0), read.batches(64, 0), strict=True):
        assert torch.equal(one[0], two[0]) and torch.equal(one[1], two[1])


def test_weights_average_to_one() -> None:
    task = objective(normal(600, 3), normal(600, seed=1), weight=np.full(600, 7.0))
    data = Working.of(task, torch.arange(3), 0, seed=0)
    assert data.weight is not None
    assert data.weight.mean() == pytest.approx(1)
    assert data.total == pytest.approx(4200)


# The whole search.


def search(task: Objective, budget: int, passes: int = 60, seed: int = 0, negative: bool = True) -> Solution:
    return run(Search("auto", passes, negative, seed), task, budget, max_iter=passes)


@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=["squared", "logistic"])
@pytest.mark.parametrize(("hidden", "budget"), [(1, 1), (1, 4), (3, 2), (6, 20)])
@pytest.mark.parametrize("bias", [False, True])
def test_what_is_handed_out_is_within_budget_and_width(
    loss: Loss, hidden: int, budget: int, bias: bool
) -> None:
    X = normal(150, 5)
    y = np.abs(X[:, 0]) - X[:, 1] + 0.3 * normal(150, seed=1)
    y = y if loss.quadratic else (y > 0).astype(float)
    watch = Watch()
    task = objective(X, y, hidden, bias=bias, loss=None if loss.quadratic else loss)
    solution = run(Search(passes=60), task, budget, max_iter=60, callback=watch)
    assert 1 <= solution.w.nonzeros <= budget
    features = 5 + bias
    neurons = {int(place) // features for place in solution.w.indices if int(place) // features < hidden}
    assert len(neurons) <= hidden
    assert solution.w.size <= features * (hidden + 1)
    kept = [iterate for iterate in watch.iterates if iterate.kept]
    assert all(iterate.w.nonzeros <= budget for iterate in kept)
    assert solution.loss == min(iterate.loss for iterate in kept)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_network_is_found_up_to_rounding(seed: int) -> None:
    problem = planted(1500, 15, 3, 12, negative=0.4, seed=seed)
    X = problem.X.astype(np.float64)
    y = problem.evaluate(X)
    solution = search(objective(X, y, 3, memory=64 * MEGABYTE), 12, passes=200)
    assert solution.status.name == "recovered"
    assert solution.loss < 1e-9 * 0.5 * float(np.sum(y**2))


def test_no_neuron_is_negative_unless_allowed() -> None:
    X = normal(300, 4)
    solution = search(objective(X, np.abs(X[:, 0]) + 0.1 * normal(300, seed=1)), 6, negative=False)
    assert solution.signs is not None
    live = torch.unique(solution.w.indices // 4)
    assert bool((solution.signs[live] > 0).all())


def test_more_passes_are_not_exceeded() -> None:
    X = normal(800, 6)
    task = objective(X, X[:, 0] + normal(800, seed=1))
    for passes in (1, 5, 40):
        solution = search(task, 10, passes)
        assert solution.history[-1]["passes"] < passes + 2
        assert solution.w.nonzeros >= 1


def phases(solution: Solution) -> set[str]:
    """Give the phases that a search went through."""
    return {record["phase"] for record in solution.history}


def small_image() -> tuple[np.ndarray, np.ndarray]:
    """Give fewer pixels than features, most of them dark."""
    pixels = np.zeros((16, 16))
    pixels[3:13, 7:9] = 0.5 + 0.5 * np.random.default_rng(1).random((10, 2))
    problem = image_problem(pixels, sigma=2.0, rows=150)
    return problem.X.astype(np.float64), problem.y.astype(np.float64)


def test_recovery_is_not_tried_where_its_linear_part_explains_anything() -> None:
    X, y = small_image()
    solution = search(objective(X, y, 5, memory=64 * MEGABYTE), 40, passes=200)
    assert "merged" not in phases(solution)
    assert solution.loss < 1e-3 * 0.5 * float(np.sum(y**2))


@pytest.mark.parametrize("budget", [60, 250])
def test_narrow_networks_are_no_worse_than_thresholding_alone(budget: int) -> None:
    X, y = small_image()
    task = objective(X, y, 1, memory=64 * MEGABYTE)
    passes = 300
    alone = run(paper_iht(), task, budget, max_iter=passes // 10)
    assert search(task, budget, passes, negative=False).loss <= alone.loss * (1 + 1e-6)


def test_one_neuron_and_its_output_bias_tell_classes_apart() -> None:
    X = normal(600, 6)
    labels = (X @ [1.0, -2.0, 0.5, 0, 0, 0] + 0.3 * normal(600, seed=1) > 1).astype(float)
    task = objective(X, labels, 1, bias=True, loss=Logistic())
    for passes in (15, 60):
        assert search(task, 6, passes).loss < 0.5 * 600 * math.log(2)


@pytest.mark.parametrize("negative", [True, False])
def test_one_weight_is_the_best_of_all(negative: bool) -> None:
    X, y = normal(300, 8), normal(300, seed=1)
    halves = np.maximum(np.hstack([X, -X]), 0)
    best = halves.T @ y / np.square(halves).sum(0)
    if not negative:
        best = np.maximum(best, 0)
    losses = 0.5 * np.square(y[:, None] - halves * best).sum(0)
    assert search(objective(X, y, 3), 1, negative=negative).loss == pytest.approx(losses.min())


def test_a_line_that_was_chosen_is_handed_out_whatever_its_loss() -> None:
    X = normal(150, 12)
    y = X[:, 0] + 2.0 * normal(150, seed=1)
    task = objective(X, y, 4, bias=True)
    watch = Watch()
    before = search(task, 12, 60)
    assert before.signs is not None
    start = Start(before.w, before.signs)
    solution = run(Search("auto", 200, True, 0), task, 12, max_iter=200, start=start, callback=watch)
    kept = [iterate for iterate in watch.iterates if iterate.kept]
    assert kept[-1].preferred and kept[-1].record["phase"] == "line"
    assert solution.loss == kept[-1].loss
    assert solution.loss > min(iterate.loss for iterate in kept)


def test_labels_of_two_values_are_not_taken_for_the_output_of_a_network() -> None:
    X = normal(600, 4)
    labels = (X[:, 0] + 0.2 * normal(600, seed=1) > 0).astype(float)
    assert "growing" in phases(search(objective(X, labels), 4))
    assert not {"merged", "sides"} & phases(search(objective(X, labels), 4))


@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=["squared", "logistic"])
def test_refitting_where_most_features_are_idle_is_refitting(loss: Loss) -> None:
    X = tensor(normal(200, 30))
    y = (X[:, 0] > 0).double() if not loss.quadratic else X[:, 0].abs() + 0.1 * X[:, 5]
    W = torch.zeros(30, 2, dtype=torch.float64)
    W[0, 0], W[5, 0], W[0, 1] = 0.5, 0.2, -0.4
    student = Student(W, torch.ones(2, dtype=torch.float64))
    few = [0, 5]
    whole, error = refit(Rows(X, y, None, loss, 0.01), student, 3)
    part, error_of_part = refit(Rows(X[:, few], y, None, loss, 0.01), replace(student, W=student.W[few]), 3)
    assert error == pytest.approx(error_of_part)
    assert torch.allclose(whole.W[few], part.W)
    assert int((whole.W != 0).sum()) == 3
