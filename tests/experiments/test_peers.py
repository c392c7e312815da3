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
    models = peer_models(classification, sparse, seed=0)
    assert len(models) == 2
    for name, model in models.items():
        peer = fit_peer(name, model, rows[:150], y[:150], rows[150:], y[150:])
        assert peer.score > 0.85, name
        assert peer.numbers == (6 if "regression" in name else 5 * 100 + 100 + 100 + 1)


def test_zeros_do_not_count() -> None:
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert count_numbers(Lasso(alpha=0.1).fit(X, 3 * X[:, 1] + 1)) == 2
