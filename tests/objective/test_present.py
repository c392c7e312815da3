"""Very wide sparse rows: columns that are there, those that tell most, and nothing as long as the width."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from thresher.objective.present import only, telling_columns, very_wide

ROWS, WIDTH = 40, 2**40
LIMIT = 2**20


def drawn(seed: int = 0, nonzeros: int = 400) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Draw rows of few columns among very many, and these columns."""
    draw = np.random.default_rng(seed)
    columns = np.sort(draw.choice(WIDTH, 60, replace=False))
    place = draw.integers(0, 60, nonzeros)
    row = np.sort(draw.integers(0, ROWS, nonzeros))
    parts = draw.standard_normal(nonzeros), columns[place], np.searchsorted(row, np.arange(ROWS + 1))
    X = scipy.sparse.csr_array(parts, shape=(ROWS, WIDTH))
    X.sum_duplicates()
    return X, np.unique(X.indices)


def dense(X: scipy.sparse.csr_array, columns: np.ndarray) -> np.ndarray:
    out = np.zeros((X.shape[0], len(columns)))
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    out[row, np.searchsorted(columns, X.indices)] = X.data
    return out


def slopes(outputs: int = 2) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    share = draw.random(ROWS)
    return draw.standard_normal((ROWS, outputs)), share / share.sum()


def test_all_columns_that_rows_hold_are_found() -> None:
    X, columns = drawn()
    assert np.array_equal(telling_columns(X, *slopes(), np.inf, LIMIT), columns)


def test_those_that_tell_most_are_kept() -> None:
    X, columns = drawn()
    slope, share = slopes()
    values = dense(X, columns)
    told = np.zeros(len(columns))
    for half in (np.maximum(values, 0), np.minimum(values, 0)):
        size = np.maximum((half**2).T @ share, 1e-300)
        told = np.maximum(told, ((half.T @ slope) ** 2).sum(1) / size)
    expected = np.sort(columns[np.argsort(-told)[:7]])
    assert np.array_equal(telling_columns(X, slope, share, 7, LIMIT), expected)


@pytest.mark.parametrize("limit", [1, 2_000, 10_000, 10**9])
def test_the_memory_limit_does_not_change_what_is_kept(limit: int) -> None:
    X, _ = drawn()
    for most in (5, 30, np.inf):
        assert np.array_equal(
            telling_columns(X, *slopes(), most, limit), telling_columns(X, *slopes(), most, LIMIT)
        )


def test_columns_numbered_anew_hold_what_they_held() -> None:
    X, columns = drawn()
    few = columns[::3]
    found = only(X, few)
    assert found.shape == (ROWS, len(few))
    np.testing.assert_array_equal(found.toarray(), dense(X, columns)[:, ::3])
    assert only(X, np.array([columns[0] + 1])).nnz == 0


def test_rows_that_hold_nothing_have_no_columns() -> None:
    X = scipy.sparse.csr_array((ROWS, WIDTH))
    assert len(telling_columns(X, *slopes(), 5, LIMIT)) == 0
    assert only(X, np.array([3])).shape == (ROWS, 1)


def test_nothing_is_as_long_as_the_width_or_as_the_columns_there_are() -> None:
    draw, nonzeros = np.random.default_rng(0), 300_000
    parts = np.ones(nonzeros), draw.integers(0, WIDTH, nonzeros), np.arange(0, nonzeros + 1, nonzeros // ROWS)
    X = scipy.sparse.csr_array(parts, shape=(ROWS, WIDTH))
    tracemalloc.start()
    telling_columns(X, *slopes(1), 100, LIMIT)
    assert tracemalloc.get_traced_memory()[1] < 4 * nonzeros + 8 * LIMIT // 4
    tracemalloc.stop()


def test_rows_are_very_wide_where_columns_outnumber_what_is_held_or_what_fits() -> None:
    X = scipy.sparse.random_array((50, 100), density=0.5, format="csr", rng=np.random.default_rng(0))
    assert not very_wide(X, LIMIT)
    assert very_wide(X, 1000)
    assert very_wide(X[:1], LIMIT)
    assert not very_wide(X.toarray(), LIMIT)
