"""The curvature as a linear map is the matrix that is written out."""

from __future__ import annotations

import pytest
import scipy.sparse
import torch
from dense import CASES, NetworkCase

from thresher.linear.vector import SparseVector
from thresher.objective.curvature import Curvature
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point

every_case = pytest.mark.parametrize("case", CASES, ids=str)


@every_case
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_products_gradient_and_diagonal_are_those_of_the_matrix(case: NetworkCase, alpha: float) -> None:
    objective, point = case.objective(count=40, alpha=alpha), case.point()
    H, g = objective.curvature(point)
    curvature = Curvature(objective, objective.run(point))
    torch.testing.assert_close(curvature.gradient, g, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(curvature.diagonal, H.diagonal(), rtol=1e-10, atol=1e-13)
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        along = torch.randn(g.numel(), dtype=torch.float64, generator=generator)
        torch.testing.assert_close(curvature.times(along), H @ along, rtol=1e-10, atol=1e-12)


@every_case
def test_rough_products_are_near(case: NetworkCase) -> None:
    objective, point = case.objective(count=40), case.point()
    H, g = objective.curvature(point)
    curvature = Curvature(objective, objective.run(point), rough=True)
    along = torch.ones_like(g)
    assert torch.equal(curvature.gradient, Curvature(objective, objective.run(point)).gradient)
    torch.testing.assert_close(curvature.times(along), H @ along, rtol=1e-4, atol=1e-5)


def test_sparse_rows_give_the_same_products() -> None:
    X = scipy.sparse.random(50, 40, density=0.1, format="csr", random_state=0)
    y, layout = (
        torch.arange(50.0, dtype=torch.float64)[:, None] / 50,
        Layout((40, 6, 1), fused=True, direct=True),
    )
    place = torch.arange(0, layout.size, 3)
    values = torch.randn(place.numel(), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    signs = torch.tensor([1.0, -1.0] * 3, dtype=torch.float64)
    point, found = Point(SparseVector(place, values, layout.size), signs), []
    for limit in (0, 2**20):
        # Without room for a dense copy rows stay sparse.
        objective = Relu(Data(X, y, dtype=torch.float64, memory_limit=limit), layout, SquaredError(), 0.1)
        assert objective.data.sparse == (limit == 0)
        curvature = Curvature(objective, objective.run(point))
        found.append((curvature.gradient, curvature.diagonal, curvature.times(values)))
    for sparse, dense in zip(*found, strict=True):
        torch.testing.assert_close(sparse, dense)
