"""Few noisy rows: L1-penalised lines, lines as networks, and the comparison of both with networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import normal
from sklearn.linear_model import lasso_path
from torch import Tensor

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.objective.design import Design, column_scale
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom
from thresher.objective.linear import Objective
from thresher.objective.losses import Logistic, Loss, SquaredError
from thresher.solvers.compare import as_student
from thresher.solvers.linear import Lasso, Line
from thresher.solvers.plan import Plan
from thresher.solvers.settle import Rows
from thresher.solvers.working import Working


def rows(n: int = 120, d: int = 8, loss: Loss | None = None, weight: Tensor | None = None) -> Rows:
    """Make rows of a noisy linear problem, with a constant column."""
    X = normal(n, d) + np.arange(d)
    y = X[:, 0] - 2 * X[:, 1] + X[:, 3] + normal(n, seed=1)
    if isinstance(loss, Logistic):
        y = (y > np.median(y)).astype(float)
    X = np.hstack([X, np.ones((n, 1))])
    return Rows(torch.from_numpy(X), torch.from_numpy(y), weight, loss or SquaredError())


def plan(data: Rows, negative: bool, hidden: int = 3) -> Plan:
    """Make the plan of a search on rows whose last column is constant."""
    design = Design(data.X[:, :-1].numpy(), None, True, torch.float64)
    operator = GatedOperator(design, DenseRandom(design.features, hidden), 2**20)
    objective = Objective(operator, data.y, data.loss)
    working = Working.of(objective, torch.arange(design.features), 2**20, 0)
    return Plan(objective, working, 8, hidden, 4, 32, 200, negative, 0)


@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=["squared", "logistic"])
@pytest.mark.parametrize("bias", [False, True])
def test_every_line_of_the_path_is_optimal(loss: Loss, bias: bool) -> None:
    data = rows(loss=loss)
    lasso = Lasso(data, bias)
    path = list(lasso.path(8))
    assert len(path) > 5
    for line in path:
        slope = loss.slope(line.output(data.X), data.y) / len(data.y)
        gradient = (data.X.T @ slope)[: lasso.spread.numel()] / lasso.spread
        assert float(gradient.abs().max()) <= line.penalty * (1 + 1e-4)
        pull = gradient[line.features] + line.penalty * line.slopes.sign()
        assert float(pull.abs().max()) <= 1e-4 * line.penalty if line.nonzeros else True
        assert not bias or abs(float(slope.sum())) < 1e-6


def test_a_squared_error_gives_the_lasso_of_scikit_learn() -> None:
    data = rows()
    X = data.X[:, :-1].numpy()
    X = (X - X.mean(0)) / X.std(0)
    for line in Lasso(data, True).path(5):
        coefs = lasso_path(X, data.y.numpy() - data.y.numpy().mean(), alphas=[line.penalty], tol=1e-10)[1][
            :, 0
        ]
        expected = X @ coefs + data.y.numpy().mean()
        assert np.allclose(line.output(data.X).numpy(), expected, atol=1e-5)


def test_the_path_ends_at_the_most_slopes_allowed() -> None:
    counts = [line.nonzeros for line in Lasso(rows(), True).path(3)]
    assert counts[0] == 0
    assert max(counts) == 3


def test_row_weights_equal_repeats_along_the_path() -> None:
    times = torch.arange(120) % 3
    data = rows(weight=times.double())
    repeated = Rows(data.X.repeat_interleave(times, 0), data.y.repeat_interleave(times), None, data.loss)
    for one, other in zip(Lasso(data, True).path(4), Lasso(repeated, True).path(4), strict=True):
        assert torch.equal(one.features, other.features)
        assert torch.allclose(one.slopes, other.slopes)


def test_a_refit_without_a_penalty_is_least_squares() -> None:
    data = rows()
    lasso = Lasso(data, True)
    line = lasso.refit(list(lasso.path(4))[-1], 0.0)
    used = torch.cat([data.X[:, line.features], data.X[:, -1:]], 1)
    solution = torch.linalg.lstsq(used, data.y[:, None]).solution[:, 0]
    assert torch.allclose(line.slopes, solution[:-1], rtol=1e-3)
    assert line.constant == pytest.approx(float(solution[-1]), rel=1e-3)


@pytest.mark.parametrize("sign", ["mixed", "positive"])
@pytest.mark.parametrize("constant", [-3.0, 0.5])
def test_a_line_is_a_network_of_few_more_numbers(sign: str, constant: float) -> None:
    data = rows()
    if sign == "positive":
        data = Rows(data.X.abs(), data.y, None, data.loss)
    line = Line(torch.tensor([0, 2, 5]), torch.tensor([1.0, -2.0, 0.3], dtype=torch.float64), constant)
    student = as_student(plan(data, negative=True), data, line)
    assert student.nonzeros <= line.nonzeros + (1 if sign == "positive" else 2)
    assert torch.allclose(student.output(data.X), line.output(data.X))


def test_where_no_target_is_negative_a_line_is_one_neuron() -> None:
    data = rows()
    line = Line(torch.tensor([0, 2]), torch.tensor([1.0, -2.0], dtype=torch.float64), 1.0)
    student = as_student(plan(data, negative=False), data, line)
    assert student.nonzeros == 3
    assert torch.allclose(student.output(data.X), line.output(data.X).clamp(min=0))


# What it is for.


def lasso_of(X: np.ndarray, y: np.ndarray, slopes: int) -> tuple[np.ndarray, float]:
    """Give scikit-learn's last lasso with no more than so many slopes, in raw units, and its constant."""
    centred = (X - X.mean(0)) / X.std(0)
    alphas = np.geomspace(np.abs(centred.T @ (y - y.mean())).max() / len(y), 1e-3, 300)
    coefs = lasso_path(centred, y - y.mean(), alphas=alphas)[1]
    last = coefs[:, np.flatnonzero(np.count_nonzero(coefs, axis=0) <= slopes)[-1]] / X.std(0)
    return last, float(y.mean() - X.mean(0) @ last)


def noisy_line(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = normal(rows, 12, seed=seed)
    signal = X[:, :6] @ np.array([1.0, -1.0, 0.8, 0.6, -0.4, 0.3])
    return X, signal + 1.8 * normal(rows, seed=seed + 1)


def test_on_few_noisy_rows_of_a_linear_problem_a_network_is_no_worse_than_a_lasso() -> None:
    differences = []
    for seed in range(0, 60, 10):
        X, y = noisy_line(seed, 250)
        fresh, target = noisy_line(seed + 5, 4000)
        model = SparseMLPRegressor(budget=8, hidden=10, random_state=0).fit(X, y)
        slopes, constant = lasso_of(X, y, 6)
        theirs = np.mean((fresh @ slopes + constant - target) ** 2)
        differences.append(np.mean((model.predict(fresh) - target) ** 2) / theirs - 1)
        assert model.nonzeros_ <= 8
    assert np.mean(differences) < 0.01


def test_a_network_is_chosen_where_a_line_cannot_do() -> None:
    X = normal(300, 6)
    y = np.abs(X[:, 0]) + 0.3 * normal(300, seed=1)
    model = SparseMLPRegressor(budget=6, hidden=4, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.6
    label = (y > np.median(y)).astype(int)
    classifier = SparseMLPClassifier(budget=6, hidden=4, random_state=0).fit(X, label)
    assert classifier.score(X, label) > 0.8


def test_weights_equal_repeats_where_a_line_is_chosen() -> None:
    X, y = noisy_line(0, 200)
    times = np.arange(200) % 3
    phases: list[str] = []

    def note(record: dict[str, object]) -> None:
        phases.append(str(record["phase"]))

    weighted = SparseMLPRegressor(budget=8, hidden=4, random_state=0, callback=note)
    weighted.fit(X, y, sample_weight=times)
    repeated = SparseMLPRegressor(budget=8, hidden=4, random_state=0)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert "line" in phases
    assert np.allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)


def test_columns_are_compared_at_their_own_scale() -> None:
    X, y = noisy_line(0, 200)
    model = SparseMLPRegressor(budget=8, hidden=4, random_state=0).fit(X, y)
    scaled = SparseMLPRegressor(budget=8, hidden=4, random_state=0).fit(X * 2.0 ** np.arange(12), y)
    assert np.allclose(column_scale(X) * 2.0 ** np.arange(12), column_scale(X * 2.0 ** np.arange(12)))
    assert np.allclose(model.predict(X), scaled.predict(X * 2.0 ** np.arange(12)), atol=1e-6)


def test_rows_that_are_all_alike_are_not_compared() -> None:
    y = normal(100)
    model = SparseMLPRegressor(budget=4, random_state=0).fit(np.ones((100, 3)), y)
    assert np.allclose(model.predict(np.ones((1, 3))), y.mean(), atol=1e-6)


def test_targets_that_are_all_alike_need_a_constant_only() -> None:
    line = next(Lasso(Rows(rows().X, torch.ones(120).double(), None, SquaredError()), True).path(4))
    assert line.nonzeros == 0
    assert line.constant == pytest.approx(1.0)
