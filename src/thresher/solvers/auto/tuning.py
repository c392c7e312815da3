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


@dataclass(frozen=True)
class WideTuning:
    """Wide random networks that are fitted whole and then pruned."""

    # Weights of the wide network as a multiple of the budget, and at least so many.
    inflation: float = 2.0
    least: int = 60
    # Most inputs of a neuron, and the share of the weights that direct connections may take.
    fan: int = 10
    direct: float = 0.25
    # Different starts, and the Newton steps of each before anything is pruned.
    starts: int = 1
    steps: int = 30
    # Steps after the penalty is raised.
    raised: int = 6


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
    # Sizes below the budget that are tried, each as a share of the one before, and the least.
    ladder: float = 0.5
    smallest: int = 4


@dataclass(frozen=True)
class Tuning:
    """All phases."""

    newton: NewtonTuning = field(default_factory=NewtonTuning)
    grow: GrowTuning = field(default_factory=GrowTuning)
    wide: WideTuning = field(default_factory=WideTuning)
    judge: JudgeTuning = field(default_factory=JudgeTuning)
