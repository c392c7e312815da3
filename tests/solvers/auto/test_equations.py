"""Newton's equations: both ways of solving them say the same where both can."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dense import CASES, NetworkCase

from thresher.objective.relu import Relu
from thresher.solvers.auto.equations import Factored, Iterated, equations
from thresher.solvers.auto.newton import Fit, cut, measured, refit, shrink
from thresher.solvers.auto.newton_tuning import NewtonTuning

NEWTON = NewtonTuning()
# No room for a matrix of any size.
PRODUCTS = replace(NEWTON, factored=0)
relu_cases = pytest.mark.parametrize("case", [case for case in CASES if len(case.widths) > 2], ids=str)


def start_of(case: NetworkCase) -> tuple[Relu, Fit]:
    """Give an objective and a fit to begin with."""
    objective = case.objective(count=60, alpha=0.1)
    return objective, measured(objective, case.point(seed=3))


@relu_cases
@pytest.mark.parametrize("damping", [1e-3, 10.0])
def test_conjugate_gradients_reach_the_step_of_the_factors(case: NetworkCase, damping: float) -> None:
    objective, fit = start_of(case)
    exact = replace(NEWTON, solved=1e-10, iterations=300)
    running = objective.run(fit.point)
    one, two = (way(objective, running, exact, False).solved(damping) for way in (Factored, Iterated))
    assert one is not None and two is not None
    torch.testing.assert_close(two, one, rtol=1e-5, atol=1e-7)


@relu_cases
def test_a_step_that_ends_early_keeps_its_promise(case: NetworkCase) -> None:
    """What a step promises by gradient and damping is what its own quadratic model falls by."""
    objective, fit = start_of(case)
    few, damping = replace(NEWTON, solved=0.0, iterations=2), 0.1
    at = Iterated(objective, objective.run(fit.point), few, False)
    step = at.solved(damping)
    assert step is not None
    falls = float(at.gradient @ step - 0.5 * step @ at.curvature.times(step))
    promised = 0.5 * float(step @ (at.gradient + damping * at.diagonal * step))
    assert promised == pytest.approx(falls, rel=1e-6, abs=1e-12)


@relu_cases
def test_a_refit_by_products_never_raises_the_objective(case: NetworkCase) -> None:
    objective, fit = start_of(case)
    again = refit(objective, fit, 5, PRODUCTS, rough=False)
    assert again.value <= fit.value
    assert again.value == pytest.approx(objective.value(again.point), rel=1e-12)
    assert torch.equal(again.point.w.indices, fit.point.w.indices)
    # As far as factors get, or nearly.
    assert again.value <= 1.1 * refit(objective, fit, 5, NEWTON, rough=False).value + 1e-3 * fit.value


@relu_cases
@pytest.mark.parametrize("budget", [1, 5])
def test_shrinking_by_the_diagonal_ends_within_the_budget(case: NetworkCase, budget: int) -> None:
    objective, fit = start_of(case)
    assert shrink(objective, fit, budget, PRODUCTS).nonzeros <= max(budget, len(case.layout.output_biases))


def test_the_diagonal_removes_what_costs_least_by_itself() -> None:
    objective, fit = start_of(CASES[0])
    H, _ = objective.curvature(fit.point)
    cost = fit.point.w.values.square() * H.diagonal()
    kept = cut(objective, fit, fit.nonzeros - 1, PRODUCTS)
    gone = set(fit.point.w.indices.tolist()) - set(kept.point.w.indices.tolist())
    assert int(fit.point.w.indices[cost.argmin()]) in gone


def test_memory_and_size_choose_the_way() -> None:
    objective, fit = start_of(CASES[0])
    running, small = objective.run(fit.point), replace(NEWTON, small=0)
    assert isinstance(equations(objective, running, small, False), Factored)
    assert isinstance(equations(replace(objective, memory_limit=8), running, small, False), Iterated)
    assert isinstance(equations(objective, running, PRODUCTS, False), Iterated)


def test_planned_steps_take_no_more_passes_than_there_are() -> None:
    for passes in (0, 10, 22, 23, 60, 169, 1000):
        assert NEWTON.within(passes).passes <= passes
    assert NEWTON.within(10_000) == NEWTON
