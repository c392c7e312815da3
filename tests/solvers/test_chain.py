"""The paper's method for several outputs: its steps are the equations of appendix A, written out in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
import torch
from literal_outputs import LiteralOutputs, LiteralSketch
from problems import Watch, normal

from thresher.errors import ParameterError
from thresher.linear.sketch import CountSketch
from thresher.linear.vector import SparseVector
from thresher.objective.columns import Columns
from thresher.objective.data import Data
from thresher.objective.gates import DenseRandom
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Loss, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers import chain, contest
from thresher.solvers.chain import ChainIHT, authors_step
from thresher.solvers.loop import OPTIONS, Solution, Start, run

ROWS, FEATURES, NEURONS, OUTPUTS = 50, 6, 5, 3
STEP = 0.05


class Rows(NamedTuple):
    """The rows of a step, whether it lends, and whether the gates may follow after it."""

    chosen: np.ndarray
    lends: bool
    follow: bool


Batches = Iterator[Rows]


def objective_of(
    loss: Loss | None = None,
    rows: int = ROWS,
    weight: np.ndarray | None = None,
    scale: np.ndarray | None = None,
    memory_limit: int = 2**20,
    sparse: bool = False,
) -> Relu:
    """Give a small problem with several outputs, without biases, as in the paper."""
    X = normal(rows, FEATURES, seed=1)
    y = np.maximum(X @ normal(FEATURES, 2, seed=2), 0) @ normal(2, OUTPUTS, seed=3)
    if loss is not None and not loss.quadratic:
        y = y.argmax(1)[:, None]
    if sparse:
        X = X * (X > 0.3)
    data = Data(
        scipy.sparse.csr_array(X) if sparse else X,
        torch.from_numpy(y),
        None if weight is None else torch.from_numpy(weight),
        None if scale is None else Columns(np.zeros(FEATURES), scale),
        dtype=torch.float64,
        memory_limit=1 if sparse else 2**20,
    )
    assert data.sparse == sparse
    layout = Layout((FEATURES, NEURONS, OUTPUTS), bias=False)
    return Relu(data, layout, loss or SquaredError(), memory_limit=memory_limit)


def full_batch(rows: int = ROWS) -> Batches:
    """Take all rows at every step; lend at the first, and let the gates follow from the second on."""
    for step in count(1):
        yield Rows(np.arange(rows), step == 1, step >= 2)


def minibatches(size: int, seed: int) -> Batches:
    """Go through the rows in an order of the seed and the pass, which begins with a loan.

    The gates follow after every step from the second pass on.
    """
    for epoch in count():
        order = np.random.default_rng([seed, 2, epoch]).permutation(ROWS)
        for first in range(0, ROWS, size):
            yield Rows(order[first : first + size], first == 0, epoch > 0)


def lent_to(neuron: int, count: int) -> np.ndarray:
    """Draw numbers uniform in +-1, seeded by the neuron's number."""
    generator = torch.Generator().manual_seed(neuron)
    return 2 * torch.rand(count, generator=generator, dtype=torch.float64).numpy() - 1


def literal_of(
    objective: Relu, budget: int, seed: int = 0, kind: type[LiteralOutputs] = LiteralOutputs
) -> LiteralOutputs:
    """Begin a literal run with the same draws of gates, lent weights and sketch."""
    inputs, neurons, outputs = objective.layout.widths
    sketch = CountSketch.for_budget(budget, objective.size, seed)
    hashed = sketch.hashed(torch.arange(objective.size))
    cells = hashed.cells.numpy() - np.arange(4)[:, None] * sketch.width
    return kind(
        np.zeros((inputs, neurons)),
        np.zeros((neurons, outputs)),
        DenseRandom(inputs, neurons, seed).columns(0, neurons, torch.float64)[1].numpy(),
        LiteralSketch(cells, hashed.signs.numpy(), np.zeros((4, sketch.width), np.float32)),
        budget,
        STEP,
        lent_to,
        softmax=not objective.loss.quadratic,
    )


def literal_steps(
    literal: LiteralOutputs, objective: Relu, batches: Batches, steps: int, every: int = 1
) -> list[np.ndarray]:
    """Take some steps, and give all weights after each, lined up as the layout has them."""
    data = objective.data
    X = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X
    X = X if data.seen is None else X / data.seen.scale
    Y = data.targets.numpy()
    Y = np.eye(OUTPUTS)[Y[:, 0]] if literal.softmax else Y
    weight = np.ones(ROWS) if data.weight is None else data.weight.numpy()
    found = []
    for step, rows in enumerate(islice(batches, steps)):
        literal.step(X[rows.chosen], Y[rows.chosen], weight[rows.chosen], rows.lends)
        if rows.follow and step % every == 0:
            literal.follow()
        found.append(np.concatenate([literal.W.T.ravel(), literal.V.T.ravel()]))
    return found


def trained(objective: Relu, budget: int, steps: int, **options: Any) -> tuple[Solution, Watch]:
    """Run for some steps and keep what each gave."""
    watch, start = Watch(steps), options.pop("start", None)
    solution = run(
        ChainIHT(**options), objective, budget, start=start, max_iter=math.inf, callback=watch, keep="last"
    )
    return solution, watch


def compare(watch: Watch, expected: list[np.ndarray]) -> None:
    assert len(watch.iterates) == len(expected)
    for iterate, dense in zip(watch.iterates, expected, strict=True):
        np.testing.assert_allclose(iterate.w.to_dense().numpy(), dense, rtol=1e-9, atol=1e-12)


PROBLEMS: dict[str, dict[str, Any]] = {
    "squared error": {},
    "cross-entropy": {"loss": CrossEntropy(3)},
    "weighted rows": {"weight": np.random.default_rng(4).integers(1, 4, ROWS).astype(float)},
    "scaled columns": {"scale": np.array([0.5, 1, 2, 4, 3, 0.1])},
    "small blocks": {"memory_limit": 1},
    "sparse rows": {"sparse": True},
}
any_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


@any_problem
@pytest.mark.parametrize("budget", [6, 20, 45])
def test_steps_in_full_batch_are_the_papers(problem: dict[str, Any], budget: int) -> None:
    objective = objective_of(**problem)
    _, watch = trained(objective, budget, 8, step_size=STEP)
    compare(watch, literal_steps(literal_of(objective, budget), objective, full_batch(), 8))


@any_problem
def test_steps_in_minibatches_are_the_papers(problem: dict[str, Any]) -> None:
    objective = objective_of(**problem)
    _, watch = trained(objective, 14, 10, step_size=STEP, batch_size=20, seed=7)
    compare(watch, literal_steps(literal_of(objective, 14, 7), objective, minibatches(20, 7), 10))


@pytest.mark.parametrize("every", [2, 3, 100])
def test_gates_follow_every_so_many_steps(every: int) -> None:
    objective = objective_of()
    _, watch = trained(objective, 20, 8, step_size=STEP, update_gates_every=every)
    compare(watch, literal_steps(literal_of(objective, 20), objective, full_batch(), 8, every))
    always = literal_steps(literal_of(objective, 20), objective, full_batch(), 8)
    assert not np.allclose(watch.iterates[-1].w.to_dense().numpy(), always[-1])


def test_blocks_that_are_hashed_in_pieces_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = trained(objective_of(), 8, 6)[1]
    monkeypatch.setattr(contest, "PIECE", 4)
    pieces = trained(objective_of(), 8, 6)[1]
    compare(pieces, [iterate.w.to_dense().numpy() for iterate in whole.iterates])


# So that the tests above can fail: another reading of any of the four points gives other steps.


class GatesOfLentWeights(LiteralOutputs):
    """Gates that are the signs of the weights, held or lent, from the first step on."""

    def step(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, lends: bool) -> None:
        self.generators = self.W.copy()
        for i in range(NEURONS):
            if lends and not (self.W[:, i] > 0).any():
                self.generators[:, i] = self.lend(i, FEATURES)
        super().step(X, Y, weight, lends)


class LentInTheResidual(LiteralOutputs):
    """A residual to which what is lent contributes."""

    def step(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, lends: bool) -> None:
        if lends:
            gates = X @ self.generators > 0
            W, V = self.W.copy(), self.V.copy()
            for i in range(NEURONS):
                W[:, i] = W[:, i] if (W[:, i] > 0).any() else self.lend(i, FEATURES) / math.sqrt(W.size)
                V[i] = V[i] if (V[i] > 0).any() else self.lend(i, OUTPUTS) / math.sqrt(V.size)
            Y = Y - (gates * (X @ W)) @ V + (gates * (X @ self.W)) @ self.V
        super().step(X, Y, weight, lends)


class LentInTheSketch(LiteralOutputs):
    """A sketch that receives what is lent as well."""

    def compete(self, held: dict[int, float], first: int, block: np.ndarray, steps: np.ndarray) -> None:
        before = self.flat()[first : first + len(block)]
        for offset, value in enumerate(block - before):
            self.sketch.add(first + offset, value)
        super().compete(held, first, block, steps)


class AllAtOnce(LiteralOutputs):
    """A ranking over all places, once the sketch has received the whole step."""

    def compete(self, held: dict[int, float], first: int, block: np.ndarray, steps: np.ndarray) -> None:
        budget, self.budget = self.budget, self.W.size + self.V.size
        super().compete(held, first, block, steps)
        self.budget = budget
        if first + len(block) == self.budget_of_places:
            super().compete(held, first, np.zeros(0), np.zeros(0))

    @property
    def budget_of_places(self) -> int:
        return self.W.size + self.V.size


@pytest.mark.parametrize("reading", [GatesOfLentWeights, LentInTheResidual, LentInTheSketch, AllAtOnce])
def test_another_reading_gives_other_steps(reading: type[LiteralOutputs]) -> None:
    objective = objective_of()
    budget = 14
    _, watch = trained(objective, budget, 8, step_size=STEP, batch_size=20, seed=7)
    other = literal_steps(literal_of(objective, budget, 7, reading), objective, minibatches(20, 7), 8)
    assert not np.allclose(watch.iterates[-1].w.to_dense().numpy(), other[-1])


def test_blocks_without_a_positive_entry_are_lent_weights_in_every_pass() -> None:
    objective = objective_of()
    literal = literal_of(objective, 14, 7)
    literal_steps(literal, objective, minibatches(20, 7), 3)
    first = len(literal.lent)
    assert first == 2 * NEURONS
    literal_steps(literal, objective, minibatches(20, 7), 7)
    assert first < len(literal.lent) < 4 * first


@pytest.mark.parametrize("bias", [False, True])
def test_with_room_for_all_weights_a_step_is_that_of_the_gradient(bias: bool) -> None:
    # A start has gates of its own, so that the operator is the network.
    objective = objective_of()
    objective = replace(objective, layout=Layout((FEATURES, NEURONS, OUTPUTS), bias=bias))
    # Every block has positive entries, and is lent nothing.
    dense = np.random.default_rng(5).uniform(0.1, 1, objective.size)
    w = SparseVector.from_dense(torch.from_numpy(dense))
    solution, _ = trained(objective, objective.size, 1, step_size=1e-3, start=Start(w))
    running = objective.run(Point(w))
    _, gradient = objective.batch_gradient(running, objective.data.batch(slice(0, ROWS)))
    torch.testing.assert_close(solution.w.to_dense(), w.to_dense() - 1e-3 * gradient)


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


def test_a_start_is_where_the_first_step_begins() -> None:
    objective = objective_of()
    first = trained(objective, 20, 8, step_size=STEP)[0].w
    further = trained(objective, 20, 1, step_size=1e-9, start=Start(first))[0].w
    dense = first.to_dense()
    W = dense[: FEATURES * NEURONS].view(NEURONS, FEATURES)
    # Blocks without a positive entry are lent weights.
    stays = (W.abs() > 0.2) & (W > 0).any(1)[:, None]
    assert int(stays.sum()) >= 2
    torch.testing.assert_close(further.to_dense()[: W.numel()].view(W.shape)[stays], W[stays])


@pytest.mark.parametrize("done", [1, 4, 7])
def test_a_run_goes_on_from_what_is_saved(done: int) -> None:
    solver = ChainIHT(20, 7, STEP, update_gates_every=2)
    objective = objective_of()
    first = solver.init(objective, 14, None)
    iterate = first
    for _ in range(done):
        iterate = solver.step(iterate)
    state = solver.save(iterate)
    state["table"] = state["table"].clone()
    loaded = solver.load(solver.init(objective, 14, None), state)
    for _ in range(4):
        iterate, loaded = solver.step(iterate), solver.step(loaded)
        assert torch.equal(iterate.w.indices, loaded.w.indices)
        assert torch.equal(iterate.w.values, loaded.w.values)


def test_the_sketch_may_have_a_seed_of_its_own() -> None:
    objective = objective_of()
    alike, again, other = (
        trained(objective, 8, 5, seed=3, sketch_seed=seed, step_size=STEP)[0].w for seed in (None, 3, 4)
    )
    assert torch.equal(alike.to_dense(), again.to_dense())
    assert not torch.equal(alike.to_dense(), other.to_dense())


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


# Outputs that say little.


@pytest.mark.parametrize("batch", [None, 20])
@pytest.mark.parametrize("budget", [1, 14, 45])
def test_outputs_that_are_all_zero_need_no_weights(batch: int | None, budget: int) -> None:
    objective = objective_of()
    objective = replace(objective, data=Data(objective.data.X, torch.zeros(ROWS, OUTPUTS).double()))
    solution = run(ChainIHT(batch), objective, budget, max_iter=9, keep="last")
    assert solution.status.name == "fitted"
    assert solution.w.nonzeros == 0
    assert solution.loss == 0


@pytest.mark.parametrize("batch", [None, 20])
@pytest.mark.parametrize("factors", [(1, 1, 1), (1, -2, 0), (0, 0, 1)], ids=str)
def test_outputs_that_are_multiples_of_one_another_are_learned_too(
    factors: tuple[float, ...], batch: int | None
) -> None:
    objective = objective_of()
    y = objective.data.targets[:, :1] * torch.tensor(factors).double()
    objective = replace(objective, data=Data(objective.data.X, y, dtype=torch.float64))
    nothing = objective.value(Point(SparseVector.zeros(objective.size, torch.float64)))
    solution = run(ChainIHT(batch, step_size=0.1), objective, 20, max_iter=60, keep="last")
    assert solution.status.name == "max_iter"
    assert solution.w.nonzeros <= 20
    assert solution.loss < 0.9 * nothing
    output = objective.run(Point(solution.w)).forward(objective.data.batch(slice(0, ROWS)).X).output
    assert bool(torch.isfinite(output).all())


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
