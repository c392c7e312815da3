"""The paper's method for several outputs: its steps are the equations of appendix A, written out in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from problems import Watch, normal

from thresher.errors import ParameterError
from thresher.linear.sketch import CountSketch
from thresher.linear.vector import SparseVector
from thresher.objective.columns import Columns
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Loss, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers import chain
from thresher.solvers.chain import ChainIHT, authors_step
from thresher.solvers.loop import OPTIONS, Solution, Start, run

ROWS, FEATURES, NEURONS, OUTPUTS = 50, 6, 5, 3
STEP = 0.05

Batches = Iterator[tuple[np.ndarray, bool]]


def objective_of(
    loss: Loss | None = None,
    rows: int = ROWS,
    weight: np.ndarray | None = None,
    scale: np.ndarray | None = None,
    memory_limit: int = 2**20,
) -> Relu:
    """Give a small problem with several outputs, without biases, as in the paper."""
    X = normal(rows, FEATURES, seed=1)
    y = np.maximum(X @ normal(FEATURES, 2, seed=2), 0) @ normal(2, OUTPUTS, seed=3)
    if loss is not None and not loss.quadratic:
        y = y.argmax(1)[:, None]
    data = Data(
        X,
        torch.from_numpy(y),
        None if weight is None else torch.from_numpy(weight),
        None if scale is None else Columns(np.zeros(FEATURES), scale),
        dtype=torch.float64,
    )
    layout = Layout((FEATURES, NEURONS, OUTPUTS), bias=False)
    return Relu(data, layout, loss or SquaredError(), memory_limit=memory_limit)


def full_batch(rows: int = ROWS) -> Batches:
    """Take all rows at every step; lend at the first."""
    yield np.arange(rows), True
    while True:
        yield np.arange(rows), False


def minibatches(size: int, seed: int, always: bool = False) -> Batches:
    """Go through the rows in an order of the seed and the pass; lend at the first batch of a pass."""
    epoch = 0
    while True:
        order = np.random.default_rng([seed, 2, epoch]).permutation(ROWS)
        for first in range(0, ROWS, size):
            yield order[first : first + size], always or first == 0
        epoch += 1


def lent_to(neuron: int, count: int, size: int) -> np.ndarray:
    """Draw virtual weights uniform in +-1/sqrt(size of the matrix), seeded by the neuron's number."""
    generator = torch.Generator().manual_seed(neuron)
    draws = torch.rand(count, generator=generator, dtype=torch.float64).numpy()
    return (2 * draws - 1) / math.sqrt(size)


class Literal:
    """Appendix A with dense matrices, and a vector of exact sums in place of the sketch."""

    def __init__(self, objective: Relu, budget: int, step: float) -> None:
        data, self.quadratic = objective.data, objective.loss.quadratic
        self.X = data.X if data.seen is None else data.X / data.seen.scale
        y = data.targets.numpy()
        self.Y = y if self.quadratic else np.eye(OUTPUTS)[y[:, 0]]
        self.budget, self.step = budget, step
        self.weight = np.ones(ROWS) if data.weight is None else data.weight.numpy()
        self.W, self.V = np.zeros((FEATURES, NEURONS)), np.zeros((NEURONS, OUTPUTS))
        self.sums = np.zeros(FEATURES * NEURONS + NEURONS * OUTPUTS)

    @staticmethod
    def flat(W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Line up the inputs of each hidden neuron, then those of each output."""
        return np.concatenate([W.T.ravel(), V.T.ravel()])

    def take(self, rows: np.ndarray, lend: bool) -> np.ndarray:
        """Take one step and give all weights."""
        W, V = self.W.copy(), self.V.copy()
        for neuron in range(NEURONS if lend else 0):
            if not self.W[:, neuron].any():
                W[:, neuron] = lent_to(neuron, FEATURES, FEATURES * NEURONS)
            if not self.V[neuron].any():
                V[neuron] = lent_to(neuron, OUTPUTS, NEURONS * OUTPUTS)
        X, Y, weight = self.X[rows], self.Y[rows], self.weight[rows]
        summed = X @ W
        hidden = np.maximum(summed, 0)
        output = hidden @ V
        if not self.quadratic:
            shifted = np.exp(output - output.max(1, keepdims=True))
            output = shifted / shifted.sum(1, keepdims=True)
        slope = (output - Y) * (weight / weight.sum())[:, None]
        gradient = self.flat(X.T @ ((slope @ V.T) * (summed > 0)), hidden.T @ slope)
        lent = self.flat(W - self.W, V - self.V)
        self.sums += lent - self.step * gradient
        kept = np.argsort(-np.abs(self.sums), kind="stable")[: self.budget]
        w = np.zeros_like(self.sums)
        w[kept] = (self.flat(W, V) - self.step * gradient)[kept]
        self.W = w[: FEATURES * NEURONS].reshape(NEURONS, FEATURES).T
        self.V = w[FEATURES * NEURONS :].reshape(OUTPUTS, NEURONS).T
        return w


@pytest.fixture
def exact_sketch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sketch so wide that its estimates are the sums themselves."""

    def wide(budget: int, size: int, seed: int = 0) -> CountSketch:
        return CountSketch(size, 2**16, 4, seed, torch.float64)

    monkeypatch.setattr(chain.CountSketch, "for_budget", staticmethod(wide))


def trained(objective: Relu, budget: int, steps: int, **options: Any) -> tuple[Solution, Watch]:
    """Run for some steps and keep what each gave."""
    watch, start = Watch(steps), options.pop("start", None)
    solution = run(
        ChainIHT(**options), objective, budget, start=start, max_iter=math.inf, callback=watch, keep="last"
    )
    return solution, watch


PROBLEMS: dict[str, dict[str, Any]] = {
    "squared error": {},
    "cross-entropy": {"loss": CrossEntropy(3)},
    "weighted rows": {"weight": np.random.default_rng(4).integers(1, 4, ROWS).astype(float)},
    "scaled columns": {"scale": np.array([0.5, 1, 2, 4, 3, 0.1])},
    "small blocks": {"memory_limit": 1},
}
any_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


@any_problem
@pytest.mark.parametrize("budget", [6, 20, 45])
def test_steps_in_full_batch_are_the_papers(problem: dict[str, Any], budget: int, exact_sketch: None) -> None:
    objective = objective_of(**problem)
    literal, batches = Literal(objective, budget, STEP), full_batch()
    _, watch = trained(objective, budget, 8, step_size=STEP)
    assert len(watch.iterates) == 8
    for iterate in watch.iterates:
        expected = literal.take(*next(batches))
        np.testing.assert_allclose(iterate.w.to_dense().numpy(), expected, rtol=1e-9, atol=1e-12)


@any_problem
def test_steps_in_minibatches_are_the_papers(problem: dict[str, Any], exact_sketch: None) -> None:
    objective = objective_of(**problem)
    literal, batches = Literal(objective, 8, STEP), minibatches(20, seed=7)
    _, watch = trained(objective, 8, 9, step_size=STEP, batch_size=20, seed=7)
    for iterate in watch.iterates:
        expected = literal.take(*next(batches))
        np.testing.assert_allclose(iterate.w.to_dense().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_lending_at_another_time_would_give_other_steps(exact_sketch: None) -> None:
    # So that the two tests above can fail: some neuron is empty after the first step.
    objective = objective_of()
    literal, batches = Literal(objective, 8, STEP), minibatches(20, seed=7, always=True)
    _, watch = trained(objective, 8, 9, step_size=STEP, batch_size=20, seed=7)
    last = [literal.take(*next(batches)) for _ in range(9)][-1]
    assert not np.allclose(watch.iterates[-1].w.to_dense().numpy(), last)


@pytest.mark.parametrize(
    ("batch", "steps", "expected"),
    [(None, 5, [1]), (ROWS, 5, [1]), (10**6, 5, [1]), (25, 6, [1, 3, 5]), (20, 7, [1, 4, 7])],
)
def test_weights_are_lent_at_the_first_step_or_at_the_first_batch_of_every_pass(
    batch: int | None, steps: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lent, step = [], chain._Run.stepped

    def stepped(self: Any, w: SparseVector) -> SparseVector:
        lent.append(self.lends)
        return step(self, w)

    monkeypatch.setattr(chain._Run, "stepped", stepped)
    trained(objective_of(), 8, steps, batch_size=batch)
    assert [number + 1 for number, lend in enumerate(lent) if lend] == expected


def test_what_is_lent_is_small_and_depends_on_the_neuron_alone() -> None:
    one, again, other = (chain._draw(neuron, 1000, 400, torch.float64) for neuron in (3, 3, 4))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert 0.9 / 20 < float(one.abs().max()) <= 1 / 20
    assert abs(float(one.mean())) < 5 / 20 / math.sqrt(3 * 1000)


@any_problem
@pytest.mark.parametrize("batch", [None, 20])
@pytest.mark.parametrize("budget", [1, 4, 17])
def test_the_budget_holds_at_every_step(problem: dict[str, Any], batch: int | None, budget: int) -> None:
    solution, watch = trained(objective_of(**problem), budget, 12, batch_size=batch)
    assert all(record["nonzeros"] <= budget for record in watch.records)
    assert 0 < solution.w.nonzeros <= budget


def test_the_sketch_is_the_papers() -> None:
    objective = objective_of()
    sketch = ChainIHT(seed=3).init(objective, 10, None).carry.sketch
    expected = CountSketch.for_budget(10, objective.size, seed=3)
    assert (sketch.rows, sketch.width, sketch.table.dtype) == (4, expected.width, torch.float32)


def test_a_full_budget_with_small_steps_is_gradient_descent() -> None:
    objective = objective_of()
    solution, watch = trained(objective, objective.size, 200, step_size=0.2)
    losses = [record["loss"] for record in watch.records]
    assert all(after <= before for before, after in pairwise(losses))
    assert solution.loss < 0.2 * losses[0]


def test_the_same_seed_gives_the_same_bits() -> None:
    first, again, other = (trained(objective_of(), 8, 9, batch_size=20, seed=seed)[0].w for seed in (1, 1, 2))
    assert torch.equal(first.indices, again.indices)
    assert torch.equal(first.values, again.values)
    assert not torch.equal(first.to_dense(), other.to_dense())


def test_blocks_of_estimates_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained(objective_of(), 8, 5)[0].w
    monkeypatch.setattr(chain, "BLOCK", 7)
    pieces = trained(objective_of(), 8, 5)[0].w
    assert torch.equal(whole.indices, pieces.indices)
    assert torch.equal(whole.values, pieces.values)


def test_a_start_is_where_the_first_step_begins(exact_sketch: None) -> None:
    objective = objective_of()
    first = trained(objective, 20, 4, step_size=STEP)[0].w
    step = 1e-9
    further = trained(objective, 20, 1, step_size=step, start=Start(first))[0].w
    held = first.indices[first.values.abs() > 0.2]
    assert held.numel() > 0
    torch.testing.assert_close(further.at(held), first.at(held), rtol=0, atol=1e-6)


def test_loss_is_told_after_every_pass() -> None:
    _, watch = trained(objective_of(), 8, 9, batch_size=20, step_size=STEP)
    for record, iterate in zip(watch.records, watch.iterates, strict=True):
        whole = abs(record["passes"] - round(record["passes"])) < 1e-9
        assert math.isnan(record["loss"]) != whole
        if whole:
            objective = objective_of()
            assert record["loss"] == pytest.approx(objective.value(Point(iterate.w)))
    assert [round(record["passes"], 6) for record in watch.records[:3]] == [0.4, 0.8, 1.0]


# Step sizes.


def sized(neurons: int, loss: Loss) -> Relu:
    """Give an objective with some number of hidden neurons."""
    return replace(objective_of(loss), layout=Layout((FEATURES, neurons, OUTPUTS), bias=False))


@pytest.mark.parametrize(
    ("neurons", "budget", "expected"),
    [(10, 10, 2.0), (10, 20, 2.0), (10, 21, 0.005), (10, 1000, 0.005), (100, 70, 2.0), (100, 71, 0.005)],
)
def test_the_step_for_a_squared_error_is_the_authors(neurons: int, budget: int, expected: float) -> None:
    # 6 m^0.536 is 20.6 for m = 10 and 70.8 for m = 100.
    assert authors_step(sized(neurons, SquaredError()), budget) == expected


@pytest.mark.parametrize("budget", [1, 10, 1000])
def test_the_step_for_the_cross_entropy_is_the_authors(budget: int) -> None:
    assert authors_step(sized(10, CrossEntropy(3)), budget) == 0.001


def test_the_step_is_the_authors_unless_one_is_given() -> None:
    objective = objective_of()
    for given, expected in ((None, 2.0), (0.125, 0.125)):
        _, watch = trained(objective, 6, 2, step_size=given)
        assert [record["step_size"] for record in watch.records] == [expected] * 2


# Divergence.


@pytest.mark.parametrize("batch", [None, 20])
@pytest.mark.parametrize("step", [10.0, 1e6, 1e300])
def test_steps_that_are_too_large_end_in_a_word_and_finite_weights(batch: int | None, step: float) -> None:
    solution = run(ChainIHT(batch_size=batch, step_size=step), objective_of(), 20, max_iter=2000, keep="last")
    assert solution.status.name == "diverged"
    assert bool(torch.isfinite(solution.w.values).all())
    assert solution.w.nonzeros <= 20


def test_what_is_handed_out_after_divergence_is_the_best_whose_loss_is_known() -> None:
    objective, watch = objective_of(), Watch()
    solver = ChainIHT(batch_size=20, step_size=1.6)
    solution = run(solver, objective, 20, max_iter=2000, keep="last", callback=watch)
    assert solution.status.name == "diverged"
    known = [record["loss"] for record in watch.records[:-1] if not math.isnan(record["loss"])]
    assert math.isnan(watch.records[0]["loss"])
    assert solution.loss == min(known)
    assert solution.loss == pytest.approx(objective.value(Point(solution.w)))


# What it cannot work on.


@pytest.mark.parametrize(
    ("layout", "missing"),
    [
        (
            Layout((FEATURES, 4, 4, OUTPUTS)),
            r"a network of 2 hidden layers .*: it needs exactly 1 hidden layer\.",
        ),
        (Layout((FEATURES, 4, OUTPUTS), direct=True), r"a layout with direct connections: .*\.$"),
        (Layout((FEATURES, 4, 1), fused=True), r"a layout with a fused output: .*\.$"),
    ],
    ids=["two hidden layers", "direct connections", "fused output"],
)
def test_what_it_cannot_train_is_refused_in_one_sentence(layout: Layout, missing: str) -> None:
    with pytest.raises(ParameterError, match=f"^ChainIHT cannot work on {missing}"):
        run(ChainIHT(), replace(objective_of(), layout=layout), 10)


def test_the_paper_has_no_early_stopping() -> None:
    assert ChainIHT().needs.options == OPTIONS - {"early_stopping"}
