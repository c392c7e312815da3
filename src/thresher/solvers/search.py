"""The default solver: a wide sparse student, merged, pruned and polished into a network within the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from thresher.linear.vector import SparseVector
from thresher.objective.gated import GatedOperator
from thresher.objective.linear import Objective
from thresher.solvers.loop import FINISHED, RECOVERED, Iterate, Start, Status
from thresher.solvers.plan import Plan
from thresher.solvers.recover import as_relu, recover
from thresher.solvers.screen import working_features
from thresher.solvers.squeeze import squeeze
from thresher.solvers.working import Working

# Weights that a student may hold: a multiple of the budget, and a quarter of a megabyte whatever the budget.
WIDE, FLOOR = 20, 2**16

# Budgets beyond this are not taken for exact problems: the equations of the end game would fill the memory.
MOST_RECOVERED = 3000

# Rows for each number that recovery fits freely. On fewer, its linear part and folds explain any targets, and
# a good fit says nothing about the network.
ROWS_PER_NUMBER = 2


@dataclass(frozen=True)
class Search:
    """Train a student that is wider than allowed, and cut it down to the budget.

    A squared error on enough rows is first taken for an exact problem: if a wide student explains nearly
    everything, the network is *recovered* (`recover.py`). Otherwise the student is trained in the ReLU form
    under a budget that shrinks to the exact one (`squeeze.py`).

    Attributes
    ----------
    batch_size : int, "auto" or None
        Rows of a minibatch; None takes all rows at once.
    passes : float
        Passes over the data that phases are planned for.
    negative : bool
        Whether neurons may enter with a negative sign.
    seed : int
        Seed of everything random.
    """

    batch_size: int | str | None = "auto"
    passes: float = 200
    negative: bool = True
    seed: int = 0

    def init(self, objective: Objective, budget: int, start: Start | None) -> Iterate:
        """Start with the zero network; a given one is the first thing that is tried."""
        operator = objective.operator
        assert isinstance(operator, GatedOperator)
        room = max(WIDE * budget, FLOOR)
        features = working_features(objective, room, budget)
        data = Working.of(objective, features, operator.memory_limit, self.seed)
        width = max(2, min(room // data.width, max(4, 2 * min(operator.neurons, budget))))
        plan = Plan(
            objective,
            data,
            budget,
            operator.neurons,
            width,
            data.batch_size(self.batch_size),
            self.passes,
            self.negative,
            self.seed,
        )
        zero = SparseVector.zeros(objective.size, operator.dtype)
        return Iterate(zero, math.inf, 0.0, carry=(plan, _phases(plan, start)))

    def step(self, iterate: Iterate) -> Iterate:
        """Go on by one pass over the data, or by one part of the end game."""
        following = next(iterate.carry[1], None)
        if following is None:
            return replace(iterate, kept=False, record={"phase": "done"})
        return replace(following, carry=iterate.carry)

    def stop(self, iterate: Iterate) -> Status | None:
        """Stop when the network is found or all phases are done."""
        phase = iterate.record.get("phase")
        return RECOVERED if phase == "found" else FINISHED if phase == "done" else None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Make a network within the budget of an unfinished student."""
        plan: Plan = iterate.carry[0]
        return iterate if plan.latest is None else plan.hand_out(*as_relu(plan, plan.latest), "rescued")


def _phases(plan: Plan, start: Start | None) -> Iterator[Iterate]:
    if start is None and _may_be_exact(plan) and (yield from recover(plan)):
        return
    yield from squeeze(plan, start)


def _may_be_exact(plan: Plan) -> bool:
    """Say whether recovery could tell a network from an accident, and fits into memory."""
    numbers = plan.budget + 2 * plan.data.width
    enough = plan.data.rows >= ROWS_PER_NUMBER * numbers
    # Targets of two values are labels, of which a sparse network is not the source.
    return (
        plan.objective.loss.quadratic
        and plan.budget <= MOST_RECOVERED
        and enough
        and plan.data.y.unique().numel() > 2
    )
