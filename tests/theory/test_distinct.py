"""Rows that repeat others count once."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.assumed import assumed
from thresher.experiments.spoiled import network
from thresher.theory.certificate import certify
from thresher.theory.distinct import groups_of, new_rows, told_apart
from thresher.theory.forms import network_of
from thresher.theory.fused import fused_of


@pytest.mark.parametrize("copies", [1, 5, 40])
@pytest.mark.parametrize("jitter", [0.0, 1e-9])
def test_rows_that_repeat_prove_nothing_new(copies: int, jitter: float) -> None:
    """Eight rows are too few for six weights, however often they are repeated."""
    rng = np.random.default_rng(5)
    X, truth = rng.standard_normal((8, 3)), network(rng.standard_normal((3, 2)), np.ones(2))
    y = truth.predict(X)
    X, y = np.tile(X, (copies, 1)), np.tile(y, copies)
    X = X + jitter * rng.standard_normal(X.shape)
    found = certify(truth, X, truth.predict(X) if jitter else y)
    assert found["rows"].status == "fails"
    assert found["rows"].number == pytest.approx(8 / 6)
    assert not [name for name, status in found.levels.items() if "dictionary" in name and status == "holds"]


@pytest.mark.parametrize("jitter", [1e-5, 1e-4, 1e-3])
def test_rows_nearer_than_labels_can_show_prove_nothing_new(jitter: float) -> None:
    """Noise on five rows is no more once copies of them are moved by less than the labels' rounding."""
    rng = np.random.default_rng(3)
    few, truth = rng.standard_normal((5, 3)), network(rng.standard_normal((3, 2)), np.ones(2))
    X = np.tile(few, (40, 1)) + jitter * rng.standard_normal((200, 3))
    found = certify(truth, X, np.tile(truth.predict(few), 40), precision=10 * jitter)
    assert found["fits"].status == "holds"
    assert found["rows"].number == pytest.approx(5 / 6)
    assert not [name for name, status in found.levels.items() if "dictionary" in name and status == "holds"]


def test_rows_are_told_apart_as_far_as_labels_show() -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((300, 2)) + 10 * np.arange(300)[:, None]
    worth = np.array([1.0, 0.0])
    assert told_apart(rows, worth, np.full(300, 0.1), most=1000) == 300
    assert told_apart(rows, worth, np.full(300, 0.1), most=20) == 20
    # What no answer depends on tells nothing.
    assert told_apart(rows, np.array([0.0, 0.0]), np.full(300, 0.1), most=1000) == 1
    near = np.repeat(rows, 3, axis=0) + 0.1 * rng.random((900, 2))
    assert told_apart(near[rng.permutation(900)], worth, np.full(900, 0.1), most=1000) == 300


def test_repeated_rows_leave_a_certificate_as_it_was() -> None:
    drawn = assumed(200, 6, 3, 2, seed=1)
    once = certify(network_of(drawn), drawn.X, drawn.y)
    again = certify(network_of(drawn), np.repeat(drawn.X, 3, axis=0), np.repeat(drawn.y, 3))
    assert once.levels == again.levels
    assert once["rows"].number == again["rows"].number


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_groups_are_those_of_equal_rows(offset: float) -> None:
    rng = np.random.default_rng(0)
    different = np.round(rng.standard_normal((50, 3)), 2) + offset
    which = rng.permutation(np.repeat(np.arange(50), 4))
    groups = groups_of(different[which])
    assert groups.max() + 1 == 50
    assert len(set(zip(which.tolist(), groups.tolist(), strict=True))) == 50
    order = rng.permutation(200)
    again = groups_of(different[which][order])
    assert (again[:, None] == again).tolist() == (groups[order][:, None] == groups[order]).tolist()


def test_rows_that_are_answered_alike_are_told_far_from_zero() -> None:
    """Beside the zeros of rows on which gates are closed, open rows far from zero look the same."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal((40, 2)), np.zeros(40)]) + 1e6
    X[:, 2] = 1.0
    rows = np.repeat(X, 3, axis=0)
    made = network(np.array([[1.0], [-0.5], [-0.5e6]]), np.ones(1))
    found = fused_of(made, rows).alike
    on = (X @ np.array([1.0, -0.5, -0.5e6]) > 0).sum()
    assert 5 < on < 35
    assert found.max() + 1 == on + 1


def test_new_rows_are_neither_known_nor_repeated() -> None:
    rng = np.random.default_rng(1)
    known, fresh = rng.standard_normal((20, 4)), rng.standard_normal((6, 4))
    given = np.vstack([known[3:7], fresh, fresh[:2], known[:1]])
    assert new_rows(given, known).tolist() == [4, 5, 6, 7, 8, 9]


def test_held_out_rows_that_were_given_before_prove_nothing() -> None:
    drawn = assumed(200, 6, 3, 2, seed=2)
    made = network_of(drawn)
    found = certify(made, drawn.X[:150], drawn.y[:150], held_out=(drawn.X, drawn.y))
    assert "All 50 held-out rows agree" in found["held out"].sentence
    found = certify(made, drawn.X, drawn.y, held_out=(drawn.X[:150], drawn.y[:150]))
    assert found["held out"].status == "unknown"
