"""Rounding one weight after the other is never worse than rounding all at once, and stays on its grid."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.errors import ParameterError
from thresher.integer.coding import InputCoding, chosen_coding, code_range
from thresher.integer.rounding import Grid, grid_named, rounded

GRIDS = [Grid(False, 2), Grid(False, 4), Grid(False, 8), Grid(True, 3), Grid(True, 4)]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid.name} {grid.bits}")
def test_it_beats_plain_rounding_and_stays_on_the_grid(grid: Grid) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 3, 12):
        rows = rng.normal(size=(100, size)) @ rng.normal(size=(size, size))
        H, weights = rows.T @ rows, rng.normal(size=size)
        steps = np.repeat(grid.step_candidates(np.abs(weights).max(), 4)[:, None], size, axis=1)
        found = rounded(H, weights, steps, np.zeros(size, dtype=bool), grid)
        assert (grid.nearest(found.values) == found.values).all()
        for values, step in zip(found.values, steps, strict=True):
            plain = grid.nearest(weights / step)
            ours, theirs = ((q * step - weights) @ H @ (q * step - weights) for q in (values, plain))
            assert ours <= theirs * 1.05 + 1e-9


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid.name} {grid.bits}")
def test_nearest_is_nearest_and_neighbours_are_next(grid: Grid) -> None:
    sizes = 2 ** np.arange(2 ** (grid.bits - 1)) if grid.powers else np.arange(1, grid.largest + 1)
    every = np.unique([*-sizes, 0, *sizes]).astype(float)
    assert every.max() == grid.largest
    values = np.random.default_rng(1).uniform(-1.2, 1.2, 500) * grid.largest
    found = grid.nearest(values)
    assert (np.abs(found - values) <= np.abs(every[:, None] - values).min(axis=0) + 1e-9).all()
    down, up = grid.neighbours(every)
    assert (up[:-1] == every[1:]).all()
    assert (down[1:] == every[:-1]).all()
    assert (up[-1], down[0]) == (grid.largest, -grid.largest)


def test_a_bias_takes_up_what_weights_lose() -> None:
    rows = np.column_stack([np.full(50, 10.0), np.ones(50)])
    free = np.array([False, True])
    found = rounded(rows.T @ rows, np.array([0.53, 0.0]), np.array([[0.1, 0.1]]), free, Grid(False, 4))
    assert rows @ (found.values[0] * 0.1) == pytest.approx(np.full(50, 5.3))


def test_kinds_of_weights() -> None:
    assert grid_named("int4", 8) == Grid(False, 4)
    assert grid_named("pow2", 8) == Grid(True, 4)
    assert grid_named(None, 3).largest == 3
    assert grid_named("pow2", 8).largest == 128


@pytest.mark.parametrize("kind", ["uint1", "uint8", "int2", "int16", "uint16"])
def test_codes_fill_their_kind(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 100.0, 1e-3] + [0.0, 5.0, 0.0]
    coding = chosen_coding(kind, X, np.ones(3, dtype=bool))
    codes, (low, high) = coding.codes(X), code_range(kind)
    assert (codes.min(axis=0) == low).all()
    assert (codes.max(axis=0) == high).all()
    assert coding.outside(X) == 0
    worst = np.abs(codes * coding.scale + coding.offset - X)
    assert (worst <= coding.scale * 0.5 + 1e-12).all()


def test_columns_that_may_not_move_begin_at_zero() -> None:
    X = np.random.default_rng(0).random((50, 2)) + np.array([5.0, -5.0])
    coding = chosen_coding("int16", X, np.zeros(2, dtype=bool))
    assert (coding.offset == 0).all()
    assert coding.outside(X) == 0
    assert (coding.codes(np.zeros((1, 2))) == 0).all()


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (np.array([[0, 255], [200, 3]]), "uint8"),
        (np.array([[-100, 255], [200, 3]]), "int16"),
        (np.array([[0, 60_000], [50_000, 3]]), "uint16"),
        (np.array([[0.5, 1.0]]), "int16"),
        (np.array([[1, 5_000], [0, 0]]), "int16"),
    ],
)
def test_whole_numbers_stay_as_they_are(X: np.ndarray, kind: str) -> None:
    coding = chosen_coding("auto", X.astype(float), np.zeros(2, dtype=bool))
    assert coding.kind == kind
    assert coding.plain == (kind != "int16" or X.min() < 0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("float",), "a device sees"),
        (("uint17",), "a device sees"),
        (("int1",), "a device sees"),
        (("uint8", 0.0), "above zero"),
        (("uint8", np.inf), "finite"),
        (("uint8", 1.0, np.zeros((2, 2))), "one for each column"),
    ],
)
def test_codings_that_cannot_be_are_refused(parts: tuple, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        InputCoding(*parts)
