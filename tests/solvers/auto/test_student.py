"""The student: within the budget, taught by a committee, and no larger than the noise can tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Logistic, Loss, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.committee import Committee
from thresher.solvers.auto.small import Small
from thresher.solvers.auto.student import alpha_for, smaller, student, taught
from thresher.solvers.auto.tuning import StudentTuning, Tuning
from thresher.solvers.auto.ways import under

ROWS = 300
X = np.random.default_rng(0).standard_normal((ROWS, 4))
CURVE = np.abs(X[:, 0]) + np.sin(2 * X[:, 1])
NOISE = np.random.default_rng(1).standard_normal(ROWS)
TUNING = Tuning()


def objective_of(y: np.ndarray) -> Relu:
    y = (y - y.mean()) / y.std()
    data = Data(X, torch.from_numpy(y)[:, None], dtype=torch.float64)
    return Relu(data, Layout((4, 20, 1), fused=True, direct=True), SquaredError())


@pytest.fixture(scope="module")
def committee() -> Committee:
    fold = torch.arange(ROWS) % TUNING.committee.folds
    last = Committee.drawn(objective_of(CURVE + 0.5 * NOISE), 60, fold, 0, TUNING.committee)
    for now, _ in last.trained(40, 0, TUNING.committee):
        last = now
    return last


def test_taught_targets_are_nearer_to_the_truth(committee: Committee) -> None:
    noisy = committee.objective
    truth = torch.from_numpy((CURVE - CURVE.mean()) / (CURVE + 0.5 * NOISE).std())[:, None]
    smooth = taught(noisy, committee, 60, committee.noise(), TUNING.student)
    away = [float((data.targets - truth).square().mean()) for data in (smooth.data, noisy.data)]
    assert away[0] < 0.7 * away[1]


def test_the_less_noise_and_the_more_rows_the_less_is_taught(committee: Committee) -> None:
    objective = committee.objective

    def moved(budget: int, noise: float) -> float:
        part = taught(objective, committee, budget, noise, TUNING.student)
        return float((part.data.targets - objective.data.targets).abs().mean())

    assert moved(60, 0.5) > moved(60, 0.1) > moved(60, 0.001) > 0
    assert moved(60, 0.1) > moved(6, 0.1)
    assert moved(60, 0.1) == moved(300, 0.1)


def test_the_penalty_falls_with_the_noise() -> None:
    tuning = StudentTuning(alpha=8.0, power=1.5)
    assert alpha_for(SquaredError(), 1.0, tuning) == 8.0
    assert alpha_for(SquaredError(), 0.01, tuning) == pytest.approx(0.008)


@pytest.mark.parametrize("loss", [Logistic(), CrossEntropy(3)], ids=lambda loss: loss.name)
def test_classes_bear_a_quarter_of_the_penalty(loss: Loss) -> None:
    tuning = StudentTuning()
    assert alpha_for(loss, 0.3, tuning) == pytest.approx(0.25 * alpha_for(SquaredError(), 0.3, tuning))


@pytest.mark.parametrize("budget", [5, 20, 60])
def test_a_student_keeps_to_the_budget_and_learns(committee: Committee, budget: int) -> None:
    noise = committee.noise()
    part = under(taught(committee.objective, committee, budget, noise, TUNING.student), 0.1)
    found = list(student(part, committee, budget, noise, TUNING))
    assert all(fit.nonzeros <= budget for _, fit in found)
    assert found[-1][1].value <= min(fit.value for _, fit in found) * 1.01
    assert part.value(found[-1][1].point) < 0.4


def test_weights_that_cost_less_than_noise_go(committee: Committee) -> None:
    part = under(committee.objective, 0.1)
    fit = list(student(part, committee, 40, 0.0, TUNING))[-1][1]
    assert smaller(part, fit, 0.0, TUNING).nonzeros == fit.nonzeros
    few = smaller(part, fit, 5.0, TUNING)
    assert few.nonzeros < fit.nonzeros
    assert few.value <= fit.value + 5.0 * TUNING.student.spared * 40 / ROWS


def test_a_straight_line_stays_one() -> None:
    y = X @ np.array([1.0, -2.0, 0.0, 0.5]) + NOISE
    model = SparseMLPRegressor(30, 10, random_state=0).fit(X, y)
    assert "'linear'" in model.status_.advice
    assert model.nonzeros_ <= 5


def test_a_noisy_curve_is_learned_better_than_it_was_measured() -> None:
    y = CURVE + 0.5 * NOISE
    model = SparseMLPRegressor(40, 20, random_state=0).fit(X, y)
    assert np.mean((model.predict(X) - CURVE) ** 2) < 0.4 * 0.5**2
    assert model.nonzeros_ <= 40


def test_soft_labels_teach_classes() -> None:
    side = np.digitize(CURVE + 0.3 * NOISE, [0.0, 1.5])
    model = SparseMLPClassifier(40, 20, random_state=0).fit(X, side)
    assert model.nonzeros_ <= 40
    assert model.score(X, np.digitize(CURVE, [0.0, 1.5])) > 0.75


def test_few_rows_have_no_committee() -> None:
    fewest = TUNING.committee.fewest
    for rows in (fewest - 1, fewest):
        data = Data(X[:rows], torch.from_numpy(CURVE[:rows])[:, None], dtype=torch.float64)
        objective = Relu(data, Layout((4, 8, 1), fused=True, direct=True), SquaredError())
        small = Small(objective, 10, 30, 0, None, TUNING)
        for _ in small.search(None):
            pass
        assert (small.committee is not None) == (rows == fewest)
