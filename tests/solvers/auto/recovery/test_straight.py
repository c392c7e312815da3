"""Straight neurons: linear parts are kept, and take no more weights than the neurons they were made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from thresher.solvers.auto.recovery.straight import straight_neurons

OUTPUTS, INPUTS = 10, 120


def shared(neurons: int, seed: int, direct: int) -> tuple[np.ndarray, int]:
    """Draw linear parts of neurons that several outputs read, and direct connections; and count weights."""
    random = np.random.default_rng(seed)
    weights, gains, alone = (
        np.zeros((neurons, INPUTS)),
        np.zeros((OUTPUTS, neurons)),
        np.zeros((OUTPUTS, INPUTS)),
    )
    for neuron in range(neurons):
        weights[neuron, random.choice(INPUTS, 6, replace=False)] = random.standard_normal(6)
        gains[random.choice(OUTPUTS, 4, replace=False), neuron] = random.standard_normal(4)
    alone[random.integers(0, OUTPUTS, direct), random.integers(0, INPUTS, direct)] = 1.5
    count = sum(int((part != 0).sum()) for part in (weights, gains, alone))
    return gains @ weights + alone, count


@pytest.mark.parametrize("direct", [0, 40])
@pytest.mark.parametrize("seed", range(3))
def test_neurons_and_direct_connections_are_told_apart(direct: int, seed: int) -> None:
    linear, count = shared(8, seed, direct)
    noisy = torch.from_numpy(linear + 1e-10 * np.random.default_rng(seed).standard_normal(linear.shape))
    weights, gains, rest = straight_neurons(noisy, 1e-8)
    assert float((gains @ weights + rest - torch.from_numpy(linear)).abs().max()) < 1e-7
    found = sum(int((part != 0).sum()) for part in (weights, gains, rest))
    assert found <= 1.1 * count < 0.8 * (linear != 0).sum()


def test_linear_parts_that_share_nothing_stay_direct_connections() -> None:
    linear = torch.from_numpy(np.random.default_rng(0).standard_normal((OUTPUTS, INPUTS)))
    weights, gains, rest = straight_neurons(linear, 1e-8)
    assert weights.shape == (0, INPUTS) and gains.shape == (OUTPUTS, 0)
    assert torch.equal(rest, linear)


def test_a_neuron_that_saves_nothing_is_not_made() -> None:
    linear = torch.zeros(OUTPUTS, INPUTS, dtype=torch.float64)
    linear[:2, :2] = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert len(straight_neurons(linear, 1e-8)[0]) == 0
    linear[2, :2] = torch.tensor([5.0, 10.0])
    weights, gains, rest = straight_neurons(linear, 1e-8)
    assert len(weights) == 1 and not rest.any()
    torch.testing.assert_close(gains @ weights, linear)
