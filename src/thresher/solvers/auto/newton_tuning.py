"""Constants of Newton's method and of the last prune, with their reasons; see `tuning.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class NewtonTuning:
    """Damped Newton steps on a support, and removal of weights."""

    # Damping of the first step, as a share of the curvature's diagonal, and the range it moves in by tens.
    damping: float = 1e-3
    least_damping: float = 1e-9
    most_damping: float = 1e6
    # A step that keeps more than the first share of what its equations promise is followed by less damping,
    # one that keeps less than the second by more (Marquardt's rule), by these factors; one that leads up is
    # tried again with so many times as much.
    trusted: float = 0.75
    doubted: float = 0.25
    relaxed: float = 0.1
    raised: float = 4.0
    again: float = 10.0
    # A step that lowers the objective by less than this share is the last, and by less than what so many rows
    # lose in the mean: the more rows, the smaller a gain that is none of noise.
    helps: float = 5e-3
    helps_rows: float = 2.0
    # The share of the weights that is removed before the rest is refitted.
    removed: float = 0.25
    # Steps after each removal, and at the end.
    between: int = 3
    last: int = 10
    # Added to the curvature when weights are removed, as a share of its mean diagonal.
    ridge: float = 1e-6
    # Matrices of the weights squared that are in memory at once: the curvature and what becomes of it.
    matrices: int = 3
    # Bytes that they may take under any memory limit, so that it does not change what is found in small data.
    small: int = 2**20
    # Weights up to which equations are factored, whatever memory there is: products are cheaper beyond. Steps
    # of conjugate gradients for one of Newton's, and the share of the gradient that is left where they end.
    factored: int = 8192
    iterations: int = 20
    solved: float = 0.1
    # The share of the memory limit above which what they leave is given back to the system before every step:
    # gaps in the heap would not be used again. A quarter is some 800 weights at the default limit.
    given_back: float = 0.25

    def within(self, passes: float) -> NewtonTuning:
        """Plan so few steps that they take at most so many passes, where products solve the equations.

        Gradient, diagonal and a trial take a pass each.
        """
        steps = int(passes // (self.iterations + 3))
        between = min(self.between, steps // 4)
        return replace(self, between=between, last=min(self.last, steps - 2 * between))

    @property
    def passes(self) -> float:
        """Passes that two removals and the end take at most, where products solve the equations."""
        return (2 * self.between + self.last) * (self.iterations + 3)


@dataclass(frozen=True)
class CleanTuning:
    """The last prune."""

    # How much the objective may rise when something goes: a share of it, and a number at rounding level.
    share: float = 1e-7
    least: float = 1e-20
    # What a weight that means nothing may gain by fitting rounding, in mean losses of one row.
    accident: float = 20.0
    # Losses, in units of the target's variance, at which a fit is exact: what targets that were rounded to
    # float32 leave at most. More is then tried: removals that the equations say raise twice the objective by
    # so much.
    exact: float = 1e-14
    bold: float = 1e-3
    # Neurons whose cosine is within this of 1, or of -1, may be one: tried in turn.
    collinear: tuple[float, ...] = (1e-6, 1e-3)
    # How many times that the equations may promise for removals that are worth a trial, and what is added to
    # them, as a share of what removals during a search add: the fit is exact, or as good as it gets.
    promised: float = 100.0
    ridge: float = 1e-3
    # Rounds of removal, Newton steps after each, and the most weights it is done for.
    rounds: int = 12
    steps: int = 6
    most: int = 400
    # Rows on which removals are tried first: at least, and for each weight.
    rows: int = 5000
    rows_each: int = 20
