"""RigL: as many weights in every layer at every step, in places that move until they settle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from thresher.baselines.masked import MaskedMLP, count_parameters
from thresher.baselines.rigl import RigL, exchange, layer_budgets
from thresher.baselines.run import AdamRun, Problem, Record


@pytest.fixture
def masks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[MaskedMLP, Tensor]]:
    """Note the mask after every step of the optimiser."""
    seen: list[tuple[MaskedMLP, Tensor]] = []
    move = AdamRun._move

    def noted(self: AdamRun) -> None:
        move(self)
        seen.append((self.model, self.model.mask.clone()))
        assert not self.model.flat[self.model.mask == 0].any()

    monkeypatch.setattr(AdamRun, "_move", noted)
    return seen


def test_places_move_and_counts_stay(masks) -> None:
    X = np.random.default_rng(0).standard_normal((40, 10))
    RigL(budget=40, hidden=(12, 6), max_iter=30, batch_size=10, random_state=0).fit(
        X, X[:, 0] - np.abs(X[:, 1])
    )
    steps = len(masks)
    model = masks[0][0]
    shares = layer_budgets(model.widths, model.bias, 40)
    for _, mask in masks:
        assert [int(mask[layer].sum()) for layer in model.layers] == shares
    moved = [not torch.equal(one, two) for (_, one), (_, two) in pairwise(masks)]
    settled = int(0.75 * steps)
    assert sum(moved[:settled]) > 10
    assert not any(moved[settled:])
    # At least some weight of the last network had no place in the first.
    assert bool((masks[-1][1] > masks[0][1]).any())


def test_the_smallest_weight_goes_and_the_largest_gradient_comes() -> None:
    model = MaskedMLP((3, 2, 1), False, torch.Generator().manual_seed(0))
    model.flat.copy_(torch.tensor([3.0, -0.1, 2.0, 0.0, 0.0, 0.0, 5.0, 5.0]))
    model.set_active(torch.tensor([0, 1, 2, 6, 7]))
    model.flat_grad.copy_(torch.tensor([9.0, 0.1, 9.0, 0.2, -4.0, 1.0, 9.0, 9.0]))
    assert exchange(model, model.layers[0], 0.4).tolist() == [4]
    assert model.mask.tolist() == [1, 0, 1, 0, 1, 0, 1, 1]
    assert model.flat.tolist() == [3, 0, 2, 0, 0, 0, 5, 5]
    # A full layer has no room to grow.
    assert exchange(model, model.layers[1], 0.9).tolist() == []
    assert exchange(model, model.layers[0], 0.1).tolist() == []


@pytest.mark.parametrize("widths", [(784, 100, 10), (5, 3, 1), (6, 4, 4, 2), (1, 1, 1)])
@pytest.mark.parametrize("bias", [False, True])
def test_shares_sum_to_the_budget_and_fit_their_layers(widths: tuple[int, ...], bias: bool) -> None:
    size = count_parameters(widths, bias)
    for budget in {1, 2, size // 2, size - 1, size} - {0}:
        shares = layer_budgets(widths, bias, budget)
        assert sum(shares) == budget
        for share, inputs, neurons in zip(shares, widths[:-1], widths[1:], strict=True):
            assert 0 <= share <= (inputs + bias) * neurons


def test_grown_weights_start_without_momentum() -> None:
    generator = torch.Generator().manual_seed(0)
    model = MaskedMLP((4, 3, 1), False, generator)
    model.set_active(torch.arange(0, 15, 2))
    X = torch.randn(20, 4, generator=generator)
    problem = Problem(X, X[:, :1].abs(), 1, torch.nn.functional.mse_loss, 5)
    run = AdamRun(model, problem, epochs=2, learning_rate=0.1, decay=False, generator=generator)
    run.forget(torch.tensor([1]))
    run.train(Record())
    state = run._adam.state[run._vector]
    before = state["exp_avg"].clone()
    run.forget(torch.tensor([0, 3]))
    assert not state["exp_avg"][[0, 3]].any() and not state["exp_avg_sq"][[0, 3]].any()
    assert torch.equal(state["exp_avg"][4:], before[4:])
