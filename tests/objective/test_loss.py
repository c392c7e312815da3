"""Losses: slopes and curvatures are derivatives, constants minimise, and huge outputs do no harm."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from thresher.errors import DataError, ParameterError
from thresher.objective.loss import CrossEntropy, Huber, Logistic, Loss, Poisson, SquaredError

ROWS, OUTPUTS, PARAMETERS = 40, 3, 5
LOSSES: list[Loss] = [SquaredError(), Huber(), Huber(0.3), Poisson(), Logistic(), CrossEntropy(OUTPUTS)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
any_precision = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def draw(loss: Loss, seed: int = 0, rows: int = ROWS, spread: float = 2.0) -> tuple[Tensor, Tensor]:
    """Draw outputs, and targets that the loss is made for."""
    generator = torch.Generator().manual_seed(seed)
    output = spread * torch.randn(rows, OUTPUTS, generator=generator, dtype=torch.float64)
    if isinstance(loss, CrossEntropy):
        return output, torch.randint(OUTPUTS, (rows, 1), generator=generator)
    if isinstance(loss, Poisson):
        return output, torch.poisson(torch.full_like(output, 1.5), generator=generator)
    if isinstance(loss, Logistic):
        return output, (torch.rand(rows, OUTPUTS, generator=generator) < 0.3).double()
    return output, 2 + torch.randn(rows, OUTPUTS, generator=generator, dtype=torch.float64)


def shares(rows: int = ROWS, seed: int = 7) -> Tensor:
    """Draw shares of rows, of which some are zero."""
    drawn = torch.rand(rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    drawn = (drawn - 0.2).clamp(min=0)
    return drawn / drawn.sum()


def hessian(loss: Loss, output: Tensor, y: Tensor) -> Tensor:  # (rows, outputs, outputs)
    """Differentiate the slope of every row, by automatic differentiation of the value."""

    def row_hessian(row: int) -> Tensor:
        value = lambda out: loss.value(out[None], y[row : row + 1])[0]  # noqa: E731
        return torch.autograd.functional.hessian(value, output[row])

    return torch.stack([row_hessian(row) for row in range(len(output))])


@every_loss
@pytest.mark.parametrize("seed", range(3))
def test_the_slope_is_the_derivative_of_the_value(loss: Loss, seed: int) -> None:
    output, y = draw(loss, seed)
    output.requires_grad_()
    (expected,) = torch.autograd.grad(loss.value(output, y).sum(), output)
    torch.testing.assert_close(loss.slope(output.detach(), y), expected)


@every_loss
def test_the_derivative_is_that_of_differences_too(loss: Loss) -> None:
    output, y = draw(loss)
    direction = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    step = 1e-6 * direction
    rise = loss.value(output + step, y) - loss.value(output - step, y)
    torch.testing.assert_close((loss.slope(output, y) * direction).sum(1), rise / 2e-6, rtol=1e-6, atol=1e-6)


@every_loss
@pytest.mark.parametrize("seed", range(3))
def test_scaled_derivatives_square_to_the_curvature(loss: Loss, seed: int) -> None:
    output, y = draw(loss, seed)
    if isinstance(loss, Huber):
        output = y + 0.99 * loss.threshold * torch.tanh(output - y)
    J = torch.randn(
        ROWS, OUTPUTS, PARAMETERS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    scaled = loss.scaled(output, y, J).reshape(-1, PARAMETERS)
    expected = torch.einsum("rik,rij,rjl->kl", J, hessian(loss, output, y), J)
    torch.testing.assert_close(scaled.T @ scaled, expected)


def test_the_curvature_of_large_errors_stays_positive_under_hubers_loss() -> None:
    loss, residual = Huber(2.0), torch.tensor([[0.5], [-2.0], [4.0], [-800.0]])
    weight = loss.scaled(residual, torch.zeros(4, 1), torch.ones(4, 1, 1)).square().flatten()
    assert weight.tolist() == pytest.approx([1.0, 1.0, 0.5, 2 / 800])


@every_loss
@pytest.mark.parametrize("seed", range(3))
def test_the_constant_minimises_the_mean_loss(loss: Loss, seed: int) -> None:
    _, y = draw(loss, seed)
    share = shares(seed=seed)
    constant = loss.constant(y, share)

    def mean(output: Tensor) -> float:
        return float(share @ loss.value(output.expand(ROWS, -1), y))

    slope = share @ loss.slope(constant.expand(ROWS, -1), y)
    assert slope.abs().max() < 1e-9
    for column in range(OUTPUTS):
        for step in (-1e-2, 1e-2):
            moved = constant.clone()
            moved[column] += step
            assert mean(moved) > mean(constant)


@pytest.mark.parametrize("threshold", [0.01, 1.35, 100.0])
def test_hubers_constant_is_between_the_median_and_the_mean(threshold: float) -> None:
    y = torch.tensor([[0.0], [0.1], [0.2], [0.3], [50.0]], dtype=torch.float64)
    share = torch.full((5,), 0.2, dtype=torch.float64)
    constant = float(Huber(threshold).constant(y, share)[0])
    mean_loss = lambda c: float(share @ Huber(threshold).value(torch.full((5, 1), c), y))  # noqa: E731
    assert 0.2 <= constant <= 10.12
    assert mean_loss(constant) <= min(map(mean_loss, np.linspace(0, 12, 1201))) + 1e-6
    if threshold == 100:
        assert constant == pytest.approx(10.12)


def test_labels_that_are_all_alike_have_finite_constants() -> None:
    share = torch.full((4,), 0.25)
    for label in (0.0, 1.0):
        assert bool(Logistic().constant(torch.full((4, 2), label), share).isfinite().all())
    missing = CrossEntropy(4).constant(torch.tensor([[0], [2], [2], [0]]), share)
    assert bool(missing.isfinite().all())
    assert float(missing.mean()) == pytest.approx(0, abs=1e-12)
    assert torch.softmax(missing, 0).tolist() == pytest.approx([0.5, 0, 0.5, 0], abs=1e-8)


@every_loss
@any_precision
def test_shapes_and_precisions(loss: Loss, dtype: torch.dtype) -> None:
    output, y = draw(loss)
    exact = loss.slope(output, y)
    output = output.to(dtype)
    y = y if isinstance(loss, CrossEntropy) else y.to(dtype)
    J = torch.ones(ROWS, OUTPUTS, PARAMETERS, dtype=dtype)
    value, slope, scaled = loss.value(output, y), loss.slope(output, y), loss.scaled(output, y, J)
    constant = loss.constant(y, shares().to(dtype))
    assert (value.shape, value.dtype) == ((ROWS,), torch.float64)
    assert (slope.shape, slope.dtype) == ((ROWS, OUTPUTS), dtype)
    assert (scaled.shape, scaled.dtype) == ((ROWS, OUTPUTS, PARAMETERS), dtype)
    assert constant.shape == (OUTPUTS,)
    torch.testing.assert_close(slope.double(), exact, rtol=1e-4, atol=1e-4)


@every_loss
def test_targets_may_be_more_precise_than_outputs(loss: Loss) -> None:
    output, y = draw(loss)
    J = torch.ones(ROWS, OUTPUTS, PARAMETERS)
    assert loss.slope(output.float(), y).dtype == torch.float32
    assert loss.scaled(output.float(), y, J).dtype == torch.float32


@every_loss
@any_precision
@pytest.mark.parametrize("size", [800.0, 1e6])
def test_huge_outputs_do_no_harm(loss: Loss, dtype: torch.dtype, size: float) -> None:
    _, y = draw(loss, rows=8)
    signs = torch.tensor([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (0.0, 1.0)])
    output = (size * signs).to(dtype)
    J = torch.ones(8, OUTPUTS, PARAMETERS, dtype=dtype)
    for result in (loss.value(output, y), loss.slope(output, y), loss.scaled(output, y, J)):
        assert bool(result.isfinite().all())


@any_precision
def test_a_count_that_is_far_too_large_pulls_its_output_down(dtype: torch.dtype) -> None:
    output, y = torch.tensor([[800.0]], dtype=dtype), torch.tensor([[3.0]], dtype=dtype)
    assert float(Poisson().slope(output, y)) > 1e17
    assert float(Poisson().scaled(output, y, torch.ones(1, 1, 1, dtype=dtype))) > 1e8
    values = [float(Poisson().value(torch.tensor([[t]], dtype=dtype), y)) for t in (39.0, 40.0, 41.0, 800.0)]
    assert values == sorted(values)


@every_loss
def test_no_loss_is_below_zero(loss: Loss) -> None:
    assert bool((loss.value(*draw(loss)) >= 0).all())


@pytest.mark.parametrize("count", [0.0, 1.0, 7.0, 1e6, 1e17])
def test_a_count_that_is_predicted_costs_nothing(count: float) -> None:
    y = torch.tensor([[count]], dtype=torch.float64)
    assert float(Poisson().value(y.clamp(min=1e-300).log(), y)) == pytest.approx(0, abs=1e-12 * max(count, 1))


@every_loss
def test_the_arguments_are_left_alone(loss: Loss) -> None:
    output, y = draw(loss)
    J, share = torch.ones(ROWS, OUTPUTS, PARAMETERS, dtype=torch.float64), shares()
    arguments = output, y, J, share
    copies = [argument.clone() for argument in arguments]
    loss.value(output, y)
    loss.slope(output, y)
    loss.scaled(output, y, J)
    loss.constant(y, share)
    loss.check(y.numpy())
    assert all(torch.equal(one, two) for one, two in zip(arguments, copies, strict=True))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, CrossEntropy)], ids=repr)
def test_outputs_add_up(loss: Loss) -> None:
    output, y = draw(loss)
    columns = [loss.value(output[:, [column]], y[:, [column]]) for column in range(OUTPUTS)]
    torch.testing.assert_close(loss.value(output, y), sum(columns))


def test_small_errors_are_not_lost_beside_large_ones_in_float32() -> None:
    output = torch.tensor([[1e4, 1e-3]])
    value = SquaredError().value(output, torch.zeros(1, 2))
    assert float(value) == pytest.approx(5e7 + 5e-7, rel=1e-15)


def test_hubers_loss_is_the_squared_error_up_to_its_threshold() -> None:
    output, y = draw(SquaredError())
    torch.testing.assert_close(Huber(1e3).value(output, y), SquaredError().value(output, y))
    torch.testing.assert_close(Huber(1e3).slope(output, y), SquaredError().slope(output, y))
    assert float(Huber(2.0).value(torch.tensor([[5.0]]), torch.zeros(1, 1))) == 2.0 * (5 - 1)


def test_cross_entropy_of_two_outputs_is_the_logistic_loss_of_their_difference() -> None:
    output, y = draw(Logistic())
    codes = y[:, :1].long()
    pair = torch.stack([output[:, 1], output[:, 1] + output[:, 0]], 1)
    torch.testing.assert_close(CrossEntropy(2).value(pair, codes), Logistic().value(output[:, :1], y[:, :1]))
    torch.testing.assert_close(
        CrossEntropy(2).slope(pair, codes)[:, [1]], Logistic().slope(output[:, :1], y[:, :1])
    )


def test_known_values() -> None:
    zero, one = torch.zeros(1, 1), torch.ones(1, 1)
    assert float(SquaredError().value(3 * one, one)) == 2.0
    assert float(Logistic().value(zero, one)) == pytest.approx(math.log(2))
    assert float(Poisson().value(one, 2 * one)) == pytest.approx(math.e - 4 + 2 * math.log(2))
    assert float(CrossEntropy(3).value(torch.zeros(1, 3), torch.tensor([[2]]))) == pytest.approx(math.log(3))


@every_loss
def test_what_a_loss_says_of_itself(loss: Loss) -> None:
    assert loss.link in ("identity", "logistic", "softmax", "log")
    assert loss.quadratic == (loss.name == "squared")
    with pytest.raises(FrozenInstanceError):
        loss.name = "other"


@every_loss
def test_fitting_targets_are_accepted(loss: Loss) -> None:
    _, y = draw(loss)
    loss.check(y.numpy())
    loss.check(y[:, 0].numpy())


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Poisson(), [3.0, -2.0, 1.0], "y holds -2, but loss='poisson' is for counts of 0 or more"),
        (Poisson(), [0.0, 0.0, 0.0], "only zeros"),
        (Poisson(), [[0.0, 1.0], [0.0, 2.0]], "only zeros"),
        (Poisson(), [1.0, 1e18], r"y holds 1e\+18, but loss='poisson' takes counts up to 2e\+17"),
        (Logistic(), [0.0, 2.0], "y holds 2, but the logistic loss is for labels 0 and 1"),
        (CrossEntropy(3), [[0], [3]], "y holds 3, but the cross-entropy is for codes from 0 to 2"),
        (CrossEntropy(3), [[0], [-1]], "y holds -1"),
        (CrossEntropy(3), [[0.5], [1.0]], "y holds 0.5"),
    ],
)
def test_targets_that_do_not_fit_are_refused(loss: Loss, y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        loss.check(np.array(y))


@pytest.mark.parametrize("threshold", [0, 0.0, -1.5, math.nan, math.inf, "1.35", None, True], ids=repr)
def test_hubers_threshold_is_a_number_above_zero(threshold: Any) -> None:
    with pytest.raises(ParameterError, match=r"threshold=.* number above 0"):
        Huber(threshold)


@pytest.mark.parametrize("classes", [1, 0, 2.5, "3"], ids=repr)
def test_cross_entropy_needs_two_classes(classes: Any) -> None:
    with pytest.raises(ParameterError, match="classes="):
        CrossEntropy(classes)
