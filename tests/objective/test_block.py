"""Products with one block of weights: the same numbers whichever way they are stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from thresher.objective import block as module
from thresher.objective.block import DENSE_SIZE, Block
from thresher.objective.layout import Layout

ROWS, INPUTS, NEURONS = 9, 12, 5


def held(kind: str, layout: Layout) -> Tensor:
    """Choose the places that are held of the first block."""
    random = np.random.default_rng(1)
    everywhere = torch.arange(layout.offsets[1])
    neuron, feature = layout.pairs(everywhere, 0)
    some = torch.from_numpy(random.random(len(everywhere)))
    chosen = {
        "all": some >= 0,
        "all without biases": feature < INPUTS,
        "the first features of all": feature < 4,
        "the first features and biases": (feature < 4) | (feature == INPUTS),
        "some": some < 0.5,
        "a few": some < 0.06,
        "two far columns": (feature == 3) | (feature == INPUTS - 1),
        "biases alone": feature == INPUTS,
        "one neuron": neuron == 2,
        "each its own": feature // 2 == neuron,
        "each its own and biases": (feature // 2 == neuron) | (feature == INPUTS),
        "nothing": some > 2,
    }[kind]
    return everywhere[chosen]


KINDS = (
    "all",
    "all without biases",
    "the first features of all",
    "the first features and biases",
    "some",
    "a few",
    "two far columns",
    "biases alone",
    "one neuron",
    "each its own",
    "each its own and biases",
    "nothing",
)


@pytest.fixture(params=["dense", "sparse"])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Store matrices densely, or sparsely wherever not every place is held; products go pair by pair."""
    if request.param == "sparse":
        monkeypatch.setattr(module, "DENSE_SHARE", 0)
    return request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_products_are_those_of_the_dense_matrix(
    kind: str, bias: bool, dtype: torch.dtype, storage: str
) -> None:
    layout = Layout((INPUTS, NEURONS, 1), bias, fused=True)
    indices = held(kind, layout)
    indices = indices[indices < layout.offsets[1]]
    generator = torch.Generator().manual_seed(0)
    fed, delta, first, second = (
        torch.randn(*shape, generator=generator, dtype=dtype)
        for shape in ((ROWS, INPUTS), (ROWS, NEURONS), (len(indices),), (len(indices),))
    )
    block = Block(layout, 0, indices, first, small=0 if storage == "sparse" else DENSE_SIZE)
    if storage == "sparse" and kind == "some":
        assert not block.dense
    # The second round has the values of another block on the same support.
    for values, here in ((first, block), (second, block.at(second))):
        matrix, constants = written(layout, indices, values)
        close(here.forward(fed), fed @ matrix + constants)
        close(here.back(delta), delta @ matrix.T)
        out = torch.full_like(values, torch.nan)
        here.gradient(fed, delta, out)
        one = torch.cat([fed, torch.ones(ROWS, int(bias), dtype=dtype)], 1)
        close(out, (delta.T @ one).reshape(-1)[indices])
        rows = torch.full((values.numel(), ROWS), torch.nan, dtype=dtype)
        here.derivatives(here.read(fed).T.contiguous(), delta.T.contiguous(), rows)
        each = (delta[:, :, None] * one[:, None, :]).reshape(ROWS, -1)[:, indices]
        close(rows, each.T)
    matrix, constants = written(layout, indices, first)
    close(block.after_reading().forward(block.read(fed)), fed @ matrix + constants)
    close(block.forward(fed), fed @ matrix + constants)
    first.mul_(-2)
    close(block.forward(fed), -2 * (fed @ matrix + constants))


def test_a_block_of_nothing_is_zero() -> None:
    layout = Layout((INPUTS, NEURONS, 1), bias=True, fused=True)
    block = Block(layout, 0, torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    assert not block.forward(torch.ones(3, INPUTS)).any()
    assert not block.back(torch.ones(3, NEURONS)).any()


def written(layout: Layout, indices: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Write weights (inputs, neurons) and biases out."""
    grid = torch.zeros(layout.offsets[1], dtype=values.dtype)
    grid[indices] = values
    grid = grid.view(layout.shapes[0])
    bias = grid[:, INPUTS] if layout.bias else torch.zeros(NEURONS, dtype=values.dtype)
    return grid[:, :INPUTS].T, bias


def close(one: Tensor, two: Tensor) -> None:
    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5 if one.dtype is torch.float32 else 1e-12)
