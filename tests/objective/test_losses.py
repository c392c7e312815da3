"""Losses: slopes and curvatures are derivatives, sums are weighted, and huge outputs do no harm."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from thresher.objective.losses import CrossEntropy, Logistic, Loss, SquaredError

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


# Several outputs. The cross-entropy takes one-hot targets; the others add up over columns.

MANY: list[Loss] = [SquaredError(), Logistic(), CrossEntropy()]
ROWS_OF_OUTPUTS = torch.tensor(
    [[-3.0, 0.5, 2.0], [0.0, 0.0, 0.0], [9.0, -4.0, 8.5], [1.0, 1.5, -0.5], [-20.0, 15.0, 16.0]],
    dtype=torch.float64,
)
LABELS = torch.eye(3, dtype=torch.float64)[[0, 2, 1, 1, 2]]


@pytest.fixture(params=MANY, ids=["squared error", "logistic", "cross-entropy"])
def many(request: pytest.FixtureRequest) -> Loss:
    return request.param


def difference(function: Callable[[Tensor], Tensor], output: Tensor) -> Tensor:  # (rows, outputs)
    """Differentiate a function of each row by central differences: d function[i, j] / d output[i, j]."""
    step, columns = 1e-5, []
    for column in range(output.shape[1]):
        moved = torch.zeros_like(output)
        moved[:, column] = step
        rise = function(output + moved) - function(output - moved)
        columns.append((rise if rise.ndim == 1 else rise[:, column]) / (2 * step))
    return torch.stack(columns, 1)


def test_slopes_of_several_outputs_are_derivatives(many: Loss) -> None:
    expected = difference(lambda output: row_values(many, output, LABELS), ROWS_OF_OUTPUTS)
    torch.testing.assert_close(many.slope(ROWS_OF_OUTPUTS, LABELS), expected, rtol=1e-6, atol=1e-7)


def test_curvatures_of_several_outputs_are_the_diagonal(many: Loss) -> None:
    expected = difference(lambda output: many.slope(output, LABELS), ROWS_OF_OUTPUTS)
    curvature = many.curvature(ROWS_OF_OUTPUTS)
    given = torch.ones_like(expected) if curvature is None else curvature
    torch.testing.assert_close(given, expected, rtol=1e-6, atol=1e-8)


def test_rows_of_several_outputs_are_weighted_once_each(many: Loss) -> None:
    weight = torch.tensor([0.0, 1.0, 2.0, 0.5, 3.0], dtype=torch.float64)
    rows = row_values(many, ROWS_OF_OUTPUTS, LABELS)
    assert many.value(ROWS_OF_OUTPUTS, LABELS) == pytest.approx(float(rows.sum()))
    assert many.value(ROWS_OF_OUTPUTS, LABELS, weight) == pytest.approx(float((rows * weight).sum()))


@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=["squared error", "logistic"])
def test_columns_of_outputs_add_up(loss: Loss) -> None:
    columns = [loss.value(ROWS_OF_OUTPUTS[:, j], LABELS[:, j]) for j in range(3)]
    assert loss.value(ROWS_OF_OUTPUTS, LABELS) == pytest.approx(sum(columns))


def test_several_outputs_and_their_targets_are_left_alone(many: Loss) -> None:
    output, y = ROWS_OF_OUTPUTS.clone(), LABELS.clone()
    many.value(output, y)
    many.slope(output, y)
    many.curvature(output)
    assert torch.equal(output, ROWS_OF_OUTPUTS)
    assert torch.equal(y, LABELS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_several_huge_outputs_do_no_harm(many: Loss, dtype: torch.dtype) -> None:
    output = torch.tensor(
        [[1e30, -1e30, 0.0], [-1e30, -1e30, -1e30], [1e30, 1e30, 1e30], [1e4, 0.0, -1e4]], dtype=dtype
    )
    for label in range(3):
        y = torch.eye(3, dtype=dtype)[[label] * 4]
        assert math.isfinite(many.value(output, y))
        assert bool(torch.isfinite(many.slope(output, y)).all())
        curvature = many.curvature(output)
        assert curvature is None or bool(((curvature >= 0) & (curvature <= 0.25)).all())


def test_cross_entropy_of_two_outputs_is_the_logistic_loss_of_their_difference() -> None:
    output, labels = torch.stack([torch.zeros_like(OUTPUTS), OUTPUTS], 1), (OUTPUTS > 1).double()
    y = torch.stack([1 - labels, labels], 1)
    assert CrossEntropy().value(output, y) == pytest.approx(Logistic().value(OUTPUTS, labels))
    torch.testing.assert_close(CrossEntropy().slope(output, y)[:, 1], Logistic().slope(OUTPUTS, labels))


def test_cross_entropy_does_not_see_what_all_outputs_share() -> None:
    loss, shift = CrossEntropy(), torch.tensor([[5.0], [-7.0], [100.0], [0.0], [-300.0]])
    assert loss.value(ROWS_OF_OUTPUTS + shift, LABELS) == pytest.approx(loss.value(ROWS_OF_OUTPUTS, LABELS))
    torch.testing.assert_close(loss.slope(ROWS_OF_OUTPUTS, LABELS).sum(1), torch.zeros(5).double())


def test_known_values_of_the_cross_entropy() -> None:
    assert CrossEntropy().value(torch.zeros(4, 3), torch.eye(3)[[0, 1, 2, 0]]) == pytest.approx(
        4 * math.log(3)
    )
    certain = torch.tensor([[1e4, 0.0], [0.0, 1e4]], dtype=torch.float64)
    assert CrossEntropy().value(certain, torch.eye(2)) == 0.0
    assert CrossEntropy().value(certain, 1 - torch.eye(2)) == pytest.approx(2e4)
    assert CrossEntropy().slope(certain, 1 - torch.eye(2).double()).tolist() == [[1.0, -1.0], [-1.0, 1.0]]
