"""The absolute-value form: it computes what the network computes, and is read back as it was written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from problems import normal, standard
from torch import Tensor

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.recovery.absolute import (
    AbsoluteData,
    AbsoluteForm,
    absolute_objective,
    counted,
    foldable,
)

ROWS, INPUTS, NEURONS = 50, 4, 5
ORIGINS = torch.tensor([0.0, 2.0, 0.0, -1.0], dtype=torch.float64)
biases = pytest.mark.parametrize("bias", [True, False])
origins = pytest.mark.parametrize("moved", [True, False])


def objective_of(bias: bool, moved: bool = False) -> Relu:
    """Give a ReLU objective, some of whose inputs may have been moved."""
    data = Data(normal(ROWS, INPUTS), torch.from_numpy(normal(ROWS, 1, seed=1)), dtype=torch.float64)
    layout = Layout((INPUTS, NEURONS, 1), bias, fused=True, direct=True)
    return Relu(data, layout, SquaredError(), origins=ORIGINS if moved and bias else None)


def random_form(bias: bool, seed: int = 0, density: float = 0.6) -> AbsoluteForm:
    """Draw a form of neurons of both signs, one of them with one weight and one without any."""
    random = np.random.default_rng(seed)
    shape = (NEURONS, INPUTS + bias)
    weights = random.standard_normal(shape) * (random.random(shape) < density)
    weights[0], weights[1] = 0, 0
    weights[0, 2] = -1.5
    if bias:
        weights[1, INPUTS] = 0.7
    folds = random.standard_normal(INPUTS) * [1, 0, 0, 0]
    signs, linear = np.resize([1.0, -1.0], NEURONS), random.standard_normal(INPUTS)
    parts = (weights, signs, linear, folds, random.standard_normal(int(bias)))
    return AbsoluteForm(*(torch.from_numpy(part) for part in parts))


def outputs(form: AbsoluteForm, X: Tensor) -> Tensor:  # (rows,)
    """Compute ``c + q.x + p.|x| + sum_i v_i |w_i.x + b_i|``."""
    sums = X @ form.weights[:, : form.inputs].T + form.weights[:, form.inputs :].sum(1)
    return X @ form.linear + X.abs() @ form.folds + sums.abs() @ form.signs + form.constant.sum()


def ran(objective: Relu, form: AbsoluteForm) -> Tensor:  # (rows,)
    """Compute the outputs of a form as a point of the objective."""
    room, point = form.held(objective)
    return room.run(point).forward(room.data.read(slice(0, ROWS))).output[:, 0]


@biases
@pytest.mark.parametrize("seed", range(3))
def test_a_network_in_the_absolute_value_form_computes_the_same(bias: bool, seed: int) -> None:
    relu, random = objective_of(bias), np.random.default_rng(seed)
    dense = torch.from_numpy(random.standard_normal((NEURONS, INPUTS + bias)))
    signs = torch.from_numpy(random.choice([-1.0, 1.0], NEURONS))
    X = relu.data.read(slice(0, ROWS))
    sums = X @ dense[:, :INPUTS].T + dense[:, INPUTS:].sum(1)
    # relu(z) = (z + |z|) / 2
    line = signs @ dense / 2
    form = AbsoluteForm(dense / 2, signs, line[:INPUTS], torch.zeros(INPUTS).double(), line[INPUTS:])
    torch.testing.assert_close(ran(absolute_objective(relu), form), sums.relu() @ signs)


@biases
@origins
@pytest.mark.parametrize("seed", range(3))
def test_a_point_computes_what_the_form_says(bias: bool, moved: bool, seed: int) -> None:
    relu, form = objective_of(bias, moved), random_form(bias, seed)
    objective = absolute_objective(relu)
    room, point = form.held(objective)
    expected = outputs(form, relu.data.read(slice(0, ROWS)))
    torch.testing.assert_close(ran(objective, form), expected)
    error = 0.5 * (expected - relu.data.targets[:, 0]).square().mean()
    assert room.value(point) == pytest.approx(float(error), rel=1e-12)


@biases
@origins
@pytest.mark.parametrize(
    ("every_weight", "every_fold"), [(False, False), (False, True), (True, False), (True, True)]
)
def test_a_form_is_read_back_as_it_was_written(
    bias: bool, moved: bool, every_weight: bool, every_fold: bool
) -> None:
    form = random_form(bias)
    room, point = form.held(absolute_objective(objective_of(bias, moved)), every_weight, every_fold)
    assert torch.equal(point.w.indices, point.w.indices.unique(sorted=True))  # type: ignore[no-untyped-call]
    assert torch.equal(room.closed(point.w.indices), point.w.indices)
    back = form.read(room.layout, point)
    for one, two in zip(vars(form).values(), vars(back).values(), strict=True):
        assert torch.equal(one, two)


@origins
def test_what_may_grow_is_held_at_zero(moved: bool) -> None:
    form, objective = random_form(True), absolute_objective(objective_of(True, moved))
    room, every = form.held(objective, every_weight=True)
    may = int(foldable(objective).sum())
    assert may == (2 if moved else 4)
    assert every.w.nonzeros == NEURONS * (INPUTS + 1) + 1 + INPUTS + may
    assert int(counted(room.layout, every.w.indices).sum()) == NEURONS * (INPUTS + 1) + may
    _, folds = form.held(objective, every_fold=True)
    assert folds.w.nonzeros == form.held(objective)[1].w.nonzeros + may - 1


@biases
def test_what_counts_is_all_but_the_linear_part_and_the_constant(bias: bool) -> None:
    form = random_form(bias)
    room, point = form.held(absolute_objective(objective_of(bias)))
    assert form.nonzeros == int((form.weights != 0).sum()) + 1
    assert int(counted(room.layout, point.w.indices).sum()) == form.nonzeros
    assert point.w.nonzeros == form.nonzeros + INPUTS + bias


@biases
@origins
@pytest.mark.parametrize("seed", range(3))
def test_folding_changes_no_output_and_leaves_nothing_to_fold(bias: bool, moved: bool, seed: int) -> None:
    form, objective = random_form(bias, seed), absolute_objective(objective_of(bias, moved))
    folded = form.folded(objective)
    assert folded.neurons < form.neurons
    assert folded.nonzeros <= form.nonzeros
    assert folded.folds[2] == form.folds[2] + 1.5
    torch.testing.assert_close(ran(objective, folded), ran(objective, form))
    again = folded.folded(objective)
    for one, two in zip(vars(folded).values(), vars(again).values(), strict=True):
        assert torch.equal(one, two)


def test_a_neuron_of_one_moved_input_is_no_fold() -> None:
    weights = torch.zeros(2, INPUTS + 1, dtype=torch.float64)
    weights[0, 0], weights[1, 1] = 2.0, 3.0
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    for moved, neurons in ((True, 1), (False, 0)):
        objective = absolute_objective(objective_of(True, moved))
        folded = AbsoluteForm.of(objective, weights, signs).folded(objective)
        assert folded.neurons == neurons
        assert folded.folds.tolist() == [-2.0, 0.0 if moved else 3.0, 0.0, 0.0]


@biases
@pytest.mark.parametrize("budget", [0, 1, 4, 8, 100])
def test_pruning_keeps_the_largest_within_the_budget(bias: bool, budget: int) -> None:
    form, objective = random_form(bias, density=0.9), absolute_objective(objective_of(bias))
    pruned = form.prune(objective, budget)
    magnitude = torch.cat([form.weights.reshape(-1), form.folds]).abs()
    least = magnitude.sort(descending=True).values[min(budget, len(magnitude) - 1)]
    kept = replace(
        form,
        weights=torch.where(form.weights.abs() > least, form.weights, 0.0),
        folds=torch.where(form.folds.abs() > least, form.folds, 0.0),
    )
    assert pruned.nonzeros <= budget
    torch.testing.assert_close(ran(objective, pruned), ran(objective, kept))


def test_rows_have_their_absolute_values_beside_them() -> None:
    X = normal(ROWS, INPUTS, seed=2)
    for rows in (X, scipy.sparse.csr_array(X * (np.abs(X) > 0.8))):
        data = Data(rows, columns=standard(rows), dtype=torch.float32)
        wide = AbsoluteData(data)
        inputs = data.read(slice(3, 9))
        assert wide.columns == 2 * INPUTS
        assert torch.equal(wide.read(slice(3, 9)), torch.cat([inputs, inputs.abs()], 1))
        assert torch.equal(wide.take(np.arange(3, 9)).read(slice(0, 6)), wide.read(slice(3, 9)))
        exact = wide.to(torch.float64).read(slice(3, 9))
        assert exact.dtype is torch.float64
        torch.testing.assert_close(exact.float(), wide.read(slice(3, 9)))


def test_another_precision_keeps_the_form() -> None:
    form = random_form(True)
    half = form.to(torch.float32)
    assert {part.dtype for part in vars(half).values()} == {torch.float32}
    assert half.nonzeros == form.nonzeros
