"""Devices: chosen for a fit, found or refused at once, and reached through one module alone."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from elsewhere import ELSEWHERE, Traffic

from thresher import SparseMLPClassifier, SparseMLPRegressor, iht
from thresher.data.planted import planted
from thresher.device import devices, from_host, to_host, usable, using
from thresher.errors import ParameterError
from thresher.linear.gaussian import GaussianOperator
from thresher.solvers.auto import Tuning
from thresher.solvers.auto.tuning import JudgeTuning
from thresher.solvers.iht import IHT

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "thresher"
# What makes a tensor of an array or an array of a tensor.
CONVERSIONS = ("from_numpy", "as_tensor", "numpy", "cpu")
# What computes with torch while a network is fitted.
COMPUTING = ("linear", "objective", "solvers", "estimators")

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((130, 4))
NOISY = np.maximum(X[:, 0] - X[:, 1], 0) + 0.3 * RANDOM.standard_normal(130)
TARGETS = np.column_stack([NOISY, X[:, 2]])
CODES = np.digitize(NOISY, [0.2, 0.9])
TEXT = scipy.sparse.random_array((130, 300), density=0.05, format="csr", rng=0)
WIDE = scipy.sparse.random_array((130, 10**6), density=1e-5, format="csr", rng=0)
# Problems are taken for large ones, which are trained by minibatches.
LARGE = Tuning(judge=JudgeTuning(work=0.0))
PLANTED = planted(n=2000, d=8, hidden=2, budget=6, seed=0)

Case = tuple[Callable[..., Any], dict[str, Any], Any, np.ndarray]
Regressor, Classifier = SparseMLPRegressor, SparseMLPClassifier
CASES: dict[str, Case] = {
    "committee and student": (Regressor, {"max_iter": 12}, X, NOISY),
    "few rows": (Regressor, {"max_iter": 9}, X[:40], NOISY[:40]),
    "two targets": (Regressor, {"max_iter": 3}, X[:100], TARGETS[:100]),
    "counts": (Regressor, {"max_iter": 2, "loss": "poisson"}, X[:60], np.abs(NOISY[:60])),
    "outliers": (Regressor, {"max_iter": 2, "loss": "huber", "screen": 0.5}, X[:60], NOISY[:60]),
    "two classes": (Classifier, {"max_iter": 2}, X[:100] + 50, CODES[:100] > 0),
    "three classes": (Classifier, {"max_iter": 2, "class_weight": "balanced"}, X[:100], CODES[:100]),
    "pixels": (Classifier, {"max_iter": 2, "memory_limit": 600}, (20 * X + 99).astype(np.uint8), CODES > 1),
    "two layers": (Regressor, {"hidden": (3, 2), "max_iter": 3}, X, NOISY),
    "training": (Regressor, {"max_iter": 2, "tuning": LARGE}, X, NOISY),
    "training, classes": (Classifier, {"max_iter": 2, "tuning": LARGE, "alpha": 1e-3}, X, CODES),
    "training, two layers": (Regressor, {"max_iter": 2, "tuning": LARGE, "hidden": (3, 2)}, X, NOISY),
    "float32": (Regressor, {"max_iter": 2, "tuning": LARGE, "dtype": "float32"}, X, TARGETS),
    "recovery": (Regressor, {"hidden": 2, "bias": False}, PLANTED.X, PLANTED.y),
    "early stopping": (Regressor, {"early_stopping": True, "max_iter": 3}, X[:60], NOISY[:60]),
    "sparse rows": (Regressor, {"max_iter": 1, "alpha": 1e-3, "memory_limit": 20_000}, TEXT, NOISY),
    "hashed features": (Regressor, {"max_iter": 1, "alpha": 1e-3}, WIDE, NOISY),
    "iht": (Regressor, {"solver": IHT(), "max_iter": 5}, X, NOISY),
    "paper": (Regressor, {"solver": "paper", "max_iter": 5}, X, NOISY),
    "paper, batches": (Regressor, {"solver": "paper", "max_iter": 5, "batch_size": 50}, X, NOISY),
    "paper, two targets": (Regressor, {"solver": "paper", "max_iter": 5}, X, TARGETS),
    "paper, classes": (Classifier, {"solver": "paper", "max_iter": 5}, X, CODES),
    "paper, two layers": (Regressor, {"solver": "paper", "hidden": (3, 2), "max_iter": 5}, X, NOISY),
    "paper, sparse rows": (
        Regressor,
        {"solver": "paper", "max_iter": 4, "memory_limit": 200_000},
        TEXT,
        NOISY,
    ),
}
# Sparse rows are multiplied with on the host, where as many numbers go as there are rows and neurons.
SPARSE = ("sparse rows", "hashed features", "paper, sparse rows")


def fitted(case: Case, device: Any, **more: Any) -> Any:
    """Fit an estimator on a device."""
    Estimator, options, rows, y = case
    chosen = {"budget": 6, "hidden": 4, "random_state": 0, **options, **more, "device": device}
    return Estimator(**chosen).fit(rows, y)


def same_bits(one: Any, two: Any) -> bool:
    """Say whether two estimators have the same network, bit for bit."""
    pairs = zip([*one.coefs_, *one.intercepts_], [*two.coefs_, *two.intercepts_], strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", CASES)
def test_a_fit_stays_on_its_device(name: str) -> None:
    # A tensor of the host that is forgotten somewhere raises; the device computes as the host does.
    here = fitted(CASES[name], "cpu")
    with Traffic() as traffic:
        there = fitted(CASES[name], ELSEWHERE)
    assert same_bits(here, there)
    assert traffic.out
    assert traffic.back
    assert {crossing.module for crossing in traffic.out + traffic.back} == {"thresher.device"}
    rows = CASES[name][2].shape[0]
    assert max(traffic.read) < rows
    if name not in SPARSE:
        # Rows are placed into folds by what they hold, once for each search. All else is small.
        large = [crossing for crossing in traffic.back if crossing.numbers >= rows]
        assert {crossing.asked for crossing in large} <= {"thresher.solvers.auto.judge"}
        assert len(large) <= 4


@pytest.mark.parametrize("name", ["iht", "paper", "paper, two targets", "paper, two layers"])
def test_what_a_step_sends_to_the_host_does_not_grow_with_the_rows(name: str) -> None:
    Estimator, options, rows, y = CASES[name]
    sent = []
    for repeats in (1, 4):
        more = np.concatenate([rows] * repeats), np.concatenate([y] * repeats)
        with Traffic() as traffic:
            model = fitted((Estimator, options, *more), ELSEWHERE)
        arrays = sum(crossing.numbers for crossing in traffic.back)
        sent.append((arrays + sum(traffic.read)) / model.n_iter_)
    assert max(sent) < 1.5 * min(sent)


def test_measurements_and_operators_may_be_on_the_device() -> None:
    found = []
    for device in ("cpu", ELSEWHERE):
        with Traffic(), using(device):
            operator = GaussianOperator(rows=40, size=80, dtype=torch.float64)
            solution = iht(operator, operator.columns(slice(3, 5)).sum(1), budget=2)
            found.append((to_host(solution.w.indices), to_host(solution.w.values)))
    assert found[0][0].tolist() == [3, 4]
    assert all(np.array_equal(one, two) for one, two in zip(*found, strict=True))


def test_a_checkpoint_is_of_the_host_and_resumed_on_the_device(tmp_path: Path) -> None:
    path, case = tmp_path / "fit.checkpoint", CASES["paper"]
    with Traffic():
        whole = fitted(case, ELSEWHERE)
        kept = {"checkpoint": path, "checkpoint_every": 1}
        fitted(case, ELSEWHERE, callback=lambda record: record["passes"] > 1, **kept)
        assert path.exists()
        assert same_bits(fitted(case, ELSEWHERE, **kept), whole)


def test_a_warm_start_goes_to_the_device() -> None:
    again = [fitted(CASES["few rows"], "cpu", warm_start=True, max_iter=2)]
    again.append(again[0].fit(X[:40], NOISY[:40]))
    with Traffic():
        there = fitted(CASES["few rows"], ELSEWHERE, warm_start=True, max_iter=2).fit(X[:40], NOISY[:40])
    assert same_bits(again[1], there)


def test_only_one_module_turns_arrays_into_tensors_or_back() -> None:
    calls = []
    for path in [path for folder in COMPUTING for path in (PACKAGE / folder).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in CONVERSIONS:
                calls.append(f"{path.name}:{node.lineno} {node.attr}")
    assert calls == []


def test_tensors_are_made_on_the_device_in_use() -> None:
    with Traffic():
        with using(ELSEWHERE):
            made = torch.zeros(2), torch.arange(3), torch.tensor([1.0]), torch.empty(0), from_host(np.ones(2))
            assert {part.device for part in made} == {ELSEWHERE}
            assert to_host(made[4] + 1).tolist() == [2, 2]
        assert torch.zeros(2).device.type == "cpu"


@pytest.mark.parametrize(
    "mix",
    [
        lambda there: there + torch.ones(3),
        lambda there: there[np.array([0])],
        lambda there: torch.ones(3).copy_(there),
        lambda there: there.numpy(),
        lambda there: np.asarray(there),
        lambda there: torch.rand(3, generator=torch.Generator(), device=ELSEWHERE),
        lambda there: torch.tensor(np.ones(3), device=ELSEWHERE),
        lambda there: torch.cat([there, torch.ones(1)]),
    ],
)
def test_what_stands_in_for_a_device_refuses_what_is_of_the_host(mix: Callable[..., Any]) -> None:
    with Traffic(), using(ELSEWHERE):
        there = from_host(np.ones(3))
    with Traffic(), pytest.raises(RuntimeError, match=r"of the host|not on the host"):
        mix(there)


def test_on_the_host_arrays_and_tensors_share_memory() -> None:
    array = np.zeros(3)
    from_host(array)[1] = 5
    assert array[1] == 5
    assert np.shares_memory(to_host(from_host(array)), array)


@pytest.mark.parametrize("device", ["tpu", "mps", "meta", "cuda:99", "", 7, None, True, ["cpu"]], ids=repr)
def test_devices_that_are_not_there_are_refused_with_those_that_are(device: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        fitted(CASES["paper"], device)
    assert f"device={device!r}" in str(caught.value)
    assert "'cpu'" in str(caught.value)
    assert not usable(device)


def test_the_processor_is_always_there() -> None:
    assert devices()[0] == "cpu"
    plain = fitted(CASES["paper"], "cpu")
    assert same_bits(fitted(CASES["paper"], torch.device("cpu")), plain)
    # What torch makes elsewhere by default is no concern of a fit's.
    with torch.device("meta"):
        assert same_bits(fitted(CASES["paper"], "cpu"), plain)
        assert torch.zeros(1).device.type == "meta"
