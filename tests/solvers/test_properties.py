"""What every solver has in common: a cross product of solvers, problems and losses through one suite."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from problems import Watch

from thresher.errors import ParameterError
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom
from thresher.objective.layout import Layout
from thresher.objective.linear import Linear
from thresher.objective.loss import CrossEntropy, Huber, Logistic, Loss, Poisson, SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto import Auto
from thresher.solvers.chain import ChainIHT
from thresher.solvers.iht import IHT, paper_iht
from thresher.solvers.layerwise import Layerwise
from thresher.solvers.loop import OPTIONS, Solution, Solver, run

BUDGET, PASSES = 6, 4

SOLVERS: dict[str, Callable[[], Solver]] = {
    "auto": lambda: Auto(passes=PASSES, seed=1),
    "auto, incremental": lambda: Auto(passes=1, seed=1, incremental=True),
    "paper": lambda: paper_iht(seed=1),
    "paper, minibatches": lambda: paper_iht(batch_size=20, seed=1),
    "IHT": lambda: IHT(update_gates_every=1),
    "chain": lambda: ChainIHT(seed=1),
    "chain, minibatches": lambda: ChainIHT(batch_size=20, seed=1),
    "layerwise": lambda: Layerwise(PASSES, seed=1),
}
LOSSES: list[Loss] = [SquaredError(), Huber(), Poisson(), Logistic(), CrossEntropy(3)]
HIDDEN: list[tuple[int, ...]] = [(4,), (4, 3)]


@dataclass(frozen=True)
class Case:
    """A solver, and a problem that it takes or refuses."""

    solver: str
    loss: Loss
    hidden: tuple[int, ...]
    outputs: int

    def __str__(self) -> str:
        return f"{self.solver}, {self.loss.name}, {self.hidden}, {self.outputs}"

    def objective(self) -> Relu | Linear:
        """Give the objective that the solver is made for, in float64."""
        random = np.random.default_rng(0)
        X = random.standard_normal((60, 5))
        law = np.maximum(X[:, :1], 0) - X[:, 1:2] * np.linspace(0.5, 1, self.outputs)
        y = {
            "poisson": lambda: random.poisson(np.exp(0.3 * law)).astype(np.float64),
            "logistic": lambda: (law > 0).astype(np.float64),
            "cross-entropy": lambda: random.integers(0, 3, (60, 1)),
        }.get(self.loss.name, lambda: law + 0.1 * random.standard_normal(law.shape))()
        data = Data(X, torch.from_numpy(y), dtype=torch.float64)
        needs = SOLVERS[self.solver]().needs
        # The chain thresholds output weights too, so its output is never fused.
        fused = self.outputs == 1 and "chain" not in self.solver
        layout = Layout((5, *self.hidden, self.outputs), True, fused, needs.direct)
        if needs.kind == "linear":
            operator = GatedOperator(data, DenseRandom(6, self.hidden[0], 1), bias=True)
            return Linear(operator, data.targets[:, 0], self.loss)
        return Relu(data, layout, self.loss)

    def run(self, watch: Watch | None = None) -> Solution:
        return run(
            SOLVERS[self.solver](), self.objective(), BUDGET, max_iter=PASSES, tol=-1e9, callback=watch
        )


def outputs_of(loss: Loss) -> tuple[int, ...]:
    """Say how many outputs a loss is tried with."""
    return (3,) if loss.name == "cross-entropy" else (1,) if loss.name == "logistic" else (1, 2)


def fits(case: Case) -> bool:
    """Say whether a solver takes a network of this shape."""
    needs = SOLVERS[case.solver]().needs
    layers = needs.hidden_layers in (None, len(case.hidden))
    return layers and needs.outputs in (None, case.outputs)


ALL = [
    Case(solver, loss, hidden, outputs)
    for solver, loss, hidden in product(SOLVERS, LOSSES, HIDDEN)
    for outputs in outputs_of(loss)
]
TAKEN = [case for case in ALL if fits(case)]
REFUSED = [case for case in ALL if not fits(case) and SOLVERS[case.solver]().needs.kind == "relu"]


@pytest.mark.parametrize("case", TAKEN, ids=str)
def test_what_every_solver_does(case: Case) -> None:
    watch = Watch()
    solution = case.run(watch)
    # Never more than the budget in anything that may be handed out.
    assert solution.w.nonzeros <= BUDGET
    assert all(iterate.w.nonzeros <= BUDGET for iterate in watch.iterates if iterate.kept)
    assert torch.isfinite(solution.w.values).all()
    # The history is plain records, one for each step.
    assert [record["step"] for record in solution.history] == list(range(1, len(watch.records) + 1))
    for record, iterate in zip(solution.history, watch.iterates, strict=True):
        assert record["nonzeros"] == iterate.w.nonzeros
        json.dumps(record)
    passes = [record["passes"] for record in solution.history]
    assert passes == sorted(passes)
    assert solution.status.name
    assert solution.status.advice
    # The same seed gives the same bits, and leaves the global random state alone.
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    again = case.run()
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
    assert torch.equal(again.w.indices, solution.w.indices)
    assert torch.equal(again.w.values, solution.w.values)
    assert (again.signs is None) == (solution.signs is None)
    assert again.signs is None or torch.equal(again.signs, solution.signs)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_its_needs_exclude_is_refused_before_a_step(case: Case) -> None:
    watch = Watch()
    with pytest.raises(ParameterError, match="cannot work on a network of") as error:
        case.run(watch)
    assert type(SOLVERS[case.solver]()).__name__ in str(error.value)
    assert not watch.records


@pytest.mark.parametrize("name", SOLVERS)
def test_an_objective_of_the_other_kind_is_refused_naming_both(name: str) -> None:
    solver: Any = SOLVERS[name]()
    other = "IHT" if solver.needs.kind == "relu" else "auto"
    objective = Case(other, SquaredError(), (4,), 1).objective()
    with pytest.raises(ParameterError) as error:
        run(solver, objective, BUDGET)
    assert type(solver).__name__ in str(error.value)
    assert type(objective).__name__ in str(error.value)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_says_which_options_it_honours(name: str) -> None:
    assert SOLVERS[name]().needs.options <= OPTIONS
