"""RigL through sparselab meets its budget, is repeatable, and says what it cannot do."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from thresher.baselines import SparseLabRigL
from thresher.errors import ParameterError

SETTINGS = {"task": "classification", "budget": 400, "hidden": 30, "max_iter": 6, "batch_size": 32}


def test_digits_are_learnt_within_the_budget_and_repeatably() -> None:
    pytest.importorskip("sparselab")
    X, y = load_digits(return_X_y=True)
    state = torch.get_rng_state()
    first, again, other = (
        SparseLabRigL(**SETTINGS, random_state=seed).fit(X[::2], y[::2]) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert set(first.active_curve_) == {400}
    assert first.nonzeros_ <= 400
    assert first.score(X[1::2], y[1::2]) > 0.85
    assert first.network_.equals(again.network_)
    assert not first.network_.equals(other.network_)


def test_weights_move() -> None:
    pytest.importorskip("sparselab")
    X = np.random.default_rng(0).standard_normal((100, 20))
    y = X[:, 0] - np.abs(X[:, 1])
    settings = {"budget": 60, "hidden": 10, "max_iter": 10, "batch_size": 10, "random_state": 0}
    moved = SparseLabRigL(**settings).fit(X, y).network_
    still = SparseLabRigL(**settings, update_every=10_000).fit(X, y).network_
    assert still.nonzeros == 60
    assert (moved.coefs[0] != 0).tolist() != (still.coefs[0] != 0).tolist()


def test_biases_and_dense_networks_are_refused() -> None:
    with pytest.raises(ParameterError, match="bias=True"):
        SparseLabRigL(bias=True).fit(np.eye(3), np.arange(3))
    pytest.importorskip("sparselab")
    with pytest.raises(ParameterError, match="budget=8 leaves nothing out"):
        SparseLabRigL(budget=8, hidden=2).fit(np.eye(3), np.arange(3))


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sparselab", None)
    with pytest.raises(ParameterError, match=r"thresher\[sparselab\]"):
        SparseLabRigL(budget=3, hidden=2).fit(np.eye(3), np.arange(3))
