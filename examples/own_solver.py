"""A solver of one's own: every step prunes another random network, and the loop keeps the best.

python examples/own_solver.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sklearn.datasets import load_diabetes, load_iris

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.linear.vector import SparseVector
from thresher.objective.relu import Relu
from thresher.solvers.auto.newton import measured, refit, shrink
from thresher.solvers.auto.newton_tuning import NewtonTuning
from thresher.solvers.auto.tuning import WideTuning
from thresher.solvers.auto.wide import random_start
from thresher.solvers.loop import OPTIONS, Iterate, Needs, Start
from thresher.solvers.status import Status


@dataclass(frozen=True)
class Restarts:
    """Takes a ReLU network of any shape; has no use for a network to start from, and says so."""

    needs: ClassVar[Needs] = Needs(kind="relu", options=OPTIONS - {"warm_start"})
    wider: int = 3

    def init(self, objective: Relu, budget: int, start: Start | None) -> Iterate:
        """Begin with nothing."""
        w = SparseVector.zeros(objective.size)
        return Iterate(w, float("inf"), 0.0, kept=False, carry=(objective, budget, 0))

    def step(self, iterate: Iterate) -> Iterate:
        """Draw a network of too many weights, fit it, remove the least useful, fit what is left."""
        objective, budget, seed = iterate.carry
        start = random_start(objective, self.wider * budget, seed, WideTuning())
        wide = refit(objective, measured(objective, start), 10, NewtonTuning())
        fit = shrink(objective, wide, budget, NewtonTuning())
        now, passes = fit.point, iterate.passes + 20
        return Iterate(now.w, fit.value, passes, now.signs, carry=(objective, budget, seed + 1))

    def stop(self, iterate: Iterate) -> Status | None:
        """Go on until max_iter is reached: a restart counts as 20 passes."""
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Hand out what there is: every network is within the budget."""
        return iterate


if __name__ == "__main__":
    for kind, load in ((SparseMLPRegressor, load_diabetes), (SparseMLPClassifier, load_iris)):
        X, y = load(return_X_y=True)
        model = kind(20, 8, solver=Restarts(), alpha=1.0, random_state=0).fit(X, y)
        print(f"{len(model.history_)} restarts, {model.nonzeros_} nonzeros, score {model.score(X, y):.2f}")
