"""Every baseline meets its budget exactly, is repeatable, and hands out the network that torch trained."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from thresher.baselines import BASELINES, GradualPruning, IterativePruning, OneShotPruning
from thresher.baselines.masked import MaskedMLP
from thresher.data.planted import planted
from thresher.errors import BudgetError, DataError, ParameterError
from thresher.network import Network

NAMES = sorted(BASELINES)
PRUNING = ("imp-paper", "imp", "gmp", "one-shot")
# Task, outputs, hidden, bias.
SHAPES = (
    ("regression", 1, 4, False),
    ("regression", 3, (5, 4), True),
    ("classification", 2, 6, True),
    ("classification", 3, (4, 3), False),
)


def problem(task: str, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw 60 rows of 6 columns with targets of the kind that is asked for."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    if task == "classification":
        return X, np.array(["left", "middle", "right"])[rng.integers(outputs, size=60)]
    y = np.maximum(X[:, :outputs], 0) - X[:, -outputs:]
    return X, y[:, 0] if outputs == 1 else y


def made(name: str, task: str = "regression", **settings: Any) -> Any:
    """Make a baseline as a sweep does."""
    chosen = {"budget": 9, "hidden": 4, "max_iter": 2, "batch_size": 20, "random_state": 0, "bias": False}
    return BASELINES[name](task, **{**chosen, **settings})


def layers_of(network: Network) -> list[np.ndarray]:
    """Write out everything a network holds."""
    return [*network.coefs, *network.intercepts]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("task", "outputs", "hidden", "bias"), SHAPES)
def test_the_budget_is_met_exactly_in_every_shape(name, task, outputs, hidden, bias) -> None:
    X, y = problem(task, outputs)
    size = made("dense", task, hidden=hidden, bias=bias).fit(X, y).network_.size
    if not bias:
        size -= sum(hidden) if isinstance(hidden, tuple) else hidden
        size -= 1 if outputs == 2 else outputs
    for budget in (1, 2, 13, size - 1, size, 10 * size):
        model = made(name, task, budget=budget, hidden=hidden, bias=bias).fit(X, y)
        allowed = size if name == "dense" else min(budget, size)
        if name != "imp-paper":  # whose last pruning comes after its last epoch
            assert model.active_curve_[-1] == allowed
        assert model.nonzeros_ == model.network_.nonzeros
        # A weight grown by RigL on a path that leads nowhere stays zero.
        assert model.nonzeros_ <= allowed if name == "rigl" else model.nonzeros_ == allowed
        assert model.peak_weights_ == size
        assert model.network_.hidden == (hidden if isinstance(hidden, tuple) else (hidden,))
        if not bias:
            assert not any(layer.any() for layer in model.network_.intercepts)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits(name: str) -> None:
    X, y = problem("regression", 3)
    state = torch.get_rng_state(), np.random.get_state()[1].tobytes()  # type: ignore[index]
    first, again, other = (made(name, random_state=seed).fit(X, y) for seed in (3, 3, 4))
    assert first.network_.equals(again.network_)
    assert first.loss_curve_ == again.loss_curve_
    assert not first.network_.equals(other.network_)
    assert torch.equal(torch.get_rng_state(), state[0])
    assert np.random.get_state()[1].tobytes() == state[1]  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("task", "outputs", "hidden", "bias"), SHAPES)
def test_the_network_predicts_what_torch_computes(name, task, outputs, hidden, bias, monkeypatch) -> None:
    X, y = problem(task, outputs)
    X = X * 50 + 7
    seen = {}
    monkeypatch.setattr(
        MaskedMLP,
        "to_network",
        lambda self, to_network=MaskedMLP.to_network, **links: (
            seen.update(model=self, **links) or to_network(self, **links)
        ),
    )
    model = made(name, task, hidden=hidden, bias=bias).fit(X, y)
    x_scale, y_scale = seen["x_scale"], seen["y_scale"]
    assert (x_scale == 1) == (name == "imp-paper")
    with torch.no_grad():
        expected = seen["model"](torch.from_numpy(X / x_scale).float()).numpy() * y_scale
    np.testing.assert_allclose(
        model.network_.forward(X), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()
    )
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("name", [name for name in NAMES if name != "imp-paper"])
def test_digits_are_learnt(name: str) -> None:
    X, y = load_digits(return_X_y=True)
    model = made(name, "classification", budget=400, hidden=30, max_iter=15, batch_size=64).fit(
        X[::2], y[::2]
    )
    assert model.nonzeros_ == (2220 if name == "dense" else 400)
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert model.loss_curve_[-1] < model.loss_curve_[0] / 3
    assert model.seconds_ > 0


def test_training_after_the_last_pruning_is_what_the_papers_baseline_lacks() -> None:
    X, y = load_digits(return_X_y=True)
    # Half of the weights go in each round, so that the last pruning hurts.
    settings = {"budget": 150, "hidden": 30, "max_iter": 8, "batch_size": 64, "fraction": 0.5}
    paper = made("imp-paper", "classification", **settings).fit(X, y)
    retrained = clone(paper).set_params(retrain=True).fit(X, y)
    assert paper.nonzeros_ == retrained.nonzeros_ == 150
    assert retrained.score(X, y) > paper.score(X, y) + 0.1


def test_two_classes_and_real_targets() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.max(axis=0)
    assert (
        made("gmp", "classification", budget=60, hidden=10, max_iter=30, bias=True).fit(X, y).score(X, y)
        > 0.9
    )
    X, y = load_diabetes(return_X_y=True)
    model = made("gmp", budget=60, hidden=10, max_iter=60, bias=True, learning_rate=0.01).fit(X, y)
    assert 0.3 < model.score(X, y) < 1


def test_the_papers_binary_task_compares_with_one_half() -> None:
    X, y = problem("classification", 2)
    assert made("imp-paper", "classification").fit(X, y).network_.link == "identity"
    assert made("imp", "classification").fit(X, y).network_.link == "logistic"
    X, y = problem("classification", 3)
    assert made("imp-paper", "classification").fit(X, y).network_.link == "softmax"


def test_scaling_data_only_scales_the_answer() -> None:
    X, y = problem("regression", 1)
    for name in ("gmp", "rigl"):
        small = made(name, budget=12).fit(X, y)
        large = made(name, budget=12).fit(X * 1024, y * 4096)
        np.testing.assert_allclose(large.predict(X * 1024), 4096 * small.predict(X), rtol=1e-3, atol=4)


def test_estimators_clone_and_say_what_they_are() -> None:
    for name in NAMES:
        model = made(name, "classification", hidden=(4, 3))
        assert clone(model).get_params() == model.get_params()
        assert is_classifier(model) and is_regressor(made(name))
        assert type(model).__name__ in repr(model)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"budget": 0}, BudgetError),
        ({"task": "ranking"}, ParameterError),
        ({"loss": "hinge"}, ParameterError),
        ({"hidden": ()}, ParameterError),
        ({"hidden": (3, 0)}, ParameterError),
        ({"hidden": 2.5}, ParameterError),
        ({"max_iter": 0}, ParameterError),
        ({"batch_size": -1}, ParameterError),
        ({"learning_rate": 0}, ParameterError),
        ({"learning_rate": float("nan")}, ParameterError),
        ({"fraction": 1}, ParameterError),
        ({"random_state": "seed"}, ParameterError),
    ],
)
def test_bad_parameters_are_refused_by_name(wrong, error) -> None:
    X, y = problem("regression", 1)
    with pytest.raises(error, match=f"{next(iter(wrong))}="):
        IterativePruning(max_iter=1).set_params(**{"hidden": 2, "max_iter": 1, **wrong}).fit(X, y)


def test_all_bad_parameters_are_named_at_once() -> None:
    with pytest.raises(ParameterError, match=r"task=.*max_iter=.*pruning_share="):
        GradualPruning("ranking", max_iter=0, pruning_share=2).fit([[0.0], [1.0]], [0, 1])


def test_data_that_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(DataError, match="one class only"):
        OneShotPruning("classification").fit(np.ones((4, 2)), np.ones(4))
    with pytest.raises(DataError, match="learning_rate="):
        OneShotPruning(scale=False, max_iter=2).fit(np.full((4, 2), 1e30), np.arange(4))


def test_targets_of_zero_are_no_error() -> None:
    X, y = problem("regression", 1)
    for name in PRUNING:
        assert np.isfinite(made(name).fit(X, 0 * y).predict(X)).all()


def test_active_weights_only_fall_in_pruning() -> None:
    X, y = problem("regression", 1)
    for name in PRUNING:
        curve = made(name, max_iter=5).fit(X, y).active_curve_
        assert all(after <= before for before, after in pairwise(curve))


def test_a_planted_network_of_many_outputs_is_fitted() -> None:
    drawn = planted(n=400, d=8, hidden=4, budget=20, outputs=3, seed=1)
    model = made("gmp", budget=40, hidden=16, max_iter=100, learning_rate=0.01).fit(drawn.X, drawn.y)
    assert model.nonzeros_ == 40
    assert model.score(drawn.X, drawn.y) > 0.8
