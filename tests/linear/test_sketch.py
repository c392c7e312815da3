"""The count sketch: unbiased, as exact as the theory says, the same whatever the order of additions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from thresher.errors import ParameterError
from thresher.linear.sketch import CountSketch

SIZE, WIDTH, SEEDS = 60, 12, 1500
POSITIONS = torch.arange(SIZE)


def spike() -> Tensor:
    """One large entry among zeros: the errors of a row are rare and large."""
    x = torch.zeros(SIZE)
    x[7] = 3.0
    return x


def spread() -> Tensor:
    """Entries of all sizes and both signs: the errors of a row are nearly normal."""
    return torch.from_numpy(np.random.default_rng(0).standard_normal(SIZE)).float()


VECTORS: dict[str, Callable[[], Tensor]] = {"spike": spike, "spread": spread}


def sketch_of(x: Tensor, rows: int = 4, width: int = WIDTH, seed: int = 0) -> CountSketch:
    """Sketch a whole vector."""
    sketch = CountSketch(x.numel(), width, rows, seed)
    sketch.add(torch.arange(x.numel()), x)
    return sketch


def errors(x: Tensor, rows: int) -> Tensor:  # (seeds, size)
    """Give what the estimates of all entries miss by, for many seeds."""
    return torch.stack([sketch_of(x, rows, seed=seed).estimate(POSITIONS) - x for seed in range(SEEDS)])


@pytest.fixture(scope="module", params=VECTORS)
def missed(request: pytest.FixtureRequest) -> tuple[Tensor, Tensor, Tensor]:
    """Give a vector and the errors of one row and of the median of four."""
    x = VECTORS[request.param]()
    return x, errors(x, 1), errors(x, 4)


def test_estimates_are_unbiased(missed: tuple[Tensor, Tensor, Tensor]) -> None:
    for error in missed[1:]:
        deviation = error.std(0).clamp(min=1e-9) / math.sqrt(SEEDS)
        # 60 means of 1,500 draws each: five standard deviations are passed once in 30,000 times.
        assert bool((error.mean(0).abs() < 5 * deviation).all())


def test_the_variance_of_a_row_is_that_of_the_theory(missed: tuple[Tensor, Tensor, Tensor]) -> None:
    x, error, _ = missed
    expected = (x.square().sum() - x.square()) / WIDTH
    measured = error.square().mean(0)
    assert float(measured.sum() / expected.sum()) == pytest.approx(1, abs=0.1)
    assert bool((measured <= 1.6 * x.square().sum() / WIDTH).all())


@pytest.mark.parametrize("deviations", [math.sqrt(3), 1.2])
def test_rows_fail_as_rarely_as_chebyshev_says_and_medians_more_rarely(
    missed: tuple[Tensor, Tensor, Tensor], deviations: float
) -> None:
    x, one, four = missed
    bound = deviations / math.sqrt(WIDTH) * float(x.norm())
    row = float((one.abs() > bound).float().mean())
    median = float((four.abs() > bound).float().mean())
    assert 0 < row < 1 / deviations**2
    # The median fails upwards only if two rows of four do: 6 pairs, each with probability (row / 2)^2, and
    # the same downwards.
    assert median <= 1.1 * 3 * row**2


def test_the_same_seed_gives_the_same_table_and_another_one_another() -> None:
    x = spread()
    assert torch.equal(sketch_of(x, seed=3).table, sketch_of(x, seed=3).table)
    assert not torch.equal(sketch_of(x, seed=3).table, sketch_of(x, seed=4).table)


def test_hashing_draws_from_no_global_state() -> None:
    state = torch.get_rng_state()
    sketch_of(spread())
    assert torch.equal(torch.get_rng_state(), state)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(1, 5))
def test_the_order_and_the_grouping_of_additions_play_no_part(seed: int, pieces: int) -> None:
    rng = np.random.default_rng(seed)
    count = 50
    indices = torch.from_numpy(rng.integers(0, 10**9, count))
    order = torch.from_numpy(rng.permutation(count))
    for values, tolerance in ((rng.integers(-1000, 1000, count), 0.0), (rng.standard_normal(count), 1e-5)):
        amounts = torch.from_numpy(values).float()
        whole, split = CountSketch(10**9, 16, seed=seed), CountSketch(10**9, 16, seed=seed)
        whole.add(indices, amounts)
        for part in order.chunk(pieces):
            split.add(indices[part], amounts[part])
        torch.testing.assert_close(split.table, whole.table, rtol=0, atol=tolerance)
        estimated = split.estimate(indices[order])
        torch.testing.assert_close(estimated, whole.estimate(indices)[order], rtol=0, atol=tolerance)


def test_sketches_are_linear() -> None:
    x, other = torch.arange(SIZE).float(), -3 * torch.arange(SIZE).float().flip(0)
    both = sketch_of(x)
    both.add(POSITIONS, other)
    assert torch.equal(both.table, sketch_of(x).table + sketch_of(other).table)
    assert torch.equal(sketch_of(4 * x).table, 4 * sketch_of(x).table)
    both.add(POSITIONS, -x)
    both.add(POSITIONS, -other)
    assert int(both.table.count_nonzero()) == 0


def test_repeated_positions_in_one_addition_all_count() -> None:
    sketch = CountSketch(100, 64)
    sketch.add(torch.tensor([5, 5, 5]), torch.tensor([1.0, 2.0, 4.0]))
    assert sketch.estimate(torch.tensor([5])).tolist() == [7.0]


def test_a_few_entries_in_a_wide_sketch_are_exact() -> None:
    x = torch.zeros(10**4)
    places = torch.arange(0, 10**4, 1000)
    x[places] = torch.arange(1.0, 11.0)
    assert torch.equal(sketch_of(x, width=2**12).estimate(torch.arange(10**4)), x)


@pytest.mark.parametrize("size", [10**12, 2**62])
def test_positions_may_be_huge(size: int) -> None:
    sketch = CountSketch(size, 1000)
    places = torch.tensor([0, 1, size // 2, size - 2, size - 1])
    sketch.add(places, torch.tensor([1.0, -2.0, 3.0, -4.0, 5.0]))
    assert sketch.estimate(places).tolist() == [1.0, -2.0, 3.0, -4.0, 5.0]
    assert sketch.estimate(torch.tensor([size // 3])).tolist() == [0.0]
    assert sketch.numbers == 4 * 1000


def _positions() -> dict[str, Tensor]:
    count = torch.arange(2**15)
    return {"in a row": count, "far out": 10**12 + count, "spaced by 1,024": 1024 * count}


def counters_and_signs(indices: Tensor, width: int) -> tuple[Tensor, Tensor]:  # (positions,) each
    """Give the hash of one row."""
    sketch = CountSketch(2**62, width, rows=1, seed=1)
    return sketch._hash(indices, 0)


@pytest.mark.parametrize("name", _positions())
@pytest.mark.parametrize("width", [64, 100, 1021])
def test_counters_and_signs_are_balanced_and_independent(name: str, width: int) -> None:
    indices = _positions()[name]
    place, sign = counters_and_signs(indices, width)
    count = indices.numel()
    assert 0 <= int(place.min()) <= int(place.max()) < width
    assert set(sign.tolist()) == {-1.0, 1.0}
    # Chi-square over counters, and over counters and signs together: mean k - 1, variance 2 (k - 1).
    for cells, number in ((place, width), (2 * place + (sign > 0), 2 * width)):
        expected = count / number
        chi = float((torch.bincount(cells, minlength=number) - expected).square().sum() / expected)
        assert abs(chi - (number - 1)) < 5 * math.sqrt(2 * (number - 1))
    assert abs(float(sign.sum())) < 4.5 * math.sqrt(count)
    # Neighbours agree neither in sign nor in counter more often than chance has it.
    assert abs(float((sign[1:] * sign[:-1]).sum())) < 4.5 * math.sqrt(count)
    met = int((place[1:] == place[:-1]).sum())
    assert abs(met - count / width) < 4.5 * math.sqrt(count / width)


def test_rows_hash_independently() -> None:
    width, indices = 64, torch.arange(2**15)
    sketch = CountSketch(2**15, width, rows=2, seed=0)
    (first, one), (second, other) = (sketch._hash(indices, row) for row in range(2))
    assert abs(float((one * other).sum())) < 4.5 * math.sqrt(2**15)
    expected = 2**15 / width**2
    counts = torch.bincount(first * width + second, minlength=width**2)
    chi = float((counts - expected).square().sum() / expected)
    assert abs(chi - (width**2 - 1)) < 5 * math.sqrt(2 * (width**2 - 1))


@pytest.mark.parametrize(
    ("budget", "size"), [(1000, 7940), (1000, 7_940_000), (10, 10**12), (5, 5), (3000, 4000), (1, 1)]
)
def test_the_papers_sketch_has_four_rows_of_s_log_n_over_s(budget: int, size: int) -> None:
    sketch = CountSketch.for_budget(budget, size)
    assert sketch.rows == 4
    assert sketch.width == math.floor(budget * max(1.0, math.log(size / budget)))
    assert sketch.table.shape == (4, sketch.width)
    assert sketch.table.dtype is torch.float32
    assert sketch.numbers == 4 * sketch.width


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_the_estimate_is_the_median_over_rows(rows: int) -> None:
    x = spread()
    sketch = sketch_of(x, rows, width=5)
    read = torch.stack(
        [
            sketch.table[row][place] * sign
            for row in range(rows)
            for place, sign in [sketch._hash(POSITIONS, row)]
        ]
    )
    expected = torch.from_numpy(np.median(read.numpy(), axis=0))
    torch.testing.assert_close(sketch.estimate(POSITIONS), expected)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-5, 1, 1)])
def test_impossible_sizes_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ParameterError, match="at least 1 of each"):
        CountSketch(*sizes)
