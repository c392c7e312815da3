"""Every constant that decides what the default solver does, by phase, with its unit and what chose it.

Pass another one to an estimator: ``SparseMLPRegressor(tuning=Tuning(wide=WideTuning(steps=100)))``. Constants
were chosen on training rows of the first public splits of the UCI tables, on planted networks and on images
held out of MNIST's training set; never on test rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from thresher.errors import ParameterError
from thresher.objective.loss import Loss
from thresher.solvers.auto.committee_tuning import (
    CapacityTuning,
    CommitteeTuning,
    StudentTuning,
    of_classes,
)
from thresher.solvers.auto.newton_tuning import CleanTuning, NewtonTuning
from thresher.solvers.auto.recovery.deep_tuning import DeepTuning
from thresher.solvers.auto.recovery.tuning import RecoverTuning


@dataclass(frozen=True)
class GrowTuning:
    """Growing by pursuit."""

    # Quantiles of a column at which a kink may be.
    kinks: int = 31
    # Candidates whose overlap is looked at, for each nonzero admitted, at least and at most.
    shortlist: float = 6.0
    least: int = 16
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
    # Exchanges at the end: what each admits beyond the budget, as shares of it. After the first so many, one
    # that gains less than noise would is the last: what this many rows lose, for each nonzero of the budget.
    exchanges: tuple[float, ...] = (0.5, 0.25, 0.5, 0.25, 0.5, 0.25)
    exchanges_least: int = 2
    exchanges_rows: float = 0.2
    # Newton steps while an exchange holds more than the budget.
    wider: int = 6
    # Which of the penalties are tried: the first, counted from 0, and how many.
    first_alpha: int = 1
    alphas: int = 1
    # Nonzeros of a network that is grown to see how well a committee does, and under how many penalties.
    sprouted: int = 60
    sprouted_alphas: int = 2


@dataclass(frozen=True)
class WideTuning:
    """Wide random networks that are fitted whole and then pruned."""

    # Weights of the wide network as a multiple of the budget, and at least so many.
    inflation: float = 2.0
    least: int = 60
    # Most inputs of a neuron, what inputs that tell nothing by themselves have of the mean chance to be read,
    # and the share of the weights that direct connections may take.
    fan: int = 10
    chance: float = 0.1
    direct: float = 0.25
    # Newton steps before anything is pruned, and the size, in budgets, at which the penalty is raised.
    steps: int = 40
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
    # Nonzeros beyond which a fused output begins at the size of its targets, and steps go on to fall with the
    # budget. Planted (100, 10,000), eight passes: 28.5 dB of the rows trained on, 25.2 dB without.
    crowded: int = 2000
    # The proximal step in units of Adam's at a budget of 200, for classes and for a squared error.
    penalty: float = 0.1
    penalty_squared: float = 0.005
    # Weights held at first, in budgets, as far as the memory limit has room for them or this many bytes, and
    # at the end where Newton's method removes the rest.
    inflation: float = 10.0
    small: int = 2**23
    spare: float = 1.5
    # The share of the passes that is kept for Newton's method where its equations are solved by products.
    kept: float = 0.3
    # The share of all steps over which the budget falls, and over which the support may change.
    falling: float = 0.7
    moving: float = 0.8
    # The share of weights exchanged at first, how many exchanges there are, and in a short training at least;
    # batches between two: at least, since an exchange costs as much as a dozen, and at most.
    exchanged: float = 0.2
    exchanges: int = 80
    fewest: int = 40
    least_between: int = 20
    most_between: int = 100
    # Rows whose gradient decides which places are tried, where they fit into half of the memory limit: for
    # each nonzero of the budget, at least and at most. Of digits held out, 1,000 nonzeros told 93.5 % apart
    # with the least and 93.7 % with the most, in the mean of three seeds.
    tried_each: float = 10.0
    tried_least: int = 1024
    tried_most: int = 4096
    # The share of the blocks of a layer's gradient that is looked at for new places, drawn anew each time;
    # the estimators' `screen`.
    screen: float = 1.0
    # Steps after which more passes over the data no longer pay.
    enough: int = 24_000
    # A short training comes first: its share of the passes, and the weights it ends with, in budgets.
    short: float = 1 / 16
    short_spare: float = 5.0
    # Where Newton's method follows on classes, which takes a support to its optimum sooner: steps before it,
    # rows for each nonzero on which weights are exchanged, what is admitted beyond the budget, as its share;
    # the most outputs that it follows on (digits, ten classes at 60 nonzeros, gain three points of 1,150 rows
    # and a third of one of 1,440), and beyond how many the rows are fewer, so that memory does not grow.
    followed: int = 12_000
    rows_each: float = 50.0
    admitted: float = 0.5
    outputs: int = 20
    outputs_all: int = 4
    # Neurons of a training for classes: for each nonzero of the budget and output, and at least. Among more,
    # each begins with few inputs.
    neurons_each: float = 0.05
    neurons: int = 20
    # Which of the penalties it trains under, where the user leaves it open.
    alpha: int = 1
    # Where inputs outnumber rows, a penalty is chosen by short trainings on the other folds: stronger ones in
    # units of that, the strongest first, until rows held out are worse off. The share of the passes and the
    # exchanges of a short training. Of 20 newsgroups held out, trained on 10,000 rows with 5,000 nonzeros,
    # 76.9 % are told apart under 300, 78.4 % under 1,000 and 80.1 % under 3,000.
    stronger: tuple[float, ...] = (3000.0, 300.0, 30.0, 1.0)
    chooses: float = 0.2
    chooses_exchanges: int = 10
    # What outputs are multiplied by to find the size that suits rows held out best.
    sizes: tuple[float, ...] = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
    # Rows of a minibatch where rows are few and where they are many, and what is many; below `full` one step
    # takes all rows, so that the answer depends neither on their order nor on repeats.
    few_rows: int = 32
    many_rows: int = 128
    many: int = 5000
    full: int = 128

    def width(self, budget: int, outputs: int) -> int:
        """Give the neurons of a training for classes."""
        return max(self.neurons, int(self.neurons_each * budget * outputs))

    def tried(self, budget: int) -> int:
        """Give the rows whose gradient decides which places are tried."""
        return int(min(self.tried_most, max(self.tried_least, self.tried_each * budget)))

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
    fall: float = 0.6
    least: float = 3e-3
    # How often the step is halved where it leads to more weights than are allowed.
    halvings: int = 4
    # Steps at one penalty: so many at least and at most, and between them as many as read this many numbers;
    # the change of a weight (as a share of the largest) that ends them, and the curvature that the first step
    # assumes. Of correlated columns, forty steps lead to other inputs than the penalty asks for; a squared
    # error with few columns reads their moments alone, and gets there. Others would take seconds.
    fewest: int = 40
    steps: int = 2000
    work: float = 5e5
    tolerance: float = 1e-5
    curvature: float = 0.1
    # Which of the penalties on squares refits are under, counted from 0: the weakest for a squared error. A
    # log-likelihood knows its own noise, and inputs of a spread of 1 rarely ask for more than a unit of
    # log-odds each: that is a penalty of 1, without which classes that few rows tell apart entirely are told
    # with far too much confidence.
    ridge_squared: int = 0
    ridge: int = 1
    # A network must score below this share of the best linear model's to be preferred to it.
    margin: float = 0.98

    def most_steps(self, numbers: int) -> int:
        """Give the most steps at one penalty, where each reads so many numbers."""
        return int(min(self.steps, max(self.fewest, self.work / numbers)))


@dataclass(frozen=True)
class SubsetTuning:
    """Feature subsets of wide data."""

    # Inputs that are searched on: for each nonzero of the budget, at least, and the rows they are held for.
    each: float = 200.0
    least: int = 256
    rows: int = 5000
    # Neurons that small problems are searched with: for each nonzero of the budget, and at least.
    neurons_each: float = 2.0
    neurons: int = 64
    # Neurons that are trained by minibatches: for each nonzero of the budget, as many as a training holds
    # weights at first; and the bytes that each takes, three numbers for 1,024 rows, in half of the limit.
    neurons_trained: float = 10.0
    neuron_bytes: int = 2 * 4 * 3 * 1024


@dataclass(frozen=True)
class InputsTuning:
    """Which inputs are read, where not all of them may be."""

    # Rows that choices are compared on, and inputs that are looked at: for each that is read, and at least.
    rows: int = 2000
    each: int = 8
    fewest: int = 200
    # Kinks of an input; random neurons, for each input and at most.
    kinks: int = 3
    neurons_each: int = 10
    neurons: int = 60
    # Penalties, as shares of each feature's mean square.
    ridges: tuple[float, ...] = (1e-4, 1e-2, 0.1)
    # Choices that are compared; options at each step, shared by the inputs there are, and at least.
    trials: int = 600
    shortlist: int = 30
    shortest: int = 5
    # Inputs that are added without gain before no more are, and what an exchange has to gain.
    patience: int = 2
    helps: float = 1e-3
    # Standard errors by which an input has to go the wrong way to be of no use.
    errors: float = 3.0


@dataclass(frozen=True)
class LadderTuning:
    """Sizes below the budget."""

    # Each as a share of the one before, how many, and the least.
    share: float = 0.4
    sizes: int = 2
    smallest: int = 2


@dataclass(frozen=True)
class JudgeTuning:
    """Rows held out to choose between candidates."""

    # Rows (their total weight) below which nothing is held out: of numbers, and of classes, which a fold of
    # few rows may take away whole. On 10 to 19 rows of noisy tables the loss itself chose networks worse than
    # a constant; with folds, lines and hinges of 8 to 16 rows stay exact.
    fewest: float = 8.0
    fewest_classes: float = 20.0
    # The share that is held out.
    share: float = 0.2
    # Rows from which on equal rows may be held out one by one.
    apart: float = 128.0
    # Rows for each nonzero that are enough to trust the loss itself.
    plenty: float = 400.0
    # Most rows that candidates are searched on: a multiple of the budget, and at least so many.
    rows_each: float = 120.0
    rows: int = 6000
    # Scores within so many standard errors of the best, row by row, count as equal: then linear models that
    # an L1 penalty holds back win, those of the weakest penalty, and else the fewest nonzeros and the
    # strongest penalty. On 60 to 120 noisy rows, fewest nonzeros lost 1.4 to 4.7 points of R2 to a lasso.
    errors: float = 0.5
    # By how many standard errors a network that was chosen among many must be better than the linear model.
    # With half of one, fits to 60 rows of diabetes, six of ten of them networks, lost 4.4 points of R2 to a
    # lasso. One is the usual rule; dexter's figures were taken with two.
    errors_network: float = 1.0
    # Penalties that are tried where the user leaves it open, beside a sum over rows, in units of the target.
    squared: tuple[float, ...] = (0.001, 0.1, 3.0)
    classes: tuple[float, ...] = (0.1, 1.0, 10.0)
    # Newton steps of the last fit on all rows; below a score (in units of the target's variance) at which the
    # targets count as explained, so many without any penalty. Below the second, no other way is tried.
    steps: int = 30
    exact: float = 1e-4
    done: float = 1e-13
    # What inputs and targets are rounded to while candidates are searched for, in their spreads: above what a
    # shift by 1,000 spreads loses, below what tells an exact fit from another.
    digit: float = 2.0**-24
    # Budgets below which a search leaves columns whose mean is near zero where they are: about their means
    # every neuron has a bias, which so few nonzeros cannot pay (laws of 2 to 4 weights on 40 rows are lost).
    centred: int = 10
    # What targets that were rounded to float32 leave at most: below this, the network counts as recovered.
    recovered: float = 1e-14
    exact_steps: int = 40
    # Exact recovery comes first where there are so many rows for each number it fits, and else where the best
    # score is below this.
    first: float = 10.0
    promising: float = 0.005
    # The score of a committee below which networks are looked for that explain the targets entirely; on exact
    # laws of a few terms it is a hundredth of this.
    explainable: float = 5e-4
    # What recovery nearly found must score below this share of the best of the other ways.
    close: float = 0.5
    # Sizes that candidates are pruned down to, and sizes at which targets that count as explained are
    # searched once more: what needs 8 weights is hidden among 100.
    ladder: LadderTuning = field(default_factory=LadderTuning)
    exact_ladder: LadderTuning = field(default_factory=lambda: LadderTuning(sizes=4, smallest=5))
    # Different parts of the rows that are held out in turn, where there are fewer rows than this: for all
    # ways, and for linear models, which take little time and differ by less.
    folds: int = 2
    folds_linear: int = 5
    many: float = 3000.0
    # Multiplications of one set of Newton's equations, the largest budget and the most outputs that small
    # problems have.
    work: float = 2e10
    most: int = 1500
    outputs: int = 4
    # What a candidate counts of a pass over the rows that it was fitted on.
    pass_share: float = 0.5

    def least(self, loss: Loss) -> float:
        """Give the rows from which on some are held out."""
        return self.fewest_classes if of_classes(loss) else self.fewest


@dataclass(frozen=True)
class PathTuning:
    """Smaller and smaller budgets, each going on from the network of the one before."""

    # Rounds of exchanges after a network was cut down, for each penalty: the larger budget has searched. One
    # round takes as long as three steps without, and linear models beside each step as long as six.
    exchanges: int = 0
    # The share of the passes that a training takes then.
    training: float = 0.1


@dataclass(frozen=True)
class Tuning:
    """All phases."""

    newton: NewtonTuning = field(default_factory=NewtonTuning)
    recover: RecoverTuning = field(default_factory=RecoverTuning)
    deep: DeepTuning = field(default_factory=DeepTuning)
    grow: GrowTuning = field(default_factory=GrowTuning)
    wide: WideTuning = field(default_factory=WideTuning)
    committee: CommitteeTuning = field(default_factory=CommitteeTuning)
    student: StudentTuning = field(default_factory=StudentTuning)
    capacity: CapacityTuning = field(default_factory=CapacityTuning)
    falling: FallingTuning = field(default_factory=FallingTuning)
    linear: LinearTuning = field(default_factory=LinearTuning)
    subset: SubsetTuning = field(default_factory=SubsetTuning)
    inputs: InputsTuning = field(default_factory=InputsTuning)
    judge: JudgeTuning = field(default_factory=JudgeTuning)
    clean: CleanTuning = field(default_factory=CleanTuning)
    path: PathTuning = field(default_factory=PathTuning)

    def __post_init__(self) -> None:
        for one in fields(self):
            kind = one.default_factory
            if not isinstance(getattr(self, one.name), kind):  # type: ignore[arg-type]
                came = type(getattr(self, one.name)).__name__
                raise ParameterError(
                    f"tuning: {one.name}={came}(...), but that phase takes a {kind.__name__}."  # type: ignore[union-attr]
                )
