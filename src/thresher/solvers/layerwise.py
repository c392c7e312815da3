"""The paper's way to deep networks: train two layers, drop the outer one, freeze the inner one, go on.

The budget is split evenly over the stages. What a dropped outer layer held is not in the final network, which
is therefore sparser than allowed (appendix A, "Layerwise optimization for deeper MLPs").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.design import Design
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom
from thresher.objective.layered import LayeredObjective, Layout, Part
from thresher.objective.linear import Objective
from thresher.solvers.chain import ChainIHT
from thresher.solvers.iht import paper_iht
from thresher.solvers.loop import CALLED_OFF, INTERRUPTED, Iterate, Record, Solution, run


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage: a hidden layer of the whole network, trained with an output layer of its own.

    Attributes
    ----------
    whole : LayeredObjective
        The objective of the whole network.
    layer : int
        Which hidden layer, from 0.
    batch : int, optional
        Rows of a step; all by default.
    update_gates_every : int
        The paper's k, for one output.
    seed : int
    """

    whole: LayeredObjective
    layer: int
    batch: int | None
    update_gates_every: int
    seed: int

    @property
    def last(self) -> bool:
        """Whether the output layer of this stage is kept."""
        return self.layer == len(self.whole.layout.widths) - 3

    def run(
        self,
        frozen: SparseVector,
        budget: int,
        max_iter: float,
        callback: Callable[[Record, Iterate], object] | None,
    ) -> Solution:
        """Train the two layers of this stage on what the frozen layers pass on."""
        whole, layout = self.whole, self.whole.layout
        design = self._design(frozen)
        inputs, neurons, outputs = layout.widths[self.layer], layout.widths[self.layer + 1], layout.widths[-1]
        if layout.fused:
            seen = Design(design.X, design.scale, layout.bias, design.dtype)
            operator = GatedOperator(seen, DenseRandom(seen.features, neurons, self.seed), whole.memory_limit)
            objective: Any = Objective(
                operator, whole.y[:, 0].to(design.dtype), whole.loss, whole.weight, whole.alpha
            )
            solver: Any = paper_iht(self.update_gates_every, self.batch, self.seed)
        else:
            part = Layout((inputs, neurons, outputs), layout.bias)
            objective = replace(whole, design=design, layout=part)
            solver = ChainIHT(self.batch, self.seed)
        budget = min(budget, objective.size)
        return run(solver, objective, budget, max_iter=max_iter, callback=callback, keep="last")

    def _design(self, frozen: SparseVector) -> Design:
        whole = self.whole
        if self.layer == 0:
            return whole.design
        return Design(Embedding(whole, frozen, self.layer), None, False, whole.design.dtype)

    def placed(self, solution: Solution) -> SparseVector:
        """Give what is kept of a stage its place in the whole network."""
        layout, w = self.whole.layout, solution.w
        neurons, places = layout.shapes[self.layer]
        inner = w.indices < neurons * places
        moved = w.indices + layout.offsets[self.layer]
        if not self.last:
            return SparseVector(moved[inner], w.values[inner], layout.size)
        # The output layer of the last stage follows its hidden layer, here as there.
        return SparseVector(moved, w.values, layout.size)


class Embedding:
    """What frozen layers pass on, computed when rows are read."""

    ndim = 2

    def __init__(self, whole: LayeredObjective, frozen: SparseVector, layers: int) -> None:
        self.design = whole.design
        slices = whole.layout.split(frozen.indices)[:layers]
        factor = whole.design.factor
        self.parts = [
            (
                Part(whole.layout, layer, frozen.indices[piece], None if layer else factor),
                frozen.values[piece],
            )
            for layer, piece in enumerate(slices)
        ]
        self.shape = (self.design.rows, whole.layout.widths[layers])
        self.dtype = np.dtype(np.float32 if self.design.dtype is torch.float32 else np.float64)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        if isinstance(rows, slice):
            first, last, _ = rows.indices(self.shape[0])
            values: Tensor = self.design.chunk(first, last)
        else:
            values = self.design.take(rows).chunk(0, len(rows))
        for part, weights in self.parts:
            values = part.forward(weights, values).relu_()
        return values.numpy()


def layerwise(
    stages: list[Stage],
    budget: int,
    max_iter: float,
    callback: Callable[[Record, Iterate], object] | None = None,
) -> Solution:
    """Run the stages one after the other, each with its share of the budget and all the passes."""
    share = max(1, budget // len(stages))
    history: list[Record] = []
    frozen = SparseVector.zeros(stages[0].whole.size, stages[0].whole.design.dtype)
    for number, stage in enumerate(stages):
        allowed = min(share, budget - frozen.nonzeros) if number else share
        if allowed < 1:
            break
        solution = stage.run(frozen, allowed, max_iter, callback)
        placed = stage.placed(solution)
        frozen = SparseVector(
            torch.cat([frozen.indices, placed.indices]),
            torch.cat([frozen.values, placed.values]),
            frozen.size,
        )
        for record in solution.history:
            history.append({**record, "stage": number + 1, "step": len(history) + 1})
        if solution.status in (INTERRUPTED, CALLED_OFF):
            break
    return replace(solution, w=frozen, history=history)
