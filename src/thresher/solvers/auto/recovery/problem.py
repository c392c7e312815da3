"""What exact recovery is asked, which problems it takes, and what it tells on its way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.objective.relu import Relu
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.recovery.deep_tuning import DeepTuning
from thresher.solvers.auto.recovery.tuning import RecoverTuning
from thresher.solvers.auto.wide import relevance

# Bytes that students may take under any memory limit, so that it does not change what is found in small data.
SMALL = 2**22
# The curvature, what it is added up of, its factor, and the inverse.
MATRICES = 4


@dataclass(frozen=True, eq=False)
class Problem:
    """What to recover a network from, and under which limits.

    Attributes
    ----------
    objective : Relu
        A squared error of one fused output and one hidden layer.
    budget : int
        Nonzeros of the network. Where targets were centred, an output bias is held in any case, and a network
        that is found may hold one more for it.
    passes : float
        Passes over the data that may be spent.
    batch : int
        Rows of a minibatch.
    seed : int
    tuning : RecoverTuning
    deep : DeepTuning
        Constants for several hidden layers.
    """

    objective: Relu
    budget: int
    passes: float
    batch: int
    seed: int = 0
    tuning: RecoverTuning = field(default_factory=RecoverTuning)
    deep: DeepTuning = field(default_factory=DeepTuning)

    @property
    def hidden(self) -> int:
        """Neurons allowed."""
        return self.objective.layout.widths[1]


@dataclass(frozen=True, eq=False)
class Progress:
    """What recovery has to tell: an unfinished student, or a network within the budget.

    Attributes
    ----------
    phase : {"wide", "fixed", "compromise", "candidate"}
        The training under way, or "candidate".
    passes : float
        Passes over the data so far.
    value : float
        The mean loss: of the last pass of a student, of all rows for a candidate.
    nonzeros : int
        Weights of the student or candidate.
    fit : Fit, optional
        The candidate: a point of the problem's own layout, in float64.
    found : bool
        Whether the candidate explains the targets.
    cut : callable, optional
        Makes a candidate of the student at once, for a search that is stopped.
    """

    phase: str
    passes: float
    value: float
    nonzeros: int
    fit: Fit | None = None
    found: bool = False
    cut: Callable[[], Fit] | None = None


def may_be_exact(problem: Problem) -> bool:
    """Say whether recovery takes this problem, and could tell a network from an accident."""
    objective, tuning = problem.objective, problem.tuning
    layout, data = objective.layout, objective.data
    fits = layout.layers == 2 and layout.fused and layout.widths[-1] == 1 and objective.loss.name == "squared"
    if not fits or problem.budget > tuning.most:
        return False
    numbers = problem_size(problem)
    if data.amount < tuning.rows_each * numbers:
        return False
    # Targets of two values are labels, of which a sparse network is not the source.
    targets = data.every(data.targets)
    least, most = targets.aminmax()
    return bool(((targets != least) & (targets != most)).any())


def problem_size(problem: Problem) -> int:
    """Count the numbers that recovery fits freely: on few rows for each, a good fit says nothing."""
    return problem.budget + 2 * min(problem.objective.layout.widths[0], _most_inputs(problem))


def feature_subset(problem: Problem, among: Tensor | None = None) -> Tensor:
    """Choose the inputs that a student may use: some, or those of them that say most if too many."""
    objective, most = problem.objective, _most_inputs(problem)
    among = torch.arange(objective.layout.widths[0]) if among is None else among
    if among.numel() <= most:
        return among
    return among[largest(relevance(objective)[among].float(), most)]


def _most_inputs(problem: Problem) -> int:
    tuning = problem.tuning
    neurons = max(2, min(int(tuning.wider * problem.hidden), problem.budget // 2, tuning.neurons_each))
    return max(tuning.inputs, min(room_of(problem) // neurons, _fitting_inputs(problem)))


def _fitting_inputs(problem: Problem) -> int:
    """Give the inputs whose sample and equations, of linear part and folds, fit into half of the limit."""
    objective = problem.objective
    room = max(objective.memory_limit // 2, SMALL)
    # Two weights for each input, in float64, squared; and the sample: ``equations n^2 + sample n = room``.
    equations, sample = 8 * MATRICES * 2**2, objective.data.dtype.itemsize * sampled_rows(problem)
    return int((math.sqrt(sample**2 + 4 * equations * room) - sample) / (2 * equations))


def sampled_rows(problem: Problem) -> int:
    """Give the rows on which students are compared."""
    tuning = problem.tuning
    return min(problem.objective.data.rows, max(tuning.sample, int(tuning.sample_each * problem.budget)))


def room_of(problem: Problem) -> int:
    """Give the weights that a student may hold."""
    return max(int(problem.tuning.inflation * problem.budget), problem.tuning.weights)
