"""Constants of the recovery of networks with several hidden layers, with their reasons; see `tuning.py`."""

from __future__ import annotations

from dataclasses import dataclass, field

from thresher.solvers.auto.newton_tuning import NewtonTuning
from thresher.solvers.auto.recovery.tuning import SidesTuning


@dataclass(frozen=True)
class DeepTuning:
    """Recovery of deep networks. Constants were chosen on planted networks of seeds that no result uses.

    Errors are mean squared errors, as shares of the variance of the targets where nothing else is said.
    """

    # Largest budget (Newton's equations are of its size). Inputs that are looked at: where there are more,
    # those that tell most alone. Rows for each nonzero of the budget, for each of those inputs, and at least:
    # on fewer a good fit says nothing.
    most: int = 1500
    inputs: int = 256
    rows_each: float = 10.0
    rows_input: float = 20.0
    rows: float = 500.0
    # Neurons of a student's layers: a multiple of those allowed, at least so many, and no more than this for
    # each nonzero of the budget; weights of all. With twice as many as allowed, half of the students miss a
    # kink that no step brings back.
    wider: float = 3.0
    neurons: int = 10
    neurons_each: float = 0.3
    weights: int = 16_384
    # Rows that students are trained on: at least, and for each nonzero of the budget. Rows of a minibatch: at
    # most and at least, and minibatches of a pass.
    sample: int = 20_000
    sample_each: float = 40.0
    batch: int = 256
    batch_least: int = 32
    batches: int = 40
    # By how much the weights of the first layers begin smaller and those of the last larger. All neurons of a
    # layer feed the next one with numbers above zero, so that one step on its weights moves them all to the
    # same side: of large steps on small weights, most neurons of the second layer are off for good.
    tilt: float = 2.0
    # Adam's step for targets of unit spread, in the first training of a student and in those that follow;
    # what is left of it at the end; the L1 share; the steps over which it rises from nothing.
    rate: float = 0.003
    rate_after: float = 0.005
    fall: float = 300.0
    l1: float = 0.05
    warm_up: float = 500.0
    # Steps of the look that says which inputs matter and whether the targets can be explained at all, of the
    # first training of a student, and of those that follow; the most trainings of one student.
    look: int = 3000
    steps: int = 8000
    steps_after: int = 5000
    cycles: int = 6
    # The shares of all passes that the look and a training take at most.
    look_most: float = 0.1
    training_most: float = 0.25
    # The share of the passes below which no other start is worth it.
    shortest: float = 0.05
    # A student is not looking at an exact network if it leaves more than `hopeless` after a look, more than
    # `unexplained` after a training, or stands still above `almost`. Below `promising` it is narrowed.
    hopeless: float = 0.3
    unexplained: float = 0.1
    almost: float = 3e-3
    promising: float = 1e-4
    # Inputs go after the look whose removal costs less than this share of what is unexplained. Those that
    # were missed come back by their gradients.
    idle: float = 2e-3
    # A training that leaves more than this share of what the one before left is a student's last.
    standstill: float = 0.7
    # Weights of a student that are refitted, in budgets and at least; size of the noise on zeros when it is
    # widened again.
    kept: float = 2.0
    kept_least: int = 450
    noise: float = 1e-3
    # Rows for Newton's equations: at least, and for each weight that is refitted; fewer where a row has an
    # equation for each output, of which so many count.
    fitted: int = 6000
    fitted_each: float = 5.0
    outputs: int = 5
    # Newton steps on a pruned student at most, and the multiplications that they may take together (they are
    # four at least); steps after each removal, and where that was one too many; on all rows.
    steps_first: int = 40
    work: float = 4e11
    steps_between: int = 4
    steps_last: int = 20
    steps_all: int = 3
    # The share of the weights that is removed at once, halved where that is too many, and the least such
    # share where the network is not exact.
    removed: float = 0.2
    finest: float = 0.02
    # How far from 1 cosines of neurons may be that are tried as one, in turn; and the error that a network
    # may have after neurons became one or weights went, in errors before.
    merged: tuple[float, ...] = (1e-9, 1e-6, 1e-4, 1e-2, 3e-2)
    slack: float = 1.5
    # Tolerances at which sides are chosen, in root mean square residuals.
    tolerances: tuple[float, ...] = (0.1, 1.0, 10.0)
    sides: SidesTuning = field(default_factory=SidesTuning)
    # Repairs: how many; rounds of growing in each, since what one weight tells is seen once another is there;
    # weights that a round admits (a share of the budget, and at least), and new paths; the share of the error
    # that must be left for another repair to follow.
    repairs: int = 20
    rounds: int = 3
    repaired: float = 0.1
    repaired_least: int = 6
    sprouts: int = 6
    repair_helps: float = 0.9
    # The error at which a network is found, as a share of the largest target squared: 110 dB.
    found: float = 1e-11
    newton: NewtonTuning = field(default_factory=lambda: NewtonTuning(damping=1e-3, helps=0.02))

    def refitted(self, budget: int) -> int:
        """Give the weights of a student that are refitted."""
        return max(self.kept_least, int(self.kept * budget))

    def enough(self, inputs: int, budget: int) -> float:
        """Give the rows on which a good fit says something."""
        return max(self.rows, self.rows_each * budget, self.rows_input * min(inputs, self.inputs))

    def newton_steps(self, weights: int, equations: int) -> int:
        """Give the Newton steps on so many weights that are affordable."""
        return int(max(4, min(self.steps_first, self.work / (equations * weights**2))))
