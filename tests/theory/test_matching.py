"""Matching: blind to order, scaling and merging, and to nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.data.planted import planted
from thresher.errors import DataError, ParameterError
from thresher.network import Layer, Network
from thresher.theory.forms import network_of
from thresher.theory.matching import match


def network(U: np.ndarray, v: np.ndarray, bias: np.ndarray | None = None) -> Network:
    v = v.reshape(len(v), -1)
    return Network((Layer(U, np.zeros(len(v)) if bias is None else bias), Layer(v, np.zeros(v.shape[1]))))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_order_scaling_and_merging_make_no_difference(seed: int, outputs: int) -> None:
    rng = np.random.default_rng(seed)
    U, v, b = rng.standard_normal((5, 4)), rng.standard_normal((4, outputs)), rng.standard_normal(4)
    order, factors = rng.permutation(4), rng.uniform(0.1, 10, 4)
    U2, v2, b2 = (U * factors)[:, order], (v / factors[:, None])[order], (b * factors)[order]
    # The first neuron as two on the same side of the same line.
    U2, b2 = np.column_stack([U2, 3 * U2[:, 0]]), np.append(b2, 3 * b2[0])
    v2 = np.vstack([v2, v2[:1] / 6])
    v2[0] /= 2
    found = match(network(U2, v2, b2), network(U, v, b))
    assert found.equivalent(1e-9)
    assert (found.precision, found.recall) == (1.0, 1.0)
    assert [one for one, _ in found.pairs] == [0, 1, 2, 3]


def test_what_was_missed_and_invented_is_told() -> None:
    U = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    truth = network(U, np.ones(3))
    found = match(network(np.column_stack([U[:, :2], -U[:, 2]]), np.ones(3)), truth)
    assert (found.missed, found.invented) == ((2,), (2,))
    assert found.precision == found.recall == pytest.approx(2 / 3)
    assert found.largest_error == 1.0
    assert not found.equivalent()


def test_an_opposite_output_is_another_neuron() -> None:
    U = np.array([[1.0], [2.0]])
    assert match(network(U, np.array([-1.0])), network(U, np.array([1.0]))).missed == (0,)


def test_a_weight_too_many_costs_precision_and_one_too_few_recall() -> None:
    truth = network(np.array([[1.0], [0.5], [0.0]]), np.ones(1))
    more = match(network(np.array([[1.0], [0.5], [0.1]]), np.ones(1)), truth)
    fewer = match(network(np.array([[1.0], [0.0], [0.0]]), np.ones(1)), truth)
    assert (more.precision, more.recall) == (pytest.approx(2 / 3), 1.0)
    assert (fewer.precision, fewer.recall) == (1.0, 0.5)
    assert fewer.largest_error == pytest.approx(0.5)


def test_a_planted_problem_matches_its_own_network_and_constants_count() -> None:
    problem = planted(n=10, d=8, hidden=4, budget=12, negative=0.5)
    own = network_of(problem)
    assert match(own, problem).equivalent(0.0)
    shifted = Network((own.layers[0], Layer(own.layers[1].weights, np.array([0.5]))))
    assert not match(shifted, problem).equivalent()


def test_what_cannot_be_matched_is_refused() -> None:
    one, two = network(np.ones((2, 1)), np.ones(1)), network(np.ones((3, 1)), np.ones(1))
    with pytest.raises(DataError, match="3 inputs"):
        match(two, one)
    deep = Network(
        (Layer(np.ones((2, 2)), np.zeros(2)), *two.layers[:0], Layer(np.ones((2, 1)), np.zeros(1)))
    )
    linear = Network((Layer(np.ones((2, 1)), np.zeros(1)),))
    assert match(deep, deep).equivalent()
    with pytest.raises(ParameterError, match="0 hidden layers"):
        match(linear, one)
