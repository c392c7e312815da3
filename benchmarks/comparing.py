"""How the long benchmarks compare: means with standard errors over the same seeds, as Markdown tables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from thresher.experiments.record import Outcome

# Scores of two variants of the same data are equal within this share.
EQUAL = 0.005

Series = Mapping[int, float]
"""Values by seed, which is also the number of a split."""


def configuration(data: str, method: str, budget: int | None = None, variant: str = "raw") -> dict[str, Any]:
    """Describe a fit to a table but for its split; only some methods have a budget."""
    return {"data": data, "variant": variant, "method": method, "budget": budget}


class Results:
    """What the fits that are done found, by configuration and seed."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._results: dict[str, dict[int, Mapping[str, Any]]] = {}
        for outcome in outcomes:
            where = json.dumps(dict(outcome.cell.configuration), sort_keys=True)
            self._results.setdefault(where, {})[outcome.cell.seed] = outcome.result

    def of(self, quantity: str, **configuration: Any) -> dict[int, float]:
        """Give one quantity of every seed of a configuration; nothing where none was fitted."""
        found = self._results.get(json.dumps(configuration, sort_keys=True), {})
        return {seed: result[quantity] for seed, result in sorted(found.items())}

    def times(self, ours: Mapping[str, Any], peer: Mapping[str, Any]) -> float | None:
        """Give the processor time of ours over a peer's, on the seeds that both have."""
        mine, theirs = paired(self.of("cpu", **ours), self.of("cpu", **peer))
        return float(mine.sum() / theirs.sum()) if mine.size else None


@dataclass(frozen=True)
class Mean:
    """A mean over seeds or splits, with its standard error: 0 for a single one, which has none."""

    value: float
    error: float
    count: int

    def __str__(self) -> str:
        if not self.count:
            return ""
        return f"{self.value:#.4g}" + (f" +- {self.error:.2g}" if self.count > 1 else "")


def mean(values: Iterable[float]) -> Mean:
    """Take the mean and its standard error."""
    array = np.asarray(list(values), dtype=np.float64)
    if not array.size:
        return Mean(float("nan"), 0.0, 0)
    error = array.std(ddof=1) / np.sqrt(array.size) if array.size > 1 else 0.0
    return Mean(float(array.mean()), float(error), int(array.size))


def paired(*series: Series) -> list[np.ndarray]:
    """Take the values of several methods on the seeds that all of them have."""
    seeds = sorted(set.intersection(*(set(values) for values in series)))
    return [np.array([values[seed] for seed in seeds]) for values in series]


def verdict(met: bool | None) -> str:
    """Write whether a bar is met; nothing where there is nothing to compare."""
    return "" if met is None else "yes" if met else "**no**"


def share(verdicts: Iterable[bool | None]) -> tuple[int, int]:
    """Count how many bars are met, of how many that could be compared."""
    known = [met for met in verdicts if met is not None]
    return sum(map(bool, known)), len(known)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> str:
    """Write a table; nothing where there are no rows."""
    if not rows:
        return ""
    text = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(3, *(len(cells[column]) for cells in text)) for column in range(len(columns))]
    head, *body = (
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
        for cells in text
    )
    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    return "\n".join(([f"**{title}**", ""] if title else []) + [head, rule, *body])


def variants_table(
    results: Results, score: str, variants: Sequence[str], given: argparse.Namespace
) -> tuple[str, list[bool]]:
    """Compare the scores of variants of the data with those of the raw data, on the same seeds.

    Parameters
    ----------
    results : Results
    score : str
        The quantity to compare.
    variants : sequence of str
        The first is the raw data.
    given : Namespace
        Which data and budgets to compare.

    Returns
    -------
    tuple
        The table, and for each of its lines whether the mean scores are equal within `EQUAL`.
    """
    lines, equal = [], []
    for data, budget, variant in product(given.data, given.budgets, variants[1:]):
        two = [configuration(data, "ours", budget, name) for name in (variants[0], variant)]
        raw, other = (mean(values) for values in paired(*(results.of(score, **one) for one in two)))
        if not raw.count:
            continue
        change = other.value / raw.value - 1
        equal.append(abs(change) <= EQUAL)
        held = (mean(values).value for values in paired(*(results.of("nonzeros", **one) for one in two)))
        lines.append(
            (
                data,
                budget,
                variant,
                raw.count,
                f"{raw.value:#.5g}",
                f"{other.value:#.5g}",
                f"{100 * change:+.2f} %",
                ", ".join(f"{count:.1f}" for count in held),
                verdict(equal[-1]),
            )
        )
    heads = ("data", "budget", "variant", "fits", "raw", "score", "change", "nonzeros: raw, variant", "equal")
    return markdown(heads, lines, "Variants of the data: equal within 0.5 %"), equal
