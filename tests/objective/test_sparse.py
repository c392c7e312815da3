"""Sparse rows: every product is that of the dense rows, and none of them is made dense on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.block import Block
from thresher.objective.columns import standard_columns
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Logistic, Loss, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.objective.sparse import Meeting, Readers, SparseRows
from thresher.solvers.auto.linear import l1_path
from thresher.solvers.auto.tuning import LinearTuning
from thresher.solvers.auto.wide import relevance

ROWS, COLUMNS, NEURONS = 40, 15, 6
DENSE = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
DENSE[np.random.default_rng(1).random(DENSE.shape) < 0.8] = 0.0
# A row and a column without anything.
DENSE[3], DENSE[:, 5] = 0.0, 0.0

widths = pytest.mark.parametrize("indices", [np.int32, np.int64], ids=["32-bit", "64-bit"])
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])


def csr(dtype: torch.dtype = torch.float64, indices: type = np.int32) -> scipy.sparse.csr_array:
    """Give the rows as a CSR array."""
    found = scipy.sparse.csr_array(DENSE.astype(np.float64 if dtype is torch.float64 else np.float32))
    found.indices, found.indptr = found.indices.astype(indices), found.indptr.astype(indices)
    return found


def close(one: Tensor, two: Tensor) -> None:
    """Compare up to rounding."""
    torch.testing.assert_close(one, two.to(one.dtype), rtol=1e-4, atol=1e-5)


@widths
@types
def test_rows_behave_like_a_dense_tensor(dtype: torch.dtype, indices: type) -> None:
    rows, dense = SparseRows(csr(dtype, indices)), torch.from_numpy(DENSE).to(dtype)
    assert (len(rows), rows.shape, rows.dtype) == (ROWS, (ROWS, COLUMNS), dtype)
    right, left = torch.randn(COLUMNS, 3, dtype=dtype), torch.randn(ROWS, 2, dtype=dtype)
    close(rows @ right, dense @ right)
    close(rows @ right[:, 0], dense @ right[:, 0])
    close(rows.T @ left, dense.T @ left)
    close(rows.square().T @ left, dense.square().T @ left)
    close(rows.abs() @ right, dense.abs() @ right)
    close(rows.clamp(min=0) @ right, dense.clamp(min=0) @ right)
    close(rows.clamp(max=0) @ right, dense.clamp(max=0) @ right)
    for chosen in (torch.arange(COLUMNS), torch.tensor([9, 2, 5]), torch.zeros(0, dtype=torch.int64)):
        close(rows[:, chosen], dense[:, chosen])
    close(rows[:, 2:7], dense[:, 2:7])
    assert rows[:, :COLUMNS] is rows
    assert rows.to(torch.float32).dtype is torch.float32 and rows.double().dtype is torch.float64


@types
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
def test_a_block_makes_of_sparse_rows_what_it_makes_of_dense_ones(
    share: float, bias: bool, dtype: torch.dtype
) -> None:
    layout = Layout((COLUMNS, NEURONS, 1), bias)
    everywhere = torch.arange(layout.offsets[1])
    held = everywhere[torch.rand(len(everywhere), generator=torch.Generator().manual_seed(0)) < share]
    block = Block(layout, 0, held, torch.randn(held.numel(), dtype=dtype))
    rows, dense = SparseRows(csr(dtype)), torch.from_numpy(DENSE).to(dtype)
    close(block.forward(rows), block.forward(dense))
    close(block.read(rows), block.read(dense))
    delta = torch.randn(ROWS, NEURONS, dtype=dtype)
    one, two = torch.empty(held.numel(), dtype=dtype), torch.empty(held.numel(), dtype=dtype)
    block.gradient(rows, delta, one)
    block.gradient(dense, delta, two)
    close(one, two)


def test_what_meets_is_looked_up_once_for_each_of_two_blocks() -> None:
    rows, neuron = SparseRows(csr()), torch.tensor([0, 1])
    blocks = [Readers(torch.tensor([one, one + 1]), neuron, COLUMNS) for one in range(3)]
    first = [rows.meeting(block) for block in blocks[:2]]
    assert [rows.meeting(block) for block in blocks[:2]] == first
    rows.meeting(blocks[2])
    assert rows.meeting(blocks[1]) is first[1]
    assert rows.meeting(blocks[0]) is not first[0]


def test_a_meeting_has_one_pair_for_each_nonzero_and_weight_that_reads_it() -> None:
    feature, neuron = torch.tensor([2, 7, 2]), torch.tensor([0, 0, 4])
    met = Meeting(SparseRows(csr()), Readers(feature, neuron, COLUMNS))
    counts = (DENSE != 0).sum(0)
    assert met.row.numel() == 2 * counts[2] + counts[7]


def sparse_and_dense(loss: Loss, dtype: torch.dtype = torch.float64) -> tuple[Relu, Relu]:
    """Give one objective on rows that stay sparse, and on the same rows made dense."""
    outputs = 3 if isinstance(loss, CrossEntropy) else 1
    random = np.random.default_rng(2)
    y = random.integers(0, 3, (ROWS, 1)) if outputs == 3 else random.random((ROWS, 1)).round()
    y = y if outputs == 3 else y.astype(np.float64)
    matrix = csr(dtype)
    columns = standard_columns(matrix, None, centred=False)
    layout = Layout((COLUMNS, NEURONS, outputs), True, fused=outputs == 1, direct=True)
    kinds = (matrix, 0), (DENSE, 2**20)
    return tuple(  # type: ignore[return-value]
        Relu(Data(X, torch.from_numpy(y), None, columns, dtype, limit), layout, loss, 0.01)
        for X, limit in kinds
    )


LOSSES: list[Loss] = [SquaredError(), Logistic(), CrossEntropy(3)]
losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


def a_point(objective: Relu) -> Point:
    """Hold half of all weights."""
    random = torch.Generator().manual_seed(3)
    indices = torch.arange(objective.size)[torch.rand(objective.size, generator=random) < 0.5]
    values = torch.randn(indices.numel(), generator=random, dtype=torch.float64)
    signs = torch.ones(NEURONS, dtype=torch.float64) if objective.layout.fused else None
    return Point(SparseVector(indices, values, objective.size), signs)


@losses
def test_an_objective_is_the_same_on_sparse_rows(loss: Loss) -> None:
    sparse, dense = sparse_and_dense(loss)
    assert sparse.data.sparse and not dense.data.sparse
    point = a_point(sparse)
    assert sparse.value(point) == pytest.approx(dense.value(point), rel=1e-10)
    close(sparse.row_values(point), dense.row_values(point))
    for one, two in zip(sparse.curvature(point), dense.curvature(point), strict=True):
        close(one, two)
    every = slice(0, ROWS)
    batches = sparse.data.batch(every), dense.data.batch(every)
    found = [
        one.largest_gradients(point, batch, 10) for one, batch in zip((sparse, dense), batches, strict=True)
    ]
    assert torch.equal(found[0].indices, found[1].indices)
    close(found[0].values, found[1].values)
    steps = [
        one.batch_gradient(one.run(point), batch)[1]
        for one, batch in zip((sparse, dense), batches, strict=True)
    ]
    close(*steps)


@losses
def test_inputs_tell_the_same_and_so_do_linear_models(loss: Loss) -> None:
    sparse, dense = sparse_and_dense(loss)
    close(relevance(sparse), relevance(dense))
    paths = [list(l1_path(one, 8, LinearTuning())) for one in (sparse, dense)]
    assert len(paths[0]) == len(paths[1]) > 0
    for one, two in zip(*paths, strict=True):
        close(one.numbers, two.numbers)


def test_some_columns_of_sparse_rows_are_dense_and_some_rows_as_well() -> None:
    sparse, dense = sparse_and_dense(SquaredError())
    chosen = torch.tensor([1, 4, 9])
    close(sparse.data.only(chosen).read(slice(0, ROWS)), dense.data.only(chosen).read(slice(0, ROWS)))
    some = np.array([4, 2, 30])
    taken = sparse.data.take(some)
    assert taken.sparse == (taken.rows * taken.columns * taken.dtype.itemsize > taken.memory_limit)
    close(taken.read(slice(0, 3)), dense.data.take(some).batch(slice(0, 3)).X)


def test_columns_are_scaled_by_what_is_written() -> None:
    twice = scipy.sparse.csr_array(np.vstack([DENSE, DENSE]))
    weight = np.r_[np.ones(ROWS), np.zeros(ROWS)]
    for given in (csr(), twice):
        columns = standard_columns(given, weight if given is twice else None, centred=True)
        assert not columns.origin.any()
        dense = standard_columns(DENSE, None, centred=False)
        np.testing.assert_allclose(columns.scale, dense.scale, rtol=1e-10)


def test_a_chunk_holds_as_many_rows_as_its_nonzeros_allow() -> None:
    sparse, dense = sparse_and_dense(SquaredError())
    assert sparse.data.row_numbers == -(-np.count_nonzero(DENSE) // ROWS) < dense.data.row_numbers == COLUMNS
    wide = scipy.sparse.random_array((300, 200_000), density=1e-4, format="csr", rng=np.random.default_rng(0))
    data = Data(wide, memory_limit=2**20)
    assert data.sparse and data.chunk_rows(1) >= 300
    assert replace(sparse, data=data).data.batch(slice(0, 300)).X.shape == (300, 200_000)


def test_what_is_written_twice_is_added_up_and_stays_as_it_came() -> None:
    once = csr()
    # Every number in two halves, in descending order of columns.
    places = np.repeat(np.arange(once.nnz), 2)
    row = np.repeat(np.arange(ROWS), np.diff(once.indptr))[places]
    order = np.lexsort((-once.indices[places], row))
    parts = 0.5 * once.data[places][order], once.indices[places][order], 2 * once.indptr
    twice = scipy.sparse.csr_array(parts, once.shape)
    before = [part.copy() for part in (twice.data, twice.indices, twice.indptr)]
    np.testing.assert_allclose(
        standard_columns(twice, None, centred=False).scale, standard_columns(once, None, centred=False).scale
    )
    data = Data(twice, dtype=torch.float64, memory_limit=0)
    close(data.batch(slice(0, ROWS)).X[:, torch.arange(COLUMNS)], torch.from_numpy(DENSE))
    for one, two in zip(before, (twice.data, twice.indices, twice.indptr), strict=True):
        np.testing.assert_array_equal(one, two)
