"""Reading rows, and column scales: root mean squares, with rare columns held back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from problems import normal

from thresher.objective.design import CHUNK_NUMBERS, Design, column_scale

ROWS = 200
# The share of rows in which each column is not zero; the last column is always zero.
SHARES = np.array([1.0, 0.5, 0.1, 0.02, 0.0])


def some_rare_columns() -> np.ndarray:
    """Give columns of which some are mostly zero."""
    X = 3 * normal(ROWS, len(SHARES)) + 1
    for column, share in enumerate(SHARES):
        X[round(share * ROWS) :, column] = 0
    return np.random.default_rng(1).permutation(X)


def mean_squares(X: np.ndarray, rare: float) -> np.ndarray:
    """Give the mean squares of the scaled columns that are not zero."""
    return np.square(X / column_scale(X, rare=rare)).mean(0)[SHARES > 0]


def test_the_scale_is_the_root_mean_square() -> None:
    X = some_rare_columns()
    assert mean_squares(X, rare=0.0) == pytest.approx(np.ones(4))
    assert column_scale(X)[-1] == 1.0


@pytest.mark.parametrize("rare", [0.25, 0.5, 1.0])
def test_rare_columns_are_smaller_by_a_power_of_their_share(rare: float) -> None:
    squares, shares = mean_squares(some_rare_columns(), rare), SHARES[SHARES > 0]
    assert squares / squares[0] == pytest.approx(shares ** (2 * rare))
    assert squares.mean() == pytest.approx(1)


@pytest.mark.parametrize("rare", [0.0, 0.25])
def test_weights_are_repeated_rows(rare: float) -> None:
    X, weight = some_rare_columns(), np.random.default_rng(2).integers(0, 4, ROWS)
    repeated = column_scale(np.repeat(X, weight, axis=0), rare=rare)
    assert column_scale(X, weight.astype(float), rare) == pytest.approx(repeated)


@pytest.mark.parametrize("rare", [0.0, 0.25])
def test_sparse_data_and_data_in_chunks_have_the_scales_of_the_whole(
    rare: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = some_rare_columns()
    whole = column_scale(X, rare=rare)
    monkeypatch.setattr("thresher.objective.design.CHUNK_NUMBERS", 1)
    assert X.size < CHUNK_NUMBERS
    for form in (X, scipy.sparse.csr_array(X), np.asfortranarray(X), X.astype(np.longdouble)):
        assert column_scale(form, rare=rare) == pytest.approx(whole)


@pytest.mark.parametrize("rare", [0.0, 0.25])
def test_units_of_columns_are_those_of_their_scales(rare: float) -> None:
    X, units = some_rare_columns(), np.exp2([0, 20, -20, 5, 3])
    expected = column_scale(X, rare=rare)
    expected[:-1] *= units[:-1]
    assert np.array_equal(column_scale(X * units, rare=rare), expected)


@pytest.mark.parametrize("rare", [0.0, 0.25])
@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.full((5, 3), 1e-300), np.full((1, 1), 1e30)], ids=str)
def test_scales_are_positive_and_finite_whatever_comes(X: np.ndarray, rare: float) -> None:
    scale = column_scale(X, rare=rare)
    assert np.isfinite(scale).all()
    assert (scale > 0).all()
    assert np.isfinite(X / scale).all()


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("order", [None, np.arange(ROWS)[::-1].copy()], ids=["all", "reversed"])
def test_rows_are_read_by_their_numbers(form: Any, order: np.ndarray | None) -> None:
    X = some_rare_columns()
    design = Design(form(X), dtype=torch.float64, order=order)
    rows = np.array([7, 3, 3, 150])
    seen = X if order is None else X[order]
    assert np.array_equal(design.read(rows).numpy(), seen[rows])
    assert torch.equal(design.read(np.arange(5, 9)), design.chunk(5, 9))
