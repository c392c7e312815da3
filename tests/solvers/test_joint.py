"""Joint training: sparse from the first step to the last, reproducible, indifferent to the order of rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from problems import Watch, normal
from torch import Tensor

from thresher import SparseMLPRegressor
from thresher.data.images import image_problem
from thresher.data.planted import planted, psnr
from thresher.objective.design import Design
from thresher.objective.layered import Held, LayeredObjective, Layout
from thresher.objective.losses import CrossEntropy, Loss, SquaredError
from thresher.solvers.iht import IHT
from thresher.solvers.joint import SPRINT, Joint
from thresher.solvers.loop import Iterate, Record, Solution, Start, run

BUDGET = 20


def planted_targets(X: np.ndarray, outputs: int, seed: int = 5) -> np.ndarray:
    """Give the outputs of a network of four neurons with few inputs each."""
    rng = np.random.default_rng(seed)
    W, V = np.zeros((X.shape[1], 4)), rng.standard_normal((4, outputs))
    for neuron in range(4):
        W[rng.choice(X.shape[1], 2, replace=False), neuron] = rng.standard_normal(2)
    return np.maximum(X @ W, 0) @ V


def objective_of(
    rows: int = 90,
    widths: tuple[int, ...] = (8, 6, 3),
    bias: bool = True,
    loss: Loss | None = None,
    order: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> LayeredObjective:
    """Give a small problem with several outputs; `order` chooses its rows."""
    X = normal(rows, widths[0], seed=2)
    y = planted_targets(X, widths[-1])
    if loss is not None and not loss.quadratic:
        y = np.eye(widths[-1])[y.argmax(1)]
    chosen = np.arange(rows) if order is None else order
    return LayeredObjective(
        Design(X[chosen], dtype=torch.float64),
        Layout(widths, bias),
        torch.from_numpy(y[chosen]),
        loss or SquaredError(),
        None if weight is None else torch.from_numpy(weight),
    )


def trained(objective: LayeredObjective, budget: int = BUDGET, passes: int = 40, **options: Any) -> Solution:
    """Train for some passes."""
    given = {name: options.pop(name) for name in ("start", "callback") if name in options}
    return run(Joint(passes=passes, **options), objective, budget, max_iter=passes, **given)


def zero_loss(objective: LayeredObjective) -> float:
    """Give the loss of the network that holds nothing."""
    return objective.loss.value(torch.zeros_like(objective.y), objective.y, objective.weight)


PROBLEMS: dict[str, dict[str, Any]] = {
    "full batch": {},
    "minibatches": {"rows": 300},
    "two hidden layers": {"widths": (8, 6, 5, 3)},
    "no biases": {"bias": False},
    "cross-entropy": {"loss": CrossEntropy()},
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the weights of every network that is made, at whatever moment of a step."""
    counts: list[int] = []
    make = LayeredObjective.hold

    def hold(self: LayeredObjective, indices: Tensor, values: Tensor) -> Held:
        counts.append(indices.numel())
        return make(self, indices, values)

    monkeypatch.setattr(LayeredObjective, "hold", hold)
    return counts


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize(("budget", "inflation"), [(5, 10.0), (20, 10.0), (20, 1.5), (20, 1.0), (60, 4.0)])
def test_no_more_is_held_than_the_inflated_budget_and_half_of_the_network(
    problem: dict[str, Any], budget: int, inflation: float, counted: list[int]
) -> None:
    objective, watch = objective_of(**problem), Watch()
    solution = trained(objective, budget, 12, inflation=inflation, callback=watch)
    most = max(budget, min(round(inflation * budget), objective.size // 2))
    assert max(counted) <= most
    for record in watch.records:
        assert record["nonzeros"] <= record["held"] <= most
        assert record["numbers"] == 3 * record["held"]
    assert 0 < solution.w.nonzeros <= budget
    assert all(iterate.w.nonzeros <= budget for iterate in watch.iterates if iterate.kept)


def test_inflation_beyond_ten_is_ten(counted: list[int]) -> None:
    trained(objective_of(widths=(30, 20, 3)), 5, 10, inflation=1000.0)
    assert max(counted) <= 50


def test_the_number_held_falls_from_the_inflated_budget_to_the_budget() -> None:
    watch = Watch()
    passes = 60
    trained(objective_of(widths=(20, 20, 3)), BUDGET, passes, inflation=10.0, callback=watch)
    records = [record["held"] for record in watch.records]
    sprint = round(SPRINT * passes)
    assert records[sprint - 1] <= BUDGET
    held = records[sprint:]
    assert held[0] > 5 * BUDGET
    # Further stretches start from the best with some room again. And weights on no path go at once while
    # their places are filled later, so a few may come back.
    first = held[: next(place for place, count in enumerate(held) if count <= BUDGET) + 1]
    assert all(later <= earlier + BUDGET // 4 for earlier, later in pairwise(first))
    assert max(held[len(first) :], default=0) <= 2 * BUDGET
    assert held[-1] <= BUDGET


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_training_explains_the_targets(problem: dict[str, Any]) -> None:
    objective = objective_of(**problem)
    solution = trained(objective, passes=400)
    # A cross-entropy is held back by the proximal step, which is larger for it than for a squared error.
    share = 0.5 if objective.loss.quadratic else 0.6
    assert solution.loss < share * zero_loss(objective)
    assert solution.loss == pytest.approx(
        objective.value(objective.hold(solution.w.indices, solution.w.values)), rel=1e-9
    )


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_handed_out_is_a_vector_of_its_layout(problem: dict[str, Any]) -> None:
    objective = objective_of(**problem)
    w = trained(objective, passes=10).w
    assert w.size == objective.size
    assert bool((w.indices.diff() > 0).all())
    assert bool(torch.isfinite(w.values).all())


@pytest.mark.parametrize("rows", [90, 300], ids=["full batch", "minibatches"])
def test_the_same_seed_gives_the_same_bits_and_another_one_does_not(rows: int) -> None:
    first, again, other = (trained(objective_of(rows), passes=15, seed=seed).w for seed in (3, 3, 4))
    assert torch.equal(first.indices, again.indices)
    assert torch.equal(first.values, again.values)
    assert not (first.same_support(other) and torch.equal(first.values, other.values))


def test_training_draws_from_no_global_state() -> None:
    states = torch.get_rng_state(), str(np.random.get_state())
    trained(objective_of(300), passes=3)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert str(np.random.get_state()) == states[1]


@pytest.mark.parametrize("rows", [90, 200])
def test_the_order_of_rows_plays_no_part_in_full_batch(rows: int) -> None:
    order = np.random.default_rng(0).permutation(rows)
    plain = trained(objective_of(rows), batch_size=None).w
    permuted = trained(objective_of(rows, order=order), batch_size=None).w
    assert plain.same_support(permuted)
    torch.testing.assert_close(permuted.values, plain.values, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", [SquaredError(), CrossEntropy()], ids=["squared error", "cross-entropy"])
def test_a_weight_is_a_number_of_repeated_rows_in_full_batch(loss: Loss) -> None:
    weight = np.random.default_rng(1).integers(0, 4, 90)
    repeated = trained(objective_of(loss=loss, order=np.repeat(np.arange(90), weight)), batch_size=None)
    weighted = trained(objective_of(loss=loss, weight=weight.astype(float)), batch_size=None)
    assert weighted.w.same_support(repeated.w)
    torch.testing.assert_close(weighted.w.values, repeated.w.values, rtol=1e-5, atol=1e-7)
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-5)


def test_weights_leave_and_return() -> None:
    watch = Watch()
    trained(objective_of(widths=(20, 10, 3)), BUDGET, 100, inflation=2.0, callback=watch)
    gone: set[int] = set()
    returned: set[int] = set()
    before: set[int] = set()
    for support in map(set, watch.supports):
        gone |= before - support
        returned |= support & gone
        before = support
    assert gone
    assert returned


def test_inputs_that_matter_are_found_among_many_that_do_not() -> None:
    X = normal(100, 40, seed=2)
    y = planted_targets(X[:, :4], 3)
    objective = LayeredObjective(
        Design(X, dtype=torch.float64), Layout((40, 6, 3)), torch.from_numpy(y), SquaredError()
    )
    solution = trained(objective, passes=400)
    piece = objective.layout.split(solution.w.indices)[0]
    _, feature = objective.layout.pairs(solution.w.indices[piece], 0)
    inputs = feature[feature < 40]
    assert int((inputs < 4).sum()) > 0.6 * inputs.numel()


def test_the_batch_of_few_rows_is_all_of_them() -> None:
    records = [trained(objective_of(90), passes=5, batch_size=size).w for size in (None, "auto", 10)]
    assert torch.equal(records[0].values, records[1].values)
    assert torch.equal(records[0].values, records[2].values)


def test_passes_are_counted_whatever_the_batch() -> None:
    for size in (None, "auto", 64):
        watch = Watch()
        solution = trained(objective_of(300), passes=6, batch_size=size, callback=watch)
        passes = [record["passes"] for record in watch.records]
        assert passes[:5] == [1, 2, 3, 4, 5]
        assert max(passes) == 6
        assert solution.status.name in ("finished", "max_iter")


# Interruption.


def assert_usable(objective: LayeredObjective, solution: Solution) -> None:
    """Assert that something within the budget came out, that it computes, and that inputs reach outputs."""
    assert solution.status.name == "interrupted"
    assert 0 < solution.w.nonzeros <= BUDGET
    assert bool(torch.isfinite(solution.w.values).all())
    held = objective.hold(solution.w.indices, solution.w.values)
    assert bool(held.alive().any())
    assert objective.value(held) < float("inf")


@pytest.mark.parametrize("step", [1, 7, 39])
def test_an_interruption_from_a_callback_leaves_a_network(step: int) -> None:
    def interrupt(record: Record, iterate: Iterate) -> None:
        if record["step"] == step:
            raise KeyboardInterrupt

    objective = objective_of()
    solution = trained(objective, callback=interrupt)
    assert_usable(objective, solution)
    assert len(solution.history) == step


@pytest.mark.parametrize("call", [1, 2, 10, 100])
def test_an_interruption_in_the_middle_of_a_pass_leaves_a_network(
    call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, read = [0], LayeredObjective.read

    def interrupted(self: LayeredObjective, rows: np.ndarray) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return read(self, rows)

    monkeypatch.setattr(LayeredObjective, "read", interrupted)
    objective = objective_of(300)
    assert_usable(objective, trained(objective))


# Warm starts.


def test_a_warm_start_goes_on_from_where_it_was() -> None:
    objective = objective_of()
    first = trained(objective, passes=150)
    warm, cold = trained(objective, passes=10, start=Start(first.w)), trained(objective, passes=10)
    assert warm.loss < 0.8 * cold.loss
    assert warm.w.nonzeros <= BUDGET


def test_a_warm_start_holds_no_more_than_a_cold_one(counted: list[int]) -> None:
    objective = objective_of(widths=(20, 10, 3))
    first = trained(objective, passes=20)
    counted.clear()
    trained(objective, passes=20, start=Start(first.w), inflation=10.0)
    assert max(counted) <= 10 * BUDGET


def test_a_start_of_nothing_is_a_cold_start() -> None:
    objective = objective_of()
    nothing = Joint().init(objective, BUDGET, None).w
    cold, warm = trained(objective, passes=10), trained(objective, passes=10, start=Start(nothing))
    assert torch.equal(cold.w.values, warm.w.values)


# Extremes.


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_budgets_below_a_path_are_kept(budget: int) -> None:
    objective = objective_of()
    solution = trained(objective, budget, 20)
    assert solution.w.nonzeros <= budget
    assert bool(torch.isfinite(solution.w.values).all())


def test_a_budget_of_everything_trains_everything(counted: list[int]) -> None:
    objective = objective_of(widths=(4, 3, 2))
    solution = trained(objective, objective.size, 400)
    assert max(counted) <= objective.size
    assert solution.loss < 0.6 * zero_loss(objective)


def test_small_networks_are_mostly_found_in_a_sprint() -> None:
    passes = []
    for seed in range(4):
        problem = planted(3000, 20, 5, 8, outputs=3, seed=seed)
        model = SparseMLPRegressor(budget=8, hidden=5, bias=False, random_state=0).fit(problem.X, problem.y)
        assert psnr(problem.y, model.predict(problem.X)) > 100
        passes.append(model.n_iter_)
    assert sorted(passes)[2] == round(SPRINT * 200)


def small_image(seed: int = 0) -> LayeredObjective:
    """Give a bright bar on a dark ground to a network of two narrow layers."""
    pixels = np.zeros((16, 16))
    pixels[3:13, 7:9] = 1
    X, y = image_problem(pixels, sigma=2.0, rows=150, seed=seed)
    return LayeredObjective(
        Design(X, bias=True, dtype=torch.float64),
        Layout((300, 2, 2, 1), bias=True, fused=True),
        torch.from_numpy(y.astype(np.float64))[:, None],
        SquaredError(),
        signs=torch.ones(2, dtype=torch.float64),
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_deep_narrow_network_does_not_end_as_a_constant(seed: int) -> None:
    objective = small_image(seed)
    y = objective.y
    constant = 0.5 * float((y - y.mean()).square().sum())
    assert trained(objective, 16, 200, seed=seed).loss < 0.7 * constant


def test_an_interruption_while_layers_are_found_one_by_one_ends_the_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(self: IHT, iterate: Iterate) -> Iterate:
        raise KeyboardInterrupt

    monkeypatch.setattr(IHT, "step", interrupted)
    solution = trained(small_image(), 16, 50)
    assert solution.status.name == "interrupted"
    assert solution.history == []
    assert solution.w.nonzeros <= 16
