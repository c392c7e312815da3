"""What once went wrong, and input that must be refused before work starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.errors import DataError, ParameterError
from thresher.linear.vector import SparseVector
from thresher.objective.loss import CrossEntropy, Huber, Logistic
from thresher.solvers.auto import Auto, Tuning
from thresher.solvers.auto.tuning import GrowTuning, JudgeTuning
from thresher.solvers.iht import IHT
from thresher.solvers.layerwise import Layerwise
from thresher.solvers.loop import Iterate, Needs
from thresher.solvers.status import FINISHED

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 4))
y = np.maximum(X[:, 0], 0) + X[:, 1] + 0.1 * RNG.standard_normal(120)
Y = np.stack([y, -X[:, 2]], 1)


def one_sentence(error: pytest.ExceptionInfo[Any], *words: str) -> None:
    """Require one paragraph that names everything."""
    told = str(error.value)
    assert "\n" not in told
    for word in words:
        assert word in told


# Precisions met where they did not fit together.


def test_a_deep_network_in_float32_takes_sample_weights() -> None:
    random = np.random.default_rng(1)
    rows = random.standard_normal((20_000, 20))
    model = SparseMLPRegressor(20, (100, 3), max_iter=1, random_state=0)
    model.fit(rows, rows[:, 0] + random.standard_normal(20_000), sample_weight=random.random(20_000))
    assert 1 <= model.nonzeros_ <= 20


@pytest.mark.parametrize(
    ("hidden", "targets"), [(5, y), (5, Y), ((5, 3), y), ((5, 3), Y)], ids=["one", "two", "deep", "deep, two"]
)
def test_early_stopping_works_for_any_network(hidden: Any, targets: np.ndarray) -> None:
    model = SparseMLPRegressor(12, hidden, early_stopping=True, max_iter=1, random_state=0)
    model.fit(X, targets, sample_weight=np.arange(120) % 3)
    assert 1 <= model.nonzeros_ <= 12
    assert np.isfinite(model.predict(X)).all()


# Starts that have more places than a solver.


@pytest.mark.parametrize("solver", ["paper", IHT()], ids=["paper", "IHT"])
@pytest.mark.parametrize("bias", [None, True, False])
def test_a_network_with_biases_may_be_the_start_of_thresholding(solver: Any, bias: bool | None) -> None:
    model = SparseMLPRegressor(12, 5, max_iter=1, warm_start=True, random_state=0).fit(X, y + 3)
    assert model.intercepts_[-1].any()
    model.set_params(solver=solver, bias=bias).fit(X, y + 3)
    assert 1 <= model.nonzeros_ <= 12
    if bias is False or (bias is None and solver == "paper"):
        assert not any(part.any() for part in model.intercepts_)


# Rows without weight.


@pytest.mark.parametrize("seed", range(3))
def test_early_stopping_sets_rows_of_some_weight_aside(seed: int) -> None:
    weight = np.zeros(120)
    weight[:5] = 1
    model = SparseMLPRegressor(6, 5, early_stopping=True, max_iter=1, random_state=seed)
    assert np.isfinite(model.fit(X, y, sample_weight=weight).predict(X)).all()


def test_early_stopping_with_one_row_of_weight_is_refused() -> None:
    weight = np.zeros(120)
    weight[3] = 1
    with pytest.raises(DataError) as error:
        SparseMLPRegressor(6, 5, early_stopping=True).fit(X, y, sample_weight=weight)
    one_sentence(error, "early_stopping", "1 rows")


# Options that a solver cannot honour.


@pytest.mark.parametrize(
    ("hidden", "targets", "named"),
    [(5, y, "IHT"), (5, Y, "ChainIHT"), ((5, 3), y, "Layerwise")],
    ids=["one", "two", "deep"],
)
def test_the_paper_has_no_early_stopping(hidden: Any, targets: np.ndarray, named: str) -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(12, hidden, solver="paper", early_stopping=True).fit(X, targets)
    one_sentence(error, "early_stopping", named)


def test_every_option_that_would_be_ignored_is_named() -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(
            12, (5, 3), solver="paper", early_stopping=True, warm_start=True, tol=0.5, callback=print
        ).fit(X, y)
    expected = {"early_stopping", "warm_start", "tol", "callback"} - Layerwise().needs.options
    assert expected
    one_sentence(error, *expected)


@pytest.mark.parametrize(
    ("model", "targets", "words"),
    [
        (SparseMLPClassifier(10, 5, solver=IHT()), np.arange(120) % 3, ("IHT", "3 outputs", "1 output")),
        (SparseMLPRegressor(10, 5, solver=IHT()), Y, ("IHT", "2 outputs", "1 output")),
        (SparseMLPRegressor(10, (5, 2), solver=IHT()), y, ("IHT", "2 hidden layers", "1 hidden layer")),
    ],
    ids=["three classes", "two targets", "two layers"],
)
def test_a_network_that_a_solver_does_not_take_is_refused_naming_both(
    model: Any, targets: np.ndarray, words: tuple[str, ...]
) -> None:
    with pytest.raises(ParameterError) as error:
        model.fit(X, targets)
    one_sentence(error, *words)


# Losses and their targets.


@pytest.mark.parametrize("threshold", [0, -1.35, np.nan, np.inf, "1", None, True])
def test_hubers_threshold_must_be_a_number_above_zero(threshold: Any) -> None:
    with pytest.raises(ParameterError) as error:
        Huber(threshold)
    one_sentence(error, repr(threshold), "above 0")


@pytest.mark.parametrize("targets", [y, Y], ids=["one", "two"])
def test_negative_counts_are_refused(targets: np.ndarray) -> None:
    with pytest.raises(DataError) as error:
        SparseMLPRegressor(10, 5, loss="poisson").fit(X, targets)
    one_sentence(error, f"{targets.min():.6g}", "poisson")


def test_a_loss_for_one_kind_of_target_is_refused_for_the_other() -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPClassifier(10, 5, loss="poisson").fit(X, y > 0)
    one_sentence(error, "'poisson'", "'logistic'")
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(10, 5, loss="logistic").fit(X, y)
    one_sentence(error, "'logistic'", "'huber'")


@pytest.mark.parametrize(
    ("model", "targets", "words"),
    [
        (SparseMLPClassifier(10, 5, loss=CrossEntropy(5)), np.arange(120) % 3, ("classes=5", "3 classes")),
        (SparseMLPClassifier(10, 5, loss=CrossEntropy(2)), y > 0, ("'softmax'", "2 classes")),
        (SparseMLPClassifier(10, 5, loss=Logistic()), np.arange(120) % 3, ("'logistic'", "3 classes")),
        (SparseMLPRegressor(10, 5, loss=CrossEntropy(2)), y, ("'softmax'", "regressor")),
        (SparseMLPRegressor(10, 5, loss=Huber), y, ("loss=", "a loss object")),
        (SparseMLPRegressor(10, 5, solver=IHT), y, ("solver=", "a solver object")),
    ],
    ids=[
        "other classes",
        "two outputs for one",
        "one output for three",
        "regressor",
        "a class",
        "solver class",
    ],
)
def test_a_loss_that_does_not_fit_the_targets_is_refused_naming_both(
    model: Any, targets: np.ndarray, words: tuple[str, ...]
) -> None:
    with pytest.raises(ParameterError) as error:
        model.fit(X, targets)
    one_sentence(error, *words)


@pytest.mark.parametrize("outputs", [1, 2])
def test_hubers_loss_is_not_moved_by_outliers(outputs: int) -> None:
    law = np.maximum(X[:, 0], 0) + X[:, 1]
    spoiled = law.copy()
    spoiled[:8] += 1000
    targets, truth = (np.stack([part, 2 * part], 1) if outputs == 2 else part for part in (spoiled, law))
    model = SparseMLPRegressor(12, 5, loss="huber", max_iter=60, random_state=0).fit(X, targets)
    assert model.score(X[8:], truth[8:]) > 0.9
    squared = SparseMLPRegressor(12, 5, max_iter=10, random_state=0).fit(X, targets)
    assert squared.score(X[8:], truth[8:]) < 0


@pytest.mark.parametrize("outputs", [1, 2])
def test_counts_are_predicted_as_rates(outputs: int) -> None:
    random = np.random.default_rng(3)
    rows = random.uniform(0, 2, (400, 3))
    rates = np.exp(np.stack([rows[:, 0] - 1, -rows[:, 1]], 1)) if outputs == 2 else np.exp(rows[:, 0] - 1)
    model = SparseMLPRegressor(12, 5, loss="poisson", max_iter=60, random_state=0)
    predicted = model.fit(rows, random.poisson(rates)).predict(rows)
    assert (predicted > 0).all()
    assert 1 - np.square(predicted - rates).sum() / np.square(rates - rates.mean(0)).sum() > 0.9


# Tunings, and solvers of a user's own.


@pytest.mark.parametrize("tuning", [GrowTuning(), JudgeTuning, {"grow": GrowTuning()}, "fast"])
def test_what_is_not_a_whole_tuning_is_refused(tuning: Any) -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(10, 5, tuning=tuning).fit(X, y)
    one_sentence(error, "tuning=", "Tuning, or None")


@pytest.mark.parametrize(
    ("solver", "option"),
    [
        ("paper", {"tuning": Tuning()}),
        (IHT(), {"tuning": Tuning()}),
        (IHT(), {"batch_size": 7}),
        (Auto(5), {"tuning": Tuning(judge=JudgeTuning(folds=3))}),
    ],
    ids=["paper", "IHT", "batch", "Auto"],
)
def test_what_a_solver_has_of_its_own_is_refused_beside_it(solver: Any, option: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(10, 5, solver=solver, **option).fit(X, y)
    one_sentence(error, *option, "IHT" if solver == "paper" else type(solver).__name__)


def test_a_tuning_decides() -> None:
    seen = []
    for first in (0, 2):
        tuning = Tuning(grow=GrowTuning(first_alpha=first), judge=JudgeTuning(squared=(0.25, 0.5, 0.75)))
        model = SparseMLPRegressor(6, 5, tuning=tuning, max_iter=60, random_state=0).fit(X, y)
        seen.append({record["alpha"] for record in model.history_ if record["way"] == "growing"})
    assert seen == [{0.25}, {0.75}]


def test_a_solver_without_its_methods_is_refused() -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(10, 5, solver=object()).fit(X, y)
    one_sentence(error, "solver=", "needs, init, step, stop and rescue")


@dataclass(frozen=True)
class Own:
    """A solver that hands out weights of some size."""

    size: int | None = None
    hold: int = 2
    weights: tuple[Any, Any] | None = None
    signs: Any = None
    asked: Any = Needs()  # noqa: RUF009

    @property
    def needs(self) -> Needs:
        return self.asked  # type: ignore[no-any-return]

    def init(self, objective: Any, budget: int, start: Any) -> Iterate:
        size = objective.size if self.size is None else self.size
        held = self.weights or (torch.arange(self.hold), torch.ones(self.hold, dtype=torch.float64))
        return Iterate(SparseVector(*held, size), 1.0, 0.0, self.signs)

    def step(self, iterate: Iterate) -> Iterate:
        return replace(iterate, passes=1.0, status=FINISHED)

    def stop(self, iterate: Iterate) -> None:
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        return iterate


ONES = torch.ones(2, dtype=torch.float64)


@pytest.mark.parametrize(
    ("places", "values"),
    [
        (torch.tensor([3, 1]), ONES),
        (torch.tensor([1, 1]), ONES),
        (torch.tensor([-1, 1]), ONES),
        (torch.tensor([1, 10**6]), ONES),
        (torch.tensor([0, 1]), torch.ones(3)),
        (torch.tensor([[0, 1]]), ONES[None]),
        (torch.tensor([0.0, 1.0]), ONES),
        (torch.tensor([0, 1]), np.ones(2)),
    ],
    ids=["unsorted", "twice", "negative", "beyond", "length", "shape", "fractions", "no tensor"],
)
def test_weights_whose_places_do_not_fit_are_refused(places: Any, values: Any) -> None:
    for targets in (y, Y):
        with pytest.raises(ParameterError) as error:
            SparseMLPRegressor(10, 5, solver=Own(weights=(places, values))).fit(X, targets)
        one_sentence(error, "Own", "ascending")


@pytest.mark.parametrize("shape", [(3,), (5, 1), ()], ids=str)
def test_signs_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(10, 5, solver=Own(signs=torch.ones(shape))).fit(X, y)
    one_sentence(error, "Own", str(shape), "5 neurons")


@pytest.mark.parametrize(
    ("part", "gives"),
    [
        ("value", lambda loss, output, y: torch.ones(len(output), 2)),
        ("value", lambda loss, output, y: 1.0),
        ("slope", lambda loss, output, y: torch.ones(len(output))),
        ("slope", lambda loss, output, y: output @ torch.ones(7, 7).double()),
        ("scaled", lambda loss, output, y, J: J[:, 0]),
        ("constant", lambda loss, y, share: torch.ones(9)),
    ],
)
def test_a_users_loss_whose_shapes_do_not_fit_is_refused(part: str, gives: Any) -> None:
    own = type("Own", (Huber,), {part: gives})()
    for targets in (y, Y):
        with pytest.raises(ParameterError) as error:
            SparseMLPRegressor(10, 5, loss=own).fit(X, targets)
        one_sentence(error, part, "Own", "shape")


@pytest.mark.parametrize("method", ["init", "step"])
def test_a_solver_that_gives_no_iterate_is_refused(method: str) -> None:
    class Forgetful(Own):
        pass

    setattr(Forgetful, method, lambda self, *arguments: None)
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(10, 5, solver=Forgetful()).fit(X, y)
    one_sentence(error, f"Forgetful.{method}", "NoneType", "Iterate")


def test_what_a_solver_needs_must_be_needs() -> None:
    with pytest.raises(ParameterError) as error:
        SparseMLPRegressor(10, 5, solver=Own(asked={"kind": "relu"})).fit(X, y)
    one_sentence(error, "needs", "Needs")


@pytest.mark.filterwarnings("ignore::thresher.errors.NoPathWarning")
def test_a_users_own_solver_works_for_every_target() -> None:
    for model, targets in (
        (SparseMLPRegressor(10, 5, solver=Own()), y),
        (SparseMLPRegressor(10, 5, solver=Own()), Y),
        (SparseMLPClassifier(10, 5, solver=Own()), np.arange(120) % 3),
        (SparseMLPClassifier(10, 5, solver=Own()), np.arange(120) % 2),
    ):
        assert model.fit(X, targets).nonzeros_ <= 10


def test_the_default_solver_may_be_given_as_an_object() -> None:
    by_name = SparseMLPRegressor(8, 5, max_iter=2, random_state=3).fit(X, y)
    as_object = SparseMLPRegressor(8, 5, max_iter=2, solver=Auto(passes=2, seed=3)).fit(X, y)
    assert np.array_equal(by_name.predict(X), as_object.predict(X))


# Sizes.


def test_a_network_far_larger_than_its_rows_can_use_is_fitted_within_its_memory() -> None:
    model = SparseMLPRegressor(10, (20_000, 20_000), max_iter=1, random_state=0).fit(X[:40], y[:40])
    assert 1 <= model.nonzeros_ <= 10


@pytest.mark.parametrize("count", [5, 20])
def test_as_many_classes_as_rows_work(count: int) -> None:
    random = np.random.default_rng(4)
    rows, labels = random.standard_normal((2 * count, 3)), np.arange(2 * count) % count
    model = SparseMLPClassifier(20, 5, max_iter=1, random_state=0).fit(rows, labels)
    assert model.nonzeros_ <= 20
    assert set(model.predict(rows)) <= set(range(count))
