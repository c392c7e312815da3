"""Sides: whatever they are, the network computes the same; the planted ones leave nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.recovery.absolute import AbsoluteForm
from thresher.solvers.auto.recovery.sides import ReluForm, choose_sides, to_relu
from thresher.solvers.auto.recovery.tuning import SidesTuning

SIDES = SidesTuning()
X = torch.from_numpy(np.random.default_rng(0).standard_normal((40, 6)))
INPUTS = 6


def planted(
    neurons: int, each: int, seed: int, bias: bool = False, inputs: int = INPUTS
) -> tuple[Tensor, Tensor]:
    """Draw ReLU neurons of two weights or more, with a bias each if there are biases, and their signs."""
    random = np.random.default_rng(seed)
    weights = np.zeros((neurons, inputs + bias))
    for row in weights:
        row[random.choice(inputs, each, replace=False)] = random.uniform(0.5, 2, each) * random.choice(
            [-1, 1], each
        )
    if bias:
        weights[:, inputs] = random.standard_normal(neurons)
    return torch.from_numpy(weights), torch.from_numpy(random.choice([-1.0, 1.0], neurons))


def absolute_of(weights: Tensor, signs: Tensor, flipped: Tensor, bias: bool = False) -> AbsoluteForm:
    """Write ReLU neurons as ``(z + |z|) / 2``, some of them with ``|-z|`` instead."""
    line = signs @ weights / 2
    inputs = weights.shape[1] - bias
    folds = torch.zeros(inputs, dtype=torch.float64)
    return AbsoluteForm(flipped[:, None] * weights / 2, signs, line[:inputs], folds, line[inputs:])


def flips(count: int, seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, 1]).choice([-1.0, 1.0], count))


def absolute_outputs(form: AbsoluteForm) -> Tensor:  # (rows,)
    """Compute ``c + q.x + p.|x| + sum_i v_i |w_i.x + b_i|``."""
    sums = X @ form.weights[:, :INPUTS].T + form.weights[:, INPUTS:].sum(1)
    return X @ form.linear + X.abs() @ form.folds + sums.abs() @ form.signs + form.constant.sum()


def relu_outputs(form: ReluForm) -> Tensor:  # (rows,)
    sums = X @ form.weights[:, :INPUTS].T + form.weights[:, INPUTS:].sum(1)
    return sums.relu() @ form.signs + X @ form.direct + form.constant.sum()


def nonzeros(form: ReluForm) -> int:
    return sum(int((part != 0).sum()) for part in (form.weights, form.direct, form.constant))


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_any_form_keeps_its_outputs(direct: bool, bias: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    weights, signs = planted(5, 3, seed, bias)
    parts = (random.standard_normal(INPUTS) for _ in range(2))
    linear, folds = (torch.from_numpy(part * (random.random(INPUTS) < 0.7)) for part in parts)
    constant = torch.from_numpy(random.standard_normal(int(bias)))
    form = AbsoluteForm(weights, signs, linear, folds, constant)
    network = to_relu(form, 0.0, direct, False, SIDES)
    torch.testing.assert_close(relu_outputs(network), absolute_outputs(form), rtol=0, atol=1e-12)
    assert direct or not network.direct.any()
    assert (network.weights[:, :INPUTS] != 0).any(1).all()


@pytest.mark.parametrize(
    ("neurons", "each", "inputs"),
    [(3, 2, 6), (6, 3, 6), (10, 2, 6), (12, 3, 10)],
    ids=["few", "as many as inputs", "more than inputs", "more of three weights"],
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_planted_sides_are_found_and_nothing_is_left(
    neurons: int, each: int, inputs: int, bias: bool, seed: int
) -> None:
    weights, signs = planted(neurons, each, seed, bias, inputs)
    flipped = flips(neurons, seed)
    side, rest, folds = choose_sides(absolute_of(weights, signs, flipped, bias), 1e-9, SIDES)
    assert torch.equal(side, flipped)
    assert rest.abs().max() < 1e-12
    assert not folds.any()


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_network_comes_back_neuron_by_neuron(direct: bool, seed: int) -> None:
    weights, signs = planted(5, 2, seed, bias=True)
    form = absolute_of(weights, signs, flips(5, seed), bias=True)
    network = to_relu(form, 1e-9, direct, False, SIDES)
    torch.testing.assert_close(network.weights, weights)
    assert torch.equal(network.signs, signs)
    assert not network.direct.any()
    assert not network.constant.any()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("half", [1.0, -1.0])
def test_a_planted_neuron_of_one_weight_is_one_half_of_its_axis(sign: float, half: float) -> None:
    weights, signs = planted(4, 3, 0)
    lone = torch.zeros(1, INPUTS, dtype=torch.float64)
    lone[0, 2] = 1.5 * half
    form = absolute_of(weights, signs, flips(4, 0))
    # sign relu(1.5 half x) = sign (1.5 half x + 1.5 |x|) / 2
    folds = 0.75 * sign * (lone[0] != 0).double()
    folded = AbsoluteForm(form.weights, signs, form.linear + sign * lone[0] / 2, folds, form.constant)
    for direct in (True, False):
        network = to_relu(folded, 1e-9, direct, False, SIDES)
        torch.testing.assert_close(network.weights, torch.cat([weights, lone]))
        assert network.signs.tolist() == [*signs.tolist(), sign]
        assert not network.direct.any()


@pytest.mark.parametrize("seed", range(4))
def test_sides_are_found_where_all_axes_have_halves_of_their_own(seed: int) -> None:
    weights, signs = planted(5, 2, seed)
    halves = torch.tensor([1.5, -0.8, 0.7, 0.6, -1.3, -1.1], dtype=torch.float64)
    form = absolute_of(weights, signs, flips(5, seed))
    folded = AbsoluteForm(form.weights, signs, form.linear + halves / 2, halves.abs() / 2, form.constant)
    side, rest, _ = choose_sides(folded, 1e-9, SIDES)
    assert torch.equal(side, flips(5, seed))
    torch.testing.assert_close(rest, halves / 2)
    assert nonzeros(to_relu(folded, 1e-9, False, False, SIDES)) == 5 * 2 + 6


def test_a_planted_line_is_a_direct_connection_or_two_halves() -> None:
    weights, signs = planted(3, 2, 1)
    form = absolute_of(weights, signs, flips(3, 1))
    line = torch.zeros(INPUTS, dtype=torch.float64)
    line[4] = -2.0
    form = AbsoluteForm(form.weights, signs, form.linear + line, form.folds, form.constant)
    straight = to_relu(form, 1e-9, True, False, SIDES)
    assert (straight.neurons, nonzeros(straight)) == (3, 7)
    torch.testing.assert_close(straight.direct, line)
    halves = to_relu(form, 1e-9, False, False, SIDES)
    assert (halves.neurons, nonzeros(halves)) == (5, 8)
    for network in (straight, halves):
        torch.testing.assert_close(relu_outputs(network), absolute_outputs(form), rtol=0, atol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-3])
def test_what_is_left_within_the_tolerance_is_taken_for_nothing(tolerance: float) -> None:
    weights, signs = planted(4, 3, 2, bias=True)
    random = np.random.default_rng(2)
    form = absolute_of(weights, signs, flips(4, 2), bias=True)

    def noisy(part: Tensor) -> Tensor:
        return part + 0.4 * tolerance * torch.from_numpy(random.uniform(-1, 1, len(part)))

    spoiled = AbsoluteForm(form.weights, signs, noisy(form.linear), noisy(form.folds), noisy(form.constant))
    assert nonzeros(to_relu(spoiled, tolerance, True, False, SIDES)) == int((weights != 0).sum())
    assert nonzeros(to_relu(spoiled, tolerance / 1e4, True, False, SIDES)) > int((weights != 0).sum())
    # Where the output has a bias in any case, it stays what it is.
    assert to_relu(spoiled, tolerance, True, True, SIDES).constant.any()


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_a_network_is_a_point_with_room_for_its_neurons(direct: bool, bias: bool) -> None:
    weights, signs = planted(5, 3, 3, bias)
    line = torch.tensor([0, 1.0, 0, 0, -2.0, 0]).double() * direct
    form = ReluForm(weights, signs, line, torch.full((int(bias),), 0.5, dtype=torch.float64))
    layout = Layout((INPUTS, 9, 1), bias, fused=True, direct=direct)
    objective = Relu(Data(X, torch.zeros(40, 1), dtype=torch.float64), layout, SquaredError())
    room, point = form.at(objective)
    assert room.layout.widths == (INPUTS, 5, 1)
    assert point.w.nonzeros == nonzeros(form)
    torch.testing.assert_close(room.run(point).forward(X).output[:, 0], relu_outputs(form))


def test_the_strongest_neurons_stay_strongest_first() -> None:
    weights, signs = planted(5, 2, 4)
    weights *= torch.tensor([1.0, 5.0, 0.1, 20.0, 2.0]).double()[:, None]
    form = ReluForm(weights, signs, torch.zeros(INPUTS).double(), torch.zeros(0).double())
    strong = form.strongest(3)
    order = weights.norm(dim=1).argsort(descending=True)[:3]
    assert torch.equal(strong.weights, weights[order])
    assert torch.equal(strong.signs, signs[order])
