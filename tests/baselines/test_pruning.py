"""Pruning: masks fall as the arithmetic says, never regrow, and rewinding gives the first weights back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from thresher.baselines.masked import MaskedMLP
from thresher.baselines.pruning import GradualPruning, IterativePruning, OneShotPruning, weights_left
from thresher.baselines.run import AdamRun, Record


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((40, 5))
    return X, np.abs(X[:, 0]) + X[:, 1]


class Seen(NamedTuple):
    """Weights at the start and the end of a training run, and the mask at its start."""

    start: Tensor
    mask: Tensor
    end: Tensor


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    """Note every training run."""
    seen: list[Seen] = []
    train = AdamRun.train

    def noted(self: AdamRun, record: Record, **hooks: object) -> None:
        start, mask = self.model.flat.clone(), self.model.mask.clone()
        train(self, record, **hooks)  # type: ignore[arg-type]
        seen.append(Seen(start, mask, self.model.flat.clone()))

    monkeypatch.setattr(AdamRun, "train", noted)
    return seen


@pytest.fixture
def masks(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Note the mask after every step of the optimiser."""
    seen: list[Tensor] = []
    move = AdamRun._move

    def noted(self: AdamRun) -> None:
        move(self)
        seen.append(self.model.mask.clone())
        assert not self.model.flat[self.model.mask == 0].any()

    monkeypatch.setattr(AdamRun, "_move", noted)
    return seen


def plain_rounds(size: int, budget: int) -> Iterator[int]:
    """Prune a tenth, or one where a tenth is less than one, in whole numbers alone."""
    while size > budget:
        size = max(budget, size - max(1, size // 10))
        yield size


def test_a_round_leaves_nine_tenths_or_one_less() -> None:
    for active in (1, 5, 9, 10, 11, 19, 20, 785, 79_400):
        assert weights_left(active, 0.1) == next(plain_rounds(active, 0))
    # As the logarithm says: 0.9^42 * 79,400 is a little below 1,000.
    assert len(list(plain_rounds(79_400, 1_000))) == 42


def test_each_round_trains_as_long_and_prunes_what_it_should(rows) -> None:
    model = IterativePruning(budget=3, hidden=4, bias=False, max_iter=3, batch_size=16, random_state=0).fit(
        *rows
    )
    assert model.active_curve_ == [count for count in [24, *plain_rounds(24, 3)] for _ in range(3)]
    assert model.n_iter_ == len(model.loss_curve_) == len(model.active_curve_)
    paper = IterativePruning(**{**model.get_params(), "retrain": False}).fit(*rows)
    assert paper.active_curve_ == model.active_curve_[:-3]
    assert paper.nonzeros_ == 3


def test_every_round_starts_from_the_first_weights(rows, runs) -> None:
    IterativePruning(budget=3, hidden=4, max_iter=2, random_state=0).fit(*rows)
    assert len(runs) > 10
    assert runs[0].mask.all()
    for run in runs:
        assert torch.equal(run.start, runs[0].start * run.mask)
        assert not torch.equal(run.end, run.start)


@pytest.mark.parametrize("retrain", [False, True])
def test_a_path_of_budgets_finds_what_each_budget_finds_alone(retrain: bool, rows) -> None:
    model = IterativePruning(hidden=4, bias=False, max_iter=2, batch_size=16, retrain=retrain, random_state=0)
    # 24 weights, of which rounds leave 22, 20, 18, 17, ...: budgets between rounds, on one, and beyond.
    path = dict(model.fit_path(*rows, budgets=[3, 20, 24, 21, 100, 4]))
    assert list(path) == [100, 24, 21, 20, 4, 3]
    for budget, found in path.items():
        alone = IterativePruning(**{**model.get_params(), "budget": budget}).fit(*rows)
        assert found.network_.equals(alone.network_)
        assert found.get_params() == alone.get_params()
        assert (found.loss_curve_, found.active_curve_) == (alone.loss_curve_, alone.active_curve_)
    assert path[3].seconds_ > path[100].seconds_


def test_the_papers_last_network_is_trained_then_pruned(rows, runs) -> None:
    settings = {"budget": 12, "hidden": 4, "bias": False, "max_iter": 4, "scale": False, "random_state": 0}
    model = IterativePruning(**settings, retrain=False).fit(*rows)
    values = np.concatenate([layer.T.ravel() for layer in model.network_.coefs])
    trained = runs[-1].end.double().numpy()
    smallest = np.sort(np.abs(trained))[-12]
    np.testing.assert_array_equal(values, np.where(np.abs(trained) >= smallest, trained, 0))
    assert int(runs[-1].mask.sum()) == 13


def test_training_goes_on_after_one_shot_from_where_it_was(rows, runs) -> None:
    OneShotPruning(budget=5, hidden=4, max_iter=2, random_state=0).fit(*rows)
    first, second = runs
    assert int(second.mask.sum()) == 5
    assert torch.equal(second.start, first.end * second.mask)


@pytest.mark.parametrize("kind", [IterativePruning, GradualPruning, OneShotPruning])
def test_what_is_pruned_never_returns(kind, rows, masks) -> None:
    kind(budget=4, hidden=6, max_iter=8, batch_size=10, random_state=1).fit(*rows)
    assert all(bool((after <= before).all()) for before, after in pairwise(masks))
    assert masks[0].all() and not masks[-1].all()


def test_the_budget_falls_along_a_cubic_curve_and_then_stays(rows, masks) -> None:
    model = GradualPruning(budget=10, hidden=40, bias=False, max_iter=50, batch_size=10, random_state=0).fit(
        *rows
    )
    counts = [int(mask.sum()) for mask in masks]
    steps, last, size = 200, 100, 240
    assert len(counts) == steps
    # The mask that a step sees is that of the step before, and pruning comes every fifth step.
    for step in range(5, last, 5):
        assert counts[step] == 10 + int((1 - step / last) ** 3 * (size - 10))
    assert set(counts[last:]) == {10}
    assert model.nonzeros_ == 10


def test_the_shortest_run_still_meets_its_budget(rows) -> None:
    model = GradualPruning(budget=4, hidden=6, max_iter=1, batch_size=None, random_state=0).fit(*rows)
    assert (model.nonzeros_, model.n_iter_) == (4, 1)


@pytest.mark.parametrize("bias", [False, True])
def test_selection_equals_torchs_global_magnitude_pruning(bias: bool) -> None:
    model = MaskedMLP((7, 5, 3), bias, generator())
    peers = [nn.Linear(7, 5, bias=bias), nn.Linear(5, 3, bias=bias)]
    places = [(peer, name) for peer in peers for name, _ in peer.named_parameters()]
    ours = [part for group in zip(model.weights, model.biases or [None] * 2, strict=True) for part in group]
    with torch.no_grad():
        for (peer, name), part in zip(places, [part for part in ours if part is not None], strict=True):
            getattr(peer, name).copy_(part)
    for amount in (11, 6, 1):
        prune.global_unstructured(places, prune.L1Unstructured, amount=amount)
        assert model.keep_largest(model.active - amount) == amount
        theirs = torch.cat([getattr(peer, f"{name}_mask").ravel() for peer, name in places])
        assert torch.equal(model.mask, theirs)


def test_first_weights_are_torchs_default() -> None:
    model = MaskedMLP((100, 400, 25), True, generator())
    for weight, bias, inputs in zip(model.weights, model.biases, (100, 400), strict=True):
        within = inputs**-0.5
        for part in (weight, bias):
            assert part.detach().abs().max().item() <= within
        assert weight.detach().std().item() == pytest.approx(within / 3**0.5, rel=0.03)


def test_equal_magnitudes_stay_by_index_and_zeros_that_are_active_count() -> None:
    model = MaskedMLP((3, 2, 1), False, generator())
    model.flat.copy_(torch.tensor([1.0, -1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]))
    model.keep_largest(6)
    assert model.mask.tolist() == [1, 1, 1, 1, 0, 1, 1, 0]
    model.keep_largest(3)
    assert model.mask.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    model.keep_largest(5)
    assert model.active == 3
