"""Refinement lowers the objective on a support: to the paper's letter, or all the way down."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import literal
import numpy as np
import pytest
import torch
from problems import network_problem, normal
from torch import Tensor

from thresher.linear.matrix import MatrixOperator
from thresher.objective.linear import Linear, RestrictedLinear
from thresher.objective.loss import Logistic
from thresher.solvers.refine import Armijo, ConjugateGradients, Refinement

REFINEMENTS: dict[str, Refinement] = {
    "Armijo": Armijo(),
    "three conjugate gradients": ConjugateGradients(),
    "many conjugate gradients": ConjugateGradients(iterations=40),
}


def least_squares(seed: int = 0, dtype: torch.dtype = torch.float64) -> Linear:
    columns, y = normal(40, 6, seed=seed), normal(40, seed=seed + 100)
    return Linear(MatrixOperator(torch.from_numpy(columns).to(dtype)), torch.from_numpy(y).to(dtype))


def variants() -> dict[str, Linear]:
    """List objectives on forty rows: either loss, with and without sample weights and penalty."""
    plain = least_squares()
    logistic = replace(plain, loss=Logistic(), y=(plain.y > 0).double())
    weight = torch.linspace(0, 2, 40, dtype=torch.float64)
    some_gates = network_problem(rows=40, features=3, hidden=2)
    gated = some_gates.objective(torch.tensor([1, -1]))
    made = {"squared error": plain, "logistic": logistic, "gated": gated}
    made |= {f"weighted {name}": replace(given, weight=weight) for name, given in made.items()}
    return made | {f"{name} with penalty": replace(given, alpha=0.7) for name, given in made.items()}


VARIANTS = variants()
QUADRATIC = [name for name, given in VARIANTS.items() if given.loss.quadratic]
NOT_QUADRATIC = [name for name, given in VARIANTS.items() if not given.loss.quadratic]


def everything(objective: Linear) -> RestrictedLinear:
    """See an objective on the support of all columns."""
    return objective.restricted(torch.arange(objective.size))


def value(view: RestrictedLinear, values: Tensor) -> float:
    return view.whole.measure(view.columns.forward(values), values)


def gradient(view: RestrictedLinear, values: Tensor) -> Tensor:
    return view.model(values, times=0).gradient


def start(view: RestrictedLinear, seed: int = 1) -> Tensor:
    return torch.from_numpy(normal(view.columns.size, seed=seed))


def exact_step(view: RestrictedLinear, values: Tensor) -> float:
    """Give the step that minimises the second-order model along the gradient."""
    g = gradient(view, values)
    return float(g @ g) / view.bend(g, view.columns.forward(values))


def minimiser(objective: Linear) -> Tensor:
    """Solve the weighted and penalised least squares problem by a method of its own."""
    A = objective.operator.as_matrix()
    root = objective.share.sqrt()
    ridge = objective.alpha**0.5 * torch.eye(A.shape[1]).double()
    stacked = torch.cat([root[:, None] * A, ridge])
    return torch.linalg.lstsq(
        stacked, torch.cat([root * objective.y, torch.zeros(A.shape[1]).double()])
    ).solution


@pytest.mark.parametrize("name", VARIANTS)
def test_the_gradient_is_the_derivative_of_the_value(name: str) -> None:
    view = everything(VARIANTS[name])
    at, step = start(view), 1e-6
    for place, slope in enumerate(gradient(view, at)):
        turn = step * torch.eye(at.numel(), dtype=torch.float64)[place]
        rise = (value(view, at + turn) - value(view, at - turn)) / (2 * step)
        assert float(slope) == pytest.approx(rise, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_model_bends_as_the_gradient_turns(name: str) -> None:
    view = everything(VARIANTS[name])
    at, direction, step = start(view), start(view, seed=2), 1e-6
    turned = (gradient(view, at + step * direction) - gradient(view, at - step * direction)) / (2 * step)
    for times in (0, 10**9):
        model = view.model(at, times)
        torch.testing.assert_close(model.hessian(direction), turned, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(model.gradient, gradient(view, at))
    bend = view.bend(direction, view.columns.forward(at))
    assert bend == pytest.approx(float(direction @ turned), rel=1e-5)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1.09, 1.11, 3.0, 50.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_armijo_is_the_literal_one(seed: int, factor: float) -> None:
    objective = least_squares(seed)
    view = everything(objective)
    at = start(view)
    eta = factor * exact_step(view, at)
    refined = Armijo()(view, at, eta)
    columns = objective.operator.as_matrix().numpy()
    # The literal one has the sum over rows where the objective has the mean.
    expected, inner = literal.refine(columns, objective.y.numpy(), at.numpy(), eta / objective.amount)
    np.testing.assert_allclose(refined.numpy(), expected, rtol=0, atol=1e-12)
    assert (inner == 0) == torch.equal(refined, at)
    assert (inner == 0) == (factor == 1e6), "a step too long by far is given up"


def test_armijo_gives_all_its_steps_up_when_one_fails() -> None:
    # The first step is accepted and leaves a direction a million times as curved, for which eleven
    # halvings are too few.
    objective = Linear(MatrixOperator(torch.diag(torch.tensor([1.0, 1e3]).double())), torch.zeros(2).double())
    at = torch.tensor([1.0, 1e-12]).double()
    assert torch.equal(Armijo()(everything(objective), at, 2.0), at)
    assert not torch.equal(Armijo(steps=1)(everything(objective), at, 2.0), at)


@pytest.mark.parametrize("refinement", REFINEMENTS.values(), ids=REFINEMENTS)
@pytest.mark.parametrize("name", VARIANTS)
def test_the_objective_falls(name: str, refinement: Refinement) -> None:
    view = everything(VARIANTS[name])
    for seed in range(3):
        at = start(view, seed)
        untouched = at.clone()
        refined = refinement(view, at, exact_step(view, at))
        assert value(view, refined) < value(view, at)
        assert torch.equal(at, untouched)


@pytest.mark.parametrize("refinement", REFINEMENTS.values(), ids=REFINEMENTS)
@pytest.mark.parametrize("name", NOT_QUADRATIC)
def test_a_loss_that_is_not_quadratic_never_rises_however_far_the_model_leads(
    name: str, refinement: Refinement
) -> None:
    view = everything(VARIANTS[name])
    for scale in (1.0, 5.0, 40.0):
        at = scale * start(view)
        refined = refinement(view, at, exact_step(view, at))
        assert torch.isfinite(refined).all()
        assert value(view, refined) <= value(view, at)


@pytest.mark.parametrize("name", QUADRATIC)
def test_solving_reaches_the_least_squares_solution(name: str) -> None:
    objective, refinement = VARIANTS[name], ConjugateGradients(iterations=30, tolerance=1e-14)
    view = everything(objective)
    solved = refinement(view, start(view), 1.0)
    torch.testing.assert_close(solved, minimiser(objective), rtol=1e-8, atol=1e-8)
    again = refinement(view, solved, 1.0)
    torch.testing.assert_close(again, solved, rtol=1e-8, atol=1e-8)


def test_solving_in_float32_is_as_good_as_float32() -> None:
    view = everything(least_squares(dtype=torch.float32))
    solved = ConjugateGradients(iterations=30)(view, start(view).float(), 1.0)
    assert solved.dtype == torch.float32
    torch.testing.assert_close(solved.double(), minimiser(least_squares()), rtol=1e-4, atol=1e-5)


def test_more_conjugate_gradients_are_never_worse() -> None:
    view = everything(least_squares())
    at = start(view)
    values = [value(view, ConjugateGradients(iterations=k)(view, at, 1.0)) for k in range(8)]
    assert values[0] == value(view, at)
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values))
    assert values[6] == pytest.approx(value(view, minimiser(least_squares())), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("refinement", REFINEMENTS.values(), ids=REFINEMENTS)
def test_columns_that_depend_on_each_other_do_no_harm(refinement: Refinement, dtype: torch.dtype) -> None:
    # Gates D and I - D of two generators: four columns of which one is the sum of others.
    x, first, second = normal(400, seed=3), normal(400, seed=4) > 0, normal(400, seed=5) > 0
    columns = np.stack([first * x, ~first * x, second * x, ~second * x, np.zeros(400)], axis=1)
    operator = MatrixOperator(torch.from_numpy(columns).to(dtype))
    objective = Linear(operator, torch.from_numpy(normal(400, seed=6)).to(dtype))
    view = everything(objective)
    at = start(view).to(dtype)
    refined = refinement(view, at, exact_step(view, at))
    assert torch.isfinite(refined).all()
    assert refined.abs().max() < 100
    assert value(view, refined) < value(view, at)
    if not isinstance(refinement, Armijo):
        best, *_ = np.linalg.lstsq(columns, objective.y.double().numpy(), rcond=None)
        best_value = 0.5 * np.mean((columns @ best - objective.y.double().numpy()) ** 2)
        assert value(view, refined) == pytest.approx(best_value, rel=1e-4)


@pytest.mark.parametrize("name", [name for name in NOT_QUADRATIC if "penalty" in name])
def test_newton_steps_reach_the_minimum_of_a_loss_that_is_not_quadratic(name: str) -> None:
    view = everything(VARIANTS[name])
    values = [value(view, ConjugateGradients(30, steps)(view, start(view), 1.0)) for steps in range(1, 6)]
    assert all(after <= before for before, after in pairwise(values))
    solved = ConjugateGradients(30, 12)(view, start(view), 1.0)
    assert gradient(view, solved).abs().max() < 1e-6


@pytest.mark.parametrize("newton", [ConjugateGradients(10, newton=20), Armijo()])
def test_classes_that_can_be_separated_lead_to_no_overflow(newton: Refinement) -> None:
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    view = everything(Linear(MatrixOperator(x), (x[:, 0] > 0).double(), Logistic()))
    at = torch.ones(1, dtype=torch.float64)
    solved = newton(view, at, exact_step(view, at))
    assert torch.isfinite(solved).all()
    assert value(view, solved) < value(view, at)


@pytest.mark.parametrize("refinement", REFINEMENTS.values(), ids=REFINEMENTS)
@pytest.mark.parametrize("name", VARIANTS)
def test_an_empty_support_stays_empty(name: str, refinement: Refinement) -> None:
    view = VARIANTS[name].restricted(torch.zeros(0, dtype=torch.int64))
    assert refinement(view, torch.zeros(0, dtype=torch.float64), 1.0).shape == (0,)


@pytest.mark.parametrize("refinement", REFINEMENTS.values(), ids=REFINEMENTS)
def test_a_column_of_zeros_keeps_its_value_finite(refinement: Refinement) -> None:
    view = everything(Linear(MatrixOperator(torch.zeros(5, 2).double()), torch.ones(5).double()))
    refined = refinement(view, torch.ones(2).double(), 0.0)
    assert torch.isfinite(refined).all()
