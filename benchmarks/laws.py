"""Known laws from 700 rows: R2 on fresh rows without noise, beside a dense network of 2,000 passes at most.

    python benchmarks/laws.py                                      all of it
    python benchmarks/laws.py --laws tent,kelvin --seeds 0 --noise 0
    python benchmarks/laws.py --fresh --methods ours --budgets 30  ours once more, after a change
    python benchmarks/laws.py --table                              what is kept, without fitting

Noise is a share of the target's spread, on the rows that are fitted only; of classes, as many percent of the
labels are flipped. Budgets of 30 and 100, the default, are held against the dense network (100 neurons,
standardised inputs and targets), and must find a piecewise linear law exactly where there is no noise. From
one budget of 10, 20, 50, 100, 200 to the next, the mean score must not fall by more than one standard error,
over seeds, of the smaller budget's. The score of ``xor-class`` is its accuracy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from comparing import Results, Series, markdown, mean, paired, share, verdict
from fits import standardised, timed_fit
from kept import LongBenchmark, numbers, words
from known_laws import DRAWN, LAWS, problem
from measuring import Measurement
from sklearn.neural_network import MLPClassifier, MLPRegressor

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.experiments.record import Cell

SEEDS = 6
JUDGED = (30, 100)
LADDER = (10, 20, 50, 100, 200)
NOISES = {"0": 0.0, "0.05": 0.05}
METHODS = ("ours", "dense")

PEER_BAR = 0.98  # of the dense network's score, on every seed
EXACT = 1e-9  # share of the variance that may be missed where a law is found; a smaller fall is none


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    budgets, seeds = tuple(sorted({*JUDGED, *LADDER})), tuple(range(SEEDS))
    parser.add_argument("--laws", type=words(LAWS), default=tuple(LAWS), help=f"of {', '.join(LAWS)}")
    parser.add_argument("--noise", type=words(NOISES), default=tuple(NOISES), help=f"of {', '.join(NOISES)}")
    parser.add_argument("--seeds", type=numbers(), default=seeds, help="such as 0-5")
    parser.add_argument("--methods", type=words(METHODS), default=METHODS, help=f"of {', '.join(METHODS)}")
    parser.add_argument("--budgets", type=numbers(1), default=budgets, help="of ours")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the fits, seed after seed of a law."""
    return [
        Cell("laws", configuration(name, noise, method, budget), seed)
        for name, noise, seed in product(given.laws, given.noise, given.seeds)
        for method in given.methods
        for budget in (given.budgets if method == "ours" else (None,))
    ]


def configuration(name: str, noise: str, method: str, budget: int | None = None) -> dict[str, Any]:
    """Describe a fit but for its seed."""
    return {"law": name, "noise": NOISES[noise], "method": method, "budget": budget}


def fit(cell: Cell) -> dict[str, Any]:
    """Fit one model to the rows of one seed, and score it on fresh rows without noise."""
    X, y, X_fresh, y_fresh = problem(LAWS[cell["law"]], cell["noise"], cell.seed)
    classes = LAWS[cell["law"]].classes
    model = make_model(cell["method"], classes, cell["budget"], cell.seed)
    spent = timed_fit(model, X, y)
    predicted = model.predict(X_fresh)
    if classes:
        missed = float(np.mean(predicted != y_fresh))
    else:
        missed = float(np.sum((predicted - y_fresh) ** 2) / np.sum((y_fresh - y_fresh.mean()) ** 2))
    return {"score": 1 - missed, "missed": missed, **spent}


def make_model(method: str, classes: bool, budget: int | None, seed: int) -> Any:
    """Make ours with default settings, or the dense network."""
    if method == "ours":
        ours = SparseMLPClassifier if classes else SparseMLPRegressor
        return ours(budget=budget, random_state=seed)
    dense = MLPClassifier if classes else MLPRegressor
    network = dense(hidden_layer_sizes=(100,), max_iter=2000, random_state=seed)
    return standardised(network, target=not classes)


@dataclass(frozen=True)
class Comparison:
    """Ours at one budget on one law, beside the dense network on the same seeds."""

    name: str
    noise: str
    budget: int
    ours: Series
    missed: Series
    nonzeros: Series
    dense: Series
    times: float | None

    @property
    def least_share(self) -> float | None:
        """The score over the dense network's, at the seed where it is least."""
        ours, dense = paired(self.ours, self.dense)
        return float(np.min(ours / dense)) if ours.size else None

    @property
    def near_dense(self) -> bool | None:
        """Whether the score is high enough on every seed."""
        ours, dense = paired(self.ours, self.dense)
        return bool(np.all(ours >= PEER_BAR * dense)) if ours.size else None

    @property
    def exact(self) -> bool | None:
        """Whether every seed finds the law exactly; None where that cannot be asked."""
        if not LAWS[self.name].piecewise_linear or NOISES[self.noise] > 0:
            return None
        return max(self.missed.values()) < EXACT

    def row(self) -> tuple[Any, ...]:
        """Write it as a line of the table."""
        return (
            self.name,
            self.noise,
            self.budget,
            len(self.ours),
            mean(self.ours.values()),
            f"{max(self.missed.values()):.1e}",
            f"{mean(self.nonzeros.values()).value:.1f}",
            mean(self.dense.values()),
            "" if self.least_share is None else f"{self.least_share:.4f}",
            verdict(self.near_dense),
            verdict(self.exact),
            "" if self.times is None else f"{self.times:.2f}",
        )


def comparisons(results: Results, given: argparse.Namespace) -> Iterator[Comparison]:
    """Compare ours at the judged budgets on each law, wherever it was fitted."""
    for name, noise, budget in product(given.laws, given.noise, JUDGED):
        ours, dense = configuration(name, noise, "ours", budget), configuration(name, noise, "dense")
        found = [results.of(quantity, **ours) for quantity in ("score", "missed", "nonzeros")]
        if found[0]:
            peer = results.of("score", **dense)
            yield Comparison(name, noise, budget, *found, peer, results.times(ours, dense))


@dataclass(frozen=True)
class Ladder:
    """The scores of ours on one law, budget after budget."""

    name: str
    noise: str
    scores: dict[int, Series]

    def falls(self) -> Iterator[tuple[int, int, float, float]]:
        """Give, for each step up, both budgets, how far the mean score falls, and how far it may."""
        budgets = [budget for budget in LADDER if self.scores[budget]]
        for small, large in pairwise(budgets):
            before, after = paired(self.scores[small], self.scores[large])
            if before.size:
                # The error of the smaller budget alone: a seed that fails at the larger one excuses nothing.
                yield small, large, float(np.mean(before - after)), mean(before).error

    @property
    def holds(self) -> bool | None:
        """Whether no step up costs more than a standard error; None where there is no step."""
        steps = list(self.falls())
        return all(fall <= max(allowed, EXACT) for *_, fall, allowed in steps) if steps else None

    def row(self) -> tuple[Any, ...]:
        """Write it as a line of the table."""
        steps = list(self.falls())
        worst = max(steps, key=lambda step: step[2] - step[3], default=None)
        if worst is None or worst[2] <= EXACT:
            told = "none" if steps else ""
        else:
            told = f"{worst[0]} to {worst[1]}: {worst[2]:.2g}, {worst[3]:.2g} allowed"
        return (
            self.name,
            self.noise,
            *(mean(self.scores[budget].values()) for budget in LADDER),
            told,
            verdict(self.holds),
        )


def ladders(results: Results, given: argparse.Namespace) -> Iterator[Ladder]:
    """Follow each law up the budgets, wherever it was fitted at one of them."""
    for name, noise in product(given.laws, given.noise):
        scores = {
            budget: results.of("score", **configuration(name, noise, "ours", budget)) for budget in LADDER
        }
        if any(scores.values()):
            yield Ladder(name, noise, scores)


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write ours beside the dense network, and the ladder of budgets."""
    heads = ("law", "noise", "budget", "seeds", "ours", "most missed", "nonzeros", "dense", "least share")
    heads += (f">= {PEER_BAR}", "exact", "time / dense")
    ladder = ("law", "noise", *(str(budget) for budget in LADDER), "largest fall", "holds")
    return [
        markdown(
            heads,
            [c.row() for c in comparisons(results, given)],
            "R2 on fresh rows without noise; least share: ours / dense",
        ),
        markdown(ladder, [found.row() for found in ladders(results, given)], "R2 budget after budget"),
    ]


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Measure against the bars."""
    every = list(comparisons(results, given))
    asked = {}
    for budget in JUDGED:
        here = [comparison for comparison in every if comparison.budget == budget]
        near = f"budget {budget}, laws with at least {PEER_BAR} of the dense network's score on every seed"
        asked[near] = [comparison.near_dense for comparison in here]
        asked[f"budget {budget}, piecewise linear laws found exactly on every seed"] = [c.exact for c in here]
    asked["laws whose score falls from no budget to the next"] = [
        ladder.holds for ladder in ladders(results, given)
    ]
    found = []
    for what, verdicts in asked.items():
        met, of = share(verdicts)
        if of:
            found.append(Measurement(what, met, of, f"of {of}", at_least=True))
    return found


BENCHMARK = LongBenchmark(
    "laws",
    options,
    cells,
    lambda cell: DRAWN,
    fit,
    tables,
    bars,
    shown={"methods": METHODS},
    quick=("--seeds", "0", "--laws", "capped,sine"),
)
measure = BENCHMARK.measurements


if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
