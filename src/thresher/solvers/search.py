"""The default solver: a wide sparse student, merged, pruned and polished into a network within the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from thresher.operators.gated import GatedOperator
from thresher.solvers.loop import FINISHED, Iterate, Start, Status
from thresher.solvers.objective import Objective
from thresher.solvers.plan import Plan
from thresher.solvers.recover import recover
from thresher.solvers.screen import working_features
from thresher.solvers.squeeze import squeeze
from thresher.solvers.working import Working
from thresher.vector import SparseVector

# Weights that a student may hold, as a multiple of the budget, and whatever the budget (half a megabyte).
WIDE, FLOOR = 20, 2**17


@dataclass(frozen=True)
class Search:
    """Train a student that is wider than allowed, and cut it down to the budget.

    A squared error is first taken for an exact problem: if a wide student explains nearly everything, the
    network is *recovered* (`recover.py`). Otherwise the student is trained in the ReLU form under a budget that
    shrinks to the exact one.

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
        """Start with the zero network, or with the given one."""
        assert isinstance(objective.operator, GatedOperator)
        zero = SparseVector.zeros(objective.size, objective.operator.dtype)
        return Iterate(zero, math.inf, 0.0, carry=self._phases(objective, budget, start))

    def step(self, iterate: Iterate) -> Iterate:
        """Go on by one pass over the data, or by one part of the end game."""
        following = next(iterate.carry, None)
        if following is None:
            return replace(iterate, record={"phase": "done"})
        return replace(following, carry=iterate.carry)

    def stop(self, iterate: Iterate) -> Status | None:
        """Stop when all phases are done."""
        return FINISHED if iterate.record.get("phase") == "done" else None

    def finish(self, iterate: Iterate) -> Iterate:
        """Hand the iterate out as it is: phases polish what they hand out."""
        return iterate

    def _phases(self, objective: Objective, budget: int, start: Start | None) -> Iterator[Iterate]:
        operator = objective.operator
        assert isinstance(operator, GatedOperator)
        room = max(WIDE * budget, FLOOR)
        features = working_features(objective, room, budget)
        data = Working.of(objective, features, operator.memory_limit, self.seed)
        batch = data.batch_size(self.batch_size)
        width = max(2, min(room // data.width, max(4, 2 * min(operator.neurons, budget))))
        plan = Plan(
            objective, data, budget, operator.neurons, width, batch, self.passes, self.negative, self.seed
        )
        if objective.loss.quadratic and start is None and (yield from recover(plan)):
            return
        yield from squeeze(plan, start)
