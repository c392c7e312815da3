"""Stability selection and bootstrap intervals on planted problems with noise: do they keep what they say?

    python benchmarks/stability.py                          all 200 problems
    python benchmarks/stability.py --designs scales --seeds 0-4
    python benchmarks/stability.py --table                  what is kept, without fitting

A problem has 120 rows of 20 inputs, of which three matter: two by a kink, one by a slope. A network of 8
nonzeros is fitted (the planted one has 6), and 4 pairs of half-samples. An input is false where it is stable
and planted nowhere; the mean number of these must not exceed the mean of the bounds that were stated. Of the
intervals of thresholds at 90 %, 86 to 94 % must hold the planted one: those of inputs with a planted kink
that are kinked once, by a neuron that reads nothing else, and those of the planted structure, given as known.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np
from comparing import Results, markdown
from kept import LongBenchmark, numbers, words
from measuring import Measurement

from thresher import Network, SparseMLPRegressor
from thresher.experiments.record import Cell
from thresher.stability import Interval, bootstrap_intervals, stability

ROWS, INPUTS, BUDGET, PASSES, PAIRS, RESAMPLES = 120, 20, 8, 12, 4, 60
THRESHOLD, COVERAGE = 0.75, 0.9
SEEDS = 50
# What inputs are like, and the standard deviation of the noise as a share of the target's.
DESIGNS = {"independent": 0.3, "correlated": 0.3, "scales": 0.3, "noisy": 0.6}

# Changes when what a problem draws does.
DRAWN = "1"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the choices."""
    of = f"of {', '.join(DESIGNS)}"
    parser.add_argument("--designs", type=words(DESIGNS), default=tuple(DESIGNS), help=of)
    parser.add_argument("--parts", type=words(PARTS), default=tuple(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--seeds", type=numbers(), default=tuple(range(SEEDS)), help="such as 0-49")


def cells(given: argparse.Namespace) -> list[Cell]:
    """List the problems, so that each part of the list holds all designs."""
    order = product(given.seeds, given.designs, given.parts)
    return [Cell("stability", {"design": design, "part": part}, seed) for seed, design, part in order]


def problem(design: str, seed: int) -> tuple[np.ndarray, np.ndarray, Network]:
    """Draw rows, noisy targets and the network they come from."""
    draw = np.random.default_rng([seed, *design.encode()])
    X = draw.standard_normal((ROWS, INPUTS))
    X += draw.choice([-1, 1], INPUTS) * draw.uniform(4, 10, INPUTS)
    if design == "correlated":
        for column in range(1, INPUTS):
            X[:, column] = 0.5 * X[:, column - 1] + 0.75**0.5 * X[:, column]
    if design == "scales":
        X = draw.uniform(-100, 400, INPUTS) + 10 ** draw.uniform(-1, 2, INPUTS) * X
    one, two, line = draw.choice(INPUTS, 3, replace=False)
    size = X.std(axis=0)
    weights, bias, signs = np.zeros((INPUTS, 2)), np.zeros(2), draw.choice([-1, 1], 2)
    for neuron, column in enumerate((one, two)):
        threshold = np.quantile(X[:, column], draw.uniform(0.3, 0.7))
        weights[column, neuron] = draw.choice([-1, 1]) * draw.uniform(1.5, 3) / size[column]
        bias[neuron] = -threshold * weights[column, neuron]
    direct = np.zeros(INPUTS)
    direct[line] = draw.choice([-1, 1]) * draw.uniform(0.7, 1.5) / size[line]
    network = Network.fused(weights, bias, signs, direct=direct, output_bias=draw.uniform(1, 2))
    y = network.predict(X)
    return X, y + DESIGNS[design] * y.std() * draw.standard_normal(ROWS), network


def fit(cell: Cell) -> dict[str, Any]:
    """Fit a network, and do one part of what is asked of it."""
    X, y, planted = problem(cell["design"], cell.seed)
    model = SparseMLPRegressor(BUDGET, hidden=8, max_iter=PASSES, random_state=cell.seed).fit(X, y)
    return PARTS[cell["part"]](model, X, y, planted, cell.seed)


def selection(
    model: SparseMLPRegressor, X: np.ndarray, y: np.ndarray, planted: Network, seed: int
) -> dict[str, Any]:
    """Select inputs, and count what is false."""
    found = stability(model, X, y, pairs=PAIRS, threshold=THRESHOLD, resamples=0, random_state=seed)
    true = set(planted.inputs_used().tolist())
    return {
        "selected": found.selected,
        "bound": found.bound,
        "bound_unimodal": found.bound_unimodal,
        "stable": len(found.stable),
        "false": len(set(found.stable) - true),
        "missed": len(true - set(found.stable)),
    }


def intervals(
    model: SparseMLPRegressor, X: np.ndarray, y: np.ndarray, planted: Network, seed: int
) -> dict[str, Any]:
    """Resample rows, and count what is covered."""
    chosen: dict[str, Any] = {"coverage": COVERAGE, "resamples": RESAMPLES, "random_state": seed}
    places = dict(thresholds(planted))
    once = _alone(model.network_, places)
    found = bootstrap_intervals(model.network_, X, y, **chosen) if once else []
    return {
        **counted("known", bootstrap_intervals(planted, X, y, **chosen), places),
        **counted("found", [each for each in found if each.columns in once], places),
    }


PARTS = {"selection": selection, "intervals": intervals}


def thresholds(network: Network) -> list[tuple[tuple[int, ...], float]]:
    """Give the input and the threshold of every neuron, which reads one."""
    columns = network.layers[0].weights.tocsc()
    return [
        ((int(columns.indices[neuron]),), float(-bias / columns.data[neuron]))
        for neuron, bias in enumerate(network.layers[0].bias)
    ]


def _alone(found: Network, places: dict[tuple[int, ...], float]) -> set[tuple[int, ...]]:
    """Give the inputs with a planted kink that a network kinks once: one neuron reads it, and nothing else.

    With a slope beside it, either side of a threshold may be the one that is on.
    """
    columns, right = found.layers[0].weights.tocsc(), set()
    reading = np.diff(found.layers[0].weights.tocsr().indptr)
    for neuron in range(columns.shape[1]):
        inputs = columns.indices[columns.indptr[neuron] : columns.indptr[neuron + 1]].tolist()
        if len(inputs) == 1 and tuple(inputs) in places and reading[inputs[0]] == 1:
            right.add((inputs[0],))
    return right


def counted(what: str, found: list[Interval], places: dict[tuple[int, ...], float]) -> dict[str, int]:
    """Count the intervals of thresholds, and those that hold what was planted."""
    of = [each for each in found if each.kind == "threshold" and each.columns in places]
    held = [each for each in of if each.low <= places[each.columns] <= each.high]
    return {f"{what}_intervals": len(of), f"{what}_covered": len(held)}


def tables(results: Results, given: argparse.Namespace) -> list[str]:
    """Write one line for each design, and one for all."""
    rows = [_row(design, results, (design,)) for design in given.designs]
    rows.append(_row("all", results, given.designs))
    columns = (
        "inputs",
        "problems",
        "stable",
        "false",
        "bound",
        "bound, one peak",
        "missed of 3",
        "intervals, structure found",
        "covered",
        "structure known",
        "covered",
    )
    return [markdown(columns, [row for row in rows if row])]


def _all(results: Results, quantity: str, designs: tuple[str, ...]) -> np.ndarray:
    part = "intervals" if quantity.startswith(("known", "found")) else "selection"
    of = (results.of(quantity, design=design, part=part) for design in designs)
    return np.array([value for values in of for value in values.values()])


def _row(name: str, results: Results, designs: tuple[str, ...]) -> tuple[Any, ...]:
    def of(quantity: str) -> np.ndarray:
        return _all(results, quantity, designs)

    if not of("false").size:
        return ()
    means = [f"{of(name).mean():.3f}" for name in ("stable", "false", "bound", "bound_unimodal", "missed")]
    covered = [
        cell
        for what in ("found", "known")
        for cell in (
            int(of(f"{what}_intervals").sum()),
            f"{of(f'{what}_covered').sum() / max(1, of(f'{what}_intervals').sum()):.1%}",
        )
    ]
    return (name, of("false").size, *means, *covered)


def bars(results: Results, given: argparse.Namespace) -> list[Measurement]:
    """Compare with the bars."""
    false, bound = (_all(results, name, given.designs) for name in ("false", "bound"))
    unimodal = _all(results, "bound_unimodal", given.designs)
    if not false.size:
        return []
    found = [
        Measurement("false inputs over the stated bound", float(false.mean() / bound.mean()), 1.0, "x"),
        Measurement(
            "false inputs over the bound of one peak", float(false.mean() / unimodal.mean()), 1.0, "x"
        ),
    ]
    for what in ("found", "known"):
        every = _all(results, f"{what}_intervals", given.designs).sum()
        share = 100 * _all(results, f"{what}_covered", given.designs).sum() / max(1, every)
        told = f"distance of the coverage of thresholds, structure {what}, from 90 %"
        detail = {"coverage": share, "intervals": int(every)}
        found.append(Measurement(told, float(abs(share - 90)), 4.0, "points", detail=detail))
    return found


BENCHMARK = LongBenchmark(
    name="stability",
    options=options,
    cells=cells,
    fingerprint=lambda _cell: DRAWN,
    fit=fit,
    tables=tables,
    bars=bars,
    shown={"parts": tuple(PARTS)},
    quick=("--designs", "scales", "--seeds", "0"),
)
measure = BENCHMARK.measurements

if __name__ == "__main__":
    sys.exit(BENCHMARK.main(__doc__))
