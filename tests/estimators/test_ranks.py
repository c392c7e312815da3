"""Fits across processes: the same network on every rank, and the one that a single process finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from ranked import Failed, Group, fitted, refitted, silent

from thresher import SparseMLPRegressor
from thresher.data.planted import planted
from thresher.solvers.auto import Tuning
from thresher.solvers.auto.tuning import JudgeTuning
from thresher.solvers.checkpoint_file import from_file
from thresher.solvers.iht import IHT

ROWS, CUT = 600, 251
# Never small, so that rows stay where they are.
SPLIT = Tuning(judge=JudgeTuning(work=0))
DRAW = np.random.default_rng(0)
PLANTED = planted(n=ROWS, d=6, hidden=2, budget=8, seed=0)
X, EXACT = PLANTED.X.astype(np.float64), PLANTED.y.astype(np.float64)
NOISY = EXACT + 0.3 * DRAW.standard_normal(ROWS)
THREE = np.digitize(NOISY, np.quantile(NOISY, [0.3, 0.6]))
SEVERAL = np.stack([NOISY, np.tanh(EXACT)], 1)
WEIGHT = DRAW.uniform(0.5, 2, ROWS)
WIDE = scipy.sparse.random_array((ROWS, 300), density=0.02, rng=0, format="csr")
SUMS = WIDE[:, :20].sum(1) + 0.1 * DRAW.standard_normal(ROWS)


@pytest.fixture(scope="module")
def pair() -> Iterator[Group]:
    group = Group(2)
    # Once they have met.
    group.run(len, [[]] * 2)
    yield group
    group.close()


def dealt(part: Any) -> list[Any]:
    return [None, None] if part is None else [part[:CUT], part[CUT:]]


def common(pair: Group, work: Any, kind: str, settings: dict[str, Any], *rows: Any) -> dict[str, Any]:
    """Give what both ranks found, which is the same to the last bit."""
    one, two = pair.run(work, [kind] * 2, [settings] * 2, *map(dealt, rows))
    assert not isinstance(one, Failed) and not isinstance(two, Failed), (one, two)
    assert np.array_equal(one["weights"], two["weights"])
    assert (one["status"], one["loss"]) == (two["status"], two["loss"])
    found: dict[str, Any] = one
    return found


def refusals(pair: Group, settings: Any, rows: list[Any], y: list[Any], kind: str = "regressor") -> list[str]:
    """Give what both ranks say of bad input."""
    settings = settings if isinstance(settings, list) else [settings] * 2
    outcomes = pair.run(fitted, [kind] * 2, settings, rows, y)
    assert all(isinstance(outcome, Failed) for outcome in outcomes), outcomes
    return [outcome.words for outcome in outcomes]


def settings(**others: Any) -> dict[str, Any]:
    return {"budget": 12, "hidden": 6, "max_iter": 5, "random_state": 0, **others}


REQUIRED: dict[str, Any] = {"monotone": {0: 1, 3: -1}, "max_fan_in": 2, "max_inputs": 3, "groups": [[1, 2]]}

CASES = {
    "paper": ("regressor", settings(solver="paper", max_iter=10), X, EXACT, None),
    "paper, weights": ("regressor", settings(solver="paper"), X, NOISY, WEIGHT),
    "paper, minibatches": (
        "regressor",
        settings(solver="paper", batch_size=100, max_iter=2),
        X,
        NOISY,
        WEIGHT,
    ),
    "paper, layers": ("regressor", settings(solver="paper", hidden=(6, 4)), X, NOISY, None),
    "paper, layers, targets": ("regressor", settings(solver="paper", hidden=(6, 4)), X, SEVERAL, None),
    "paper, two classes": ("classifier", settings(solver="paper"), X, THREE > 0, None),
    "paper, classes": ("classifier", settings(solver="paper", batch_size=64, max_iter=2), X, THREE, None),
    "thresholding": ("regressor", settings(solver=IHT(), scale=True), X, NOISY, None),
    "thresholding, classes": ("classifier", settings(solver=IHT()), X, THREE > 0, None),
    "recovery": ("regressor", settings(tuning=SPLIT, budget=8, hidden=2, max_iter=40), X, EXACT, None),
    "training": ("regressor", settings(tuning=SPLIT), X, NOISY, WEIGHT),
    "training, all rows at once": ("regressor", settings(tuning=SPLIT, batch_size=None), X, NOISY, None),
    "training, targets": ("regressor", settings(tuning=SPLIT), X, SEVERAL, None),
    "training, layers": ("regressor", settings(tuning=SPLIT, hidden=(6, 4), budget=30), X, NOISY, None),
    "training, two classes": ("classifier", settings(tuning=SPLIT), X, THREE > 0, None),
    "training, classes": ("classifier", settings(tuning=SPLIT, class_weight="balanced"), X, THREE, WEIGHT),
    "training, huber": ("regressor", settings(tuning=SPLIT, loss="huber"), X, NOISY, None),
    "training, poisson": ("regressor", settings(tuning=SPLIT, loss="poisson"), X, np.abs(NOISY), None),
    "training, float32": ("regressor", settings(tuning=SPLIT, dtype="float32"), X, NOISY, None),
    "training, sparse": ("regressor", settings(tuning=SPLIT, memory_limit=50_000), WIDE, SUMS, None),
    "small": ("regressor", settings(hidden=2, max_iter=2), X, NOISY, None),
    "training, requirements": ("regressor", settings(tuning=SPLIT, **REQUIRED), X, NOISY, WEIGHT),
    "small, requirements": ("regressor", settings(max_iter=2, **REQUIRED), X, NOISY, None),
    "small, classes": ("classifier", settings(hidden=2, max_iter=2), X, THREE > 0, None),
}


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_find_the_network_of_one_process(pair: Group, case: str) -> None:
    kind, chosen, rows, y, weight = CASES[case]
    alone, together = (
        fitted(kind, chosen, rows, y, weight),
        common(pair, fitted, kind, chosen, rows, y, weight),
    )
    assert together["status"] == alone["status"]
    assert np.array_equal(together["weights"] != 0, alone["weights"] != 0)
    np.testing.assert_allclose(together["weights"], alone["weights"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(together["loss"], alone["loss"], rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize(("kind", "y"), [("regressor", NOISY), ("classifier", THREE)])
def test_partial_fits_go_on_together(pair: Group, kind: str, y: np.ndarray) -> None:
    alone, together = refitted(kind, settings(), X, y), common(pair, refitted, kind, settings(), X, y)
    np.testing.assert_allclose(together["weights"], alone["weights"], rtol=1e-5, atol=1e-5)


def test_one_row_on_a_rank_is_enough(pair: Group) -> None:
    rows, y = [X[:1], X[1:]], [NOISY[:1], NOISY[1:]]
    for chosen in (settings(tuning=SPLIT), settings(solver="paper")):
        one, two = pair.run(fitted, ["regressor"] * 2, [chosen] * 2, rows, y)
        assert np.array_equal(one["weights"], two["weights"]), (one, two)
        np.testing.assert_allclose(
            one["weights"], fitted("regressor", chosen, X, NOISY)["weights"], atol=1e-5
        )


def test_early_stopping_sets_rows_of_every_rank_aside(pair: Group) -> None:
    found = common(pair, fitted, "regressor", settings(tuning=SPLIT, early_stopping=True), X, NOISY)
    assert np.isfinite(found["loss"])


def test_a_seed_that_is_left_open_is_that_of_the_first(pair: Group) -> None:
    common(pair, fitted, "regressor", settings(random_state=None, tuning=SPLIT), X, NOISY)


def test_classes_that_one_rank_alone_has_seen_are_known_to_all(pair: Group) -> None:
    labels = np.array(["a", "bb", "ccc"])[THREE]
    order = np.argsort(THREE, kind="stable")
    chosen = settings(class_weight="balanced", tuning=SPLIT)
    found = common(pair, fitted, "classifier", chosen, X[order], labels[order])
    assert found["classes"].tolist() == ["a", "bb", "ccc"]
    alone = fitted("classifier", chosen, X[order], labels[order])
    np.testing.assert_allclose(found["weights"], alone["weights"], atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([X[:0], X], "0 sample"),
        ([X[:300, :4], X[300:]], "the number of columns is 4 on rank 0, but 6 on rank 1"),
        (
            [X[:300].astype(np.float32), X[300:]],
            "the type of X is 'float32' on rank 0, but 'float64' on rank 1",
        ),
        ([scipy.sparse.csr_array(X[:300]), X[300:]], "the type of X is 'sparse float64' on rank 0"),
        ([np.where(X[:300] == X[7, 0], np.nan, X[:300]), X[300:]], "NaN"),
    ],
    ids=["no rows", "width", "type", "sparse", "missing"],
)
def test_rows_that_do_not_fit_are_refused_on_all_ranks(pair: Group, rows: list[Any], words: str) -> None:
    y = [NOISY[: rows[0].shape[0]], NOISY[-rows[1].shape[0] :]]
    told = refusals(pair, settings(), rows, y)
    assert all(words in one for one in told), told


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"budget": 5}, {"budget": 6}, "budget is 5 on rank 0, but 6 on rank 1"),
        ({"random_state": 1}, {"random_state": 2}, "random_state is 1 on rank 0, but 2 on rank 1"),
        ({}, {"tuning": SPLIT}, "tuning is None on rank 0, but Tuning("),
        ({"solver": "best"}, {}, "solver='best'"),
    ],
)
def test_different_settings_are_refused_on_all_ranks(
    pair: Group, first: dict[str, Any], second: dict[str, Any], words: str
) -> None:
    told = refusals(pair, [settings(**first), settings(**second)], dealt(X), dealt(NOISY))
    assert all(words in one for one in told), told


def test_a_fit_of_which_a_rank_died_goes_on_to_the_same_bits(pair: Group, tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    chosen = settings(tuning=SPLIT, checkpoint=path, checkpoint_every=3)
    group, rows = Group(2), (dealt(X), dealt(NOISY))
    group.run(len, [[]] * 2)
    group.send(silent, [1.0] * 2, ["regressor"] * 2, [chosen] * 2, *rows, ["", "dies"])
    lost = group.result(0)
    group.close()
    assert isinstance(lost, Failed) and "rank 1 of 2 died" in lost.words, lost
    stored = from_file(path)
    assert stored is not None and stored.states and not stored.done
    # Ranks of another group take it up.
    resumed = common(pair, fitted, "regressor", chosen, X, NOISY)
    whole = common(pair, fitted, "regressor", settings(tuning=SPLIT), X, NOISY)
    assert np.array_equal(resumed["weights"], whole["weights"])
    assert resumed["loss"] == whole["loss"]


def test_alone_there_is_no_group() -> None:
    assert SparseMLPRegressor(**settings(solver="paper")).fit(X, NOISY).nonzeros_ <= 12
