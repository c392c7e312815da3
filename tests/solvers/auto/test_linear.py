"""Linear models along a path of L1 penalties: scikit-learn's."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import Logistic, Loss, Poisson, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.linear import Model, as_fit, l1_path
from thresher.solvers.auto.tuning import LinearTuning

SHARP = replace(LinearTuning(), steps=3000, work=math.inf, tolerance=1e-9)


def problem(loss: Loss | None = None, outputs: int = 1, bias: bool = True) -> Relu:
    """Give an objective of which the first inputs matter most."""
    random = np.random.default_rng(0)
    X = random.standard_normal((80, 6))
    y = X @ (random.standard_normal((6, outputs)) * 0.5 ** np.arange(6)[:, None]) + 0.5
    y = y + 0.1 * random.standard_normal(y.shape)
    loss = loss or SquaredError()
    if loss.name == "logistic":
        y = (y > 0.5).astype(np.float64)
    elif loss.name == "poisson":
        y = random.poisson(np.exp(y)).astype(np.float64)
    layout = Layout((6, 2, outputs), bias, fused=outputs == 1, direct=True)
    return Relu(Data(X, torch.from_numpy(y), dtype=torch.float64), layout, loss)


def along(objective: Relu, tuning: LinearTuning = SHARP, step: int = 3) -> Model:
    """Give a model from the middle of a path."""
    return next(islice(l1_path(objective, 6 * objective.layout.widths[-1], tuning), step, None))


@pytest.mark.parametrize("bias", [True, False])
def test_a_path_is_that_of_scikit_learn(bias: bool) -> None:
    objective = problem(bias=bias)
    X, y = objective.data.X, objective.data.targets[:, 0].numpy()
    models = list(l1_path(objective, 6, SHARP))
    assert len(models) > 5
    for model in models:
        truth = Lasso(alpha=model.penalty, fit_intercept=bias, tol=1e-12, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(model.weights[:, 0], truth.coef_, atol=1e-6)
        np.testing.assert_allclose(float(model.constant), truth.intercept_, atol=1e-6)
        assert model.nonzeros == np.count_nonzero(truth.coef_)


def test_of_correlated_columns_a_path_holds_those_of_scikit_learn_with_the_steps_it_takes() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = (part / part.std(0) for part in (X - X.mean(0), y - y.mean()))
    layout = Layout((10, 2, 1), True, fused=True, direct=True)
    objective = Relu(Data(X, torch.from_numpy(y[:, None]), dtype=torch.float64), layout, SquaredError())
    models = list(l1_path(objective, 10, LinearTuning()))
    assert len(models) > 5
    for model in models:
        truth = Lasso(alpha=model.penalty, tol=1e-12, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(model.weights[:, 0], truth.coef_, atol=2e-3)
        assert model.nonzeros == np.count_nonzero(truth.coef_)


@pytest.mark.parametrize("loss", [SquaredError(), Logistic(), Poisson()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_slope_is_the_penalty_where_weights_are_and_no_more_elsewhere(loss: Loss, outputs: int) -> None:
    objective = problem(loss, outputs)
    model = along(objective)
    output = torch.from_numpy(objective.data.X) @ model.weights + model.constant
    slope = loss.slope(output, objective.data.targets) / 80
    weights = torch.from_numpy(objective.data.X).T @ slope
    held = model.weights != 0
    torch.testing.assert_close(weights[held], -model.penalty * model.weights[held].sign(), atol=1e-5, rtol=0)
    assert (weights[~held].abs() <= model.penalty + 1e-5).all()
    assert slope.sum(0).abs().max() < 1e-5


@pytest.mark.parametrize("most", [2, 3, 4])
def test_a_path_ends_before_it_holds_too_much_and_its_penalties_fall(most: int) -> None:
    models = list(l1_path(problem(), most, LinearTuning()))
    assert models
    assert all(1 <= model.nonzeros <= most for model in models)
    penalties = [model.penalty for model in models]
    assert penalties == sorted(penalties, reverse=True)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_model_is_written_as_direct_connections(outputs: int) -> None:
    objective = problem(outputs=outputs)
    model = along(objective, LinearTuning())
    fit = as_fit(objective, model)
    X = torch.from_numpy(objective.data.X)
    assert fit.nonzeros == model.nonzeros + outputs
    torch.testing.assert_close(objective.run(fit.point).forward(X).output, X @ model.weights + model.constant)


def test_a_model_without_biases_holds_its_weights_alone() -> None:
    objective = problem(bias=False)
    model = Model(torch.tensor([[1.0], [0], [0], [2], [0], [0]]).double(), torch.zeros(1).double(), 1.0)
    assert as_fit(objective, model).nonzeros == 2
