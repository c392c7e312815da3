"""Peers: the models a sparse network is compared with are fitted, scored and counted."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Lasso

from thresher.experiments.peers import count_numbers, fit_peer, peer_models


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classification", [False, True])
def test_peers_learn_what_is_linear(classification: bool, sparse: bool) -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 5)) * (draw.random((200, 5)) < 0.8)
    y = X @ [1.0, -2.0, 0.5, 1.0, 3.0]
    y = np.where(y > 0, "high", "low") if classification else 50 + y
    rows = scipy.sparse.csr_array(X) if sparse else X
    constant, *models = peer_models(classification, rows, seed=0).items()
    numbers = {"linear": 6, "dense": 5 * 100 + 100 + 100 + 1, "boosted": None}
    for (name, model), kind in zip(models, numbers, strict=True):
        peer = fit_peer(name, model, rows[:150], y[:150], rows[150:], y[150:])
        assert peer.problem is None
        assert peer.score == next(iter(peer.measures.values())) > 0.8, name
        assert peer.numbers == numbers[kind]
    least = fit_peer(*constant, rows[:150], y[:150], rows[150:], y[150:])
    assert least.score < 0.6


def test_sparse_rows_too_large_to_be_written_out_are_a_problem_that_is_said() -> None:
    X = scipy.sparse.csr_array((30, 10**6))
    model = peer_models(False, X, seed=0)["boosted trees"]
    peer = fit_peer("boosted trees", model, X, np.arange(30.0), X, np.arange(30.0))
    assert (peer.score, peer.measures) == (None, {})
    assert "30 x 1,000,000 sparse rows are too many" in peer.problem


@pytest.mark.parametrize("classification", [False, True])
@pytest.mark.parametrize("rows", [2, 3, 5, 9])
def test_few_rows_break_nothing(rows: int, classification: bool) -> None:
    draw = np.random.default_rng(rows)
    X = draw.normal(size=(rows + 1, 2))
    y = np.arange(rows + 1) % rows if classification else draw.normal(size=rows + 1)
    for name, model in peer_models(classification, X, seed=0).items():
        # A single test row has no R2.
        peer = fit_peer(name, model, X[:rows], y[:rows], X[rows:], y[rows:])
        assert peer.problem is not None or peer.measures
        assert peer.score is None or np.isfinite(peer.score)


def test_zeros_do_not_count() -> None:
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert count_numbers(Lasso(alpha=0.1).fit(X, 3 * X[:, 1] + 1)) == 2
