"""What is to be trained: settings, rows, a loss, where to start."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from thresher.errors import MemoryLimitError
from thresher.estimators.inputs import part_of
from thresher.estimators.units import only_reading
from thresher.network import Network
from thresher.network.requirements import Requirements
from thresher.objective.layout import Layout
from thresher.objective.loss import Loss
from thresher.objective.present import only_columns
from thresher.objective.ranks import Alone
from thresher.solvers.auto import Tuning
from thresher.solvers.loop import Solver

# Positions of weights are numbers of 64 bits.
MOST_PLACES = 2**63 - 1


@dataclass(frozen=True)
class Settings:
    """What the user chose, checked; the estimators' parameters of the same names explain each."""

    budget: int
    hidden: tuple[int, ...]
    solver: str | Solver = "auto"
    bias: bool | None = None
    scale: bool | None = None
    alpha: float | None = None
    batch_size: int | str | None = None
    max_iter: int = 200
    tol: float = 1e-15
    update_gates_every: int = 1
    memory_limit: int = 64 * 2**20
    dtype: str = "auto"
    seed: int = 0
    patience: float = math.inf
    device: str | torch.device = "cpu"
    screen: float | None = None
    descends: bool = False
    tuning: Tuning = field(default_factory=Tuning)
    required: Requirements = field(default_factory=Requirements)

    @property
    def paper(self) -> bool:
        """Whether the published algorithm is wanted: no biases and no scaled columns, unless asked."""
        return self.solver == "paper"

    @property
    def has_bias(self) -> bool:
        """Whether neurons may have biases."""
        return not self.paper if self.bias is None else self.bias

    @property
    def scales(self) -> bool:
        """Whether columns are scaled to unit size."""
        return not self.paper if self.scale is None else self.scale


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as an estimator has them: inputs, targets of shape (n, targets) or class codes, weights, ranks."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None = None
    classes: bool = False
    ranks: Alone = field(default_factory=Alone)

    @property
    def count(self) -> int:
        """The rows of all ranks."""
        return self.ranks.rows(len(self.y))

    def take(self, rows: np.ndarray) -> Rows:
        """Give some of the rows that are here."""
        X, rows = part_of(self.X, rows)
        weight = None if self.weight is None else self.weight[rows]
        return Rows(X, self.y[rows], weight, self.classes, self.ranks.holding(len(rows)))

    def only(self, columns: np.ndarray) -> Rows:
        """Give some of the columns, ascending."""
        return replace(self, X=only_columns(self.X, columns))


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be trained.

    Attributes
    ----------
    rows : Rows
    outputs : int
        Outputs of the network: targets, classes, or 1 for two classes.
    loss : Loss
    settings : Settings
    start : Network, optional
        A network of the same shape to start from.
    held_out : Rows, optional
        Rows that choose the best iterate and stop the run.
    """

    rows: Rows
    outputs: int
    loss: Loss
    settings: Settings
    start: Network | None = None
    held_out: Rows | None = None

    @property
    def inputs(self) -> int:
        """Columns of X."""
        return self.rows.X.shape[1]

    def reading(self, columns: np.ndarray) -> Task:
        """Give the same task on some of the columns, ascending, all that the start reads among them."""
        return replace(
            self,
            rows=self.rows.only(columns),
            settings=replace(self.settings, required=self.settings.required.among(columns)),
            start=None if self.start is None else only_reading(self.start, columns),
            held_out=None if self.held_out is None else self.held_out.only(columns),
        )

    def layout(self, solver: Solver) -> Layout:
        """Give the places of the network's weights, whose numbers must not exceed 64 bits."""
        hidden = self.settings.hidden
        widths = (self.inputs, *hidden, self.outputs)
        layout = Layout(widths, self.settings.has_bias, fused=self.outputs == 1, direct=solver.needs.direct)
        if layout.size > MOST_PLACES:
            raise MemoryLimitError(
                f"X has {self.inputs:,} columns and hidden={hidden}, which makes {layout.size:,} possible "
                f"weights, but their positions end at {MOST_PLACES:,}. Use a smaller hidden, or hash X to "
                "fewer columns."
            )
        return layout
