"""The ways of small problems: under which penalty linear models are refitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import Logistic, Loss, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.judge import Candidate, Judge
from thresher.solvers.auto.tuning import Tuning
from thresher.solvers.auto.ways import linear, penalties

ROWS, INPUTS = 60, 5


def separable(loss: Loss) -> Relu:
    """Draw rows that the sign of a linear law parts without an error, or that law itself."""
    random = np.random.default_rng(0)
    X = random.standard_normal((ROWS, INPUTS))
    y = X @ np.array([2.0, -1.5, 1.0, 0.5, -0.5])
    y = (y > 0).astype(float) if loss.name == "logistic" else y + 0.1 * random.standard_normal(ROWS)
    data = Data(X, torch.from_numpy(y[:, None]), dtype=torch.float64)
    return Relu(data, Layout((INPUTS, 2, 1), fused=True, direct=True), loss)


def refits(objective: Relu, alphas: tuple[float, ...]) -> list[Candidate]:
    """Give the linear models of all inputs that were refitted."""
    judge = Judge(objective, replace(objective, alpha=0.0), 1.0, Tuning().judge)
    found = linear(judge, INPUTS + 1, alphas, 0, Tuning())
    return [one for one in found if one.place[0] == "refitted" and one.nonzeros == INPUTS + 1]


def weights(candidate: Candidate) -> np.ndarray:
    """Give a linear model's weights and its constant, by place."""
    return candidate.fit.point.w.values.numpy()


def test_classes_are_refitted_as_a_logistic_regression_of_unit_penalty_is() -> None:
    objective = separable(Logistic())
    (*_, last) = refits(objective, penalties(objective.loss, None, Tuning().judge))
    peer = LogisticRegression(C=1.0, tol=1e-10).fit(objective.data.X, objective.data.targets[:, 0])
    assert last.alpha == 1.0
    assert sorted(weights(last)) == pytest.approx(sorted([*peer.coef_[0], *peer.intercept_]), abs=0.02)


def test_a_squared_error_is_refitted_under_the_weakest_penalty() -> None:
    objective = separable(SquaredError())
    alphas = penalties(objective.loss, None, Tuning().judge)
    (*_, last) = refits(objective, alphas)
    peer = Ridge(alpha=alphas[0], tol=1e-10).fit(objective.data.X, objective.data.targets[:, 0])
    assert last.alpha == alphas[0]
    assert sorted(weights(last)) == pytest.approx(sorted([*peer.coef_, peer.intercept_]), abs=1e-4)


@pytest.mark.parametrize("loss", [Logistic(), SquaredError()], ids=lambda loss: loss.name)
def test_a_penalty_that_is_given_is_the_one_of_all_linear_models(loss: Loss) -> None:
    assert {one.alpha for one in refits(separable(loss), (0.3,))} == {0.3}


@pytest.mark.parametrize("loss", [Logistic(), SquaredError()], ids=lambda loss: loss.name)
def test_a_refit_on_all_rows_is_that_of_the_candidate(loss: Loss) -> None:
    objective = separable(loss)
    (*_, last) = refits(objective, penalties(loss, None, Tuning().judge))
    assert last.finish is not None
    again = last.finish(replace(objective, alpha=last.alpha / ROWS)).point.w.values.numpy()
    assert again == pytest.approx(weights(last), abs=0.01)
