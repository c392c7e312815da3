"""Moves in the absolute-value form: halves become one, what is too much goes, what is missing is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import normal
from torch import Tensor

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.recovery.absolute import AbsoluteForm, absolute_objective
from thresher.solvers.auto.recovery.moves import _slopes, eliminate, grow, merge, refit, shrink
from thresher.solvers.auto.recovery.tuning import RecoverTuning

TUNING = RecoverTuning()
ROWS, INPUTS = 300, 5
X = torch.from_numpy(normal(ROWS, INPUTS))
biases = pytest.mark.parametrize("bias", [True, False])


def outputs(form: AbsoluteForm) -> Tensor:  # (rows,)
    """Compute ``c + q.x + p.|x| + sum_i v_i |w_i.x + b_i|``."""
    sums = X @ form.weights[:, :INPUTS].T + form.weights[:, INPUTS:].sum(1)
    return X @ form.linear + X.abs() @ form.folds + sums.abs() @ form.signs + form.constant.sum()


def planted(bias: bool) -> AbsoluteForm:
    """Give two neurons of three weights and of two, a fold, a linear part and, with biases, a constant."""
    weights = torch.zeros(2, INPUTS + bias, dtype=torch.float64)
    weights[0, :3] = torch.tensor([1.0, -0.7, 0.5])
    weights[1, 2:4] = torch.tensor([0.8, 1.2])
    if bias:
        weights[:, INPUTS] = torch.tensor([0.4, -0.6])
    folds = torch.tensor([0, 0, 0, 0, 0.9], dtype=torch.float64)
    linear = torch.tensor([0.3, -1.0, 0, 0.5, 0.2], dtype=torch.float64)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    return AbsoluteForm(weights, signs, linear, folds, torch.full((int(bias),), 0.25, dtype=torch.float64))


def objective_of(form: AbsoluteForm, bias: bool, noise: float = 0.0) -> Relu:
    """Give an objective whose targets are what a form computes, and noise."""
    y = outputs(form) + noise * torch.from_numpy(normal(ROWS, seed=9))
    layout = Layout((INPUTS, 4, 1), bias, fused=True, direct=True)
    return absolute_objective(Relu(Data(X, y[:, None], dtype=torch.float64), layout, SquaredError()))


def value(objective: Relu, form: AbsoluteForm) -> float:
    room, point = form.held(objective)
    return room.value(point)


def merged(objective: Relu, form: AbsoluteForm, tolerance: float) -> AbsoluteForm:
    return merge(objective, form, objective.data.batch(slice(0, ROWS)), tolerance, TUNING)


def extended(form: AbsoluteForm, rows: Tensor, signs: list[float]) -> AbsoluteForm:
    """Give a form with more neurons."""
    more = torch.tensor(signs, dtype=torch.float64)
    return replace(form, weights=torch.cat([form.weights, rows]), signs=torch.cat([form.signs, more]))


@biases
@pytest.mark.parametrize("parts", [(0.3, 0.7), (0.5, -0.5), (-0.2, 0.3, -0.5), (0.1, 0.2, 0.3, 0.4)])
def test_the_parts_of_a_neuron_are_merged_into_one(bias: bool, parts: tuple[float, ...]) -> None:
    whole = planted(bias)
    objective = objective_of(whole, bias)
    pieces = torch.stack([part * whole.weights[0] for part in parts])
    split = extended(
        replace(whole, weights=whole.weights[1:], signs=whole.signs[1:]), pieces, [1.0] * len(parts)
    )
    torch.testing.assert_close(outputs(split), outputs(whole))
    one = merged(objective, split, 1e-20)
    assert one.neurons == 2
    assert one.nonzeros == whole.nonzeros
    torch.testing.assert_close(one.weights[1].abs(), whole.weights[0].abs())
    torch.testing.assert_close(outputs(one), outputs(whole))


@biases
def test_neurons_of_other_signs_and_other_directions_stay(bias: bool) -> None:
    form = planted(bias)
    half, other = 0.5 * form.weights[:1], form.weights[:1].flip(1)
    wide = extended(form, torch.cat([half, other]), [-1.0, 1.0])
    stays = merged(objective_of(form, bias), wide, 1e-3)
    assert torch.equal(stays.weights, wide.weights)


def test_merging_adds_no_more_than_its_tolerance() -> None:
    form = planted(True)
    objective = objective_of(form, True)
    random = np.random.default_rng(0)
    pieces = torch.cat([0.25 * form.weights] * 3) + 0.05 * torch.from_numpy(random.standard_normal((6, 6)))
    split = extended(form, pieces, [1.0, -1.0] * 3)
    neurons = []
    for tolerance in (0.0, 1e-4, 1e-2, 1.0):
        one = merged(objective, split, tolerance)
        # Merges one after the other may add up, but not to more than as many times their sum.
        change = float((outputs(one) - outputs(split)).square().mean())
        assert change <= (split.neurons - one.neurons) * tolerance
        neurons.append(one.neurons)
    assert neurons[0] == split.neurons
    assert neurons == sorted(neurons, reverse=True)
    assert neurons[-1] == 2


def test_merges_share_one_tolerance() -> None:
    form = planted(True)
    objective = objective_of(form, True)
    tilt = torch.zeros_like(form.weights)
    tilt[0, 4], tilt[1, 0] = 0.1, 0.1
    split = extended(replace(form, weights=0.5 * form.weights), 0.5 * form.weights + tilt, [1.0, -1.0])

    def cost(pair: int) -> float:
        keep = [pair, pair + 2]
        alone = replace(split, weights=split.weights[keep], signs=split.signs[keep])
        return float((outputs(merged(objective, alone, 1.0)) - outputs(alone)).square().mean())

    costs = [cost(0), cost(1)]
    assert merged(objective, split, 0.99 * min(costs)).neurons == 4
    assert merged(objective, split, max(costs) + 0.5 * min(costs)).neurons == 3
    assert merged(objective, split, 1.01 * sum(costs)).neurons == 2


@biases
def test_a_refit_finds_the_planted_values_on_their_support(bias: bool) -> None:
    form = planted(bias)
    objective = objective_of(form, bias)
    spoiled = replace(
        form,
        weights=1.05 * form.weights,
        folds=0.9 * form.folds,
        linear=torch.zeros_like(form.linear),
        constant=torch.zeros_like(form.constant),
    )
    found, least = refit(objective, spoiled, 20, TUNING)
    assert least < 1e-18
    assert least == pytest.approx(value(objective, found), rel=1e-6)
    torch.testing.assert_close(found.weights.abs(), form.weights.abs(), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(found.linear, form.linear, rtol=1e-6, atol=1e-9)


def test_a_refit_lets_folds_grow_where_they_may() -> None:
    form = planted(True)
    objective = objective_of(form, True)
    flat = replace(form, folds=torch.zeros_like(form.folds))
    without, more = refit(objective, flat, 20, TUNING)
    assert not without.folds.any()
    folds, less = refit(objective, flat, 20, TUNING, every_fold=True)
    assert less < 1e-18 < more
    torch.testing.assert_close(folds.folds, form.folds, rtol=0, atol=1e-8)


def spoiled(form: AbsoluteForm, size: float, seed: int) -> AbsoluteForm:
    """Add small weights wherever there are none, and a neuron of nothing else."""
    random = np.random.default_rng(seed)

    def noise(*shape: int) -> Tensor:
        return size * torch.from_numpy(random.standard_normal(shape))

    weights = torch.where(form.weights == 0, noise(*form.weights.shape), form.weights)
    full = replace(form, weights=weights, folds=torch.where(form.folds == 0, noise(INPUTS), form.folds))
    return extended(full, noise(1, form.weights.shape[1]), [1.0])


@biases
@pytest.mark.parametrize("seed", range(3))
def test_shrinking_leaves_the_planted_weights(bias: bool, seed: int) -> None:
    form = planted(bias)
    objective = objective_of(form, bias)
    found, least = shrink(objective, spoiled(form, 0.02, seed), form.nonzeros, TUNING)
    assert least < 1e-16
    assert torch.equal(found.weights != 0, form.weights != 0)
    assert torch.equal(found.folds != 0, form.folds != 0)
    torch.testing.assert_close(outputs(found), outputs(form), rtol=0, atol=1e-6)


@biases
@pytest.mark.parametrize("budget", [1, 3, 6, 9])
def test_elimination_and_shrinking_end_within_the_budget(bias: bool, budget: int) -> None:
    form = planted(bias)
    objective = objective_of(form, bias, noise=0.3)
    wide = spoiled(form, 0.3, 0)
    assert wide.nonzeros > 9
    assert eliminate(objective, wide, budget, TUNING).nonzeros <= budget
    found, least = shrink(objective, wide, budget, TUNING)
    assert found.nonzeros <= budget
    assert least == pytest.approx(value(objective, found), rel=1e-6)


@biases
def test_elimination_refits_what_stays(bias: bool) -> None:
    form = planted(bias)
    objective = objective_of(form, bias)
    off = replace(form, linear=torch.zeros_like(form.linear), constant=torch.zeros_like(form.constant))
    assert value(objective, off) > 0.1
    found = eliminate(objective, off, form.nonzeros, replace(TUNING, slack=0.0))
    torch.testing.assert_close(outputs(found), outputs(form), rtol=0, atol=1e-3)


def test_elimination_goes_beyond_the_budget_where_that_costs_nothing() -> None:
    form = planted(True)
    objective = objective_of(form, True, noise=0.1)
    wide, _ = refit(objective, spoiled(form, 0.01, 1), 3, TUNING)
    exact = replace(TUNING, slack=0.0)
    assert eliminate(objective, wide, 13, exact).nonzeros == 13
    assert form.nonzeros <= eliminate(objective, wide, 13, TUNING).nonzeros < 13


@biases
def test_slopes_are_the_derivatives_at_every_weight(bias: bool) -> None:
    form = planted(bias)
    objective = objective_of(form, bias, noise=1.0)
    form = replace(form, weights=0.9 * form.weights)
    weights = form.weights.clone().requires_grad_(True)
    error = 0.5 * (outputs(replace(form, weights=weights)) - objective.data.targets[:, 0]).square().mean()
    error.backward()  # type: ignore[no-untyped-call]
    gradient, size = _slopes(objective, form)
    assert weights.grad is not None
    torch.testing.assert_close(gradient, weights.grad)
    inputs = torch.cat([X, torch.ones(ROWS, int(bias)).double()], 1)
    torch.testing.assert_close(size, inputs.square().mean(0).expand_as(size))


@biases
@pytest.mark.parametrize("gone", [(0, 0), (0, 1), (1, 3)])
def test_growing_by_one_admits_the_weight_that_is_missing(bias: bool, gone: tuple[int, int]) -> None:
    form = planted(bias)
    objective = objective_of(form, bias)
    weights = form.weights.clone()
    weights[gone] = 0
    left, _ = refit(objective, replace(form, weights=weights), 3, TUNING)
    grown = grow(objective, left, 1)
    assert grown.nonzeros == left.nonzeros + 1
    assert grown.weights[gone] != 0
    assert torch.equal(grown.weights != 0, form.weights != 0)
    assert value(objective, grown) < value(objective, left)
    _, least = refit(objective, grown, 20, TUNING)
    assert least < 1e-15


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_growing_admits_so_many_and_keeps_what_there_is(count: int) -> None:
    form = planted(True)
    objective = objective_of(form, True, noise=0.5)
    grown = grow(objective, form, count)
    assert grown.nonzeros == form.nonzeros + count
    held = form.weights != 0
    assert torch.equal(grown.weights[:2][held], form.weights[held])


def test_a_fold_grows_into_a_neuron_where_its_slope_is_largest() -> None:
    tilted = torch.zeros(1, INPUTS, dtype=torch.float64)
    tilted[0, 4], tilted[0, 0] = 0.9, 0.5
    form = planted(False)
    objective = objective_of(
        extended(replace(form, folds=torch.zeros(INPUTS).double()), tilted, [1.0]), False
    )
    left, _ = refit(objective, form, 5, TUNING)
    grown = grow(objective, left, 1)
    assert grown.neurons == 3
    assert not grown.folds.any()
    assert torch.equal(grown.weights[2] != 0, tilted[0] != 0)
    _, least = refit(objective, grown, 20, TUNING)
    assert least < 1e-15
