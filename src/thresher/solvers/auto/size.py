"""How large a problem is: whether Newton's equations are cheap, fit into memory, and pay."""

from __future__ import annotations

from dataclasses import dataclass

from thresher.objective.relu import Relu
from thresher.solvers.auto.equations import factored
from thresher.solvers.auto.tuning import Tuning


@dataclass(frozen=True, eq=False)
class Size:
    """An objective and a budget, and what is affordable for them."""

    objective: Relu
    budget: int
    tuning: Tuning

    @property
    def searched(self) -> int:
        """Rows that candidates are searched on."""
        judge = self.tuning.judge
        return int(min(self.objective.data.rows, max(judge.rows, judge.rows_each * self.budget)))

    def solvable(self, weights: float) -> bool:
        """Whether the memory limit has room for Newton's equations of so many weights and their inputs."""
        data, newton = self.objective.data, self.tuning.newton
        numbers = data.rows * min(data.columns, weights) + newton.matrices * weights**2
        room = max(self.objective.memory_limit, newton.small)
        return self.budget <= self.tuning.judge.most and 8 * numbers <= room

    def factored(self, weights: int) -> bool:
        """Whether Newton's equations of so many weights are factored, wherever they are solved."""
        return factored(weights, self.objective.memory_limit, self.tuning.newton)

    @property
    def cheap(self) -> bool:
        """Whether Newton's equations on a wide network are cheap enough to be solved a few times."""
        judge, wide = self.tuning.judge, self.tuning.wide
        count = max(wide.least, wide.inflation * self.budget)
        work = 2.0 * self.objective.layout.widths[-1] * count**2 * self.searched
        return work <= judge.work and self.solvable(count)

    @property
    def newton_pays(self) -> bool:
        """Whether Newton's equations on a wide network are cheap enough to be solved again and again."""
        return self.objective.layout.widths[-1] <= self.tuning.judge.outputs and self.cheap

    @property
    def small(self) -> bool:
        """Whether a search by Newton's method makes more in the same time than minibatches do."""
        judge = self.tuning.judge
        # It does not of many rows with classes, the sooner without a committee.
        narrow = self.objective.data.columns <= self.tuning.committee.inputs
        plenty = judge.plenty * self.budget if narrow else judge.many
        return self.newton_pays and (self.objective.loss.quadratic or self.objective.data.amount < plenty)
