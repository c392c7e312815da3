"""How close a step comes to its limit, the two matrix products it cannot do without.

At n = 50,000, d = 100 and 1,000 neurons, the activations of all neurons are ``X W`` and the gradient of all
weights is ``X' R`` with R the gated residuals. Both products alone, in float32 and into memory that is ready,
are what a step and a refinement are compared with.
"""

from __future__ import annotations

import torch
from measuring import Measurement, Options, medians

from thresher.data.planted import PlantedProblem, planted
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom
from thresher.objective.linear import Linear
from thresher.solvers.iht import IHT
from thresher.solvers.loop import Iterate, Start

ROWS, FEATURES, HIDDEN, BUDGET = 50_000, 100, 1_000, 1_000
STEP_BAR, REFINEMENT_BAR = 1.5, 3.0


def measure(options: Options) -> list[Measurement]:
    """Time a step and a refinement against the two products, in turns."""
    torch.set_num_threads(options.threads)
    problem = planted(n=ROWS, d=FEATURES, hidden=HIDDEN, budget=BUDGET, seed=0)
    weights = perturbed(problem)
    solver = IHT(refinement=None, update_gates_every=1, settle=None)
    iterate = under_way(solver, problem, weights)
    objective = iterate.carry.objective.under(iterate.carry.operator)
    refine = IHT().refinement
    assert refine is not None
    X, W = torch.from_numpy(problem.X), weights.to_dense().view(HIDDEN, FEATURES).T.contiguous()
    R = torch.randn(ROWS, HIDDEN, generator=torch.Generator().manual_seed(0))
    activations, gradient = torch.empty(ROWS, HIDDEN), torch.empty(FEATURES, HIDDEN)
    took = medians(
        {
            "X W": lambda: torch.mm(X, W, out=activations),
            "X' R": lambda: torch.mm(X.T, R, out=gradient),
            "step": lambda: solver.step(iterate),
            "refinement": lambda: refine(objective.restricted(iterate.w.indices), iterate.w.values, 0.0),
        },
        options.repeats,
        warmups=2,
    )
    products = took["X W"] + took["X' R"]
    cell = f"({HIDDEN:,}, {BUDGET:,})"
    step = f"one step at {cell} (gates, forward, adjoint, threshold) / its two matrix products"
    refinement = f"refinement at {cell} on its support / the same two products"
    return [
        Measurement(step, took["step"] / products, STEP_BAR, detail={"seconds": took}),
        Measurement(refinement, took["refinement"] / products, REFINEMENT_BAR, detail={"seconds": took}),
    ]


def perturbed(problem: PlantedProblem, share: float = 0.1) -> SparseVector:
    """Give the planted weights, each off by a share of itself: what a run holds when it is nearly there."""
    dense = torch.from_numpy(problem.weights[0].T.toarray()).reshape(-1)
    exact = SparseVector.from_dense(dense)
    noise = torch.randn(exact.nonzeros, generator=torch.Generator().manual_seed(1))
    return exact.with_values(exact.values * (1 + share * noise))


def under_way(solver: IHT, problem: PlantedProblem, weights: SparseVector) -> Iterate:
    """Take the steps after which the gates follow the weights at every step."""
    operator = GatedOperator(Data(problem.X), DenseRandom(FEATURES, HIDDEN))
    objective = Linear(operator, torch.from_numpy(problem.y))
    iterate = solver.init(objective, BUDGET, Start(weights))
    for _ in range(2):
        iterate = solver.step(iterate)
    return iterate
