"""The search breaks claims that are false, and none that is true."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.experiments.breaking import broken, same_network
from thresher.experiments.certified_problems import Problem, problem_of
from thresher.experiments.spoiled import network, shuffled, variants

CLAIMED = {"unique on its support": "holds", "isolated": "holds", "unique in the dictionary (own)": "holds"}


def drawn(number: int, outputs: int) -> Problem:
    return problem_of(400, 3, number, outputs)


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("number", [0, 5, 9, 17])
def test_wrong_weights_are_broken_and_the_planted_ones_are_not(number: int, outputs: int) -> None:
    one = drawn(number, outputs)
    truth = shuffled(one.U, one.V, np.random.default_rng(0), one.c)
    support = {"unique on its support": "holds"}
    assert broken(truth, one.X, one.y, one.hidden_by, support) == []
    assert broken(truth, one.X, one.y, one.hidden_by, dict.fromkeys(CLAIMED, "unknown")) == []
    U = one.U.copy()
    U[tuple(np.argwhere(U)[0])] *= 1.01
    found = broken(network(U, one.V, one.c), one.X, one.y, one.hidden_by, CLAIMED)
    assert {"refitting its support", "moving one weight"} <= set(found)


def test_a_weight_that_should_enter_is_found() -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    y = np.maximum(X[:, :1], 0) + 3 * X[:, 1:2] * (X[:, :1] > 0)
    made = network(np.array([[1.0], [0.0], [0.0]]), np.ones(1))
    found = broken(made, X, y, np.zeros_like(y), CLAIMED)
    assert {"a step of thresholding", "refitting all inputs under its gates"} <= set(found)


@pytest.mark.parametrize("outputs", [1, 4])
def test_the_same_network_is_known_in_any_order_and_no_other_is(outputs: int) -> None:
    told = 0
    for number in range(20):
        one = drawn(number, outputs)
        rng = np.random.default_rng(number)
        truth = network(one.U, one.V, one.c)
        assert same_network(shuffled(one.U, one.V, rng, one.c), truth, one.X, one.hidden_by)
        spoiled = dict(variants(one.U, one.V, one.X, one.y, rng, one.c))
        for name in ("perturbed", "faintest moved"):
            told += not same_network(spoiled[name], truth, one.X, one.hidden_by)
    assert told >= 36  # Labels far from zero hide a little.
