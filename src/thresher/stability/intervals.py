"""Intervals for weights and thresholds of a fixed structure: its numbers refitted to resampled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import DataError, ParameterError
from thresher.network import Network
from thresher.objective.loss import Loss
from thresher.stability.quantities import Quantity, numbers, quantities
from thresher.stability.refitting import Refitter

# Rows for each nonzero below which resampling says little.
LEAST_ROWS = 3


@dataclass(frozen=True)
class Interval:
    """A number of a network, fitted to all rows, and between what it would lie for other rows like these.

    Attributes
    ----------
    kind, name, columns, unit
        As in :class:`thresher.stability.quantities.Quantity`.
    value, low, high : float
    """

    kind: str
    name: str
    columns: tuple[int, ...]
    unit: str
    value: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """Say it in words."""
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.kind} of {self.name}: {self.value:.4g}{unit} ({self.low:.4g} to {self.high:.4g})"


def check_resampling(coverage: float, resamples: int) -> None:
    """Refuse a coverage that is no share, and too few resamples for intervals."""
    if not 0 < coverage < 1:
        raise ParameterError(f"coverage={coverage}, but it is a share between 0 and 1, such as 0.9.")
    if resamples < 20:
        raise ParameterError(f"resamples={resamples}, but intervals need 20 or more: try 200.")


def bootstrap_intervals(
    network: Network,
    X: Any,
    y: Any,
    *,
    coverage: float = 0.9,
    resamples: int = 200,
    random_state: int = 0,
    loss: Loss | None = None,
    each: Callable[[int], object] | None = None,
) -> list[Interval]:
    """Give percentile intervals of weights and thresholds, for the structure as it is.

    Rows are drawn with replacement, and the numbers of the network are fitted to them anew by Newton's
    method, without a penalty; spreads are widened by the degrees of freedom that fitting takes. The intervals
    do not tell how sure the structure itself is: see :func:`thresher.stability.stability`.

    Parameters
    ----------
    network : Network
        With one hidden layer at most.
    X : array-like or sparse array of shape (n, inputs)
    y : array of shape (n,) or (n, targets)
    coverage : float
        The share of such intervals that should hold the number looked for.
    resamples : int
        Times that rows are drawn.
    random_state : int
    loss : Loss, optional
        What is minimised; by default what goes with the network's link.
    each : callable, optional
        Called with the number of resamples that are done.
    """
    check_resampling(coverage, resamples)
    if len(network.hidden) > 1:
        raise ParameterError(
            f"intervals are for networks of one hidden layer, but this one has {len(network.hidden)}: its "
            "numbers mean nothing by themselves."
        )
    refitter = Refitter.of(network, X, y, loss)
    rows, parameters = refitter.rows, refitter.narrow.nonzeros
    if rows < LEAST_ROWS * max(1, parameters):
        raise DataError(
            f"{rows:,} rows came for a network of {parameters:,} nonzeros, but resampling them tells "
            f"something from {LEAST_ROWS} rows for each on. Use a smaller budget or more rows."
        )
    best = refitter.refit()
    named, centre = quantities(best), numbers(best)
    rng, drawn = np.random.default_rng(random_state), np.empty((resamples, len(centre)))
    for number in range(resamples):
        weight = rng.multinomial(rows, np.full(rows, 1 / rows)).astype(np.float64)
        drawn[number] = _aligned(refitter.refit(weight), centre)
        if each is not None:
            each(number + 1)
    return _intervals(named, centre, drawn, coverage, (rows / (rows - parameters)) ** 0.5)


def _aligned(network: Network, centre: np.ndarray) -> np.ndarray:
    """Give the numbers of a refitted network, or those of all rows where a weight of it has vanished."""
    found = numbers(network)
    return found if found.shape == centre.shape else centre


def _intervals(
    named: list[Quantity], centre: np.ndarray, drawn: np.ndarray, coverage: float, wider: float
) -> list[Interval]:
    # Of B draws the k-th smallest is the quantile k / (B + 1): another rule makes few draws too narrow.
    low, high = np.quantile(drawn, [(1 - coverage) / 2, (1 + coverage) / 2], axis=0, method="weibull")
    middle = np.median(drawn, axis=0)
    low, high = middle - wider * (middle - low), middle + wider * (high - middle)
    return [
        Interval(one.kind, one.name, one.columns, one.unit, float(value), float(bottom), float(top))
        for one, value, bottom, top in zip(named, centre, low, high, strict=True)
    ]
