"""What a solver is: what it needs, its methods, what they take and give, what a run of it gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.solvers.journal import State
from thresher.solvers.status import Status

OPTIONS = frozenset({"early_stopping", "tol", "warm_start", "callback", "sample_weight"})
"""What a solver may be asked to honour."""


@dataclass(frozen=True)
class Needs:
    """What a solver takes; anything else is refused before work starts.

    Attributes
    ----------
    kind : {"relu", "linear"}
        The objective: that of a ReLU network, or that of a linear operator (gates that are fixed or lag).
    hidden_layers, outputs : int, optional
        How many of each a network must have; any by default.
    direct : bool
        Whether it may connect inputs to outputs directly.
    centred : bool
        Whether it can work in centred coordinates, that is, holds the biases that `Relu.closed` adds.
    inputs : float
        How many inputs it looks at for each nonzero of the budget, where data is wider than it holds numbers:
        those that tell most by themselves. All that the data has by default.
    options : frozenset of str
        Which options of an estimator it honours.
    allowed : bool
        Whether it keeps to what an objective allows (`Relu.allowed`): inputs of a neuron, signs of weights.
    """

    kind: str = "relu"
    hidden_layers: int | None = None
    outputs: int | None = None
    direct: bool = False
    centred: bool = False
    inputs: float = math.inf
    options: frozenset[str] = OPTIONS
    allowed: bool = False


Record = dict[str, Any]
"""One line of history: step, passes, loss, nonzeros, seconds, and what the solver adds."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """What a step hands out: weights within the budget of that step, and how good they are.

    Attributes
    ----------
    w : SparseVector
        The weights.
    signs : tensor of shape (neurons,), optional
        The sign with which each neuron enters the output.
    loss : float
        The objective at w.
    passes : float
        Passes over the data so far.
    kept : bool
        Whether w is within the final budget, so that it may be handed out.
    exact : bool
        Whether `loss` is that of what would be handed out: not so while gates lag behind the weights.
    record : dict
        What the solver adds to the history.
    carry : Any
        What the solver needs for its next step.
    score : float, optional
        How bad the solver finds it, where it knows better than the loss does (rows that it held out).
    status : Status, optional
        Why the solver ends with this iterate, if it does.
    """

    w: SparseVector
    loss: float
    passes: float
    signs: Tensor | None = None
    kept: bool = True
    exact: bool = True
    record: Record = field(default_factory=dict)
    carry: Any = None
    score: float | None = None
    status: Status | None = None


@dataclass(frozen=True, eq=False)
class Start:
    """Where to start: weights, and the signs of their neurons."""

    w: SparseVector
    signs: Tensor | None = None


class Solver(Protocol):
    """What it needs, and four small methods; the loop does the rest."""

    @property
    def needs(self) -> Needs:
        """Say what it takes."""
        ...

    def init(self, objective: Any, budget: int, start: Start | None) -> Iterate:
        """Give the first iterate."""
        ...

    def step(self, iterate: Iterate) -> Iterate:
        """Give the next iterate."""
        ...

    def stop(self, iterate: Iterate) -> Status | None:
        """Say why to stop after this iterate, if at all."""
        ...

    def rescue(self, iterate: Iterate) -> Iterate:
        """Make something within the budget of an iterate, when nothing better is at hand."""
        ...


@runtime_checkable
class SavedSolver(Solver, Protocol):
    """A solver that a run can take up where it was, from a checkpoint."""

    def save(self, iterate: Iterate) -> State:
        """Give what `load` needs: numbers, text, tensors, sparse vectors, in lists and dictionaries."""
        ...

    def load(self, first: Iterate, state: State) -> Iterate:
        """Make the iterate of a state, given the one that `init` gave."""
        ...


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found.

    Attributes
    ----------
    w : SparseVector
        The weights: at most `budget` nonzeros.
    signs : tensor of shape (neurons,), optional
        The sign of each neuron.
    loss : float
        The objective at w.
    status : Status
        Why the solver stopped, with advice.
    history : list of dict
        One plain record for each step.
    objective : Linear or Relu
        What was minimised; the operator of a linear one holds the generators.
    """

    w: SparseVector
    signs: Tensor | None
    loss: float
    status: Status
    history: list[Record]
    objective: Any
