"""Rows: read as inputs whatever form they have, into given memory or their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from problems import INPUTS, ROWS, seen, standard

from thresher.objective.columns import LOOKED_AT, standard_columns
from thresher.objective.data import Data
from thresher.objective.pages import CHUNK_NUMBERS
from thresher.objective.ranks import Alone
from thresher.solvers.auto.recovery.absolute import AbsoluteData

any_form = pytest.mark.parametrize("name", INPUTS)


@any_form
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
@pytest.mark.parametrize("limit", [0, 2**20], ids=["read again and again", "held"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_rows_are_inputs_wherever_they_are_put(
    name: str, scaled: bool, limit: int, dtype: torch.dtype
) -> None:
    X = INPUTS[name].tocsr() if scipy.sparse.issparse(INPUTS[name]) else INPUTS[name]
    columns = standard(X) if scaled else None
    data, expected = Data(X, columns=columns, dtype=dtype, memory_limit=limit), seen(X, columns)
    memory = torch.full((30, data.columns), torch.nan, dtype=dtype)
    for rows in (slice(3, 20), slice(140, ROWS), np.array([7, 3, 3, 149])):
        chosen = rows if isinstance(rows, slice) else torch.from_numpy(rows)
        every = torch.arange(data.columns)
        for read in (data.read(rows), data.read(rows, memory), data.batch(rows).X[:, every]):
            assert read.dtype == dtype
            torch.testing.assert_close(read.double(), expected[chosen], rtol=1e-5, atol=1e-6)


def test_memory_is_used_where_rows_are_converted_and_only_there() -> None:
    X = np.arange(12.0).reshape(4, 3)
    memory = torch.full((4, 3), torch.nan, dtype=torch.float32)
    narrowed = Data(X, memory_limit=0)
    assert narrowed.read(slice(1, 3), memory).data_ptr() == memory.data_ptr()
    as_it_is = Data(X, dtype=torch.float64, memory_limit=0)
    assert as_it_is.read(slice(1, 3), memory.double()).data_ptr() == torch.from_numpy(X[1:]).data_ptr()


def test_data_may_have_no_targets() -> None:
    data = Data(np.ones((5, 2)))
    assert data.batch(slice(0, 3)).y.shape == (3, 0)
    assert data.take(np.array([4, 1])).rows == 2


@pytest.mark.parametrize("columns", [1, 100, 3_000, 100_000])
@pytest.mark.parametrize("width", [1, 500, 5_000])
def test_chunks_are_small_but_not_too_small(columns: int, width: int) -> None:
    wide: Any = np.broadcast_to(0.0, (10, columns))
    rows = Data(wide).chunk_rows(width)
    assert 64 <= rows <= 8192
    assert rows * columns <= max(2**19, 64 * columns)
    assert columns > 2_000 or rows >= 256


@any_form
@pytest.mark.parametrize("limit", [0, 2**20], ids=["read again and again", "held"])
def test_some_columns_are_read_without_a_copy_of_all(name: str, limit: int) -> None:
    X = INPUTS[name].tocsr() if scipy.sparse.issparse(INPUTS[name]) else INPUTS[name]
    data, chosen = Data(X, columns=standard(X), memory_limit=limit), torch.tensor([0, 2])
    part = data.only(chosen)
    assert data._copy is None
    expected = seen(X, standard(X))[:, chosen]
    torch.testing.assert_close(part.read(slice(0, ROWS)).double(), expected, rtol=1e-5, atol=1e-6)


def test_origins_of_columns_do_not_depend_on_how_many_there_are() -> None:
    wide = 2 * CHUNK_NUMBERS // LOOKED_AT + 5
    X = np.random.default_rng(0).poisson(1.0, (LOOKED_AT, wide)) + np.arange(wide) % 7.0
    whole = standard_columns(X, None, centred=True)
    alone = [standard_columns(X[:, [column]], None, centred=True) for column in range(0, wide, 50)]
    assert np.array_equal(whole.origin[::50], [one.origin[0] for one in alone])
    assert len(set(whole.origin)) >= 7


def test_parts_of_a_large_copy_are_picked_when_they_are_read() -> None:
    X = np.random.default_rng(0).standard_normal((300, 40))
    whole = Data(X, columns=standard(X), dtype=torch.float64, memory_limit=100_000)
    kept, rows = whole.read(slice(0, 300)), np.arange(299, 0, -3)
    part = whole.take(rows)
    assert part.X.whole.data_ptr() == kept.data_ptr()
    for wanted in (slice(5, 90), np.array([7, 3, 3])):
        torch.testing.assert_close(part.read(wanted), kept[torch.from_numpy(rows)[wanted]], rtol=0, atol=0)
    again = part.take(np.array([1, 0]))
    torch.testing.assert_close(again.read(slice(0, 2)), kept[[296, 299]], rtol=0, atol=0)
    some = whole.take(rows, torch.tensor([3, 30]))
    torch.testing.assert_close(some.read(slice(0, 100)), kept[rows][:, [3, 30]], rtol=0, atol=0)


@pytest.mark.parametrize("first", [0, 1, 500, 1000, 2900])
def test_chunks_end_where_they_end_for_one_process(first: int) -> None:
    class Later(Alone):
        pass

    ranks = Later()
    ranks.first = first
    data = Data(np.zeros((3000, 1000)), ranks=ranks, memory_limit=0)
    size, places = data.chunk_rows(1), np.cumsum([len(chunk.X) for chunk in data.chunks(1)]) + first
    assert places[-1] == first + 3000
    assert all(place % size == 0 for place in places[:-1])


@any_form
@pytest.mark.parametrize("limit", [0, 2**20], ids=["read again and again", "held"])
def test_some_rows_and_columns_are_those_of_the_whole(name: str, limit: int) -> None:
    X = INPUTS[name].tocsr() if scipy.sparse.issparse(INPUTS[name]) else INPUTS[name]
    columns = standard(X)
    data, expected = Data(X, columns=columns, dtype=torch.float64, memory_limit=limit), seen(X, columns)
    rows, features = np.array([7, 3, 149, 3]), torch.tensor([0, data.columns - 1])
    some = data.take(rows, features)
    assert (some.rows, some.columns) == (4, 2)
    torch.testing.assert_close(some.read(slice(0, 4)), expected[rows][:, features])
    torch.testing.assert_close(data.take(rows).read(slice(0, 4)), expected[rows])
    folded = AbsoluteData(data).take(rows, features).read(slice(1, 3))
    torch.testing.assert_close(folded[:, 2:], expected[rows][1:3][:, features].abs())
