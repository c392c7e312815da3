"""The constants of committees, of the students that learn from them, and of how many weights rows bear."""

from __future__ import annotations

import math
from dataclasses import dataclass

from thresher.objective.loss import Loss


def of_classes(loss: Loss) -> bool:
    """Say whether a loss is that of classes."""
    return loss.link in ("logistic", "softmax")


@dataclass(frozen=True)
class CommitteeTuning:
    """Small networks trained side by side, whose mean is a teacher."""

    # Rows below which there is none, too few to leave some out; and inputs above which there is none, too
    # many for members to find those that matter.
    fewest: int = 128
    inputs: int = 128
    # Neurons of a member: for each nonzero of the budget, at least and at most. Inputs of a neuron, and how
    # far its kink begins towards a row that is drawn: 0 at the origin, 1 at the row.
    neurons_each: float = 0.5
    fewest_neurons: int = 20
    neurons: int = 50
    fan: int = 16
    kinks: float = 0.5
    # Where neurons may read few inputs: the share of the training after which they do, and the steps between
    # two times that some are let go of.
    narrowed: float = 0.5
    narrowed_every: int = 20
    # Parts of the rows, each of which two members are blind to.
    folds: int = 5
    # The penalty beside a sum over rows, in mean squared errors of rows that members are blind to (the noise,
    # over the variance of a weight), and how much it rises with what members leave less on rows they see, as
    # a share of what a constant leaves; both are measured every so many passes. On made-up tables of 800 rows
    # (a third of it noise, counts, ratings) 100 nonzeros explained 83 % of the law without a rise, 86 % under
    # 3, 87 % under 6 and 85 % under 15. To rise with all that is left holds members back where they miss a
    # law instead: sines of several periods.
    alpha: float = 2.5
    rise: float = 6.0
    every: int = 5
    # Adam's step, and the longest that fewer passes take; what is left of it at the end, the share of the
    # steps that warm it up, its constants.
    rate: float = 0.02
    highest: float = 0.05
    last: float = 0.01
    warm_up: float = 0.02
    betas: tuple[float, float] = (0.9, 0.99)
    epsilon: float = 1e-8
    # Passes over 1,000 rows, and the least and most; they fall as the root of the rows. What is left of them
    # where rows are plenty: two members, blind to none, are then where pruning starts, and teach little.
    thousand: float = 300.0
    least: float = 15.0
    alone: float = 0.25
    # Rows of a minibatch: this many roots of all rows, and the least and most.
    root: float = 3.5
    smallest: int = 32
    largest: int = 256

    def penalty(self, left: float, fitted: float) -> float:
        """Give the penalty beside a sum over rows where members leave, and fit to noise, such shares."""
        return self.alpha * left * (1 + self.rise * fitted)

    def width(self, budget: int, hidden: int) -> int:
        """Give the neurons of a member."""
        return int(min(hidden, self.neurons, max(self.fewest_neurons, self.neurons_each * budget)))

    def batch(self, rows: int) -> int:
        """Give the rows of a minibatch."""
        return int(min(rows, self.largest, max(self.smallest, self.root * math.sqrt(rows))))

    def passes(self, rows: int) -> float:
        """Give the passes that serve so many rows."""
        return min(self.thousand, max(self.least, self.thousand * math.sqrt(1000 / rows)))


@dataclass(frozen=True)
class StudentTuning:
    """One network that learns from a committee. Noise is what members leave on rows they are blind to, as a
    share of what a constant leaves."""

    # Targets are moved half way to what the committee says where noise is this, further where it is more, and
    # less far below so many nonzeros of the budget for each row.
    half: float = 0.1
    crowded: float = 0.1
    # How much less than it, and than linear models, a small network must leave that is grown, as a share of
    # what a constant leaves, to say that the committee misses something: 0.7 for a sine of several periods.
    clear: float = 0.05
    # The penalty beside a sum over rows at a noise of 1, and the power of the noise that it falls with.
    alpha: float = 8.0
    power: float = 1.5
    # What is left of that penalty, and of the noise at which targets are moved half way, where targets are
    # classes: the curvature of their losses is at most a quarter, and no target is a probability.
    flat: float = 0.25
    # Members that are pruned, the nearest to the mean of all; what is left of each at once, in budgets, and
    # Newton steps after that.
    starts: int = 3
    first: float = 4.0
    steps: int = 8
    # Rows, of each output, that a fit is searched on: at least, and for each of its weights; so many more of
    # both at a noise of 1.
    rows: int = 4000
    rows_each: int = 10
    rows_noise: float = 8.0
    # How many of what was pruned and grown race by exchanges, and what each admits beyond the budget, as
    # shares of it; those of the best of them after that.
    finalists: int = 2
    race: tuple[float, ...] = (0.5, 0.25)
    exchanges: tuple[float, ...] = (0.5, 0.25)
    # Weights go, down to this share at a time, until what is expected of other rows exceeds the least so far
    # by the factor `patience`. Expected is the loss, and its rise on rows that refits of so many steps leave
    # out in turn, counted `cost` times over the share of the rows that is left when each weight takes one
    # (`crammed` at most), since weights were chosen with those rows in view. A network is not worse than a
    # larger one if it is expected to lose no more, a standard error included, than `cost` rows for each
    # weight that is gone, and this share at most.
    kept: float = 0.8
    patience: float = 3.0
    refits: int = 3
    cost: float = 2.0
    crammed: float = 0.9
    tolerance: float = 0.05
    # The share of all rows that the last fit begins with.
    last_rows: float = 0.25

    def flatness(self, loss: Loss) -> float:
        """Give what is left of a constant that was chosen for a squared error."""
        return self.flat if of_classes(loss) else 1.0


@dataclass(frozen=True)
class CapacityTuning:
    """How many weights the rows bear, asked of rows held out."""

    # Nonzeros for each row that they bear unasked, and how many they bear in any case: fewer leave a search
    # no room to find what works together only. Sizes from the budget down to that, each as a share of the one
    # before. On made-up tables of 800 rows, a third of it noise, 80 nonzeros explained 91 % of the rest, and
    # 30 explained 95 %.
    crowded: float = 0.02
    few: int = 30
    # Noise below which they are not asked: there is little to fit, and room helps to find a law.
    noise: float = 0.02
    step: float = 0.7
    # Standard errors, row by row, within which a larger size is as good as the best. On made-up tables of 300
    # to 1,000 rows with 200 nonzeros, the best size left 92 % of a variance explained and the budget 87 %.
    errors: float = 0.5
