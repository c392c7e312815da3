"""Constants of exact recovery, with their reasons; see `tuning.py` of the folder above."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from thresher.solvers.auto.newton_tuning import NewtonTuning


@dataclass(frozen=True)
class SidesTuning:
    """Choosing the active sides of neurons in exact recovery."""

    # How far a solution by least squares may be from +1 and -1 to be taken for sides.
    near_one: float = 0.2
    # Features that meet more undecided neurons than this wait until others have decided some: all 2^14 ways
    # to choose are written out.
    at_once: int = 14
    # What several ways that fit have in common is trusted among this many neurons; among more, some way fits
    # by accident.
    trusted: int = 12


@dataclass(frozen=True)
class RecoverTuning:
    """Exact recovery. Constants were chosen on planted networks of 1 to 1,000 neurons and weights.

    Errors are mean squared errors, as shares of the variance of the targets where nothing else is said.
    """

    # Largest budget (Newton's equations are of its size), and rows for each number that is fitted freely: on
    # fewer, the linear part and the folds explain any targets, and a good fit says nothing.
    most: int = 3000
    rows_each: float = 2.0
    # Weights that the wide student may hold: a multiple of the budget, and a quarter of a megabyte in any
    # case. Its neurons: a multiple of those allowed, at least so many.
    inflation: float = 20.0
    weights: int = 2**16
    wider: float = 2.0
    neurons: int = 4
    # Inputs of a feature subset at least, and the neurons that each should then have weights for at most.
    inputs: int = 16
    neurons_each: int = 128
    # Standard errors beyond the largest accident at which a fold tells that neurons are added or subtracted;
    # the share of the loss that neurons of both signs must leave after a training, where one sign failed.
    certain: float = 0.3
    both_signs: float = 0.9
    # Root mean square of the sum of all neurons at the start, as a share of the targets' spread.
    start: float = 0.25
    # Adam's step in units of a typical weight, the factor by which it falls, the L1 share, the warm-up steps.
    rate: float = 0.008
    fall: float = 300.0
    l1: float = 0.1
    warm_up: float = 50.0
    # Wide trainings, one after the other: passes, and step sizes as multiples of the rate. The shortest worth
    # trying, in passes.
    stretches: tuple[tuple[float, float], ...] = ((3.0, 4.0), (10.0, 2.0), (40.0, 1.0))
    shortest: float = 2.0
    # Rows below which passes are counted longer, and the most that counts as one, as a share of all.
    unit_rows: float = 5000.0
    unit_share: float = 0.01
    # A wide student that leaves more than `hopeless`, or `unexplained` after its last training, is not
    # looking at an exact network. Less than `almost` is worth an attempt, or less than `early` where one is
    # `cheap`: so many multiplications for Newton's equations. Less than `promising` is worth a candidate.
    # So is one of which a longer training leaves more than `standstill`, while more than `almost` is left,
    # at its end or from a share `glance` of it on: there, planted networks leave less than half, noise all.
    # One that leaves less than `falling` of what it left half way there is not looked at that early: those of
    # 200 neurons and 500 weights leave an eighth, and find their network later.
    hopeless: float = 0.3
    unexplained: float = 3e-2
    standstill: float = 0.65
    glance: float = 0.4
    falling: float = 0.5
    # So is one that leaves more than this many times what a network leaves that other ways have found.
    behind: float = 10.0
    early: float = 5e-2
    cheap: float = 2e9
    almost: float = 1e-3
    promising: float = 1e-5
    # A student that was cut down and leaves less than this is nearly it: cycles follow at once.
    near: float = 1e-3
    # The error at which a network is found, as a share of the largest target squared: 110 dB.
    found: float = 1e-11
    # Weights kept by magnitude before and after the training on a fixed support, in budgets; the passes of
    # that training in those of the wide one; its first and last step and its L1 share, as shares of those.
    kept: float = 2.5
    kept_last: float = 1.5
    fixed_passes: float = 0.125
    fixed_rate: float = 0.25
    fixed_fall: float = 100.0
    fixed_l1: float = 0.5
    # What merging may add to the error, as a share of it; rows compared; cosine above which a pair is looked
    # at; rounds.
    merged: float = 0.16
    compared: int = 2000
    merge_cosine: float = 0.7
    merge_rounds: int = 8
    # Rows of the sample: at least, and for each nonzero of the budget. Of these, rows for elimination: at
    # least, and for each number fitted.
    sample: int = 10_000
    sample_each: float = 6.0
    fitted: int = 6000
    fitted_each: float = 5.0
    # Newton steps around an elimination; above this multiple of the budget it is done in two halves.
    steps: int = 3
    halfway: float = 1.15
    # Beyond the budget, weights go while all of them raise the error by less than this share of it, and each
    # by less than this many times the mean error of one row: more is no accident.
    slack: float = 0.05
    no_accident: float = 20.0
    # Repairs by growing: how many, the error that needs none (a share of what counts as found, above what
    # float32 rounds), the weights each admits (a share of the budget, and at least), and the share of the
    # error that must be left for another to follow.
    repairs: int = 8
    repaired_to: float = 1e-3
    repaired: float = 0.1
    repaired_least: int = 5
    repair_helps: float = 0.6
    # Cycles after the last wide training: passes to widen and to narrow, the share of all passes left alone,
    # new neurons as a share of those allowed and at least, their size and that of the noise on weights that
    # are zero, in root mean square residuals.
    widen_passes: float = 8.0
    narrow_passes: float = 5.0
    left_alone: float = 0.1
    fresh: float = 0.3
    fresh_least: int = 2
    fresh_size: float = 2.0
    noise: float = 0.05
    # The share of the passes that must be left for a student that is not promising to be trained on.
    patience: float = 0.3
    # Tolerances at which sides are chosen, in root mean square residuals, and what is added to those, as a
    # share of the targets' spread.
    tolerances: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    rounding: float = 1e-8
    sides: SidesTuning = field(default_factory=SidesTuning)
    # Where sides cost too many weights, training in the ReLU form: its share of the passes, first step in
    # rates, factor by which that falls, and the share of it over which the budget falls.
    compromise: float = 0.03
    compromise_rate: float = 0.5
    compromise_fall: float = 100.0
    compromise_until: float = 0.7
    # The last fit: rows at first (at least, and for each nonzero), steps on those and on all rows, the error
    # (in errors that count as found) on some rows that makes all rows worth it, and the share of the error
    # that weights must save to fill the budget.
    polished: int = 6000
    polished_each: float = 6.0
    polish_steps: int = 8
    last_steps: int = 3
    explained: float = 10.0
    filled: float = 0.1
    # Several outputs: weights that a wide student may hold in any case, enough for all of a thousand inputs,
    # because what one output does not read another may.
    many_weights: int = 2**17
    # The largest value of an input, in its root mean squares, that students are trained on.
    highest: float = 20.0
    # 1 less the cosine above which two lines are one, and above which neurons of one output
    # are tried as one; what is added to the equations for outputs on lines, as a share of their diagonal.
    same_line: float = 1e-6
    twins: float = 1e-3
    line_ridge: float = 1e-12
    # Of the weights that an output would read if each layer held half of the budget, evenly spread, how many
    # times it is first allowed, and how many more.
    needed: float = 1.5
    needed_least: int = 8
    # The factor by which that is raised where a student that was cut down leaves so many times what it left.
    raised: float = 2.0
    raised_above: float = 30.0
    # Passes, as counted for the stretches, that one search for an output may take: all stretches and two
    # cycles. How many searches an output may have.
    alone: float = 90.0
    searches: int = 3
    # Where least squares leave less than this share of an output, errors are shares of what they leave, and a
    # student is hopeless that leaves more than so much of it at first, or after its last training.
    mostly: float = 1e-2
    hopeless_rest: float = 0.9
    unexplained_rest: float = 0.3
    # The largest eigenvalue of mean products of inputs above which steps are shorter, by the root of what
    # exceeds this: it is 1 where inputs are independent, and a hundred or two for images. And the rows that
    # then make up a pass as it is counted, where least squares leave little.
    coherent: float = 4.0
    coherent_rows: float = 2e5
    # Outputs in a row that are not found while none has been: then nothing is.
    in_vain: int = 2
    # Newton steps of the whole network at the end.
    joint_steps: int = 3
    # Newton's method in all of this: nearly undamped, because students are near the end of their training.
    newton: NewtonTuning = field(
        default_factory=lambda: NewtonTuning(damping=1e-6, helps=0.2, helps_rows=math.inf)
    )
