"""The oracle itself: it must be right before anything is compared with it."""

from __future__ import annotations

from typing import Any

import literal
import numpy as np
import pytest
from literal import Array


def planted(
    rows: int, features: int, hidden: int, budget: int, seed: int
) -> tuple[Array, Array, Array, Array]:
    """Draw data, targets, planted weights and random generators, all output signs +1."""
    rng = np.random.default_rng(seed)
    weights = np.zeros(features * hidden)
    weights[rng.choice(weights.size, budget, replace=False)] = rng.standard_normal(budget)
    matrix = literal.as_matrix(weights, hidden)
    X = rng.standard_normal((rows, features))
    return X, literal.predict(X, matrix), matrix, rng.standard_normal((features, hidden))


def dense_operator(X: Array, gates: Array) -> Array:
    return np.hstack([np.diag(gate) @ X for gate in gates.T])


def test_pieces_equal_the_dense_operator() -> None:
    rng = np.random.default_rng(0)
    X, residual = rng.standard_normal((12, 4)), rng.standard_normal(12)
    gates = literal.gates_of(X, rng.standard_normal((4, 3)))
    A = dense_operator(X, gates)
    support = np.array([0, 3, 5, 11])
    np.testing.assert_allclose(literal.gradient(X, gates, residual), A.T @ residual)
    np.testing.assert_allclose(literal.columns_of(X, gates, support), A[:, support])


def test_own_gates_make_the_operator_a_relu_network() -> None:
    X, _, weights, _ = planted(30, 6, 3, 8, seed=1)
    A = dense_operator(X, literal.gates_of(X, weights))
    np.testing.assert_allclose(A @ weights.T.ravel(), literal.predict(X, weights))


def test_a_neuron_without_weights_has_an_empty_gate() -> None:
    X = np.random.default_rng(0).standard_normal((12, 4))
    assert not literal.gates_of(X, np.zeros((4, 1))).any()


def test_step_size_is_the_exact_minimiser_along_the_restricted_gradient() -> None:
    rng = np.random.default_rng(2)
    columns, y, w = rng.standard_normal((20, 5)), rng.standard_normal(20), rng.standard_normal(5)
    g = columns.T @ (columns @ w - y)
    eta = literal.step_size(columns, g)
    losses = [literal.squared_error(columns, y, w - factor * eta * g) for factor in (0.99, 1.0, 1.01)]
    assert losses[1] < min(losses[0], losses[2])


def test_an_empty_gate_gives_a_step_of_zero_rather_than_nan() -> None:
    assert literal.step_size(np.zeros((4, 1)), np.zeros(1)) == 0.0


def test_ties_go_to_the_lower_index() -> None:
    kept = literal.keep_largest(np.array([1.0, -2.0, 2.0, 2.0, -1.0]), 2)
    np.testing.assert_array_equal(kept, [0.0, -2.0, 2.0, 0.0, 0.0])


def test_refinement_lowers_the_loss_and_gives_up_when_no_step_serves() -> None:
    rng = np.random.default_rng(3)
    columns, y, w = rng.standard_normal((20, 5)), rng.standard_normal(20), rng.standard_normal(5)
    refined, inner = literal.refine(columns, y, w, eta=1.0)
    assert inner == literal.INNER_STEPS
    assert literal.squared_error(columns, y, refined) < literal.squared_error(columns, y, w)

    too_long = 1e6 * literal.step_size(columns, columns.T @ (columns @ w - y))
    returned, inner = literal.refine(columns, y, w, eta=too_long)
    assert inner == 0
    np.testing.assert_array_equal(returned, w)


def test_giving_up_discards_the_inner_steps_already_taken() -> None:
    # The first step, along the flat direction, is accepted and leaves only the steep one, a million times as
    # curved: eleven halvings of the same step size are too few for it.
    columns, y, w = np.diag([1.0, 1e3]), np.zeros(2), np.array([1.0, 1e-12])
    g = columns.T @ (columns @ w)
    before, after = literal.squared_error(columns, y, w), literal.squared_error(columns, y, w - g)
    assert after <= before - literal.ARMIJO * float(g @ g)
    returned, inner = literal.refine(columns, y, w, eta=1.0)
    assert inner == 0
    np.testing.assert_array_equal(returned, w)


@pytest.mark.parametrize("factor, accepted", [(1.09, True), (1.11, False)])
def test_armijo_accepts_up_to_a_tenth_beyond_the_minimiser(factor: float, accepted: bool) -> None:
    columns, y, w = np.array([[2.0]]), np.array([0.0]), np.array([1.0])
    eta = factor * literal.step_size(columns, columns.T @ (columns @ w - y))
    refined, _ = literal.refine(columns, y, w, eta)
    # One weight and no noise: a step of t times the minimiser multiplies the weight by 1 - t.
    expected = (1 - factor) ** 10 if accepted else (1 - factor / 2) ** 10
    np.testing.assert_allclose(refined, [expected], rtol=1e-6)


def test_gates_first_move_after_the_second_step() -> None:
    X, y, _, generators = planted(200, 6, 3, 8, seed=4)
    moved = [record["moved"] for record in literal.run(X, y, 3, 8, 6, generators=generators).history]
    assert moved == [False, True, True, True, True, True]


def test_gates_move_every_so_many_steps() -> None:
    X, y, _, generators = planted(200, 6, 3, 8, seed=4)
    history = literal.run(X, y, 3, 8, 8, generators=generators, update_gates_every=3).history
    assert [record["step"] for record in history if record["moved"]] == [4, 7]


def test_minibatches_keep_the_gates_for_the_whole_first_epoch() -> None:
    X, y, _, generators = planted(200, 6, 3, 8, seed=5)
    result = literal.run(X, y, 3, 8, 12, generators=generators, batch=50, rng=np.random.default_rng(0))
    assert [record["step"] for record in result.history if record["moved"]] == list(range(5, 13))


def test_every_row_is_seen_once_an_epoch() -> None:
    feed = literal.batches(10, 4, np.random.default_rng(0))
    seen = [next(feed) for _ in range(6)]
    assert [epoch for epoch, _ in seen] == [1, 1, 1, 2, 2, 2]
    for epoch in (1, 2):
        assert sorted(np.concatenate([rows for number, rows in seen if number == epoch])) == list(range(10))


def test_a_tiny_first_step_only_selects_a_support() -> None:
    X, y, _, generators = planted(500, 10, 5, 20, seed=6)
    first = literal.run(X, y, 5, 20, 1, generators=generators)
    assert first.history[0]["eta"] == 1e-14
    assert np.count_nonzero(first.weights) == 20
    assert np.abs(first.weights).max() < 1e-9


@pytest.mark.parametrize("batch", [None, 100])
def test_never_more_nonzeros_than_the_budget(batch: int | None) -> None:
    X, y, _, generators = planted(500, 10, 5, 20, seed=7)
    counts: list[int] = []

    def count(record: dict[str, Any], weights: Array) -> None:
        counts.append(int(np.count_nonzero(weights)))

    literal.run(X, y, 5, 20, 20, generators=generators, batch=batch, callback=count)
    assert len(counts) == 20
    assert max(counts) <= 20


@pytest.mark.parametrize("seed", range(3))
def test_loss_falls_overall(seed: int) -> None:
    X, y, _, generators = planted(500, 10, 5, 20, seed)
    losses = [record["loss"] for record in literal.run(X, y, 5, 20, 30, generators=generators).history]
    assert losses[1] < 0.5 * losses[0]
    assert losses[-1] < 0.5 * losses[1]


def test_loss_never_rises_on_fixed_gates() -> None:
    X, y, _, generators = planted(500, 10, 5, 20, seed=8)
    result = literal.run(X, y, 5, 50, 20, generators=generators, update_gates_every=100)
    losses = np.array([record["loss"] for record in result.history])
    assert np.all(np.diff(losses) <= 1e-9 * losses[0])
    assert result.settled_step is None


def test_planted_networks_are_recovered() -> None:
    recovered = 0
    for seed in range(6):
        X, y, weights, generators = planted(2000, 20, 3, 30, seed)
        result = literal.run(X, y, 3, 30, 60, generators=generators)
        order = [int(np.argmax(weights.T @ column)) for column in result.weights.T]
        exact = np.allclose(result.weights, weights[:, order], atol=1e-8) and sorted(order) == [0, 1, 2]
        assert exact == (literal.psnr(y, literal.predict(X, result.weights)) > 150)
        assert not exact or result.settled_step is not None
        recovered += exact
    assert recovered >= 5


def test_same_inputs_give_the_same_bits_and_stay_untouched() -> None:
    X, y, _, generators = planted(300, 10, 5, 20, seed=9)
    copies = X.copy(), y.copy(), generators.copy()
    runs = [
        literal.run(X, y, 5, 20, 8, generators=generators, batch=60, rng=np.random.default_rng(1)).weights
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    for given, copy in zip((X, y, generators), copies, strict=True):
        np.testing.assert_array_equal(given, copy)


def test_settled_needs_a_move_of_the_gates_and_a_step_after_it() -> None:
    def history(supports: str, moved: str) -> list[dict[str, Any]]:
        pairs = zip(supports, moved, strict=True)
        return [{"step": i, "support": (s,), "moved": m == "y"} for i, (s, m) in enumerate(pairs, 1)]

    assert literal.settled_step(history("aabbb", "nyyyy")) == 4
    assert literal.settled_step(history("aabbb", "nnnnn")) is None
    assert literal.settled_step(history("aabb", "nnny")) is None
    assert literal.settled_step(history("aabc", "nyyy")) is None


def test_psnr_of_a_known_error() -> None:
    y = np.array([10.0, -100.0])
    assert literal.psnr(y, y + 1.0) == pytest.approx(40.0)
    assert literal.psnr(y, y) == float("inf")
