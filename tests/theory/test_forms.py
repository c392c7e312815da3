"""Forms of a network: the same answers on the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.data.planted import planted
from thresher.errors import DataError, ParameterError
from thresher.theory.forms import network_of, split, whiten


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_gated_weights_become_relu_neurons_with_the_same_answers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, w, h = rng.standard_normal((20, 4)), rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    w[0] = 2 * h[0]  # in its own cone
    w[1] = -h[1]  # in the opposite one
    gated = sum(((X @ h[i] > 0) * (X @ w[i]) for i in range(3)), np.zeros(20))
    made = split(w, h, X)
    assert np.allclose(made.network().predict(X), gated)
    assert set(made.doubled) <= {2}
    assert made.source.tolist()[:2] == [0, 1]
    assert set(np.unique(made.v)) <= {-1.0, 1.0}


def test_a_cone_without_room_is_refused() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ParameterError, match="perpendicular to 1 rows"):
        split([[1.0, 1.0]], [[1.0, 0.0]], X)
    with pytest.raises(DataError, match="3 columns"):
        split([[1.0, 1.0]], [[1.0, 0.0]], np.ones((2, 3)))


def test_a_gate_without_weights_makes_no_neuron() -> None:
    X = np.array([[1.0, 2.0]])
    made = split([[0.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], X)
    assert made.source.tolist() == [1]
    assert split([[0.0, 0.0]], [[1.0, 0.0]], X).network().predict(X).tolist() == [0.0]


def test_planted_problems_become_networks() -> None:
    for options in ({"outputs": 1, "negative": 0.5}, {"outputs": 3}, {"hidden": (4, 3)}):
        problem = planted(n=30, d=6, **{"hidden": 4, "budget": 12, **options})
        assert np.allclose(network_of(problem).predict(problem.X), problem.evaluate(problem.X))
        assert network_of(problem).nonzeros == problem.nonzeros


def test_whitened_data_has_orthonormal_columns_and_weights_go_back() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 3))
    whitening = whiten(X)
    Z, U = whitening.apply(X), rng.standard_normal((3, 2))
    assert np.allclose(Z.T @ Z / 60, np.eye(3))
    assert np.allclose(Z @ U, X @ whitening.back(U))
    with pytest.raises(DataError, match="linearly dependent"):
        whiten(np.ones((5, 2)))
