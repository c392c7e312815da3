"""The student: within the budget, taught by a committee, and no larger than the noise can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Logistic, Loss, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.committee import Committee
from thresher.solvers.auto.committee_tuning import StudentTuning
from thresher.solvers.auto.newton import Fit, refit
from thresher.solvers.auto.small import Small
from thresher.solvers.auto.student import alpha_for, smaller, student, taught, trust
from thresher.solvers.auto.tuning import Tuning
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
    for now, _ in last.trained(80, 0, TUNING.committee):
        last = now
    return last


def test_taught_targets_are_nearer_to_the_truth(committee: Committee) -> None:
    noisy = committee.objective
    truth = torch.from_numpy((CURVE - CURVE.mean()) / (CURVE + 0.5 * NOISE).std())[:, None]
    smooth = taught(noisy, committee, trust(noisy.loss, ROWS, 60, committee.noise(), TUNING.student))
    away = [float((data.targets - truth).square().mean()) for data in (smooth.data, noisy.data)]
    assert away[0] < 0.7 * away[1]


def test_the_less_noise_and_the_more_rows_the_less_a_committee_is_trusted() -> None:
    def trusted(budget: int, noise: float, loss: Loss) -> float:
        return trust(loss, ROWS, budget, noise, TUNING.student)

    squared = SquaredError()
    assert 1 > trusted(60, 0.5, squared) > trusted(60, 0.1, squared) > trusted(60, 0.001, squared) > 0
    assert trusted(60, 0.1, squared) > trusted(6, 0.1, squared)
    assert trusted(60, 0.1, squared) == trusted(300, 0.1, squared)
    assert trusted(60, 0.1, Logistic()) > trusted(60, 0.1, squared)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_targets_are_moved_by_that_share_of_the_way(committee: Committee, share: float) -> None:
    objective = committee.objective
    came, said = objective.data.targets, taught(objective, committee, 1.0).data.targets
    moved = taught(objective, committee, share).data.targets
    torch.testing.assert_close(moved, came + share * (said - came), rtol=1e-12, atol=1e-12)


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
    part = under(taught(committee.objective, committee, 0.8), 0.1)
    found = list(student(part, committee, budget, noise, 0.8, TUNING))
    assert all(fit.nonzeros <= budget for _, fit in found)
    assert part.value(found[-1][1].point) < 0.4


def test_weights_that_fit_noise_go_and_others_stay(committee: Committee) -> None:
    noisy = under(committee.objective, 0.1)
    # The first that it finds spends all of the budget.
    fit = next(student(noisy, committee, 40, 0.0, 0.0, TUNING))[1]
    assert fit.nonzeros >= 39
    fitted = smaller(noisy, fit, TUNING)
    # Targets that the network itself gives have no noise: every weight is needed.
    running = noisy.run(fit.point)
    said = running.forward(noisy.data.read(slice(0, ROWS))).output
    exact = replace(noisy, data=Data(noisy.data.X, said, dtype=torch.float64), alpha=0.0)
    assert smaller(exact, Fit(fit.point, exact.value(fit.point)), TUNING).nonzeros >= fit.nonzeros - 1
    # Where nothing is but noise, most of the weights fit it.
    shuffled = noisy.data.targets[torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))]
    nothing = replace(noisy, data=Data(noisy.data.X, shuffled, dtype=torch.float64))
    chance = refit(nothing, Fit(fit.point, nothing.value(fit.point)), 20, TUNING.newton)
    assert smaller(nothing, chance, TUNING).nonzeros < 0.3 * fit.nonzeros
    assert fitted.nonzeros <= fit.nonzeros


@pytest.mark.parametrize("budget", [20, 60, 200])
def test_a_larger_budget_is_not_spent_on_noise(budget: int) -> None:
    bill = np.minimum(2 * X[:, 0], 0.5) + np.maximum(X[:, 1] - 0.3, 0)
    model = SparseMLPRegressor(budget, 30, random_state=0).fit(X, bill + 0.05 * bill.std() * NOISE)
    assert model.nonzeros_ <= 20
    assert np.mean((model.predict(X) - bill) ** 2) < 3e-4 * bill.var()


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
