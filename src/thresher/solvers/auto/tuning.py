"""Every constant that decides what the default solver does, by phase, with its unit and what chose it.

Pass another one to an estimator: ``SparseMLPRegressor(tuning=Tuning(wide=WideTuning(starts=4)))``. Constants
were chosen on training rows of the first public splits of the UCI tables, on planted networks and on images
held out of MNIST's training set; never on test rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class NewtonTuning:
    """Damped Newton steps on a support, and removal of weights."""

    # Damping of the first step, as a share of the curvature's diagonal, and the range it moves in by tens.
    damping: float = 1e-3
    least_damping: float = 1e-9
    most_damping: float = 1e6
    # A step that lowers the objective by less than this share is the last.
    helps: float = 1e-3
    # The share of the weights that is removed before the rest is refitted.
    removed: float = 0.15
    # Steps after each removal, and at the end.
    between: int = 3
    last: int = 8
    # Added to the curvature when weights are removed, as a share of its mean diagonal.
    ridge: float = 1e-6


@dataclass(frozen=True)
class GrowTuning:
    """Growing by pursuit."""

    # Quantiles of a column at which a kink may be.
    kinks: int = 31
    # Candidates whose overlap is looked at, for each nonzero admitted, and at most.
    shortlist: float = 6.0
    most: int = 400
    # Share of a candidate's own size that must be left once what is held is projected out.
    ridge: float = 1e-3
    # Columns that get kinks for each output, those with the steepest slopes.
    features: int = 100
    # Lengths of the first step that are tried, as shares of Newton's.
    lengths: tuple[float, ...] = (1.0, 0.3, 0.1, 0.01)
    # Rounds in which a network grows from nothing to the budget, and Newton steps after each.
    rounds: int = 7
    steps: int = 4
    # Exchanges at the end: what each admits beyond the budget, as shares of it.
    exchanges: tuple[float, ...] = (0.5, 0.25)
    # Which of the penalties are tried: the first, counted from 0, and how many.
    first_alpha: int = 1
    alphas: int = 2


@dataclass(frozen=True)
class WideTuning:
    """Wide random networks that are fitted whole and then pruned."""

    # Weights of the wide network as a multiple of the budget, and at least so many.
    inflation: float = 2.0
    least: int = 60
    # Most inputs of a neuron, and the share of the weights that direct connections may take.
    fan: int = 10
    direct: float = 0.25
    # Newton steps before anything is pruned, and the size, in budgets, at which the penalty is raised.
    steps: int = 30
    near: float = 1.25
    # Steps after the penalty is raised.
    raised: int = 6


@dataclass(frozen=True)
class FallingTuning:
    """Training all layers by Adam under a falling budget."""

    # Adam's step at a budget of 1,000, in scaled units; fewer weights bear larger steps, deeper networks need
    # them. Its limits, what is left of it at the end, the share of the steps that warm it up, its constants.
    rate: float = 0.01
    lowest: float = 0.007
    highest: float = 0.03
    last: float = 0.01
    warm_up: float = 0.02
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    # The proximal step in units of Adam's at a budget of 200, for classes and for a squared error.
    penalty: float = 0.1
    penalty_squared: float = 0.005
    # Weights held at first, as a multiple of the budget, and at the end where Newton's method removes the rest.
    inflation: float = 10.0
    spare: float = 1.5
    # The share of all steps over which the budget falls, and over which the support may change.
    falling: float = 0.7
    moving: float = 0.8
    # The share of weights exchanged at first, how many exchanges there are, and most batches between two.
    exchanged: float = 0.2
    exchanges: int = 80
    most_between: int = 100
    # Rows, and numbers in those rows, whose gradient decides which places are tried.
    tried: int = 4096
    tried_numbers: int = 2**24
    # Steps after which more passes over the data no longer pay.
    enough: int = 24_000
    # Rows of a minibatch where rows are few and where they are many, and what is many; below `full` one step
    # takes all rows, so that the answer depends neither on their order nor on repeats.
    few_rows: int = 32
    many_rows: int = 128
    many: int = 5000
    full: int = 128

    def batch(self, wanted: int | str | None, rows: int) -> int:
        """Turn the user's wish into rows of a minibatch."""
        if wanted is None or rows < self.full:
            return rows
        if wanted == "auto":
            return self.few_rows if rows < self.many else self.many_rows
        return min(int(wanted), rows)


@dataclass(frozen=True)
class LinearTuning:
    """Linear models along a path of L1 penalties."""

    # The penalty falls by this factor, down to this share of the one that leaves nothing.
    fall: float = 0.75
    least: float = 3e-3
    # Steps at one penalty, the change of a weight (as a share of the largest) that ends them, and the
    # curvature that the first step assumes.
    steps: int = 60
    tolerance: float = 1e-3
    curvature: float = 0.1
    # A network must score below this share of the best linear model's to be preferred to it.
    margin: float = 0.98


@dataclass(frozen=True)
class SubsetTuning:
    """Feature subsets of wide data."""

    # Inputs that are searched on: for each nonzero of the budget, at least, and the rows they are held for.
    each: float = 200.0
    least: int = 256
    rows: int = 5000


@dataclass(frozen=True)
class JudgeTuning:
    """Rows held out to choose between candidates."""

    # Rows (their total weight) below which nothing is held out, and the share that is.
    fewest: float = 20.0
    share: float = 0.2
    # Rows for each nonzero that are enough to trust the loss itself.
    plenty: float = 400.0
    # Most rows that candidates are searched on: a multiple of the budget, and at least so many.
    rows_each: float = 40.0
    rows: int = 5000
    # Scores within this share of the best count as equal: then the fewest nonzeros win.
    equal: float = 0.002
    # Penalties that are tried where the user leaves it open, beside a sum over rows, in units of the target.
    squared: tuple[float, ...] = (0.01, 0.3, 3.0, 20.0)
    classes: tuple[float, ...] = (0.1, 1.0, 5.0)
    # Newton steps of the last fit on all rows.
    steps: int = 12
    # Sizes below the budget that are tried: each as a share of the one before, how many, and the least.
    ladder: float = 0.5
    sizes: int = 4
    smallest: int = 2
    # Different parts of the rows that are held out in turn, where there are fewer rows than this.
    folds: int = 2
    many: float = 3000.0
    # Multiplications of one set of Newton's equations, and the largest budget, that small problems have.
    work: float = 4e9
    most: int = 1500
    # What a candidate counts of a pass over the rows that it was fitted on.
    pass_share: float = 0.5


@dataclass(frozen=True)
class CleanTuning:
    """The last prune."""

    # How much the objective may rise when something goes: a share of it, and a number at rounding level.
    share: float = 1e-7
    least: float = 1e-20
    # Rounds of removal, Newton steps after each, and the most weights it is done for.
    rounds: int = 12
    steps: int = 6
    most: int = 400


@dataclass(frozen=True)
class Tuning:
    """All phases."""

    newton: NewtonTuning = field(default_factory=NewtonTuning)
    grow: GrowTuning = field(default_factory=GrowTuning)
    wide: WideTuning = field(default_factory=WideTuning)
    falling: FallingTuning = field(default_factory=FallingTuning)
    linear: LinearTuning = field(default_factory=LinearTuning)
    subset: SubsetTuning = field(default_factory=SubsetTuning)
    judge: JudgeTuning = field(default_factory=JudgeTuning)
    clean: CleanTuning = field(default_factory=CleanTuning)
