"""How the long benchmarks compare: means with standard errors over the same seeds, as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Scores of two variants of the same data are equal within this share.
EQUAL = 0.005

Series = Mapping[int, float]
"""Values by seed, which is also the number of a split."""


@dataclass(frozen=True)
class Mean:
    """A mean over seeds or splits, with its standard error: 0 for a single one, which has none."""

    value: float
    error: float
    count: int

    def __str__(self) -> str:
        if not self.count:
            return ""
        return f"{self.value:.4g}" + (f" +- {self.error:.2g}" if self.count > 1 else "")


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
    return sum(known), len(known)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> str:
    """Write a table; nothing where there are no rows."""
    if not rows:
        return ""
    text = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(cells[column]) for cells in text) for column in range(len(columns))]
    head, *body = (
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
        for cells in text
    )
    rule = "| " + " | ".join("-" * max(width, 3) for width in widths) + " |"
    return "\n".join(([f"**{title}**", ""] if title else []) + [head, rule, *body])


def variants_table(
    rows: Iterable[tuple[Sequence[str], Mapping[str, Series], Mapping[str, Series]]], columns: Sequence[str]
) -> tuple[str, list[bool]]:
    """Compare the scores of variants of the data with those of the raw data, on the same seeds.

    Parameters
    ----------
    rows : iterable
        Labels, then scores and nonzeros by variant; "raw" is one of them.
    columns : sequence of str
        Names of the labels.

    Returns
    -------
    tuple
        The table, and for each of its lines whether the mean scores are equal within `EQUAL`.
    """
    lines, equal = [], []
    for labels, scores, held in rows:
        for variant in (name for name in scores if name != "raw"):
            raw, other = paired(scores["raw"], scores[variant])
            if not raw.size:
                continue
            change = other.mean() / raw.mean() - 1
            equal.append(bool(abs(change) <= EQUAL))
            counts = [np.mean(side) for side in paired(held["raw"], held[variant])]
            lines.append(
                (
                    *labels,
                    variant,
                    raw.size,
                    f"{raw.mean():.5g}",
                    f"{other.mean():.5g}",
                    f"{100 * change:+.2f} %",
                    f"{counts[0]:.1f}, {counts[1]:.1f}",
                    verdict(equal[-1]),
                )
            )
    heads = (*columns, "variant", "fits", "raw", "score", "change", "nonzeros, raw and variant", "equal")
    return markdown(heads, lines, "Variants of the data: equal within 0.5 %"), equal
