"""The counts of what a fit does, as functions of its sizes: their time, memory and traffic.

`cost.py` measures what each count takes; `docs/scale.md` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from thresher.solvers.auto.falling import PER_INPUT, PER_NEURON
from thresher.solvers.auto.tuning import FallingTuning, SubsetTuning

KINDS = THRESHOLDING, TRAINING, SPARSE = "thresholding", "training", "training, sparse rows"
LIMIT = 64 * 2**20
# Looks at all rows beside the steps: scales, what columns tell, the last losses. One more follows each of the
# last passes, which hold no more than the budget.
LOOKS = 4
# Products of all gates beside one a step: dense random gates are drawn and multiplied, and held for the steps
# that keep them.
FIRST = 6
# Products on the support of a step: the size of the step, and forwards and backwards for each refinement.
ON_SUPPORT = 23
# A dense product does a multiplication some eight times as fast as one through nonzeros.
DENSE_SIZE, DENSE_SHARE = 2**18, 8
# Bytes of a row of any rank: its target, its weight, its place in the order of a pass.
SHARED_BYTES = 20
# Bytes of a row beside its inputs, of a weight in training, of a pair of a nonzero and a weight that reads
# it, and of a number that ranks add up.
ROW_BYTES, WEIGHT_BYTES, PAIR_BYTES, SENT = 45, 200, 60, 8
# What is assumed of a GPU: multiplications and bytes a second, bytes of memory; of a weight in dense Adam:
# three multiplications for each row, four numbers.
GPU_PRODUCTS, GPU_BYTES, GPU_MEMORY, DENSE_PRODUCTS, DENSE_BYTES = 5e12, 1e12, 24e9, 3, 16
# What is assumed of a network of machines: bytes a second over each wire, and seconds to agree on anything.
WIRE, ROUND = 1.25e9, 5e-4


@dataclass(frozen=True)
class Job:
    """A fit, by its sizes.

    Attributes
    ----------
    kind : {"thresholding", "training", "training, sparse rows"}
    rows, columns, hidden, budget : int
    each : int, optional
        Nonzeros of a row, where rows are sparse.
    passes : int
    batch : int
        Rows of a minibatch.
    screen : float
    ranks : int
    """

    kind: str
    rows: int
    columns: int
    hidden: int
    budget: int
    each: int | None = None
    passes: int = 10
    batch: int = 128
    screen: float = 1.0
    ranks: int = 1

    @property
    def read(self) -> int:
        """Numbers of a row."""
        return self.columns if self.each is None else self.each

    @property
    def inputs(self) -> int:
        """Columns that are trained on."""
        tuning = SubsetTuning()
        if self.each is None:
            fitting = LIMIT // (8 * min(self.rows, tuning.rows))
            return min(self.columns, max(tuning.least, min(int(tuning.each * self.budget), fitting)))
        wide = self.columns > min(self.rows * self.each, LIMIT // 64)
        return min(self.columns, int(tuning.each * self.budget), LIMIT // 64) if wide else self.columns

    @property
    def neurons(self) -> int:
        """Neurons that a training for two classes looks at."""
        return min(self.hidden, FallingTuning().width(self.budget, 1))

    @property
    def steps(self) -> int:
        """Minibatches: `passes` over the rows, or 24,000 where that is less, but one pass at least."""
        batches = max(1, self.rows // self.batch)
        return max(1, min(self.passes, math.ceil(FallingTuning().enough / batches))) * batches

    @property
    def exchanges(self) -> int:
        """How often places are tried."""
        tuning, moving = FallingTuning(), self.steps * FallingTuning().moving
        between = max(tuning.least_between, moving // tuning.exchanges)
        between = min(tuning.most_between, between, max(1, moving // tuning.fewest))
        return int(moving // between)

    @property
    def tried(self) -> int:
        """Rows that an exchange looks at."""
        tuning, numbers = FallingTuning(), PER_INPUT * min(self.read, self.inputs) + PER_NEURON * self.neurons
        return min(self.rows, max(self.batch, min(tuning.tried(self.budget), LIMIT // (8 * numbers))))

    @property
    def looked(self) -> int:
        """Columns that an exchange looks at: of sparse rows, those that hold something in the rows tried."""
        return self.inputs if self.each is None else min(self.inputs, self.tried * self.each)

    @property
    def first(self) -> int:
        """Weights held at first."""
        most = min(int(FallingTuning().inflation * self.budget), self.inputs * self.neurons // 2)
        return max(self.budget, min(most, LIMIT // WEIGHT_BYTES))

    @property
    def held(self) -> float:
        """Weights held in the mean of all steps: the surplus falls as a cube over a part of them."""
        return self.budget + FallingTuning().falling / 4 * (self.first - self.budget)

    @property
    def met(self) -> float:
        """Weights that a row meets, or an eighth of the places where these are multiplied densely."""
        if self.kind == THRESHOLDING:
            return min(self.columns * min(self.hidden, self.budget) / DENSE_SHARE, self.budget)
        if self.each is not None:
            return self.each * self.held / self.inputs
        whole = self.inputs * self.neurons
        return whole / DENSE_SHARE if whole <= max(DENSE_SIZE, DENSE_SHARE * self.held) else self.held

    @property
    def possible(self) -> float:
        """Places that an exchange, or a step of thresholding, looks at."""
        if self.kind == THRESHOLDING:
            return float(self.columns * self.hidden)
        return self.screen * self.looked * self.neurons

    def counts(self) -> dict[str, tuple[float, float]]:
        """Give what a fit does of each kind of work: what is split over ranks, and what each rank does."""
        if self.kind == THRESHOLDING:
            visits = float(self.rows * self.passes)
            return {
                "step": (0.0, self.passes),
                "row x number x neuron": (self.rows * (self.passes + FIRST) * self.read * self.hidden, 0.0),
                "row x weight met": (visits * ON_SUPPORT * self.met, 0.0),
                "row x (number + neuron)": (visits * (self.read + self.hidden), 0.0),
            }
        trained, tries = float(self.steps * self.batch), float(self.exchanges * self.tried)
        looks = LOOKS * self.rows + (1 - FallingTuning().falling) * trained
        visits = trained + looks
        counts = {
            "step": (0.0, float(self.steps)),
            "row x (number + weight met + neuron)": (
                trained * min(self.read, self.inputs)
                + looks * self.read
                + visits * (self.met + self.neurons),
                0.0,
            ),
            "step x weight": (0.0, self.steps * self.held),
            "exchange x weight": (0.0, self.exchanges * self.held),
        }
        if self.each is None:
            return counts | {"exchange x row x place": (tries * self.possible, 0.0)}
        looked = tries * self.screen * self.neurons * self.read, self.exchanges * self.possible
        return counts | {
            "step x column": (0.0, float(self.steps * self.inputs)),
            "exchange x (row x number + column) x neuron": looked,
        }

    def seconds(self, constants: Mapping[str, float]) -> float:
        """Predict the processor seconds of each rank."""
        counts = self.counts().items()
        return sum(constants[name] * (split / self.ranks + own) for name, (split, own) in counts)

    @property
    def sent(self) -> float:
        """Bytes that go out of each rank, and come in: twice its share of what is added up."""
        if self.kind == THRESHOLDING:
            numbers = self.passes * (self.possible + ON_SUPPORT / 2 * self.budget)
        else:
            numbers = self.steps * self.held + self.exchanges * self.possible
        return 2 * SENT * numbers * (self.ranks - 1) / self.ranks

    @property
    def waiting(self) -> float:
        """Seconds in which ranks send and wait, under what is assumed of their network."""
        sums = self.passes * (1 + ON_SUPPORT // 2) if self.kind == THRESHOLDING else self.steps
        return self.sent / WIRE + ROUND * sums if self.ranks > 1 else 0.0

    @property
    def dense(self) -> tuple[float, float]:
        """Give seconds and bytes of dense Adam on the GPU that is assumed."""
        steps, places = self.passes * self.rows / self.batch, float(self.columns * self.hidden)
        products = DENSE_PRODUCTS * self.passes * self.rows * self.read * self.hidden
        return products / GPU_PRODUCTS + steps * DENSE_BYTES * places / GPU_BYTES, DENSE_BYTES * places

    @property
    def memory(self) -> float:
        """Predict the most bytes beyond the data, of one rank."""
        rows = self.rows // self.ranks
        own = ROW_BYTES * rows + (SHARED_BYTES * self.rows if self.ranks > 1 else 0)
        copied = 4 * rows * self.inputs
        copy = copied if copied <= LIMIT else 0
        if self.kind == THRESHOLDING:
            gates = rows * min(self.hidden, self.budget)
            return copy + own + LIMIT / 2 + (gates if gates <= LIMIT / 2 else 0)
        # What is tried takes half of the limit at most, beside the pairs that sparse rows make.
        pairs = 0.0 if self.each is None else self.tried / self.ranks * self.each * self.first / self.inputs
        return copy + own + WEIGHT_BYTES * self.first + PAIR_BYTES * pairs + LIMIT / 2
