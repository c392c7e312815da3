"""Many targets, many classes, many layers: one budget, and what users rely on."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from problems import memory_map, normal
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from thresher import Network, SparseMLPClassifier, SparseMLPRegressor
from thresher.data.mnist import paper_split
from thresher.errors import DataError, InterruptedFitWarning, NoPathWarning, ParameterError

ROWS, FEATURES = 90, 6
X = normal(ROWS, FEATURES)
Y = np.column_stack([X[:, 0] - np.maximum(X[:, 1], 0), np.maximum(X[:, 2], 0), -X[:, 0] - 0.5])
LABELS = Y.argmax(1)
SMALL: dict[str, Any] = {"budget": 16, "hidden": 5, "max_iter": 6, "random_state": 0}

TASKS: dict[str, tuple[Any, np.ndarray, dict[str, Any]]] = {
    "three targets": (SparseMLPRegressor, Y, {}),
    "three classes": (SparseMLPClassifier, LABELS, {}),
    "three targets, two layers": (SparseMLPRegressor, Y, {"hidden": (5, 4)}),
    "three classes, three layers": (SparseMLPClassifier, LABELS, {"hidden": (5, 4, 4), "budget": 25}),
    "one target, two layers": (SparseMLPRegressor, Y[:, 0], {"hidden": (5, 4)}),
    "two classes, two layers": (SparseMLPClassifier, Y[:, 0] > 0, {"hidden": (5, 4)}),
}
any_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
any_solver = pytest.mark.parametrize("solver", ["auto", "paper"])
# The paper's stages know nothing of each other: with few weights they may not meet.
may_be_constant = pytest.mark.filterwarnings("ignore::thresher.errors.NoPathWarning")


def fitted(task: tuple[Any, np.ndarray, dict[str, Any]], data: Any = X, **parameters: Any) -> Any:
    """Fit a small network to a task."""
    Estimator, y, own = task
    return Estimator(**{**SMALL, **own, **parameters}).fit(data, y)


def classifier(y: Any, data: Any = X, **parameters: Any) -> SparseMLPClassifier:
    """Fit a small classifier."""
    return SparseMLPClassifier(**{**SMALL, **parameters}).fit(data, y)


def assert_sound(model: Any, budget: int) -> None:
    """Assert that a model is within its budget and that all its numbers are finite."""
    assert model.nonzeros_ <= budget
    assert model.nonzeros_ == model.network_.nonzeros
    assert all(np.isfinite(array).all() for array in (*model.coefs_, *model.intercepts_))


# Shapes and budgets.


@any_task
@any_solver
@may_be_constant
@pytest.mark.parametrize("batch_size", [None, 20])
def test_one_budget_covers_all_layers(task: Any, solver: str, batch_size: int | None) -> None:
    model = fitted(task, solver=solver, batch_size=batch_size, max_iter=5)
    budget = task[2].get("budget", SMALL["budget"])
    assert_sound(model, budget)
    hidden = task[2].get("hidden", SMALL["hidden"])
    widths = (FEATURES, *(hidden if isinstance(hidden, tuple) else (hidden,)), model.network_.outputs)
    assert [weights.shape for weights in model.coefs_] == list(pairwise(widths))
    assert [bias.shape for bias in model.intercepts_] == [(width,) for width in widths[1:]]


@any_task
@may_be_constant
@pytest.mark.parametrize("budget", [1, 2, 3, 4, 5, 7, 50, 10**6])
def test_no_budget_is_exceeded(task: Any, budget: int) -> None:
    model = fitted(task, budget=budget)
    assert_sound(model, budget)
    if budget == 10**6:
        assert f"covers all {model.network_.size:,} weights" in model.status_.advice


@any_task
def test_training_helps(task: Any) -> None:
    model = fitted(task, budget=30, max_iter=300)
    y = task[1]
    classes = isinstance(model, SparseMLPClassifier)
    guess = np.unique(y, return_counts=True)[1].max() / ROWS if classes else 0.0
    assert model.score(X, y) > (guess + 1) / 2
    assert model.n_iter_ <= 300
    assert len(model.loss_curve_) == len(model.history_)


@any_task
def test_the_same_seed_gives_the_same_bits(task: Any) -> None:
    first, again, other = (fitted(task, batch_size=20, max_iter=40, random_state=seed) for seed in (1, 1, 2))
    assert first.network_.equals(again.network_)
    assert not first.network_.equals(other.network_)


@any_task
def test_networks_of_any_shape_are_saved_and_loaded(task: Any, tmp_path: Path) -> None:
    model = fitted(task, max_iter=5)
    path = tmp_path / "many.thresher"
    model.network_.save(path)
    loaded = Network.load(path)
    assert loaded.equals(model.network_)
    assert np.array_equal(loaded.predict(X), model.predict(X))


@any_task
def test_the_support_is_what_predictions_depend_on(task: Any) -> None:
    model = fitted(task, np.column_stack([X, normal(ROWS, 30, seed=9)]))
    used = model.get_support()
    data = np.column_stack([X, normal(ROWS, 30, seed=9)])
    changed = np.where(used, data, 1e3)
    assert 0 < used.sum() <= SMALL["budget"] + 10
    assert np.array_equal(model.predict(data), model.predict(changed))


@pytest.mark.parametrize(
    "name",
    [
        "three targets",
        "three targets, two layers",
        "three classes",
    ],
)
def test_inputs_that_are_always_zero_are_not_used(name: str) -> None:
    model = fitted(TASKS[name], np.column_stack([np.zeros((ROWS, 10)), X, np.zeros((ROWS, 10))]), max_iter=20)
    used = model.get_support()
    assert used[10:16].any()
    assert not used[:10].any()
    assert not used[16:].any()


@any_task
def test_a_list_of_layers_is_a_tuple_of_layers(task: Any) -> None:
    hidden = task[2].get("hidden", (SMALL["hidden"],))
    assert fitted(task, hidden=list(hidden)).network_.equals(fitted(task, hidden=hidden).network_)


def test_no_dense_network_is_ever_held() -> None:
    # In a process of its own: memory that earlier tests gave back would hide what a fit takes.
    program = (
        "import numpy as np\n"
        "from thresher import SparseMLPClassifier\n"
        "from thresher.experiments.memory import peak_during\n"
        "X = np.random.default_rng(0).standard_normal((50, 4000), dtype=np.float32)\n"
        "y = X[:, :3].argmax(1)\n"
        "SparseMLPClassifier(50, 20, max_iter=2, random_state=0).fit(X[:50, :50], y[:50])\n"
        "wide = SparseMLPClassifier(200, 4000, max_iter=2, random_state=0, memory_limit='8MB')\n"
        "print(peak_during(lambda: wide.fit(X, y))[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    all_weights = 4 * 4000 * 4000
    assert int(done.stdout) < all_weights / 2


# Data in other forms, units, weights.


GAPPY = X * (np.abs(X) > 0.4)
FORMS: dict[str, Any] = {
    "csr array": scipy.sparse.csr_array,
    "csc matrix": scipy.sparse.csc_matrix,
    "memory map": memory_map,
    "Fortran order": np.asfortranarray,
    "frame": lambda X: pd.DataFrame(X, columns=[f"x{column}" for column in range(FEATURES)]),
}


@cache
def fitted_plainly(name: str, solver: str, sparse: bool) -> Any:
    """Fit a task to data in its plainest form.

    Sparse data is not centred, so that its default network is another than that of dense data.
    """
    return fitted(TASKS[name], scipy.sparse.csr_array(GAPPY) if sparse else GAPPY, solver=solver, max_iter=5)


@pytest.mark.parametrize("name", TASKS)
@any_solver
@may_be_constant
@pytest.mark.parametrize("form", FORMS)
def test_the_same_data_in_another_form_gives_the_same_network(name: str, solver: str, form: str) -> None:
    data = FORMS[form](GAPPY)
    plain = fitted_plainly(name, solver, scipy.sparse.issparse(data))
    other = fitted(TASKS[name], data, solver=solver, max_iter=5)
    for one, two in zip(plain.coefs_, other.coefs_, strict=True):
        assert np.array_equal(one != 0, two != 0)
        assert np.allclose(one, two, rtol=1e-6, atol=1e-9)
    assert np.allclose(plain.network_.forward(GAPPY), other.network_.forward(GAPPY), rtol=1e-6, atol=1e-9)
    assert np.array_equal(other.predict(data), other.predict(data))


@any_task
@pytest.mark.parametrize("batch_size", [None, 20])
def test_columns_times_powers_of_two_give_the_same_network(task: Any, batch_size: int | None) -> None:
    units = np.exp2([0, 10, -10, 3, -20, 1])
    data = X * (np.abs(X) > 0.4)
    plain, other = (fitted(task, values, batch_size=batch_size) for values in (data, data * units))
    assert np.array_equal(plain.coefs_[0], other.coefs_[0] * units[:, None])
    for one, two in zip(plain.coefs_[1:], other.coefs_[1:], strict=True):
        assert np.array_equal(one, two)
    assert np.array_equal(plain.predict(data), other.predict(data * units))


@pytest.mark.parametrize("hidden", [5, (5, 4)], ids=str)
@pytest.mark.parametrize("factor", [2.0**20, 2.0**-20])
def test_targets_times_a_power_of_two_give_predictions_times_it(hidden: Any, factor: float) -> None:
    plain, other = (
        SparseMLPRegressor(**{**SMALL, "hidden": hidden}).fit(X, values) for values in (Y, Y * factor)
    )
    assert np.allclose(other.predict(X), plain.predict(X) * factor, rtol=1e-9)
    assert np.allclose(other.loss_, plain.loss_ * factor**2, rtol=1e-9)


@any_task
def test_a_row_without_weight_is_as_good_as_absent(task: Any) -> None:
    Estimator, y, own = task
    weight = np.ones(ROWS)
    weight[::4] = 0
    present = weight > 0
    whole = Estimator(**{**SMALL, **own}).fit(X, y, weight)
    part = Estimator(**{**SMALL, **own}).fit(X[present], y[present])
    assert np.allclose(whole.network_.forward(X), part.network_.forward(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("data", [np.zeros_like(X), np.ones_like(X), X[:, :1], X[:1]], ids=str)
@may_be_constant
@any_solver
def test_degenerate_inputs_work(data: np.ndarray, solver: str) -> None:
    for hidden in (5, (5, 4)):
        model = SparseMLPRegressor(**{**SMALL, "hidden": hidden, "solver": solver}).fit(data, Y[: len(data)])
        assert_sound(model, SMALL["budget"])
        assert model.predict(data).shape == (len(data), 3)


@may_be_constant
@any_solver
@pytest.mark.parametrize("value", [0.0, 1e-300, 1e20])
def test_constant_targets_work(value: float, solver: str) -> None:
    model = SparseMLPRegressor(**SMALL, solver=solver, dtype="float64").fit(X, np.full((ROWS, 2), value))
    assert_sound(model, SMALL["budget"])


@pytest.mark.parametrize("value", [1e29, 1e20, 1e-20, 1e-39, 1e-300], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@may_be_constant
def test_extreme_inputs_give_sound_networks(value: float, dtype: str) -> None:
    for data in (np.column_stack([X[:, 1:], X[:, 0] * value]), X * value):
        assert_sound(SparseMLPRegressor(**SMALL, dtype=dtype).fit(data, Y), SMALL["budget"])
        assert_sound(classifier(LABELS, data, hidden=(5, 4), dtype=dtype), SMALL["budget"])


# Classes.


NAMES: dict[str, np.ndarray] = {
    "strings": np.array(["wolf", "ant", "bee"]),
    "gaps in integers": np.array([7, -3, 1000]),
    "floats": np.array([0.0, 2.0, 1.0]),
    "objects": np.array(["b", "a", "c"], dtype=object),
    "unsigned": np.array([5, 200, 0], dtype=np.uint8),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@any_solver
def test_classes_may_have_any_names(names: np.ndarray, solver: str) -> None:
    model = classifier(names[LABELS], solver=solver)
    order = np.argsort(names)
    assert model.classes_.tolist() == sorted(names.tolist())
    assert set(model.predict(X).tolist()) <= set(names.tolist())
    # Names change the order of the outputs and nothing else that predictions are made of.
    plain = classifier(np.argsort(order)[LABELS], solver=solver)
    assert np.array_equal(model.predict(X), names[order][plain.predict(X)])


@pytest.mark.parametrize("hidden", [5, (5, 4)], ids=str)
def test_booleans_are_two_classes(hidden: Any) -> None:
    model = classifier(LABELS == 0, hidden=hidden)
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == np.bool_
    assert model.score(X, LABELS == 0) > 0.5


@pytest.mark.parametrize("early_stopping", [False, True])
@any_solver
def test_a_class_that_appears_once_works(early_stopping: bool, solver: str) -> None:
    y = np.where(np.arange(ROWS) == 17, "rare", np.where(LABELS == 0, "one", "other"))
    if early_stopping and solver == "paper":
        with pytest.raises(ParameterError, match="early_stopping came, but ChainIHT"):
            classifier(y, early_stopping=early_stopping, solver=solver)
        return
    model = classifier(y, early_stopping=early_stopping, solver=solver)
    assert model.classes_.tolist() == ["one", "other", "rare"]
    assert model.predict_proba(X).shape == (ROWS, 3)
    assert_sound(model, SMALL["budget"])


def test_more_classes_than_weights_work() -> None:
    model = classifier(np.arange(ROWS) // 2)
    assert model.predict_proba(X).shape == (ROWS, ROWS // 2)
    assert_sound(model, SMALL["budget"])


@pytest.mark.parametrize("hidden", [5, (5, 4)], ids=str)
@any_solver
def test_probabilities_follow_the_decision_function(hidden: Any, solver: str) -> None:
    model = classifier(LABELS, hidden=hidden, solver=solver)
    data = np.concatenate([X, 1e6 * X])
    scores, probabilities = model.decision_function(data), model.predict_proba(data)
    assert scores.shape == probabilities.shape == (2 * ROWS, 3)
    assert np.allclose(probabilities.sum(1), 1)
    assert (probabilities >= 0).all()
    assert np.allclose(probabilities, softmax(scores, axis=1))
    assert np.array_equal(model.predict(data), model.classes_[scores.argmax(1)])


def test_weights_of_classes_shift_predictions() -> None:
    counts = [
        int((classifier(LABELS, class_weight={0: weight}, max_iter=20).predict(X) == 0).sum())
        for weight in (0.01, 100)
    ]
    assert counts[0] < counts[1]


# Budgets that connect nothing.


def best_constant_error(y: np.ndarray, budget: int, weight: np.ndarray) -> float:
    """Search all constants with so many numbers that are not zero for the least squared error."""
    mean = weight @ y / weight.sum()
    errors = []
    for kept in combinations(range(y.shape[1]), min(budget, y.shape[1])):
        constant = np.zeros(y.shape[1])
        constant[list(kept)] = mean[list(kept)]
        errors.append(weight @ np.square(y - constant).sum(1))
    return float(min(errors))


@pytest.mark.parametrize("budget", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_budget_of_a_few_weights_does_no_worse_than_the_best_constant(budget: int, weighted: bool) -> None:
    weight = np.random.default_rng(0).uniform(0.1, 3, ROWS) if weighted else np.ones(ROWS)
    targets = Y + np.array([0.3, 0.0, -0.2])
    model = SparseMLPRegressor(**{**SMALL, "budget": budget, "hidden": (5, 4, 3)})
    model.fit(X, targets, weight if weighted else None)
    assert_sound(model, budget)
    error = float(weight @ np.square(targets - model.predict(X)).sum(1))
    assert error <= 1.3 * best_constant_error(targets, budget, weight)


UNEVEN = np.repeat([0, 1, 2, 3], [50, 25, 10, 5])


@pytest.mark.parametrize(
    "budget",
    [1, 2, 3, 4],
)
def test_a_budget_of_a_few_weights_serves_several_classes(budget: int) -> None:
    model = SparseMLPClassifier(**{**SMALL, "budget": budget, "hidden": (5, 4, 3, 3)}).fit(X, UNEVEN)
    assert_sound(model, budget)
    assert model.score(X, UNEVEN) >= 0.5


def test_without_biases_the_best_constant_is_zero() -> None:
    model = SparseMLPRegressor(**{**SMALL, "budget": 2, "hidden": (5, 4), "bias": False, "solver": "paper"})
    with pytest.warns(NoPathWarning):
        model.fit(X, Y)
    assert model.nonzeros_ == 0
    assert not model.predict(X).any()


@pytest.mark.parametrize(
    "method",
    ["fit"],
)
def test_the_warning_points_to_the_line_that_asked(method: str) -> None:
    model = SparseMLPRegressor(**{**SMALL, "budget": 2, "hidden": (5, 4), "bias": False, "solver": "paper"})
    with pytest.warns(NoPathWarning) as caught:
        getattr(model, method)(X, Y)
    assert caught[0].filename == __file__


# Stopping early, going on, interruptions.


@pytest.mark.parametrize("hidden", [20, (15, 10)], ids=str)
def test_early_stopping_keeps_a_network_within_the_budget(hidden: Any) -> None:
    data, y = load_digits(return_X_y=True)
    model = SparseMLPClassifier(
        200, hidden, early_stopping=True, n_iter_no_change=1, max_iter=20, random_state=0
    ).fit(data[:900], y[:900])
    assert_sound(model, 200)
    assert model.status_.name in ("early_stopping", "finished", "max_iter")
    assert model.n_iter_ <= 20
    assert model.score(data[900:], y[900:]) > 0.7


def test_early_stopping_judges_by_rows_that_are_set_aside() -> None:
    seen = set()
    for fraction in (0.1, 0.5):
        model = SparseMLPRegressor(
            **SMALL, early_stopping=True, n_iter_no_change=3, validation_fraction=fraction
        ).fit(X, Y)
        assert_sound(model, SMALL["budget"])
        seen.add(round(model.loss_, 12))
    assert len(seen) == 2


@any_task
def test_a_callback_may_stop_the_fit(task: Any) -> None:
    records: list[Any] = []

    def stop(record: Any) -> bool:
        records.append(record)
        return len(records) == 3

    model = fitted(task, callback=stop)
    assert model.status_.name == "callback"
    assert len(records) == len(model.history_) == 3
    assert_sound(model, task[2].get("budget", SMALL["budget"]))


@any_task
@may_be_constant
def test_an_interrupted_fit_leaves_a_network_that_predicts(task: Any) -> None:
    def interrupt(record: Any) -> None:
        if record["step"] == 2:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedFitWarning, match="warm_start=True"):
        model = fitted(task, callback=interrupt)
    assert model.status_.name == "interrupted"
    assert_sound(model, task[2].get("budget", SMALL["budget"]))
    assert len(model.predict(X)) == ROWS


@any_task
def test_a_warm_start_goes_on(task: Any) -> None:
    Estimator, y, own = task
    model = Estimator(**{**SMALL, **own, "warm_start": True, "max_iter": 200}).fit(X, y)
    score = model.score(X, y)
    model.set_params(max_iter=1).fit(X, y)
    assert_sound(model, own.get("budget", SMALL["budget"]))
    assert any(record.get("way") in ("start", "continued") for record in model.history_)
    assert model.score(X, y) >= score - 0.15


def test_a_warm_start_of_another_shape_begins_anew() -> None:
    model = SparseMLPRegressor(**SMALL, warm_start=True).fit(X, Y)
    for hidden, targets in (((5, 4), Y), (5, Y[:, :2]), (5, Y[:, 0])):
        model.set_params(hidden=hidden).fit(X, targets)
        cold = SparseMLPRegressor(**{**SMALL, "hidden": hidden}).fit(X, targets)
        assert model.network_.equals(cold.network_)
        model.fit(X, Y)


# Going through data in parts.


@pytest.fixture(scope="module")
def digits() -> Any:
    """Give scikit-learn's digits, split."""
    data, y = load_digits(return_X_y=True)
    return train_test_split(data, y, random_state=0, stratify=y)


def test_partial_fit_learns_digits_within_the_budget_at_every_call(digits: Any) -> None:
    data, test, y, truth = digits
    model = SparseMLPClassifier(300, 50, random_state=0)
    for _ in range(2):
        for first in range(0, len(data), 200):
            part = slice(first, first + 200)
            model.partial_fit(data[part], y[part], classes=np.arange(10))
            assert_sound(model, 300)
    assert model.score(test, truth) > 0.8


def test_partial_fit_learns_from_small_parts() -> None:
    model = SparseMLPClassifier(**SMALL)
    losses = [model.partial_fit(X, LABELS, classes=[0, 1, 2]).loss_ for _ in range(60)]
    assert losses[-1] < 0.8 * losses[0]


@any_task
def test_partial_fit_keeps_to_the_budget_for_every_shape(task: Any) -> None:
    Estimator, y, own = task
    model = Estimator(**{**SMALL, **own})
    classes = {"classes": np.unique(y)} if Estimator is SparseMLPClassifier else {}
    for first in (0, 30, 60):
        model.partial_fit(X[first : first + 30], y[first : first + 30], **classes)
        assert_sound(model, own.get("budget", SMALL["budget"]))
        assert len(model.predict(X)) == ROWS


def test_partial_fit_goes_on_from_a_fit(digits: Any) -> None:
    data, test, y, truth = digits
    model = SparseMLPClassifier(300, 50, random_state=0, max_iter=20).fit(data, y)
    before = model.score(test, truth)
    model.partial_fit(data[:300], y[:300])
    assert model.score(test, truth) > before - 0.1
    assert_sound(model, 300)


def test_partial_fit_needs_all_classes_at_first_and_refuses_others() -> None:
    model = SparseMLPClassifier(**SMALL)
    with pytest.raises(DataError, match="first call of partial_fit needs classes"):
        model.partial_fit(X, LABELS)
    with pytest.raises(DataError, match=r"y holds .*2.*, which is not among the classes"):
        model.partial_fit(X, LABELS, classes=[0, 1])
    few = LABELS < 2
    model.partial_fit(X[few], LABELS[few], classes=[2, 1, 0])
    assert model.classes_.tolist() == [0, 1, 2]
    before = model.network_
    with pytest.raises(DataError, match=r"y holds .*5.*, which is not among the classes"):
        model.partial_fit(X, LABELS + 5 * (LABELS == 2) - 2 * (LABELS == 2))
    with pytest.raises(DataError, match="differ from those of the first call"):
        model.partial_fit(X, LABELS, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], LABELS)
    assert model.network_ is before
    model.partial_fit(X, LABELS, classes=[0, 1, 2])
    assert model.predict_proba(X).shape == (ROWS, 3)


def test_partial_fit_takes_weights_and_one_row_at_a_time() -> None:
    model = SparseMLPRegressor(**SMALL)
    for row in range(5):
        model.partial_fit(X[[row]], Y[[row]], [2.0])
        assert_sound(model, SMALL["budget"])
    with pytest.raises(ValueError, match="non-zero"):
        model.partial_fit(X, Y, np.zeros(ROWS))


# Real data.


def test_digits_are_told_apart_with_300_weights(digits: Any) -> None:
    data, test, y, truth = digits
    model = SparseMLPClassifier(300, 50, max_iter=20, random_state=0).fit(data, y)
    assert_sound(model, 300)
    assert model.score(test, truth) >= 0.9


def test_digits_are_told_apart_by_two_layers_and_from_sparse_data(digits: Any) -> None:
    data, test, y, truth = digits
    model = SparseMLPClassifier(300, (30, 20), max_iter=20, random_state=0)
    model.fit(scipy.sparse.csr_array(data), y)
    assert_sound(model, 300)
    assert model.score(scipy.sparse.csr_array(test), truth) >= 0.9


@pytest.mark.parametrize("batch_size", [None, 200])
def test_the_paper_trains_ten_classes_and_two_layers_within_the_budget(
    digits: Any, batch_size: int | None
) -> None:
    data, test, y, _ = digits
    model = SparseMLPClassifier(
        300, (30, 20), solver="paper", max_iter=5, batch_size=batch_size, random_state=0
    ).fit(data, y)
    assert_sound(model, 300)
    assert [np.count_nonzero(weights) > 0 for weights in model.coefs_] == [True] * 3
    assert not any(bias.any() for bias in model.intercepts_)
    assert model.predict_proba(test).shape == (len(test), 10)


def test_the_paper_learns_digits_whose_pixels_are_as_large_as_its_own(digits: Any) -> None:
    data, test, y, truth = digits
    model = SparseMLPClassifier(300, 10, solver="paper", max_iter=20, batch_size=100, random_state=0)
    model.fit(16 * data, y)
    assert_sound(model, 300)
    assert model.score(16 * test, truth) > 0.7


def test_steps_of_the_paper_that_are_too_large_end_in_a_word() -> None:
    model = SparseMLPRegressor(**{**SMALL, "budget": 8, "max_iter": 200}, solver="paper").fit(X, 1e3 * Y)
    assert model.status_.name == "diverged"
    assert_sound(model, 8)


@pytest.mark.parametrize("hidden", [4, (4, 3)], ids=str)
@pytest.mark.parametrize("factors", [(0, 0), (1, 1), (1, -2), (0, 3)], ids=str)
def test_the_paper_fits_outputs_that_are_zero_or_multiples_of_one_another(
    factors: tuple[float, ...], hidden: Any
) -> None:
    targets = 0.1 * Y[:, :1] * np.array(factors)
    model = SparseMLPRegressor(30, hidden, solver="paper", max_iter=20, random_state=0).fit(X, targets)
    assert_sound(model, 30)
    assert model.status_.name == ("fitted" if not any(factors) else "max_iter")
    assert model.predict(X).shape == targets.shape
    assert np.isfinite(model.predict(X)).all()
    assert any(factors) or not model.predict(X).any()


def test_a_squared_error_of_many_classes_is_refused() -> None:
    with pytest.raises(ParameterError, match="loss='squared'"):
        classifier(LABELS, loss="squared")


@pytest.mark.parametrize(
    ("hidden", "budget", "passes", "least"), [(100, 1000, 2, 0.90), ((50, 30), 1000, 1, 0.80)]
)
def test_a_pass_or_two_over_mnist_teach_ten_digits(
    mnist_folder: Path, hidden: Any, budget: int, passes: int, least: float
) -> None:
    split = paper_split(folder=mnist_folder)
    model = SparseMLPClassifier(budget, hidden, max_iter=passes, random_state=0)
    model.fit(split.X_train, split.y_train)
    assert_sound(model, budget)
    assert model.score(split.X_test, split.y_test) >= least
