"""The last prune: what does nothing goes, and nothing changes on the rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.clean import cleaned, raw_nonzeros, through_zero
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.newton_tuning import NewtonTuning
from thresher.solvers.auto.tuning import CleanTuning

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
SIGNS = torch.tensor([1.0, -1.0, 1.0, 1.0]).double()


def explained(neurons: list[list[float]], direct: list[float], constant: float) -> tuple[Relu, Fit, Tensor]:
    """Give a fused network of rows (three weights, a bias), and an objective that it explains exactly."""
    layout = Layout((3, 4, 1), fused=True, direct=True)
    grid = torch.zeros(4, 4, dtype=torch.float64)
    grid[: len(neurons)] = torch.tensor(neurons).double()
    whole = torch.cat([grid.view(-1), torch.tensor([constant, *direct]).double()])
    point = Point(SparseVector.from_dense(whole), SIGNS)
    data = Data(X, torch.zeros(60, 1), dtype=torch.float64)
    output = Relu(data, layout, SquaredError()).run(point).forward(torch.from_numpy(X)).output
    objective = Relu(Data(X, output, dtype=torch.float64), layout, SquaredError())
    return objective, Fit(point, objective.value(point)), output


CASES = {
    "an idle neuron": ([[1.0, 0, 0, 0.1], [1, 1, 1, -9]], [0, 0, 0], 0.5, 3),
    "a neuron that is always on": ([[1.0, 0, 0, 0.1], [1, 1, 0, 9]], [0, 0, 0], 0.5, 4),
    "always on, cancelled directly": ([[1.0, 0, 0, 0.1], [0, 1, 0, 9]], [0, 1, 0], 9.0, 2),
    "nothing to do": ([[1.0, 0, 0, 0.1], [0, 1, 1, 0.2]], [0, 0, 2], 0.5, 7),
    "a weight at rounding level": ([[1.0, 0, 1e-17, 0.1]], [1e-18, 0, 0], 0.5, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_what_does_nothing_goes_and_nothing_changes_on_the_rows(name: str) -> None:
    neurons, direct, constant, expected = CASES[name]
    objective, fit, output = explained(neurons, direct, constant)
    clean = cleaned(objective, fit, CleanTuning(), NewtonTuning())
    assert clean.nonzeros == expected
    torch.testing.assert_close(
        objective.run(clean.point).forward(torch.from_numpy(X)).output, output, rtol=1e-9, atol=1e-9
    )


def test_neurons_that_are_always_on_become_direct_connections() -> None:
    objective, fit, _ = explained([[1.0, 2, 0, 9]], [0, 0, 0], 0.5)
    clean = cleaned(objective, fit, CleanTuning(), NewtonTuning())
    layout, indices = objective.layout, clean.point.w.indices
    assert (indices >= layout.offsets[1]).all()
    torch.testing.assert_close(clean.point.w.values, torch.tensor([9.5, 1, 2]).double())


def test_one_of_two_equal_columns_goes() -> None:
    twice = np.concatenate([X[:, :1], X[:, :1], X[:, 1:2]], 1)
    layout = Layout((3, 4, 1), fused=True, direct=True)
    y = torch.from_numpy(3 * X[:, :1] + 1)
    objective = Relu(Data(twice, y, dtype=torch.float64), layout, SquaredError())
    whole = torch.zeros(layout.size, dtype=torch.float64)
    whole[16:19] = torch.tensor([1.0, 2.0, 1.0]).double()
    point = Point(SparseVector.from_dense(whole), SIGNS)
    clean = cleaned(objective, Fit(point, objective.value(point)), CleanTuning(), NewtonTuning())
    assert clean.nonzeros == 2
    assert clean.value < 1e-20


def test_a_bias_that_is_nearly_zero_in_raw_units_becomes_zero() -> None:
    layout = Layout((3, 4, 1), fused=True, direct=True)
    moved = X + 5
    y = torch.from_numpy(2 * moved[:, :1])
    objective = Relu(Data(X, y, dtype=torch.float64), layout, SquaredError(), 0.0, torch.full((3,), 5.0))
    whole = torch.zeros(layout.size, dtype=torch.float64)
    whole[16:18] = torch.tensor([10 + 1e-13, 2.0], dtype=torch.float64)
    point = Point(SparseVector.from_dense(whole), SIGNS)
    fit = through_zero(objective, Fit(point, objective.value(point)), CleanTuning())
    assert raw_nonzeros(objective, point) == 2
    assert raw_nonzeros(objective, fit.point) == 1
