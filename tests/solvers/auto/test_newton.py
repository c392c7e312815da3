"""Newton's method on a support: never up, and what is removed is what costs least."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from dense import CASES, NetworkCase, random_point

from thresher.errors import DataError
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.equations import removal, solve
from thresher.solvers.auto.newton import Fit, brought_along, measured, refit, shrink
from thresher.solvers.auto.newton_tuning import NewtonTuning

NEWTON = NewtonTuning()
relu_cases = pytest.mark.parametrize("case", [case for case in CASES if len(case.widths) > 2], ids=str)


def start_of(case: NetworkCase, alpha: float = 0.1) -> tuple[Relu, Fit]:
    """Give an objective and a fit to begin with."""
    objective = case.objective(count=60, alpha=alpha)
    return objective, measured(objective, case.point(seed=3))


@relu_cases
@pytest.mark.parametrize("rough", [False, True])
def test_a_refit_never_raises_the_objective_and_keeps_the_support(case: NetworkCase, rough: bool) -> None:
    objective, fit = start_of(case)
    again = refit(objective, fit, 5, NEWTON, rough)
    assert again.value <= fit.value
    assert again.value == pytest.approx(objective.value(again.point), rel=1e-12)
    assert torch.equal(again.point.w.indices, fit.point.w.indices)
    assert refit(objective, again, 3, NEWTON, rough).value <= again.value


def linear_objective(rows: int = 60, inputs: int = 6, seed: int = 0, alpha: float = 0.0) -> Relu:
    """Give least squares: inputs that go to the output directly, and correlate."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, inputs)) @ random.standard_normal((inputs, inputs))
    y = torch.from_numpy(X @ random.standard_normal(inputs) + random.standard_normal(rows))[:, None]
    layout = Layout((inputs, 1, 1), bias=False, fused=True, direct=True)
    return Relu(Data(X, y, dtype=torch.float64), layout, SquaredError(), alpha)


def all_direct(objective: Relu) -> Fit:
    """Hold every direct connection, at the minimum."""
    layout = objective.layout
    places = torch.arange(layout.offsets[layout.layers], layout.size)
    point = random_point(layout, 1.0, 0).at(places)
    return refit(objective, measured(objective, point), 40, replace(NEWTON, helps=0.0), rough=False)


def test_a_refit_of_a_linear_model_is_least_squares() -> None:
    objective = linear_objective()
    expected = np.linalg.lstsq(objective.data.X, objective.data.targets.numpy(), rcond=None)[0][:, 0]
    np.testing.assert_allclose(all_direct(objective).point.w.values.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_weight_removed_is_the_one_whose_loss_costs_least(seed: int) -> None:
    objective = linear_objective(seed=seed)
    fit = all_direct(objective)
    H, _ = objective.curvature(fit.point)
    free = torch.ones(fit.nonzeros, dtype=torch.bool)
    first = int(removal(H, fit.point.w.values, free, 1, 1e-14)[0])

    def without(gone: int) -> float:
        X = np.delete(objective.data.X, gone, 1)
        y = objective.data.targets.numpy()
        return float(np.linalg.lstsq(X, y, rcond=None)[1][0])

    assert first == min(range(fit.nonzeros), key=without)


@pytest.mark.parametrize("seed", range(5))
def test_removal_one_by_one_is_backward_elimination(seed: int) -> None:
    objective = linear_objective(seed=seed)
    fit = all_direct(objective)
    H, _ = objective.curvature(fit.point)
    order = removal(H, fit.point.w.values, torch.ones(fit.nonzeros, dtype=torch.bool), 4, 1e-14).tolist()
    X, y = objective.data.X, objective.data.targets.numpy()
    left = list(range(fit.nonzeros))
    for expected in order:
        worst = {
            gone: float(np.linalg.lstsq(X[:, [one for one in left if one != gone]], y, rcond=None)[1][0])
            for gone in left
        }
        assert min(worst, key=worst.__getitem__) == expected
        left.remove(expected)


def test_orthogonal_columns_lose_the_best_subset_of_any_size() -> None:
    values = torch.tensor([3.0, -0.1, 2.0, 0.5, -1.0, 0.05]).double()
    H = torch.diag(torch.tensor([1.0, 4.0, 0.01, 1.0, 1.0, 100.0]).double())
    for count in range(1, 6):
        gone = set(removal(H, values, torch.ones(6, dtype=torch.bool), count, 1e-14).tolist())
        cost = {
            subset: sum(float(H[k, k] * values[k] ** 2) for k in subset)
            for subset in combinations(range(6), count)
        }
        assert gone == set(min(cost, key=cost.__getitem__))


def test_only_what_is_free_is_removed_and_slack_removes_more() -> None:
    values = torch.tensor([1e-6, 1.0, 1e-6, 2.0, 1e-5]).double()
    free = torch.tensor([True, True, False, True, True])
    assert removal(torch.eye(5).double(), values, free, 1, 0.0).tolist() == [0]
    assert removal(torch.eye(5).double(), values, free, 1, 0.0, slack=1e-3).tolist() == [0, 4]
    assert removal(torch.eye(5).double(), values, free, 1, 0.0, slack=1e-3, each=1e-12).tolist() == [0]
    assert set(removal(torch.eye(5).double(), values, free, 9, 0.0).tolist()) == {0, 1, 3, 4}


def test_more_than_sixty_four_removals_name_the_right_places() -> None:
    values = torch.linspace(1, 2, 150).double()
    free = torch.arange(150) % 3 != 0
    gone = removal(torch.eye(150).double(), values, free, 90, 0.0)
    assert gone.tolist() == free.nonzero().flatten()[:90].tolist()


def test_many_removals_are_backward_elimination_too() -> None:
    random = np.random.default_rng(0)
    J = torch.from_numpy(random.standard_normal((600, 150)))
    values = torch.from_numpy(random.standard_normal(150))
    H, free = J.T @ J / 600, torch.ones(150, dtype=torch.bool)
    order = removal(H, values, free, 140, 0.0).tolist()
    left, at = list(range(150)), values
    for gone in order:
        # What is left is refitted, from equations that are solved anew.
        inverse = torch.linalg.inv(H[left][:, left])
        best = torch.linalg.solve(H[left][:, left], H[left] @ at)
        assert left[int((best.square() / inverse.diagonal()).argmin())] == gone
        left.remove(gone)


def test_a_singular_curvature_is_solved_all_the_same() -> None:
    H, g = torch.ones(3, 3).double(), torch.ones(3).double()
    assert torch.allclose(H @ solve(H, g, 1e-9), g, atol=1e-6)


@relu_cases
@pytest.mark.parametrize("budget", [1, 3, 6])
def test_shrinking_ends_within_the_budget(case: NetworkCase, budget: int) -> None:
    objective, fit = start_of(case)
    small = shrink(objective, fit, budget, NEWTON)
    assert small.nonzeros <= max(budget, 0)
    assert torch.isin(small.point.w.indices, fit.point.w.indices).all()
    assert small.value == pytest.approx(objective.value(small.point), rel=1e-12)


def test_biases_that_others_bring_along_go_with_them() -> None:
    layout = Layout((4, 3, 1), fused=True, direct=True)
    random = np.random.default_rng(0)
    data = Data(random.standard_normal((50, 4)), torch.from_numpy(random.standard_normal((50, 1))))
    origins, middle = torch.tensor([0.0, 1, 2, 3]), torch.ones(1)
    objective = Relu(data.to(torch.float64), layout, SquaredError(), 0.1, origins, middle)
    fit = measured(objective, random_point(layout, 0.8, 1))
    for budget in (8, 5, 2, 1):
        fit = shrink(objective, fit, budget, NEWTON)
        indices = fit.point.w.indices
        assert fit.nonzeros <= budget
        assert torch.equal(objective.closed(indices), indices)
        assert not brought_along(objective, indices)[~layout.is_bias(indices)].any()


def test_numbers_that_are_not_finite_are_refused() -> None:
    objective = linear_objective()
    fit = all_direct(objective)
    objective.data.targets[0] = torch.inf
    with pytest.raises(DataError, match="not finite"):
        objective = replace(objective, data=Data(objective.data.X * 1e200, objective.data.targets))
        refit(objective.to(torch.float64), Fit(fit.point, 1.0), 2, NEWTON)
