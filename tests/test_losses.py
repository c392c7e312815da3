"""Losses: slopes and curvatures are derivatives, sums are weighted, and huge outputs do no harm."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from thresher.losses import Logistic, Loss, SquaredError

LOSSES: list[Loss] = [SquaredError(), Logistic()]
OUTPUTS = torch.tensor([-30.0, -4.0, -0.5, 0.0, 0.3, 2.0, 7.0, 35.0], dtype=torch.float64)


def targets(loss: Loss) -> list[Tensor]:
    """Give labels for the logistic loss, numbers of any sign for the other."""
    labels = [torch.zeros_like(OUTPUTS), torch.ones_like(OUTPUTS)]
    return (
        [*labels, torch.linspace(-3, 3, OUTPUTS.numel(), dtype=torch.float64)] if loss.quadratic else labels
    )


def row_values(loss: Loss, output: Tensor, y: Tensor) -> Tensor:
    """Give the loss of every row, each as a sum over that row alone."""
    rows = [loss.value(output[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    return torch.tensor(rows, dtype=torch.float64)


@pytest.fixture(params=LOSSES, ids=["squared error", "logistic"])
def loss(request: pytest.FixtureRequest) -> Loss:
    return request.param


def test_slope_is_the_derivative_of_the_value(loss: Loss) -> None:
    step = 1e-5
    for y in targets(loss):
        rise = row_values(loss, OUTPUTS + step, y) - row_values(loss, OUTPUTS - step, y)
        torch.testing.assert_close(loss.slope(OUTPUTS, y), rise / (2 * step), rtol=1e-6, atol=1e-7)


def test_curvature_is_the_derivative_of_the_slope(loss: Loss) -> None:
    step = 1e-5
    for y in targets(loss):
        rise = loss.slope(OUTPUTS + step, y) - loss.slope(OUTPUTS - step, y)
        curvature = loss.curvature(OUTPUTS)
        expected = torch.ones_like(OUTPUTS) if curvature is None else curvature
        torch.testing.assert_close(expected, rise / (2 * step), rtol=1e-6, atol=1e-9)


def test_value_is_the_weighted_sum_over_rows(loss: Loss) -> None:
    y = targets(loss)[1]
    weight = torch.linspace(0, 2, OUTPUTS.numel(), dtype=torch.float64)
    rows = row_values(loss, OUTPUTS, y)
    assert loss.value(OUTPUTS, y) == pytest.approx(float(rows.sum()))
    assert loss.value(OUTPUTS, y, weight) == pytest.approx(float((rows * weight).sum()))


def test_known_values() -> None:
    assert SquaredError().value(torch.tensor([3.0, 1.0]), torch.tensor([1.0, 1.0])) == 2.0
    assert Logistic().value(torch.zeros(4), torch.tensor([0.0, 1.0, 1.0, 0.0])) == pytest.approx(
        4 * math.log(2)
    )


def test_the_arguments_are_left_alone(loss: Loss) -> None:
    output, y, weight = OUTPUTS.clone(), targets(loss)[1], torch.ones_like(OUTPUTS)
    loss.value(output, y, weight)
    loss.slope(output, y)
    loss.curvature(output)
    assert torch.equal(output, OUTPUTS)
    assert torch.equal(y, targets(loss)[1])
    assert torch.equal(weight, torch.ones_like(OUTPUTS))


def test_many_small_errors_are_not_lost_in_float32(loss: Loss) -> None:
    rows = 2**20
    output, y = torch.full((rows,), 1e-3), torch.zeros(rows)
    output[0] = 1e4
    each = loss.value(output[1:2], y[1:2])
    first = loss.value(output[:1], y[:1])
    assert loss.value(output, y) - first == pytest.approx((rows - 1) * each, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_huge_outputs_do_no_harm(loss: Loss, dtype: torch.dtype) -> None:
    output = torch.tensor([-1e30, -1e4, 1e4, 1e30], dtype=dtype)
    for label in (0.0, 1.0):
        y = torch.full_like(output, label)
        curvature = loss.curvature(output)
        assert math.isfinite(loss.value(output, y))
        assert bool(torch.isfinite(loss.slope(output, y)).all())
        assert curvature is None or bool(((curvature >= 0) & (curvature <= 0.25)).all())


def test_the_logistic_loss_grows_with_the_mistake_and_vanishes_where_there_is_none() -> None:
    output = torch.tensor([-1e4, 1e4], dtype=torch.float64)
    assert Logistic().value(output, torch.tensor([1.0, 0.0])) == pytest.approx(2e4)
    assert Logistic().value(output, torch.tensor([0.0, 1.0])) == 0.0
    assert Logistic().slope(output, torch.tensor([1.0, 0.0])).tolist() == [-1.0, 1.0]
