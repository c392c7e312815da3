"""The paper's way to deep networks: train two layers, drop the outer one, freeze the inner one, go on.

The budget is split evenly over the stages. What a dropped outer layer held is not in the final network, which
is therefore sparser than allowed (appendix A, "Layerwise optimization for deeper MLPs").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from thresher.errors import ParameterError
from thresher.linear.vector import SparseVector
from thresher.objective.block import Block
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom
from thresher.objective.layout import Layout
from thresher.objective.linear import Linear
from thresher.objective.relu import Relu
from thresher.solvers.chain import ChainIHT
from thresher.solvers.iht import paper_iht
from thresher.solvers.journal import State
from thresher.solvers.loop import Iterate, Needs, SavedSolver, Start
from thresher.solvers.status import SPENT, Status


@dataclass(frozen=True)
class Layerwise:
    """Thresholding of a network of any depth, a hidden layer at a time: a stage for each.

    A stage trains its layer and an output layer of its own on what the frozen layers before pass on: by
    :func:`~thresher.solvers.iht.paper_iht` where there is one output, by
    :class:`~thresher.solvers.chain.ChainIHT` where there are several. Every stage has all the passes; the
    passes of an iterate are the mean over the stages, so that `passes` is also the `max_iter` of the whole
    run. Until the last stage an iterate is no whole network yet, and its loss is that of the stage. The
    answer is the last iterate (``keep="last"`` of the loop).

    Attributes
    ----------
    passes : float
        Passes over the data for each stage.
    batch_size : int, optional
        Rows of a step; all by default.
    update_gates_every : int
        The paper's k.
    seed : int
        Seed of the gates, of the order of rows, and of the sketch.
    """

    passes: float = 100
    batch_size: int | None = None
    update_gates_every: int = 1
    seed: int = 0

    needs: ClassVar[Needs] = Needs(kind="relu", options=frozenset({"callback", "sample_weight"}))

    def init(self, objective: Relu, budget: int, start: Start | None) -> Iterate:
        """Start from nothing."""
        if start is not None:
            raise ParameterError(
                "Layerwise cannot start from a given network, because it trains one layer after the other: "
                "leave out the start."
            )
        if objective.layout.direct:
            raise ParameterError(
                "Layerwise cannot work on a layout with direct connections: it needs layers only, "
                "Layout(widths, direct=False)."
            )
        nothing = SparseVector.zeros(objective.size, objective.data.dtype)
        return self._iterate(self._stage(objective, budget, 0, nothing))

    def step(self, iterate: Iterate) -> Iterate:
        """Take one step of a stage, the next one's first where a stage is over."""
        stage: _Stage = iterate.carry
        if self._over(stage):
            stage = self._stage(stage.whole, stage.budget, stage.layer + 1, stage.placed())
        return self._iterate(replace(stage, inner=stage.solver.step(stage.inner)))

    def stop(self, iterate: Iterate) -> Status | None:
        """Stop when the last stage is over, or the stages before have used the budget up."""
        stage: _Stage = iterate.carry
        final = stage.last or iterate.w.nonzeros >= stage.budget
        return self._over(stage) if final else None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Every iterate is within the budget."""
        return iterate

    def save(self, iterate: Iterate) -> State:
        """Give the layers that are frozen, and the state of the stage's own solver."""
        stage: _Stage = iterate.carry
        return {"layer": stage.layer, "frozen": stage.frozen, "inner": stage.solver.save(stage.inner)}

    def load(self, first: Iterate, state: State) -> Iterate:
        """Begin the stage on the frozen layers, and put its solver where it was."""
        begun: _Stage = first.carry
        stage = self._stage(begun.whole, begun.budget, state["layer"], state["frozen"])
        return self._iterate(replace(stage, inner=stage.solver.load(stage.inner, state["inner"])))

    def _stage(self, whole: Relu, budget: int, layer: int, frozen: SparseVector) -> _Stage:
        """Begin a stage with its share of the budget."""
        share = max(1, budget // (whole.layout.layers - 1))
        every = self.update_gates_every
        solver: SavedSolver = ChainIHT(self.batch_size, self.seed, update_gates_every=every)
        if whole.layout.fused:
            solver = paper_iht(every, self.batch_size, self.seed)
        objective = stage_objective(whole, layer, frozen, self.seed)
        allowed = min(share, budget - frozen.nonzeros, objective.size)
        return _Stage(whole, budget, layer, frozen, solver, solver.init(objective, allowed, None))

    def _over(self, stage: _Stage) -> Status | None:
        """Say why a stage ends, if it does."""
        return (
            stage.inner.status
            or stage.solver.stop(stage.inner)
            or (SPENT if stage.inner.passes >= self.passes else None)
        )

    def _iterate(self, stage: _Stage) -> Iterate:
        layout, inner = stage.whole.layout, stage.inner
        done = stage.layer * self.passes + inner.passes
        return Iterate(
            stage.placed(),
            inner.loss,
            done / (layout.layers - 1),
            signs=torch.ones(layout.widths[-2], dtype=stage.whole.data.dtype) if layout.fused else None,
            exact=stage.last and inner.exact,
            record={**inner.record, "stage": stage.layer + 1},
            carry=stage,
        )


@dataclass(frozen=True, eq=False)
class _Stage:
    """A hidden layer under training: the layers before, and where its own solver is."""

    whole: Relu
    budget: int
    layer: int
    frozen: SparseVector
    solver: SavedSolver
    inner: Iterate

    @property
    def last(self) -> bool:
        """Whether the output layer of this stage is kept."""
        return self.layer == self.whole.layout.layers - 2

    def placed(self) -> SparseVector:
        """Give the frozen layers, and what is kept of this stage at its place in the whole network."""
        layout, w = self.whole.layout, self.inner.w
        # The output layer of the last stage follows its hidden layer, here as there.
        neurons, places = layout.shapes[self.layer]
        kept = slice(None) if self.last else w.indices < neurons * places
        indices = torch.cat([self.frozen.indices, w.indices[kept] + layout.offsets[self.layer]])
        return SparseVector(indices, torch.cat([self.frozen.values, w.values[kept]]), layout.size)


def stage_objective(whole: Relu, layer: int, frozen: SparseVector, seed: int) -> Linear | Relu:
    """Give the objective of one hidden layer and outputs of its own, on what frozen layers pass on."""
    layout = whole.layout
    data = whole.data if layer == 0 else Embedding(whole.data, layout, frozen, layer)
    if not layout.fused:
        widths = layout.widths[layer], layout.widths[layer + 1], layout.widths[-1]
        return replace(whole, data=data, layout=Layout(widths, layout.bias), origins=None, middle=None)
    operator = GatedOperator(
        data,
        DenseRandom(layout.shapes[layer][1], layout.widths[layer + 1], seed),
        bias=layout.bias,
        memory_limit=whole.memory_limit,
    )
    return Linear(operator, data.targets[:, 0], whole.loss, data.weight, whole.alpha)


class Embedding(Data):
    """What the first layers of a network pass on, computed whenever rows are read.

    Parameters
    ----------
    data : Data
        What goes in.
    layout : Layout
    w : SparseVector
        The weights of the network, of which those of the first layers count.
    layers : int
        How many.
    """

    stays_sparse = False

    def __init__(self, data: Data, layout: Layout, w: SparseVector, layers: int) -> None:
        settings = (data.dtype, data.memory_limit, data.ranks)
        super().__init__(data.X, data.targets, data.weight, None, *settings)
        self.columns = layout.widths[layers]
        self.data, self.layout, self.w, self.layers = data, layout, w, layers
        self.parts = [
            Block(layout, number, w.indices[part], w.values[part])
            for number, part in enumerate(layout.split(w.indices)[:layers])
        ]

    def to(self, dtype: torch.dtype) -> Embedding:
        """Give the same data in another precision."""
        return Embedding(self.data.to(dtype), self.layout, self.w.to(dtype), self.layers)

    def chunk_rows(self, width: int) -> int:
        """Give the rows of a chunk for which neither what is passed on nor what goes in leaves the cache."""
        return min(super().chunk_rows(width), self.data.chunk_rows(width))

    def read(self, rows: np.ndarray | slice, out: Tensor | None = None) -> Tensor:  # (rows, columns)
        """Run some rows through the layers."""
        values = self.data.inputs(rows)
        for block in self.parts:
            values = block.forward(values).relu_()
        return values
