"""Planted networks are drawn as documented: exact counts, uniform positions, exact labels, fixed bits."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.data import planted as planted_module
from thresher.data.planted import PlantedProblem, fresh_rows, label_floor, planted, psnr
from thresher.errors import BudgetError, DataError, ParameterError


def dense_labels(problem: PlantedProblem, X: np.ndarray) -> np.ndarray:
    """The definition itself, in dense float64."""
    values = X.astype(np.float64)
    for layer in problem.weights if problem.signs is not None else problem.weights[:-1]:
        values = np.maximum(values @ layer.toarray().astype(np.float64), 0)
    if problem.signs is not None:
        return values @ problem.signs.astype(np.float64)
    return values @ problem.weights[-1].toarray().astype(np.float64)


def bits(problem: PlantedProblem) -> list[bytes]:
    parts = [problem.X, problem.y, *(layer.toarray() for layer in problem.weights)]
    return [part.tobytes() for part in parts]


@given(
    d=st.integers(1, 12),
    hidden=st.lists(st.integers(1, 8), min_size=1, max_size=3),
    budget=st.integers(1, 150),
    outputs=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_each_matrix_holds_its_share_of_the_budget(d, hidden, budget, outputs, seed) -> None:
    problem = planted(n=3, d=d, hidden=hidden, budget=budget, outputs=outputs, seed=seed)
    widths = [d, *hidden] + ([outputs] if outputs > 1 else [])
    shapes = list(itertools.pairwise(widths))
    assert [layer.shape for layer in problem.weights] == shapes
    for layer, (inputs, neurons) in zip(problem.weights, shapes, strict=True):
        assert isinstance(layer, scipy.sparse.csr_array)
        assert layer.dtype == np.float32
        assert layer.has_canonical_format
        assert np.count_nonzero(layer.toarray()) == min(budget // len(shapes), inputs * neurons)
    assert problem.nonzeros == sum(np.count_nonzero(layer.toarray()) for layer in problem.weights) <= budget
    assert problem.y.shape == ((3,) if outputs == 1 else (3, outputs))
    assert problem.y.dtype == problem.X.dtype == np.float32


@pytest.mark.parametrize("hidden", [7, (7, 6), [7, 6, 5]])
@pytest.mark.parametrize("outputs", [1, 3])
def test_labels_match_a_dense_evaluation(hidden, outputs: int) -> None:
    problem = planted(n=300, d=9, hidden=hidden, budget=80, outputs=outputs, seed=3)
    exact = dense_labels(problem, problem.X)
    assert np.abs(exact).max() > 0
    np.testing.assert_allclose(problem.evaluate(problem.X), exact, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(problem.y, problem.evaluate(problem.X).astype(np.float32))


def test_negative_neurons_are_subtracted() -> None:
    problem = planted(n=300, d=9, hidden=8, budget=60, negative=0.25, seed=3)
    assert problem.signs is not None
    assert sorted(problem.signs) == [-1, -1] + [1] * 6
    np.testing.assert_allclose(
        problem.evaluate(problem.X), dense_labels(problem, problem.X), rtol=1e-12, atol=1e-12
    )
    positive = planted(n=300, d=9, hidden=8, budget=60, seed=3)
    assert positive.signs is not None
    assert np.all(positive.signs == 1)
    assert positive.y.min() >= 0 > problem.y.min()
    assert planted(n=3, negative=1.0).y.max() <= 0
    assert planted(n=3, outputs=2).signs is None


def test_any_chunk_of_rows_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = planted(n=100, d=20, hidden=(10, 30), budget=200, seed=5)
    for numbers in (1, 90, 1000):
        monkeypatch.setattr(planted_module, "CHUNK_NUMBERS", numbers)
        assert bits(planted(n=100, d=20, hidden=(10, 30), budget=200, seed=5)) == bits(whole)


def test_same_seed_same_bits_and_another_seed_another_problem() -> None:
    before = np.random.get_state()[1].tobytes()  # type: ignore[index]
    first, again, other = (planted(n=50, seed=seed, negative=0.5) for seed in (4, 4, 5))
    assert bits(first) == bits(again)
    np.testing.assert_array_equal(first.signs, again.signs)
    assert all(left != right for left, right in zip(bits(first), bits(other), strict=True))
    assert np.random.get_state()[1].tobytes() == before  # type: ignore[index]


def test_the_network_does_not_depend_on_the_rows_nor_the_rows_on_the_network() -> None:
    few, many = planted(n=10, seed=2), planted(n=40, seed=2)
    assert bits(few)[2:] == bits(many)[2:]
    np.testing.assert_array_equal(few.X, many.X[:10])
    np.testing.assert_array_equal(few.X, planted(n=10, hidden=3, budget=7, negative=0.3, seed=2).X)


def test_positions_are_uniform_and_values_standard_normal() -> None:
    d, hidden, budget, draws = 6, 5, 10, 600
    layers = [planted(n=1, d=d, hidden=hidden, budget=budget, seed=seed).weights[0] for seed in range(draws)]
    counts = sum((layer.toarray() != 0).astype(int) for layer in layers)
    expected = draws * budget / (d * hidden)
    deviation = math.sqrt(expected * (1 - budget / (d * hidden)))
    assert np.abs(counts - expected).max() < 4 * deviation
    values = np.concatenate([layer.data for layer in layers]).astype(np.float64)
    assert abs(values.mean()) < 4 / math.sqrt(values.size)
    assert abs(values.var() - 1) < 4 * math.sqrt(2 / values.size)


def test_rows_are_standard_normal() -> None:
    X = planted(n=4_000, d=20).X.astype(np.float64)
    assert np.abs(X.mean(axis=0)).max() < 5 / math.sqrt(4_000)
    assert np.abs(np.cov(X.T) - np.eye(20)).max() < 5 * math.sqrt(2 / 4_000)


def test_fresh_rows_are_new_rows_of_the_same_network() -> None:
    problem = planted(n=100, d=8, hidden=5, budget=30, outputs=2, seed=7)
    X, y = fresh_rows(problem, 60, seed=7)
    assert (X.shape, X.dtype, y.dtype) == ((60, 8), np.float32, np.float32)
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in problem.X}
    np.testing.assert_array_equal(y, dense_labels(problem, X).astype(np.float32))
    np.testing.assert_array_equal(X, fresh_rows(problem, 60, seed=7)[0])
    assert not np.array_equal(X, fresh_rows(problem, 60, seed=8)[0])


def test_the_floor_of_the_papers_problem_is_near_161_db() -> None:
    # It depends on the draw: the largest label sets the peak and all of them the rounding.
    for seed in range(3):
        assert 160.5 < label_floor(planted(seed=seed)) < 163.5


def test_the_floor_is_the_rounding_of_the_labels() -> None:
    problem = planted(n=2_000, seed=1)
    rounding = dense_labels(problem, problem.X) - problem.y
    expected = 10 * math.log10(float(problem.y.max()) ** 2 / np.mean(rounding**2))
    assert label_floor(problem) == pytest.approx(expected, abs=0.01)


def test_a_budget_below_the_number_of_matrices_gives_zero_labels() -> None:
    problem = planted(n=5, budget=1, outputs=10)
    assert problem.nonzeros == 0
    assert not problem.y.any()
    assert label_floor(problem) == 0.0


def test_psnr_by_hand() -> None:
    y = np.array([0.0, -10.0, 5.0])
    assert psnr(y, y + 1) == pytest.approx(20)
    assert psnr(y, y + 0.1) == pytest.approx(40)
    assert psnr(100 * y, 100 * (y + 0.1)) == pytest.approx(40)
    outputs = np.array([[1.0, 4.0], [2.0, 3.0]])
    assert psnr(outputs, [[3, 4], [2, 3]]) == pytest.approx(20 * math.log10(4))


def test_psnr_at_its_edges_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert psnr([1.0, 2.0], [1.0, 2.0]) == math.inf
        assert psnr([0.0, 0.0], [1.0, 2.0]) == 0.0
        assert psnr([0.0, 0.0], [0.0, 0.0]) == 0.0
        assert psnr([1.0, 2.0], [math.inf, 2.0]) == -math.inf
        assert math.isnan(psnr([1.0, 2.0], [math.nan, 2.0]))


def test_psnr_is_computed_in_float64() -> None:
    y = np.array([1.0, 2.0], dtype=np.float32)
    assert psnr(y, np.array([1.0, 2.0 + 1e-9])) == pytest.approx(
        20 * math.log10(2) + 180 + 10 * math.log10(2)
    )


@pytest.mark.parametrize(("y", "prediction"), [(np.ones(3), np.ones((3, 1))), (np.ones(3), 1.0), ([], [])])
def test_psnr_refuses_arrays_that_do_not_match(y, prediction) -> None:
    with pytest.raises(DataError, match="shape"):
        psnr(y, prediction)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"budget": 0}, BudgetError),
        ({"budget": -3}, BudgetError),
        ({"budget": 1.5}, BudgetError),
        ({"budget": True}, BudgetError),
        ({"n": 0}, ParameterError),
        ({"d": 2.0}, ParameterError),
        ({"hidden": 0}, ParameterError),
        ({"hidden": ()}, ParameterError),
        ({"hidden": (3, 0)}, ParameterError),
        ({"hidden": "10"}, ParameterError),
        ({"outputs": 0}, ParameterError),
        ({"negative": 1.1}, ParameterError),
        ({"negative": math.nan}, ParameterError),
        ({"negative": "half"}, ParameterError),
        ({"negative": 0.5, "outputs": 2}, ParameterError),
        ({"seed": -1}, ParameterError),
        ({"seed": None}, ParameterError),
    ],
)
def test_settings_that_make_no_network_are_refused_by_name(wrong, error) -> None:
    with pytest.raises(error, match=f"{next(iter(wrong))}="):
        planted(**wrong)


def test_rows_of_another_width_are_refused() -> None:
    problem = planted(n=2, d=4, budget=3)
    with pytest.raises(DataError, match="takes 4 inputs"):
        problem.evaluate(np.zeros((2, 5)))
    with pytest.raises(ParameterError, match="n="):
        fresh_rows(problem, 0)
