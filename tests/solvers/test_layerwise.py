"""Layer by layer: frozen layers pass on what a dense network would, and stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from problems import Watch, normal
from torch import Tensor

from thresher.errors import ParameterError
from thresher.linear.vector import SparseVector
from thresher.objective import data as data_module
from thresher.objective.columns import Columns
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, Loss, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.chain import ChainIHT
from thresher.solvers.layerwise import Embedding, Layerwise, stage_objective
from thresher.solvers.loop import Iterate, Record, Solution, Start, run

ROWS = 40


def objective_of(
    widths: tuple[int, ...] = (6, 5, 4, 3),
    bias: bool = False,
    loss: Loss | None = None,
    scaled: bool = False,
    X: Any = None,
    dtype: torch.dtype = torch.float64,
    weight: np.ndarray | None = None,
) -> Relu:
    """Give a small problem for a network of several layers."""
    data = normal(ROWS, widths[0], seed=1)
    outputs = widths[-1]
    y = np.abs(np.maximum(data @ normal(widths[0], 3, seed=2), 0) @ normal(3, outputs, seed=3))
    if loss is not None and not loss.quadratic:
        y = y.argmax(1)[:, None]
    columns = Columns(np.linspace(-1, 1, widths[0]), np.linspace(0.5, 2, widths[0])) if scaled else None
    rows = Data(
        data if X is None else X,
        torch.from_numpy(y),
        None if weight is None else torch.from_numpy(weight),
        columns,
        dtype,
    )
    return Relu(rows, Layout(widths, bias, fused=outputs == 1), loss or SquaredError())


def drawn(objective: Relu, share: float = 0.5) -> SparseVector:
    """Draw a sparse network."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal(objective.size) * (rng.random(objective.size) < share)
    return SparseVector.from_dense(torch.from_numpy(dense).to(objective.data.dtype))


def trained(
    objective: Relu,
    budget: int,
    passes: int,
    callback: Callable[[Record, Iterate], object] | None = None,
    **options: Any,
) -> Solution:
    """Train layer by layer."""
    solver = Layerwise(passes, **options)
    return run(solver, objective, budget, max_iter=passes, callback=callback, keep="last")


def hidden_of(objective: Relu, w: SparseVector, layers: int) -> Tensor:  # (rows, width)
    """Compute with dense matrices what some layers pass on."""
    layout, values = objective.layout, objective.data.batch(slice(0, ROWS)).X
    dense, position = w.to_dense(), 0
    for inputs, neurons in zip(layout.widths[:layers], layout.widths[1 : layers + 1], strict=True):
        places = inputs + int(layout.bias)
        matrix = dense[position : position + neurons * places].view(neurons, places)
        values = values @ matrix[:, :inputs].T
        values = torch.relu(values + matrix[:, -1] if layout.bias else values)
        position += neurons * places
    return values


PROBLEMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "with biases": {"bias": True},
    "scaled columns": {"scaled": True, "bias": True},
    "sparse data": {"X": scipy.sparse.csr_array(normal(ROWS, 6, seed=1))},
    "float32": {"dtype": torch.float32},
    "three hidden layers": {"widths": (6, 5, 7, 4, 3)},
}
any_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


@any_problem
@pytest.mark.parametrize("layers", [1, 2])
def test_an_embedding_is_what_the_dense_layers_pass_on(problem: dict[str, Any], layers: int) -> None:
    objective = objective_of(**problem)
    w, data = drawn(objective), objective.data
    embedding, expected = Embedding(data, objective.layout, w, layers), hidden_of(objective, w, layers)
    assert (embedding.rows, embedding.columns) == expected.shape == (ROWS, objective.layout.widths[layers])
    for rows in (slice(0, ROWS), slice(3, 17), np.array([5, 0, 39, 5]), np.arange(ROWS)[::-1].copy()):
        chosen = rows if isinstance(rows, slice) else torch.from_numpy(rows)
        batch = embedding.batch(rows)
        assert batch.X.dtype == data.dtype
        torch.testing.assert_close(batch.X, expected[chosen])
        assert torch.equal(batch.y, data.targets[chosen])
        assert torch.equal(batch.share, data.share[chosen])


def test_an_embedding_is_data_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = objective_of(weight=np.linspace(1, 2, ROWS))
    w = drawn(objective)
    monkeypatch.setattr(data_module, "CHUNK_NUMBERS", 1)
    monkeypatch.setattr(data_module, "LEAST_WIDE_ROWS", 16)
    embedding, expected = Embedding(objective.data, objective.layout, w, 1), hidden_of(objective, w, 1)
    torch.testing.assert_close(torch.cat([batch.X for batch in embedding.chunks(8)]), expected)
    rows = np.array([7, 3, 3, 30])
    taken = embedding.take(rows)
    torch.testing.assert_close(taken.batch(slice(0, 4)).X, expected[torch.from_numpy(rows)])
    assert taken.weight is not None and taken.weight.tolist() == objective.data.weight[rows].tolist()
    few = torch.tensor([0, 3])
    torch.testing.assert_close(embedding.only(few).batch(slice(0, ROWS)).X, expected[:, few])
    assert embedding.to(torch.float32).batch(slice(0, 2)).X.dtype == torch.float32
    (total,) = embedding.total(lambda batch: (batch.share @ batch.X,))
    torch.testing.assert_close(total, objective.data.share @ expected)


def test_chunks_of_an_embedding_are_no_larger_than_those_of_what_goes_in() -> None:
    wide = Data(np.zeros((10, 50_000)), torch.zeros(10, 1))
    layout = Layout((50_000, 3, 3, 1), fused=True)
    embedding = Embedding(wide, layout, SparseVector.zeros(layout.size), 1)
    assert embedding.chunk_rows(3) == wide.chunk_rows(3) < Data(np.zeros((10, 3))).chunk_rows(3)


KINDS: dict[str, dict[str, Any]] = {
    "several outputs": {},
    "cross-entropy": {"loss": CrossEntropy(3)},
    "one output": {"widths": (6, 5, 4, 1)},
    "with biases": {"bias": True},
    "one output with biases": {"widths": (6, 5, 4, 1), "bias": True},
    "three hidden layers": {"widths": (6, 5, 7, 4, 3)},
    "one hidden layer": {"widths": (6, 5, 1)},
}
any_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@any_kind
@pytest.mark.parametrize("batch", [None, 15])
@pytest.mark.parametrize("budget", [1, 2, 7, 24, 10**6])
def test_the_budget_is_split_evenly_over_the_stages(
    kind: dict[str, Any], batch: int | None, budget: int
) -> None:
    objective, watch = objective_of(**kind), Watch()
    solution = trained(objective, budget, 4, watch, batch_size=batch)
    share = max(1, budget // (len(objective.layout.widths) - 2))
    for record, iterate in zip(watch.records, watch.iterates, strict=True):
        layer = record["stage"] - 1
        before = int((iterate.w.indices < objective.layout.offsets[layer]).sum())
        assert iterate.w.nonzeros - before <= share
        assert iterate.w.nonzeros <= budget
    assert solution.w.size == objective.size
    assert bool((solution.w.indices.diff() > 0).all())
    assert bool(torch.isfinite(solution.w.values).all())


@any_kind
def test_layers_stay_as_they_were_after_their_stage(kind: dict[str, Any]) -> None:
    objective, watch = objective_of(**kind), Watch()
    solution, offsets = trained(objective, 24, 5, watch), objective.layout.offsets
    stages = [record["stage"] for record in watch.records]
    assert sorted(set(stages)) == list(range(1, len(objective.layout.widths) - 1))
    for layer in range(max(stages) - 1):
        held = [
            iterate.w.to_dense()[offsets[layer] : offsets[layer + 1]]
            for stage, iterate in zip(stages, watch.iterates, strict=True)
            if stage > layer
        ]
        frozen = held[stages.count(layer + 1) - 1]
        assert int(frozen.count_nonzero()) > 0
        after = held[stages.count(layer + 1) :]
        assert all(torch.equal(each, frozen) for each in after)
        assert torch.equal(solution.w.to_dense()[offsets[layer] : offsets[layer + 1]], frozen)


def test_a_stage_is_the_solver_of_its_kind_on_what_the_layers_before_pass_on() -> None:
    objective, watch = objective_of(), Watch()
    trained(objective, 24, 5, watch, seed=3)
    frozen = watch.iterates[4].w
    alone = run(ChainIHT(seed=3), stage_objective(objective, 1, frozen, 3), 12, max_iter=5, keep="last")
    whole = watch.iterates[-1].w
    second = whole.indices >= objective.layout.offsets[1]
    assert torch.equal(whole.indices[second] - objective.layout.offsets[1], alone.w.indices)
    assert torch.equal(whole.values[second], alone.w.values)


def test_the_outer_layer_of_an_inner_stage_is_dropped() -> None:
    objective, watch = objective_of(), Watch()
    trained(objective, 48, 5, watch)
    for record, iterate in zip(watch.records, watch.iterates, strict=True):
        inside = bool((iterate.w.indices < objective.layout.offsets[1]).all())
        assert inside == (record["stage"] == 1)
        assert iterate.exact == (record["stage"] == 2)
    assert watch.iterates[4].w.nonzeros < 24


def test_every_stage_has_all_the_passes() -> None:
    solution = trained(objective_of(), 40, 6)
    assert [record["stage"] for record in solution.history] == [1] * 6 + [2] * 6
    assert [record["step"] for record in solution.history] == list(range(1, 13))
    assert [record["passes"] for record in solution.history] == [step / 2 for step in range(1, 13)]
    assert solution.status.name == "max_iter"


def test_stages_end_where_their_passes_do_whatever_the_loop_allows() -> None:
    solution = run(Layerwise(3), objective_of(), 40, max_iter=100, keep="last")
    assert [record["stage"] for record in solution.history] == [1] * 3 + [2] * 3
    assert solution.status.name == "max_iter"


def test_no_stage_begins_without_budget() -> None:
    # The only weight allowed may be one of the first layer.
    ended = [trained(objective_of(widths=(6, 5, 4, 1)), 1, 5, seed=seed) for seed in range(3)]
    assert all(solution.w.nonzeros == 1 for solution in ended)
    assert all({record["stage"] for record in solution.history} == {1} for solution in ended)


@pytest.mark.parametrize("raised", [True, False], ids=["interruption", "callback"])
def test_what_stops_a_stage_stops_the_fit(raised: bool) -> None:
    seen = []

    def stop(record: Record, iterate: Iterate) -> bool:
        seen.append(record)
        if raised and len(seen) == 2:
            raise KeyboardInterrupt
        return len(seen) == 2

    solution = trained(objective_of(), 40, 6, stop)
    assert len(seen) == 2
    assert solution.status.name == ("interrupted" if raised else "callback")
    assert 0 < solution.w.nonzeros <= 40


@any_kind
def test_the_loss_is_that_of_the_whole_network(kind: dict[str, Any]) -> None:
    objective = objective_of(**kind)
    solution = trained(objective, 40, 30)
    assert solution.loss == pytest.approx(objective.value(Point(solution.w, solution.signs)))


def test_the_same_seed_gives_the_same_bits() -> None:
    one, again = (trained(objective_of(), 24, 5, batch_size=15, seed=3).w for _ in range(2))
    assert torch.equal(one.indices, again.indices)
    assert torch.equal(one.values, again.values)


def test_weighted_rows_are_repeated_rows() -> None:
    times = np.random.default_rng(1).integers(1, 4, ROWS)
    objective = objective_of(widths=(6, 5, 4, 1), weight=times.astype(float))
    rows = np.repeat(np.arange(ROWS), times)
    y = objective.data.targets[torch.from_numpy(rows)]
    repeated = Relu(Data(objective.data.X[rows], y, dtype=torch.float64), objective.layout, SquaredError())
    one, other = (trained(each, 24, 5).w.to_dense() for each in (objective, repeated))
    torch.testing.assert_close(one, other)


# What it cannot do.


def test_what_it_cannot_honour_is_not_among_its_options() -> None:
    assert Layerwise().needs.options == {"callback", "sample_weight"}


def test_a_start_is_refused_in_one_sentence() -> None:
    objective = objective_of()
    with pytest.raises(ParameterError, match=r"^Layerwise cannot start from a given network, [^.]*\.$"):
        run(Layerwise(), objective, 10, start=Start(drawn(objective)))


def test_direct_connections_are_refused_in_one_sentence() -> None:
    objective = objective_of()
    direct = Relu(objective.data, Layout((6, 5, 4, 3), direct=True), SquaredError())
    with pytest.raises(ParameterError, match=r"^Layerwise cannot work on a layout with direct connections"):
        run(Layerwise(), direct, 10)
