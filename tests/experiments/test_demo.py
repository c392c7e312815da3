"""The demonstration: matching neurons is a matching, and the planted network is found."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.planted import PlantedProblem, planted
from thresher.experiments.demo import Planted, match, recover_planted
from thresher.network import Network

PROBLEM = planted(50, 12, 4, 10, negative=0.5, seed=1)


def network_of(
    problem: PlantedProblem, order: list[int], bias: float = 0.0, flip: int | None = None
) -> Network:
    assert problem.signs is not None
    weights = problem.weights[0].toarray()[:, order]
    signs = problem.signs[order].copy()
    if flip is not None:
        signs[flip] *= -1
    biases = np.zeros(len(order))
    biases[0] = bias
    return Network.fused(weights, biases, signs)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])
def test_neurons_in_any_order_are_the_same_network(order: list[int]) -> None:
    weights = match(PROBLEM, network_of(PROBLEM, order))
    assert weights.same
    assert weights.largest_error == 0
    assert np.array_equal(weights.planted, weights.recovered)
    listed = [(truth, guess) for *_, truth, guess in weights.rows()]
    assert len(listed) == PROBLEM.nonzeros
    assert all(truth == guess for truth, guess in listed)


def test_another_sign_bias_or_number_of_neurons_is_another_network() -> None:
    order = [0, 1, 2, 3]
    live = int(np.flatnonzero(PROBLEM.weights[0].toarray().any(0))[0])
    assert not match(PROBLEM, network_of(PROBLEM, order, flip=live)).same
    biased = match(PROBLEM, network_of(PROBLEM, order, bias=0.25))
    assert not biased.same
    assert biased.largest_error == 0.25
    fewer = match(PROBLEM, network_of(PROBLEM, [order[live]]))
    assert not fewer.same
    assert fewer.planted.shape == fewer.recovered.shape


def test_a_verdict_is_about_weights_first() -> None:
    same = match(PROBLEM, network_of(PROBLEM, [0, 1, 2, 3]))
    other = match(PROBLEM, network_of(PROBLEM, [0, 1, 2, 3], bias=0.25))
    verdicts = [
        Planted(weights, psnr, 165.0, 10, 1.0).verdict
        for weights, psnr in ((same, 90), (other, 120), (other, 30))
    ]
    assert verdicts == ["exact", "equivalent", "missed"]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_planted_network_is_found(seed: int) -> None:
    found = recover_planted(seed)
    assert found.verdict == "exact"
    assert found.psnr > found.floor - 1
    assert found.nonzeros == 18
    assert {sign for _, sign, *_ in found.weights.rows()} == {-1, 1}
