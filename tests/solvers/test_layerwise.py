"""Layer by layer: frozen layers pass on what a dense network would, and stay as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from problems import Watch, normal
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.design import Design
from thresher.objective.layered import LayeredObjective, Layout
from thresher.objective.losses import CrossEntropy, Loss, SquaredError
from thresher.solvers.layerwise import Embedding, Stage, layerwise
from thresher.solvers.loop import Iterate, Record

ROWS = 40


def objective_of(
    widths: tuple[int, ...] = (6, 5, 4, 3),
    bias: bool = False,
    loss: Loss | None = None,
    scaled: bool = False,
    X: Any = None,
    dtype: torch.dtype = torch.float64,
) -> LayeredObjective:
    """Give a small problem for a network of several layers."""
    data = normal(ROWS, widths[0], seed=1)
    outputs = widths[-1]
    y = np.abs(np.maximum(data @ normal(widths[0], 3, seed=2), 0) @ normal(3, outputs, seed=3))
    if loss is not None and not loss.quadratic:
        y = np.eye(outputs)[y.argmax(1)]
    scale = np.linspace(0.5, 2, widths[0]) if scaled else None
    return LayeredObjective(
        Design(data if X is None else X, scale, dtype=dtype),
        Layout(widths, bias, fused=outputs == 1),
        torch.from_numpy(y).to(dtype),
        loss or SquaredError(),
        signs=torch.ones(widths[-2], dtype=dtype) if outputs == 1 else None,
    )


def drawn(objective: LayeredObjective, share: float = 0.5) -> SparseVector:
    """Draw a sparse network."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal(objective.size) * (rng.random(objective.size) < share)
    return SparseVector.from_dense(torch.from_numpy(dense).to(objective.design.dtype))


def stages_of(objective: LayeredObjective, batch: int | None = None, seed: int = 0) -> list[Stage]:
    """Give a stage for every hidden layer."""
    return [Stage(objective, layer, batch, 1, seed) for layer in range(len(objective.layout.widths) - 2)]


def hidden_of(objective: LayeredObjective, w: SparseVector, layers: int) -> Tensor:  # (rows, width)
    """Compute with dense matrices what some layers pass on."""
    layout, values = objective.layout, objective.design.chunk(0, ROWS)
    if objective.design.factor is not None:
        values = values * objective.design.factor
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


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("layers", [1, 2])
def test_an_embedding_is_what_the_dense_layers_pass_on(problem: dict[str, Any], layers: int) -> None:
    objective = objective_of(**problem)
    w = drawn(objective)
    embedding, expected = Embedding(objective, w, layers), hidden_of(objective, w, layers).numpy()
    assert embedding.shape == expected.shape == (ROWS, objective.layout.widths[layers])
    assert embedding.dtype == expected.dtype
    for rows in (
        slice(None),
        slice(3, 17),
        slice(30, 1000),
        np.array([5, 0, 39, 5]),
        np.arange(ROWS)[::-1].copy(),
        np.zeros(0, dtype=np.int64),
    ):
        np.testing.assert_allclose(embedding[rows], expected[rows], rtol=1e-5, atol=1e-6)


def test_an_embedding_is_read_by_a_design_in_chunks_and_by_rows() -> None:
    objective = objective_of()
    w = drawn(objective)
    design = Design(Embedding(objective, w, 1), None, False, torch.float64)
    expected = hidden_of(objective, w, 1)
    read = torch.cat([chunk for _, _, chunk in design.chunks(8)])
    torch.testing.assert_close(read, expected)
    rows = np.array([7, 3, 3, 30])
    torch.testing.assert_close(design.take(rows).chunk(0, 4), expected[torch.from_numpy(rows)])


KINDS: dict[str, dict[str, Any]] = {
    "several outputs": {},
    "cross-entropy": {"loss": CrossEntropy()},
    "one output": {"widths": (6, 5, 4, 1)},
    "with biases": {"bias": True},
    "one output with biases": {"widths": (6, 5, 4, 1), "bias": True},
    "three hidden layers": {"widths": (6, 5, 7, 4, 3)},
}
any_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@any_kind
@pytest.mark.parametrize("batch", [None, 15])
@pytest.mark.parametrize("budget", [1, 2, 7, 24, 10**6])
def test_the_budget_is_split_evenly_over_the_stages(
    kind: dict[str, Any], batch: int | None, budget: int
) -> None:
    objective, watch = objective_of(**kind), Watch()
    stages = stages_of(objective, batch)
    solution = layerwise(stages, budget, 4, watch)
    share = max(1, budget // len(stages))
    assert all(record["nonzeros"] <= share for record in watch.records)
    assert solution.w.nonzeros <= budget
    assert solution.w.size == objective.size
    assert bool((solution.w.indices.diff() > 0).all())
    assert bool(torch.isfinite(solution.w.values).all())


@any_kind
def test_layers_stay_as_they_were_after_their_stage(kind: dict[str, Any]) -> None:
    objective = objective_of(**kind)
    stages = stages_of(objective)
    layout = objective.layout
    for done in range(1, len(stages)):
        before, after = layerwise(stages[:done], 24, 5), layerwise(stages, 24 * len(stages) // done, 5)
        for layer in range(done):
            first, end = layout.offsets[layer], layout.offsets[layer + 1]
            kept = before.w.to_dense()[first:end]
            assert torch.equal(after.w.to_dense()[first:end], kept)
            assert int(kept.count_nonzero()) > 0


def test_the_outer_layer_of_an_inner_stage_is_dropped() -> None:
    objective = objective_of()
    alone = layerwise(stages_of(objective)[:1], 24, 5)
    assert alone.w.nonzeros < 24
    assert bool((alone.w.indices < objective.layout.offsets[1]).all())


def test_every_stage_has_all_the_passes() -> None:
    watch = Watch()
    solution = layerwise(stages_of(objective_of()), 40, 6, watch)
    assert [record["stage"] for record in solution.history] == [1] * 6 + [2] * 6
    assert [record["step"] for record in solution.history] == list(range(1, 13))
    assert len(watch.records) == 12


@pytest.mark.parametrize("raised", [True, False], ids=["interruption", "callback"])
def test_what_stops_a_stage_stops_the_fit(raised: bool) -> None:
    seen = []

    def stop(record: Record, iterate: Iterate) -> bool:
        seen.append(record)
        if raised and len(seen) == 2:
            raise KeyboardInterrupt
        return len(seen) == 2

    solution = layerwise(stages_of(objective_of()), 40, 6, stop)
    assert len(seen) == 2
    assert solution.status.name == ("interrupted" if raised else "callback")
    assert solution.w.nonzeros <= 40


def test_the_loss_is_that_of_the_whole_network() -> None:
    objective = objective_of()
    solution = layerwise(stages_of(objective), 40, 30)
    held = objective.hold(solution.w.indices, solution.w.values)
    assert solution.loss == pytest.approx(objective.value(held))


def test_the_same_seed_gives_the_same_bits() -> None:
    one, again = (layerwise(stages_of(objective_of(), 15, seed=3), 24, 5).w for _ in range(2))
    assert torch.equal(one.indices, again.indices)
    assert torch.equal(one.values, again.values)
