"""Noisy made-up tables: R2 of the law behind them at 30, 100 and 300 nonzeros, beside other models.

800 rows of Friedman's first problem; targets are measured with noise, counted, rated from 1 to 5, skewed
or struck by outliers; scores are of 4,000 fresh rows without noise, means of four draws. A larger budget must
not do worse, by more than two points, and no budget worse than a lasso by more than that.

    python benchmarks/run.py noisy             all kinds
    python benchmarks/run.py noisy --quick     two draws of each
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from fits import standardised
from measuring import Measurement, Options
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LassoCV
from sklearn.metrics import r2_score
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from thresher import SparseMLPRegressor

ROWS, FRESH, DRAWS = 800, 4000, 4
BUDGETS = (30, 100, 300)
# Points of R2 that are chance.
SLACK = 2.0

Random = np.random.Generator
# From the law (its values are 0 to 30) and a generator to its targets, and to what is to be found.
KINDS: dict[str, Callable[[np.ndarray, Random], tuple[np.ndarray, np.ndarray]]] = {
    "a third noise": lambda law, random: (law + 0.7 * law.std() * random.standard_normal(len(law)), law),
    "a twentieth noise": lambda law, random: (law + 0.05 * law.std() * random.standard_normal(len(law)), law),
    "counts": lambda law, random: (random.poisson(np.exp((law - 14) / 6)) * 1.0, np.exp((law - 14) / 6)),
    "ratings": lambda law, random: (
        np.clip(np.round(1 + law / 6 + 0.7 * random.standard_normal(len(law))), 1, 5),
        np.clip(np.round(1 + law / 6), 1, 5),
    ),
    "skewed": lambda law, random: (
        np.exp(law / 4 + 0.3 * random.standard_normal(len(law))),
        np.exp(law / 4),
    ),
    "outliers": lambda law, random: (law + 3 * random.standard_t(2, len(law)), law),
}


def measure(options: Options) -> list[Measurement]:
    """Score ours at every budget, and the peers, on each kind of target."""
    with threadpool_limits(options.threads):
        return [row for kind in KINDS for row in of_kind(kind, 2 if options.quick else DRAWS)]


def of_kind(kind: str, draws: int) -> list[Measurement]:
    """Compare budgets with one another and with the peers."""
    scores: dict[str, list[float]] = {}
    for seed in range(draws):
        X, law = make_friedman1(ROWS + FRESH, noise=0.0, random_state=seed)
        y, truth = KINDS[kind](law, np.random.default_rng(seed))
        for name, model in models().items():
            found = model.fit(X[:ROWS], y[:ROWS]).predict(X[ROWS:])
            scores.setdefault(name, []).append(100 * r2_score(truth[ROWS:], found))
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    ours = [means[f"ours {budget}"] for budget in BUDGETS]
    told = ", ".join(f"{name} {value:.1f}" for name, value in means.items())
    fall = max(before - after for before, after in pairwise(ours))
    behind = means["lasso"] - min(ours)
    return [
        Measurement(f"{kind} ({told}): largest fall of a larger budget", fall, SLACK, "points", detail=means),
        Measurement("  the lasso less the worst of ours", behind, SLACK, "points"),
    ]


def models() -> dict[str, Any]:
    """Make ours at every budget, and the peers."""
    ours = {f"ours {budget}": SparseMLPRegressor(budget, 50, random_state=0) for budget in BUDGETS}
    dense = MLPRegressor(hidden_layer_sizes=(50,), max_iter=500, random_state=0)
    peers = {
        "lasso": standardised(LassoCV()),
        "dense": standardised(dense),
        "boosting": HistGradientBoostingRegressor(),
    }
    return {**ours, **peers}
