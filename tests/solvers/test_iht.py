"""Iterative hard thresholding: the paper's to the letter, exact about its budget, and able to recover."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import literal
import numpy as np
import pytest
import torch
from problems import (
    EXACT,
    SOLVERS,
    NetworkProblem,
    Problem,
    Watch,
    breathing,
    dense_generators,
    following_solvers,
    given_generators,
    network_problem,
    normal,
    one_sparse_network,
    recoverable,
    sensing,
)

from thresher.errors import BudgetError, DataError, ParameterError
from thresher.linear.budget import constant, keep_largest
from thresher.linear.gaussian import GaussianOperator
from thresher.linear.matrix import DenseColumns, MatrixOperator, UnitColumns
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import sparse_random
from thresher.objective.layout import Layout
from thresher.objective.linear import Linear
from thresher.objective.loss import Logistic, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.iht import IHT, iht, paper_iht, theorem_iht
from thresher.solvers.loop import OPTIONS, Iterate, Record, Solution, Start, run

FOLLOWING = list(following_solvers(1))


def fit(
    problem: NetworkProblem, solver: IHT, steps: int, signs: torch.Tensor | None = None
) -> tuple[Solution, Watch]:
    """Run a solver on a planted network for so many steps."""
    watch = Watch(steps)
    return run(solver, problem.objective(signs), problem.budget, max_iter=10**9, callback=watch), watch


def oracle(
    problem: NetworkProblem, steps: int, **options: Any
) -> tuple[list[dict[str, Any]], list[np.ndarray]]:
    """Run the literal algorithm from the same generators; give its records and its weights, flat."""
    generators = dense_generators(problem.operator().generators).numpy()
    weights: list[np.ndarray] = []
    result = literal.run(
        problem.X,
        problem.y,
        problem.hidden,
        problem.budget,
        steps,
        generators=generators,
        callback=lambda record, matrix: weights.append(matrix.T.reshape(-1)),
        **options,
    )
    return result.history, weights


def assert_equals_oracle(watch: Watch, history: list[dict[str, Any]], weights: list[np.ndarray]) -> None:
    for step, (expected, dense) in enumerate(zip(history, weights, strict=True)):
        record, w = watch.records[step], watch.iterates[step].w
        assert record["gates_moved"] == expected["moved"], f"gates after step {step + 1}"
        assert tuple(w.indices.tolist()) == expected["support"], f"support after step {step + 1}"
        np.testing.assert_allclose(w.to_dense().numpy(), dense, rtol=0, atol=1e-9)
        assert record["step_size"] == pytest.approx(expected["eta"], rel=1e-9)


# With noise there is always something left to fit: step sizes are never quotients of rounding errors.
NOISY = {
    "small": network_problem(noise=0.1, seed=1),
    "sparse": network_problem(400, 10, 6, 9, noise=0.1, seed=2),
    "many weights": network_problem(200, 20, 8, 60, noise=0.5, seed=4),
}


@pytest.mark.parametrize("every", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("name", NOISY)
def test_the_paper_solver_is_the_literal_one_step_by_step(name: str, every: int) -> None:
    steps = 16
    _, watch = fit(NOISY[name], paper_iht(update_gates_every=every), steps)
    assert_equals_oracle(watch, *oracle(NOISY[name], steps, update_gates_every=every))


class SameBatches:
    """The order of rows that the solver draws, pass by pass, in the form that the oracle asks for."""

    def __init__(self, seed: int) -> None:
        self.seed, self.passes = seed, 0

    def permutation(self, rows: int) -> np.ndarray:
        self.passes += 1
        return np.random.default_rng([self.seed, self.passes - 1]).permutation(rows)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("batch", [100, 70])
def test_the_paper_solver_is_the_literal_one_on_minibatches(batch: int, every: int) -> None:
    problem, steps = NOISY["small"], 18
    _, watch = fit(problem, paper_iht(update_gates_every=every, batch_size=batch, seed=9), steps)
    options = {"batch": batch, "rng": SameBatches(9), "update_gates_every": every}
    assert_equals_oracle(watch, *oracle(problem, steps, **options))


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "no refinement"])
@pytest.mark.parametrize("problem", recoverable().values(), ids=str)
def test_sparse_vectors_are_recovered(problem: Problem, name: str) -> None:
    solution = iht(problem.operator, problem.y, problem.budget, solver=SOLVERS[name], max_iter=60)
    assert solution.w.indices.tolist() == problem.w.indices.tolist()
    torch.testing.assert_close(solution.w.values, problem.w.values, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_compressed_sensing(seed: int, dtype: torch.dtype) -> None:
    problem = sensing("", GaussianOperator(100, 1000, seed=seed, block=300, dtype=dtype), budget=8, seed=seed)
    solution = iht(problem.operator, problem.y, budget=8)
    assert solution.status.name in ("settled", "fitted")
    assert solution.w.indices.tolist() == problem.w.indices.tolist()
    tolerance = 1e-4 if dtype == torch.float32 else 1e-8
    torch.testing.assert_close(solution.w.values, problem.w.values, rtol=0, atol=tolerance)


@pytest.mark.parametrize("seed", range(6))
def test_the_theorem_s_variant_recovers_one_sparse_neurons(seed: int) -> None:
    problem, beta, inflated = one_sparse_network("", rows=600, features=8, budget=4, seed=seed), 5.0, 8
    operator, watch = UnitColumns(problem.operator), Watch()
    solver = theorem_iht(beta, budget=4, inflation=2.0)
    solution = run(solver, Linear(operator, problem.y), inflated, max_iter=300, callback=watch)
    assert [record["step_size"] for record in watch.records] == pytest.approx([2 / (3 * beta)] * 300)
    assert max(record["nonzeros"] for record in watch.records) == inflated
    for iterate in watch.iterates[::20]:
        smooth = torch.linalg.eigvalsh(operator.on_support(iterate.w.indices).gram()).max()
        assert float(smooth) <= beta, "the step size assumes as much"
    found = keep_largest(operator.unscale(solution.w), problem.budget)
    assert found.indices.tolist() == problem.w.indices.tolist()
    torch.testing.assert_close(found.values, problem.w.values, rtol=0, atol=1e-2)


def test_an_inflated_budget_hands_out_no_more_than_was_asked_for_and_not_nothing() -> None:
    problem = one_sparse_network("", rows=600, features=8, budget=4, seed=0)
    operator = UnitColumns(problem.operator)
    solution = iht(operator, problem.y, 4, solver=theorem_iht(5.0, budget=4, inflation=2.0))
    assert solution.w.indices.tolist() == problem.w.indices.tolist()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("problem", recoverable().values(), ids=str)
@pytest.mark.parametrize("inflation", [1.0, 1.7])
def test_never_more_nonzeros_than_the_schedule_allows(problem: Problem, name: str, inflation: float) -> None:
    schedule = breathing(problem.budget, inflation)
    watch, solver = Watch(), replace(SOLVERS[name], schedule=schedule)
    objective = Linear(problem.operator, problem.y)
    solution = run(solver, objective, problem.budget, max_iter=9, callback=watch)
    for step, (record, iterate) in enumerate(zip(watch.records, watch.iterates, strict=True)):
        assert record["nonzeros"] == iterate.w.nonzeros <= schedule(step)
        assert (iterate.w.values != 0).all(), "a zero is no weight"
        assert (iterate.w.indices.diff() > 0).all()
    assert 1 <= solution.w.nonzeros <= problem.budget


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("negative", [0.0, 0.5], ids=["positive", "both signs"])
def test_never_more_nonzeros_than_the_schedule_allows_while_gates_follow(name: str, negative: float) -> None:
    problem = network_problem(negative=negative, seed=5)
    solver = following_solvers(problem.budget)[name]
    solution, watch = fit(problem, solver, steps=17, signs=problem.signs)
    schedule = solver.schedule or constant(problem.budget)
    assert all(iterate.w.nonzeros <= schedule(step) for step, iterate in enumerate(watch.iterates))
    assert 1 <= solution.w.nonzeros <= problem.budget


@pytest.mark.parametrize("name", FOLLOWING)
def test_the_same_seed_gives_the_same_bits(name: str) -> None:
    problem = network_problem(seed=6)
    solver = following_solvers(problem.budget)[name]
    (one, first), (other, second) = (fit(problem, solver, steps=15) for _ in range(2))
    assert torch.equal(one.w.indices, other.w.indices)
    assert torch.equal(one.w.values, other.w.values)
    assert one.loss == other.loss
    for left, right in zip(first.iterates, second.iterates, strict=True):
        assert torch.equal(left.w.to_dense(), right.w.to_dense())


def test_another_seed_gives_other_minibatches() -> None:
    problem = network_problem(seed=6)
    one, other = (fit(problem, paper_iht(batch_size=50, seed=seed), steps=8)[0] for seed in (0, 1))
    assert not torch.equal(one.w.to_dense(), other.w.to_dense())


@pytest.mark.parametrize("name", FOLLOWING)
def test_permuting_features_permutes_the_support(name: str) -> None:
    problem, steps = network_problem(seed=7), 12
    features, hidden = problem.X.shape[1], problem.hidden
    order = np.random.default_rng(0).permutation(features)
    generators = dense_generators(problem.operator().generators)
    solver = replace(following_solvers(problem.budget)[name], settle=None)
    found = []
    for chosen in (np.arange(features), order):
        data = Data(problem.X[:, chosen], dtype=torch.float64)
        operator = GatedOperator(data, given_generators(generators[chosen]))
        objective = Linear(operator, torch.from_numpy(problem.y))
        found.append(
            run(solver, objective, problem.budget, max_iter=steps).w.to_dense().view(hidden, features)
        )
    assert torch.equal(found[1] != 0, found[0][:, order] != 0)
    torch.testing.assert_close(found[1], found[0][:, order], rtol=0, atol=1e-8)


def test_permuting_columns_permutes_the_support() -> None:
    problem = recoverable()["a matrix of one's own"]
    matrix = problem.operator.as_matrix()
    order = torch.from_numpy(np.random.default_rng(1).permutation(matrix.shape[1]))
    found = iht(type(problem.operator)(matrix[:, order]), problem.y, problem.budget)  # type: ignore[call-arg]
    assert sorted(order[found.w.indices].tolist()) == problem.w.indices.tolist()


def test_the_same_support_for_any_memory_limit() -> None:
    rows, features, hidden, budget = 90, 5000, 9, 25
    rng = np.random.default_rng(8)
    X = rng.standard_normal((rows, features))
    y = np.maximum(X[:, :3] @ rng.standard_normal((3, 4)), 0).sum(1)
    supports, blocks = [], []
    for limit in (2**17, 700_000, 2**20, 2**26):
        operator = GatedOperator(
            Data(X, dtype=torch.float64), sparse_random(features, hidden, 3), memory_limit=limit
        )
        watch = Watch(6)
        solver = IHT(update_gates_every=1, fallback=sparse_random(features, hidden, 3, seed=1), settle=None)
        run(solver, Linear(operator, torch.from_numpy(y)), budget, callback=watch)
        supports.append(watch.supports)
        blocks.append((operator.block, operator.fits_whole))
    assert len(set(blocks)) == 4 and {whole for _, whole in blocks} == {False, True}
    assert all(each == supports[0] for each in supports)


@pytest.mark.parametrize("every", [1, 2, 5])
@pytest.mark.parametrize("settle", [1, 3, 6])
def test_settled_means_unchanged_across_an_update_of_the_gates(every: int, settle: int) -> None:
    # A budget of all weights: the support is everything from the first step on, whatever the gates do.
    operator = network_problem(rows=200, features=3, hidden=2).operator()
    objective = Linear(operator, torch.from_numpy(normal(200, seed=1)))
    solver = replace(paper_iht(update_gates_every=every), settle=settle)
    solution = run(solver, objective, operator.size, max_iter=50)
    assert solution.status.name == "settled"
    steps = len(solution.history)
    assert [record["support_changed"] for record in solution.history] == [True] + (steps - 1) * [False]
    update = next(record["step"] for record in solution.history if record["gates_moved"])
    assert steps == max(update + 1, settle + 1), "as soon as a step has followed an update, and no sooner"


def test_a_planted_network_settles_when_it_is_found() -> None:
    problem = network_problem(rows=2000, features=20, hidden=3, budget=30, seed=0)
    solution, watch = fit(problem, paper_iht(settle=3), steps=200)
    assert solution.status.name == "settled"
    assert [record["support_changed"] for record in watch.records][-4:] == [True, False, False, False]
    assert literal.psnr(problem.y, literal.predict(problem.X, dense_weights(solution, problem))) > 60


def dense_weights(solution: Solution, problem: NetworkProblem) -> np.ndarray:
    return solution.w.to_dense().view(problem.hidden, -1).T.numpy()


def test_fixed_gates_settle_without_an_update() -> None:
    problem = recoverable()["1-sparse neurons"]
    solution = iht(problem.operator, problem.y, problem.budget, solver=IHT(settle=2), tol=-1.0)
    assert solution.status.name == "settled"
    assert not any(record["gates_moved"] for record in solution.history)
    assert [record["support_changed"] for record in solution.history][-2:] == [False, False]


def test_a_small_loss_is_fitted() -> None:
    problem = recoverable()["compressed sensing"]
    solution = iht(problem.operator, problem.y, problem.budget, solver=IHT(settle=None), tol=1e-6)
    assert solution.status.name == "fitted"
    assert solution.loss <= 1e-6 < solution.history[-2]["loss"]


@pytest.mark.parametrize("batch", [None, 30, 100, 7, 299, 300, 1000])
@pytest.mark.parametrize("passes", [1, 3])
def test_max_iter_counts_passes_over_the_data(batch: int | None, passes: int) -> None:
    problem = network_problem(rows=300)
    objective = problem.objective()
    solution = run(paper_iht(batch_size=batch), objective, problem.budget, max_iter=passes)
    steps = passes * (1 if batch is None else -(-300 // batch))
    assert solution.status.name == "max_iter"
    assert len(solution.history) == steps
    assert solution.history[-1]["passes"] == pytest.approx(passes)


def test_minibatches_hold_every_row_once_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, taken = network_problem(rows=100), []
    take = Data.take

    def watched(data: Data, rows: np.ndarray) -> Data:
        taken.append(rows)
        return take(data, rows)

    monkeypatch.setattr(Data, "take", watched)
    fit(problem, paper_iht(batch_size=30), steps=12)
    for first in (0, 4, 8):
        assert [len(rows) for rows in taken[first : first + 4]] == [30, 30, 30, 10]
        assert sorted(np.concatenate(taken[first : first + 4])) == list(range(100))
    assert not np.array_equal(taken[0], taken[4]), "every pass in another order"


@pytest.mark.parametrize(
    "solver, missing",
    [(IHT(batch_size=10), "some of its rows"), (IHT(update_gates_every=1), "gates .* follow the weights")],
    ids=["minibatches", "gates that follow"],
)
def test_what_an_operator_cannot_do_is_refused_before_work_starts(solver: IHT, missing: str) -> None:
    problem, watch = recoverable()["compressed sensing"], Watch()
    with pytest.raises(
        ParameterError, match=rf"^GaussianOperator has no .*{missing}.*: use \S+=None[^.]*\.$"
    ):
        iht(problem.operator, problem.y, problem.budget, solver=solver, callback=watch.records.append)
    assert not watch.records


def relu_objective(problem: NetworkProblem) -> Relu:
    """Give the objective of the ReLU network itself."""
    y = torch.from_numpy(problem.y)[:, None]
    layout = Layout((problem.X.shape[1], problem.hidden, 1), bias=False, fused=True)
    return Relu(Data(problem.X, y, dtype=torch.float64), layout, SquaredError())


def test_the_objective_of_a_relu_network_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        ParameterError, match=r"^IHT cannot work on Relu: it needs a linear objective, and this one is relu\."
    ):
        run(paper_iht(), relu_objective(network_problem()), 12)


def test_the_paper_has_no_early_stopping() -> None:
    assert paper_iht().needs.options == OPTIONS - {"early_stopping"}
    assert IHT().needs.options == OPTIONS


def test_an_interruption_keeps_the_best_so_far() -> None:
    problem = network_problem(seed=9)

    def interrupt(record: Record, iterate: Iterate) -> None:
        if record["step"] == 6:
            raise KeyboardInterrupt

    objective = problem.objective()
    solution = run(paper_iht(), objective, problem.budget, callback=interrupt)
    assert solution.status.name == "interrupted"
    assert solution.loss == min(record["loss"] for record in solution.history)
    assert 1 <= solution.w.nonzeros <= problem.budget


@pytest.mark.parametrize("name", FOLLOWING)
def test_what_is_handed_out_is_the_best_within_the_budget(name: str) -> None:
    problem = network_problem(seed=10)
    solution, watch = fit(problem, following_solvers(problem.budget)[name], steps=20)
    # While gates lag behind the weights, a loss is not that of any network.
    within = [it for it in watch.iterates if it.exact and it.w.nonzeros <= problem.budget]
    assert solution.loss == min(iterate.loss for iterate in within)
    best = next(iterate for iterate in within if iterate.loss == solution.loss)
    assert torch.equal(solution.w.to_dense(), best.w.to_dense())


@pytest.mark.parametrize("negative", [0.0, 0.5], ids=["positive", "both signs"])
def test_the_loss_is_that_of_the_relu_network_once_gates_follow(negative: float) -> None:
    problem = network_problem(negative=negative, seed=11)
    _, watch = fit(problem, IHT(update_gates_every=1, settle=None), steps=8, signs=problem.signs)
    own = [place for place, record in enumerate(watch.records) if record["gates_moved"]]
    assert own == list(range(1, 8))
    for place in own:
        iterate = watch.iterates[place]
        weights = iterate.w.to_dense().view(problem.hidden, -1).numpy()
        output = np.maximum(problem.X @ weights.T, 0) @ problem.signs.numpy()
        assert iterate.loss == pytest.approx(0.5 * np.mean((output - problem.y) ** 2), rel=1e-9)
        assert iterate.loss == pytest.approx(relu_objective(problem).value(Point(iterate.w, iterate.signs)))


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_handed_out_is_that_of_the_network_handed_out(seed: int) -> None:
    # Random gates fit targets below zero, which a network of positive signs cannot.
    problem = network_problem(rows=500, features=6, hidden=4, budget=8, negative=0.5, seed=seed)
    solution, _ = fit(problem, IHT(update_gates_every=1, settle=None), steps=12)
    assert solution.signs is not None and bool((solution.signs == 1).all())
    expected = relu_objective(problem).value(Point(solution.w, solution.signs))
    assert solution.loss == pytest.approx(expected, rel=1e-9)


def test_a_start_brings_its_own_signs() -> None:
    problem = network_problem(negative=0.5, seed=11)
    w = fit(problem, IHT(update_gates_every=1, settle=None), steps=8, signs=problem.signs)[0].w
    solver = IHT(update_gates_every=1)
    begun = solver.init(problem.objective(), problem.budget, Start(w, problem.signs))
    assert begun.exact
    assert begun.loss == pytest.approx(relu_objective(problem).value(Point(w, problem.signs.double())))
    assert torch.equal(solver.step(begun).signs, problem.signs.double())


@pytest.mark.parametrize("seed", range(4))
def test_signs_let_targets_be_of_any_sign(seed: int) -> None:
    problem = network_problem(rows=1000, features=6, hidden=4, budget=8, negative=0.5, seed=seed)
    solver = IHT(update_gates_every=1, refinement=EXACT, settle=None)
    below_zero = 0.5 * float(np.mean(np.minimum(problem.y, 0) ** 2))
    lowest = []
    for signs in (None, problem.signs):
        _, watch = fit(problem, solver, steps=30, signs=signs)
        lowest.append(min(record["loss"] for record in watch.records if record["gates_moved"]))
    assert lowest[0] >= below_zero * (1 - 1e-9), "all that is below zero is lost"
    assert lowest[1] < 0.2 * below_zero


def live_neurons(watch: Watch, features: int) -> list[set[int]]:
    return [set((iterate.w.indices // features).tolist()) for iterate in watch.iterates]


def comebacks(problem: NetworkProblem, solver: IHT) -> int:
    """Count neurons that have no weights after one step with their own gates, and some after the next."""
    _, watch = fit(problem, solver, steps=30)
    live = live_neurons(watch, problem.X.shape[1])
    moved = [record["gates_moved"] for record in watch.records]
    return sum(len(after - before) for before, after, own in zip(live, live[1:], moved, strict=False) if own)


def test_only_a_fallback_brings_back_a_neuron_that_lost_its_last_weight() -> None:
    problems = [network_problem(rows=300, features=6, hidden=12, budget=14, seed=seed) for seed in range(4)]
    spare = sparse_random(6, 12, 2, seed=1)
    lost = IHT(update_gates_every=1, settle=None)
    assert [comebacks(problem, lost) for problem in problems] == [0, 0, 0, 0]
    assert sum(comebacks(problem, replace(lost, fallback=spare)) for problem in problems) > 0


@pytest.mark.parametrize("loss, alpha", [("squared", 0.0), ("squared", 0.5), ("logistic", 0.5)])
def test_thresholding_what_was_evaluated_is_thresholding_everything(loss: str, alpha: float) -> None:
    problem = network_problem(seed=13)
    y = torch.from_numpy(problem.y)
    weight = torch.linspace(0.5, 2, len(y), dtype=torch.float64)
    objective = Linear(problem.operator(), y, weight=weight, alpha=alpha)
    if loss == "logistic":
        objective = replace(objective, y=(y > y.median()).double(), loss=Logistic())
    A = problem.operator().as_matrix()
    w = keep_largest(torch.from_numpy(normal(objective.size, seed=1)), 9)
    dense = w.to_dense()
    gradient = A.T @ objective.slope(A @ dense) + alpha * dense
    at = objective.evaluate(w, extra=12)
    torch.testing.assert_close(at.output, A @ dense)
    assert at.value == pytest.approx(objective.measure(A @ dense, w.values)) == objective.value(w)
    torch.testing.assert_close(at.gradient.values, gradient[at.gradient.indices])
    assert at.gradient.nonzeros <= 9 + 12
    for eta in (1e-6, 1e-3, 1.0):
        sparse = at.gradient.with_values(w.at(at.gradient.indices) - eta * at.gradient.values)
        for budget in (1, 9, 12):
            expected = keep_largest(dense - eta * gradient, budget)
            assert keep_largest(sparse, budget).indices.tolist() == expected.indices.tolist()


def test_targets_of_zero_are_fitted_by_nothing() -> None:
    for problem in (recoverable()["compressed sensing"], recoverable()["1-sparse neurons"]):
        solution = iht(problem.operator, np.zeros(problem.operator.rows), budget=3)
        assert (solution.status.name, solution.w.nonzeros, solution.loss) == ("fitted", 0, 0.0)


def test_a_budget_of_everything_reaches_least_squares() -> None:
    problem = network_problem(rows=60, features=3, hidden=2)
    operator = problem.operator()
    solver = IHT(refinement=EXACT, settle=None)
    solution = iht(operator, problem.y, budget=10**6, solver=solver, max_iter=3)
    expected, *_ = np.linalg.lstsq(operator.as_matrix().numpy(), problem.y, rcond=None)
    np.testing.assert_allclose(solution.w.to_dense().numpy(), expected, atol=1e-8)


def test_a_start_is_where_it_starts() -> None:
    problem = recoverable()["compressed sensing"]
    solution = iht(problem.operator, problem.y, problem.budget, start=problem.w, max_iter=1)
    assert solution.w.indices.tolist() == problem.w.indices.tolist()
    assert solution.loss <= 1e-20


def test_measurements_may_come_in_any_form_and_stay_as_they_are() -> None:
    problem = recoverable()["compressed sensing"]
    y = problem.y.numpy()
    frozen = y.copy()
    frozen.flags.writeable = False
    expected = iht(problem.operator, y, problem.budget).w.to_dense()
    for form in (
        problem.y,
        y.tolist(),
        frozen,
        y[::-1].copy()[::-1],
        y.astype(np.longdouble),
        y.astype(">f8"),
    ):
        found = iht(problem.operator, form, problem.budget).w.to_dense()
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    whole = iht(problem.operator, np.round(10 * y).astype(np.int16), problem.budget)
    assert whole.w.nonzeros == problem.budget
    np.testing.assert_array_equal(y, frozen)


@pytest.mark.parametrize(
    "y, message",
    [
        (np.ones(79), r"shape \(79,\).*80 measurements.*\(80,\)"),
        (np.ones((80, 1)), r"shape \(80, 1\)"),
        (np.full(80, np.nan), "NaN or infinity"),
        (np.full(80, np.inf), "NaN or infinity"),
        (np.full(80, "one"), "number"),
    ],
    ids=["short", "a column", "NaN", "infinity", "strings"],
)
def test_measurements_that_cannot_be_are_refused(y: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        iht(recoverable()["compressed sensing"].operator, y, budget=3)


def test_a_budget_that_cannot_be_is_refused() -> None:
    problem = recoverable()["compressed sensing"]
    with pytest.raises(BudgetError, match=r"budget=0.*300"):
        iht(problem.operator, problem.y, budget=0)


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    fit(network_problem(), paper_iht(batch_size=50), steps=8)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])


def test_a_step_of_zero_keeps_no_zeros() -> None:
    # No row opens the only gate that holds a weight, so the step along it is 0/0.
    X = np.abs(normal(50, 2))
    operator = GatedOperator(Data(X, dtype=torch.float64), given_generators([[1.0, -1.0], [1.0, -1.0]]))
    start = SparseVector(torch.tensor([2]), torch.tensor([3.0]).double(), 4)
    objective = Linear(operator, torch.from_numpy(X[:, 0]))
    solver = IHT(refinement=None)
    after = solver.step(solver.init(objective, 3, Start(start)))
    assert torch.isfinite(after.w.values).all()
    assert (after.w.values != 0).all()


class Misfit(MatrixOperator):
    """An operator of which one method gives too little."""

    short = ""

    def forward(self, w: SparseVector) -> torch.Tensor:
        return super().forward(w)[int(self.short == "forward") :]

    def adjoint(self, residual: torch.Tensor) -> Any:
        for start, block in super().adjoint(residual):
            yield start, block[: block.numel() - int(self.short == "adjoint")]

    def on_support(self, support: torch.Tensor) -> DenseColumns:
        return DenseColumns(self.matrix[int(self.short == "on_support") :, support])


@pytest.mark.parametrize("method", ["forward", "adjoint", "on_support"])
def test_an_operator_whose_shapes_do_not_fit_is_refused_naming_the_method(method: str) -> None:
    A = Misfit(torch.randn(20, 30, generator=torch.Generator().manual_seed(0)).double())
    assert iht(A, np.ones(20), budget=3).w.nonzeros <= 3
    A.short = method
    with pytest.raises(ParameterError, match=f"^{method} of Misfit gave shape .* but an operator of 20 rows"):
        iht(A, np.ones(20), budget=3)


@pytest.mark.parametrize("share", [0.0, 1e-16])
def test_a_support_fitted_to_the_last_digit_is_left_where_places_outside_can_gain(share: float) -> None:
    # The column held is orthogonal to the one that tells more: its own gradient is zero, or rounding.
    y = torch.tensor([1.0, 2.0, 0.0, 0.0], dtype=torch.float64)
    objective = Linear(MatrixOperator(torch.eye(4, dtype=torch.float64)), y)
    held = SparseVector(torch.tensor([0]), torch.tensor([1.0 + share], dtype=torch.float64), 4)
    found = run(IHT(), objective, 1, start=Start(held), max_iter=3).w
    assert found.indices.tolist() == [1]
    torch.testing.assert_close(found.values, y[1:2])
