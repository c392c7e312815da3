"""Parameters: read once, all problems named at once."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.errors import BudgetError, ParameterError
from thresher.estimators.parameters import check_parameters, memory_bytes, seed_of

ESTIMATORS = [SparseMLPRegressor, SparseMLPClassifier]


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_the_defaults_are_allowed(Estimator: Any) -> None:
    settings = check_parameters(Estimator())
    assert (settings.budget, settings.hidden, settings.solver, settings.alpha) == (
        100,
        (100,),
        "auto",
        None,
    )
    assert settings.patience == math.inf
    assert settings.memory_limit == 64 * 2**20


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ParameterError) as caught:
        check_parameters(SparseMLPRegressor(hidden=0, tol=-1, dtype="float16", solver="paperr"))
    for part in ("hidden=0", "tol=-1", "dtype='float16'", "solver='paperr'", "Did you mean 'paper'?"):
        assert part in str(caught.value)


def test_a_budget_error_does_not_invent_a_size() -> None:
    with pytest.raises(BudgetError) as caught:
        check_parameters(SparseMLPRegressor(budget=0))
    assert str(caught.value).endswith("Use a whole number of 1 or more.")


@pytest.mark.parametrize("hidden", [5, np.int64(5), (5,), [5]], ids=repr)
def test_one_layer_may_be_written_as_a_tuple(hidden: Any) -> None:
    settings = check_parameters(SparseMLPRegressor(hidden=hidden))
    assert settings.hidden == (5,)


@pytest.mark.parametrize("hidden", [(7, 5), [7, 5], (np.int64(7), np.uint8(5))], ids=repr)
def test_several_layers_are_a_tuple_of_plain_whole_numbers(hidden: Any) -> None:
    settings = check_parameters(SparseMLPRegressor(hidden=hidden))
    assert settings.hidden == (7, 5)
    assert all(type(width) is int for width in settings.hidden)


@pytest.mark.parametrize("hidden", [(7, 0), (7, -1), (7, 2.5), (True, 7), ("7", 7), (), (7, (5,))], ids=repr)
def test_every_layer_needs_a_neuron(hidden: Any) -> None:
    with pytest.raises(ParameterError, match="1 or more, or a tuple of them, one for each hidden layer"):
        check_parameters(SparseMLPRegressor(hidden=hidden))


@pytest.mark.parametrize(("solver", "expected"), [("auto", "auto"), ("paper", None)])
def test_the_batch_is_all_rows_for_the_paper(solver: str, expected: Any) -> None:
    assert check_parameters(SparseMLPRegressor(solver=solver)).batch_size == expected
    assert check_parameters(SparseMLPRegressor(solver=solver, batch_size=None)).batch_size is None
    assert check_parameters(SparseMLPRegressor(solver=solver, batch_size=np.int32(7))).batch_size == 7


def test_patience_is_for_early_stopping_only() -> None:
    assert check_parameters(SparseMLPRegressor(n_iter_no_change=3)).patience == math.inf
    assert check_parameters(SparseMLPRegressor(n_iter_no_change=3, early_stopping=True)).patience == 3


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1, 1),
        (np.int64(4096), 4096),
        ("512", 512),
        ("2 kb", 2048),
        ("64MB", 64 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("0MB", None),
        (0, None),
        (-1, None),
        (1.5, None),
        (True, None),
        (None, None),
        ("MB", None),
        ("64 parsecs", None),
        ("-3MB", None),
    ],
)
def test_memory_is_read_in_bytes_or_units(limit: Any, expected: int | None) -> None:
    assert memory_bytes(limit) == expected


def test_seeds_come_from_whatever_is_given() -> None:
    assert seed_of(7) == seed_of(np.uint8(7)) == 7
    assert seed_of(np.random.RandomState(1)) == seed_of(np.random.RandomState(1))
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    generator = np.random.default_rng(1)
    assert seed_of(generator) != seed_of(generator)


def test_no_seed_leaves_global_states_alone() -> None:
    before = random.getstate(), str(np.random.get_state())
    assert seed_of(None) != seed_of(None)
    assert (random.getstate(), str(np.random.get_state())) == before


@pytest.mark.parametrize("state", [-1, 1.5, True, "a", [1]], ids=repr)
def test_impossible_seeds_are_refused(state: Any) -> None:
    with pytest.raises(ParameterError, match="random_state="):
        seed_of(state)
