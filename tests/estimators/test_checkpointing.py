"""Fits that are killed and go on: for every solver and phase, the same bits as if nobody had killed them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes, load_digits

from thresher import SparseMLPClassifier, SparseMLPClassifierCV, SparseMLPRegressor, SparseMLPRegressorCV
from thresher.data.planted import planted
from thresher.errors import CheckpointError, InterruptedFitWarning, ParameterError
from thresher.linear.vector import SparseVector
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.adam import AdamSchedule, train
from thresher.solvers.auto.wide import scattered_start
from thresher.solvers.checkpoint import Checkpoint
from thresher.solvers.checkpoint_file import from_file
from thresher.solvers.iht import IHT
from thresher.solvers.journal import State
from thresher.solvers.loop import OPTIONS, Iterate, Needs, Start
from thresher.solvers.status import Status

SOURCE = Path(__file__).resolve().parents[2] / "src"


class Killed(BaseException):
    """What a test kills a fit with: nothing but a process that dies ends a fit so."""


@dataclass(frozen=True)
class Descent:
    """A user's solver that knows nothing of checkpoints: it trains a few weights for a pass at each step."""

    needs: ClassVar[Needs] = Needs(kind="relu", options=OPTIONS - {"warm_start"})

    def init(self, objective: Relu, budget: int, start: Start | None) -> Iterate:
        point = scattered_start(objective, budget, seed=0)
        return Iterate(point.w, np.inf, 0.0, point.signs, carry=(objective, np.random.default_rng(0)))

    def step(self, iterate: Iterate) -> Iterate:
        objective, random = iterate.carry
        point, schedule = Point(iterate.w, iterate.signs), AdamSchedule(2, 0.01, 0.001)
        *_, (point, loss, _) = train(objective, point, schedule, 50, random)
        return Iterate(point.w, loss, iterate.passes + 2, point.signs, carry=iterate.carry)

    def stop(self, iterate: Iterate) -> Status | None:
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        return iterate


@dataclass(frozen=True)
class Saved(Descent):
    """The same, which can be taken up where it was: what it draws with is part of its state."""

    def save(self, iterate: Iterate) -> State:
        random = iterate.carry[1].bit_generator.state
        return {"w": iterate.w, "passes": iterate.passes, "random": random}

    def load(self, first: Iterate, state: State) -> Iterate:
        first.carry[1].bit_generator.state = state["random"]
        return replace(first, w=state["w"], passes=state["passes"])


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X[:200], y[:200]


def two_targets() -> tuple[np.ndarray, np.ndarray]:
    X, y = diabetes()
    return X, np.column_stack([y, -np.abs(y - 100)])


def network() -> tuple[np.ndarray, np.ndarray]:
    problem = planted(n=400, d=10, hidden=3, budget=9, seed=0)
    return problem.X, problem.y


def noisy_network() -> tuple[np.ndarray, np.ndarray]:
    X, y = network()
    return X, y + 0.1 * y.std() * np.random.default_rng(1).standard_normal(len(y))


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


def sparse_digits() -> tuple[Any, np.ndarray]:
    X, y = digits()
    return scipy.sparse.csr_array(X), y


@dataclass(frozen=True)
class Case:
    """A fit: what is fitted to what, and how."""

    name: str
    data: Callable[[], tuple[Any, np.ndarray]]
    estimator: Callable[..., Any] = SparseMLPRegressor
    parameters: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name

    def fitted(self, **more: Any) -> Any:
        options = {"random_state": 0, "max_iter": 8, **dict(self.parameters), **more}
        return self.estimator(**options).fit(*self.data())


def case(name: str, data: Any, estimator: Any = SparseMLPRegressor, **parameters: Any) -> Case:
    return Case(name, data, estimator, tuple(parameters.items()))


SMALL = {"budget": 12, "hidden": 4}
PAPER = {**SMALL, "solver": "paper", "batch_size": 80, "update_gates_every": 2}
CLASSES = {"budget": 100, "hidden": (20, 10)}
CASES = (
    case("a committee and its student", noisy_network, **SMALL, max_iter=15),
    case("few rows, on folds", lambda: tuple(part[:60] for part in diabetes()), **SMALL),
    case("recovery", network, budget=9, hidden=3, bias=False, max_iter=30),
    case("recovery that fails", network, budget=5, hidden=2, bias=False, max_iter=30),
    case("classes and layers", digits, SparseMLPClassifier, **CLASSES),
    case("early stopping", digits, SparseMLPClassifier, **CLASSES, early_stopping=True, n_iter_no_change=5),
    case("sparse rows", sparse_digits, SparseMLPClassifier, **CLASSES, memory_limit="100KB"),
    case("full batches", digits, SparseMLPClassifier, **CLASSES, batch_size=None),
    case("paper", diabetes, **PAPER),
    case("paper for several outputs", two_targets, **{**PAPER, "update_gates_every": 1}),
    case("paper for layers", diabetes, **{**PAPER, "hidden": (4, 3)}),
    case("thresholding with a way back", diabetes, **SMALL, solver=IHT(settle=None)),
    case("an own solver", diabetes, **SMALL, solver=Descent()),
    case("an own solver that saves", diabetes, **SMALL, solver=Saved()),
    case("a path of budgets", diabetes, SparseMLPRegressorCV, budgets=[2, 6], hidden=2, cv=2, max_iter=3),
    case(
        "a path for classes", digits, SparseMLPClassifierCV, budgets=[60, 99], hidden=(8, 6), cv=2, max_iter=1
    ),
)


def bits(model: Any) -> tuple[Any, ...]:
    """Give all that a fit makes, but the seconds it took."""
    found = model.network_
    layers = [(layer.weights.toarray().tobytes(), layer.bias.tobytes()) for layer in found.layers]
    direct = None if found.direct is None else found.direct.toarray().tobytes()
    told = getattr(model, "history_", [])
    history = [{name: value for name, value in record.items() if name != "seconds"} for record in told]
    return layers, direct, repr(history), str(model.status_)


def pauses(case: Case, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Any]:
    """Count the moments at which a fit may write."""
    count, pause = [0], Checkpoint.pause

    def counted(self: Checkpoint) -> None:
        count[0] += 1
        pause(self)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "pause", counted)
        model = case.fitted(checkpoint=path, checkpoint_every="1h")
    path.unlink()
    return count[0], model


def killed(case: Case, path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill a fit right after it has written at one of those moments."""
    write = Checkpoint._write

    def last(self: Checkpoint, done: bool = False) -> None:
        write(self, done)
        if self.steps:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "_write", last)
        with pytest.raises(Killed):
            case.fitted(checkpoint=path, checkpoint_every=at)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_killed_fit_ends_with_the_same_bits(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fit.checkpoint"
    count, uninterrupted = pauses(case, path, monkeypatch)
    assert count >= 4
    for at in (1, round(0.45 * count), count):
        killed(case, path, at, monkeypatch)
        # Whether answers are kept by their time or all of them makes no difference to the bits.
        model = case.fitted(checkpoint=path, checkpoint_every="1h")
        assert bits(model) == bits(uninterrupted)
        path.unlink()


def test_a_fit_that_is_killed_again_and_again_gets_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, path = CASES[0], tmp_path / "fit.checkpoint"
    count, uninterrupted = pauses(some, path, monkeypatch)
    # Every life does a ninth of the work and writes once: only together do they come to the end.
    write, lives = Checkpoint._write, 0

    def last(self: Checkpoint, done: bool = False) -> None:
        write(self, done)
        if self.steps and not done:
            raise Killed

    model = None
    while model is None:
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "_write", last)
            try:
                model = some.fitted(checkpoint=path, checkpoint_every=count // 9)
            except Killed:
                lives += 1
    assert lives >= 5
    assert bits(model) == bits(uninterrupted)


def test_a_checkpoint_makes_no_difference_to_the_fit(tmp_path: Path) -> None:
    for some in (CASES[0], CASES[4], CASES[8]):
        kept = some.fitted(checkpoint=tmp_path / some.name, checkpoint_every=50)
        assert bits(kept) == bits(some.fitted())


def test_training_goes_on_within_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some, path = CASES[4], tmp_path / "fit.checkpoint"
    killed(some, path, 10, monkeypatch)
    stored = from_file(path)
    assert stored is not None
    (training,) = [state for _, name, _, state in stored.states if name == "training"]
    assert training["taken"] > 0
    assert training["before"] != training["random"] or not training["taken"]
    assert isinstance(training["held"], SparseVector)


def test_a_file_grows_with_the_weights_and_not_with_the_passes(tmp_path: Path) -> None:
    some, sizes = CASES[4], []
    for passes in (4, 16):
        path = tmp_path / str(passes)
        count: list[int] = []

        def stop(record: dict[str, Any], count: list[int] = count, passes: int = passes) -> bool:
            count.append(1)
            return len(count) == passes - 1

        some.fitted(checkpoint=path, checkpoint_every="1h", max_iter=passes, callback=stop)
        stored = from_file(path)
        assert stored is not None
        sizes.append(sum(state["held"].nonzeros for _, name, _, state in stored.states if name == "training"))
    assert sizes[1] <= sizes[0]


def test_a_callback_that_stops_leaves_a_checkpoint(tmp_path: Path) -> None:
    some, path, seen = CASES[4], tmp_path / "fit.checkpoint", list[float]()

    def stop(record: dict[str, Any]) -> bool:
        seen.append(record["passes"])
        return len(seen) == 3

    assert some.fitted(checkpoint=path, callback=stop).status_.name == "callback"
    assert bits(some.fitted(checkpoint=path)) == bits(some.fitted())


def test_what_a_callback_fits_is_no_part_of_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, path = CASES[4], tmp_path / "fit.checkpoint"
    X, y = diabetes()

    def fit(record: dict[str, Any]) -> None:
        SparseMLPRegressor(3, 1, max_iter=1, random_state=0).fit(X[:20], y[:20])

    again = replace(some, parameters=(*some.parameters, ("callback", fit)))
    killed(again, path, 60, monkeypatch)
    assert bits(some.fitted(checkpoint=path)) == bits(some.fitted())


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path: Path) -> None:
    some, path = CASES[4], tmp_path / "fit.checkpoint"
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(InterruptedFitWarning, match="Fit again with the same checkpoint="):
            some.fitted(checkpoint=path, callback=lambda record: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, previous)
    stored = from_file(path)
    assert stored is not None
    assert not stored.done
    assert bits(some.fitted(checkpoint=path)) == bits(some.fitted())


def test_a_seed_that_was_drawn_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some, path = case("paper", diabetes, **PAPER, random_state=None), tmp_path / "fit.checkpoint"
    killed(some, path, 10, monkeypatch)
    stored = from_file(path)
    assert stored is not None
    model = some.fitted(checkpoint=path)
    assert bits(model) == bits(some.fitted(random_state=stored.seed))


def test_a_finished_fit_is_answered_from_its_checkpoint(tmp_path: Path) -> None:
    some, path, steps = CASES[8], tmp_path / "fit.checkpoint", list[float]()
    first = some.fitted(checkpoint=path, checkpoint_every=20)
    second = some.fitted(checkpoint=path, checkpoint_every=20, callback=lambda r: steps.append(r["step"]))
    assert steps == []
    assert bits(second) == bits(first)
    # Another fit takes its place, since nothing of it would be lost.
    assert some.fitted(checkpoint=path, budget=5).nonzeros_ <= 5


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"budget": 13}, "budget was 12 and is 13"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
        ({"alpha": 0.5, "hidden": 5}, "alpha was None and is 0.5; hidden was 4 and is 5"),
        ({"data": "one number"}, "X was 200 x 10 float64 "),
        ({"data": "one target"}, "y was 200 x 1 float64 "),
        ({"data": "fewer rows"}, "X was 200 x 10 float64 [0-9a-f]+ and is 190 x 10 float64 .*; y was"),
        ({"version": "9.9"}, "the version of Thresher was 9.9 and is "),
    ],
    ids=str,
)
def test_another_fit_is_refused_with_what_differs(
    change: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, path = case("paper", diabetes, **PAPER), tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        patch.setattr(
            "thresher.estimators.checkpointing.__version__", change.get("version", "the same"), raising=True
        )
        killed(some, path, 5, monkeypatch)
    if "version" not in change:
        monkeypatch.setattr("thresher.estimators.checkpointing.__version__", "the same")
    X, y = diabetes()
    kind = change.get("data")
    X[7, 3] += 1e-9 * (kind == "one number")
    y[7] += 1e-9 * (kind == "one target")
    rows = slice(190 if kind == "fewer rows" else 200)
    changed = replace(some, data=lambda: (X[rows], y[rows]))
    with pytest.raises(CheckpointError, match=told):
        changed.fitted(
            **{name: value for name, value in change.items() if name not in ("data", "version")},
            checkpoint=path,
        )


def test_sparse_and_other_numbers_are_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some, path = CASES[6], tmp_path / "fit.checkpoint"
    killed(some, path, 5, monkeypatch)
    X, y = sparse_digits()
    X.data[9] += 1
    with pytest.raises(CheckpointError, match="another fit, which is not finished: X was 400 x 64"):
        replace(some, data=lambda: (X, y)).fitted(checkpoint=path)


def test_other_folds_of_a_splitter_are_another_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(200)
    halves = [(rows[:100], rows[100:]), (rows[100:], rows[:100])]
    some, path = replace(CASES[14], parameters=(*CASES[14].parameters, ("cv", halves))), tmp_path / "file"
    killed(some, path, 5, monkeypatch)
    with pytest.raises(CheckpointError, match="folds was 4 arrays"):
        some.fitted(checkpoint=path, cv=[halves[0], (rows[90:], rows[:90])])


@pytest.mark.parametrize("every", ["soon", "0s", "5", 0, -3, True, None, 2.5, "5 years"])
def test_times_that_are_none_are_refused(every: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"checkpoint_every=.*a time such as '5min'"):
        CASES[8].fitted(checkpoint=tmp_path / "file", checkpoint_every=every)


def test_a_path_that_is_none_and_a_folder_that_is_missing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="checkpoint=5, but it must be the path of a file, or None"):
        CASES[8].fitted(checkpoint=5)
    with pytest.raises(CheckpointError, match="cannot be written"):
        CASES[8].fitted(checkpoint=tmp_path / "none" / "file")


def test_partial_fit_refuses_a_checkpoint_in_words(tmp_path: Path) -> None:
    X, y = diabetes()
    with pytest.raises(ParameterError, match=r"partial_fit goes through its rows once.*Leave it out"):
        SparseMLPRegressor(5, 2, checkpoint=tmp_path / "file").partial_fit(X, y)


KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from test_checkpointing import CASES, digest
print(digest(CASES[4].fitted(checkpoint=sys.argv[2], checkpoint_every=5)))
"""


def digest(model: Any) -> str:
    return sha256(repr(bits(model)).encode()).hexdigest()


def test_a_process_killed_while_it_fits_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(path)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and (not path.exists() or path.stat().st_size < 10_000):
            time.sleep(0.002)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    stored = from_file(path)
    assert stored is not None
    assert not stored.done
    assert stored.states
    last = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert last.stdout.strip() == digest(CASES[4].fitted())
