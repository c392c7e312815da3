"""Training the live part alone is training the whole: nothing else moves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from thresher.baselines import IterativePruning, OneShotPruning, live
from thresher.baselines.live import live_part, live_units
from thresher.baselines.masked import MaskedMLP
from thresher.baselines.run import Problem


def model_of(widths: tuple[int, ...], bias: bool, active: int, seed: int) -> MaskedMLP:
    generator = torch.Generator().manual_seed(seed)
    model = MaskedMLP(widths, bias, generator)
    model.set_active(torch.randperm(model.size, generator=generator)[:active])
    return model


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("active", [0, 1, 5, 12, 30])
def test_only_what_lies_in_the_live_part_has_a_gradient(bias: bool, active: int, monkeypatch) -> None:
    monkeypatch.setattr(live, "SMALLEST", 0)
    monkeypatch.setattr(live, "SHARE", 1.0)
    X = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    problem = Problem(X, X[:, :2], 2, functional.mse_loss, 30)
    for seed in range(5):
        model = model_of((8, 6, 5, 2), bias, active, seed)
        found = live_part(model, problem)
        assert found is not None
        part, smaller, places = found
        functional.mse_loss(model(X), problem.y).backward()
        moving = ((model.flat_grad != 0) & (model.mask > 0)).nonzero()[:, 0]
        assert set(moving.tolist()) <= set(places.tolist())
        assert len(places) == len(set(places.tolist())) == part.size
        assert torch.equal(part.flat, model.flat[places])
        with torch.no_grad():
            torch.testing.assert_close(part(smaller.X), model(X))


def test_dead_ends_are_left_out() -> None:
    model = MaskedMLP((3, 3, 1), True, torch.Generator())
    # Neuron 0: from input 2 to the output. Neuron 1: a bias alone. Neuron 2: fed, but it feeds nothing.
    model.set_active(torch.tensor([2, 6, 7, 10, 12, 13]))
    assert [units.tolist() for units in live_units(model)] == [[2], [0, 1], [0]]


@pytest.mark.parametrize("kind", [IterativePruning, OneShotPruning])
def test_a_fit_is_the_same_with_and_without_it(kind, monkeypatch) -> None:
    X = np.random.default_rng(0).standard_normal((60, 12))
    y = np.abs(X[:, :2]) + X[:, 2:4]
    settings = {"budget": 15, "hidden": 10, "max_iter": 3, "batch_size": 20, "random_state": 0}
    whole = kind(**settings).fit(X, y)
    monkeypatch.setattr(live, "SMALLEST", 0)
    calls = []
    monkeypatch.setattr(
        "thresher.baselines.base.live_part", lambda *given: calls.append(live_part(*given)) or calls[-1]
    )
    parts = kind(**settings).fit(X, y)
    assert any(call is not None for call in calls)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-4, atol=1e-5)
    assert parts.active_curve_ == whole.active_curve_
    np.testing.assert_allclose(parts.loss_curve_, whole.loss_curve_, rtol=1e-4)
    assert parts.peak_weights_ == whole.peak_weights_
