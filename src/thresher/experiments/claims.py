"""What the paper says in words about its figures, checked against the cells that are done."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from thresher.experiments.catalogue import Figure, Part
from thresher.experiments.fits import RECOVERED
from thresher.experiments.methods import NAMES
from thresher.experiments.record import Outcome

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "not tested"
# The status of a fit that a limit of seconds stopped.
STOPPED = "callback"

# A range over widths that a reader of a heatmap would not notice, in dB; the paper's scale spans 70.
STABLE = 3.0
ALMOST_ALWAYS, COMPETITIVE = 0.9, 0.5
# Widths or budgets that it takes to speak of a trend.
LEAST = 3

Scores = dict[tuple[int, int], float]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it holds here, and what was measured."""

    statement: str
    verdict: str
    evidence: str

    def plain(self) -> dict[str, str]:
        """Give the claim as what JSON can hold."""
        return asdict(self)


def check_claims(figure: Figure, outcomes: Sequence[Outcome]) -> list[Claim]:
    """Check what the paper says about a figure; what was not run is not tested."""
    found = []
    for part in figure.parts if outcomes else ():
        of_part = [outcome for outcome in outcomes if outcome.cell["part"] == part.name]
        for name in figure.claims:
            found += CHECKS[name](part, of_part)
    return found


def stopped_places(outcomes: Sequence[Outcome], method: str) -> set[tuple[int, int]]:
    """Give the widths and budgets at which a limit of seconds stopped a fit of a method."""
    return {
        (outcome.cell["hidden"], outcome.cell["budget"])
        for outcome in outcomes
        if outcome.cell["method"] == method and outcome.result.get("status") == STOPPED
    }


def mean_scores(outcomes: Sequence[Outcome], method: str, quantity: str = "score") -> Scores:
    """Average a quantity of a method over seeds, at each width and budget."""
    values: dict[tuple[int, int], list[float]] = {}
    for outcome in outcomes:
        # Where all labels are zero nothing is fitted, and a time says nothing.
        fitted = quantity == "score" or outcome.result.get(quantity, 0.0) > 0
        if outcome.cell["method"] == method and fitted:
            place = outcome.cell["hidden"], outcome.cell["budget"]
            values.setdefault(place, []).append(outcome.result[quantity])
    return {place: statistics.fmean(found) for place, found in values.items()}


def _better(part: Part, outcomes: Sequence[Outcome], least: float, statement: str) -> list[Claim]:
    """Compare the paper's algorithm with pruning as the paper runs it; then ours with all of them."""

    def share(one: str, other: str, claimed: str) -> Claim:
        return _share(part, outcomes, (one, other), least, f"{part.title}: {claimed}")

    claims = [
        share("paper", "imp-paper", statement),
        share("paper", "imp", "the same against IMP with a fair chance"),
    ]
    if mean_scores(outcomes, "auto"):
        rivals = [method for method in ("paper", "imp-paper", "imp", "gmp") if mean_scores(outcomes, method)]
        claims += [share("auto", rival, f"ours is at least as good as {NAMES[rival]}") for rival in rivals]
    return claims


def _share(
    part: Part, outcomes: Sequence[Outcome], pair: tuple[str, str], least: float, statement: str
) -> Claim:
    """Compare two methods by the share of cells in which the first is at least as good."""
    one, other = pair
    ours, theirs = mean_scores(outcomes, one), mean_scores(outcomes, other)
    both = ours.keys() & theirs.keys()
    if not both:
        return Claim(statement, UNTESTED, f"no cell has both {one} and {other}")
    # Above this both have found the network, and what differs is the rounding of labels.
    behind = {place for place in both if min(ours[place], RECOVERED) < min(theirs[place], RECOVERED)}
    differences = [min(ours[place], RECOVERED) - min(theirs[place], RECOVERED) for place in sorted(both)]
    share = 1 - len(behind) / len(both)
    # What a clock stopped may come out ahead in its own time.
    open_ = behind & stopped_places(outcomes, one)
    possible = share + len(open_) / len(both)
    middle = statistics.median(differences)
    amount = f"{middle:+.1f} dB" if part.measure == "PSNR" else f"{100 * middle:+.2f} points of accuracy"
    evidence = (
        f"{one} is at least as good as {other} in {share:.0%} of {len(both)} cells; the median difference is "
        f"{amount}"
    )
    if open_:
        evidence += f"; in {len(open_)} of the others a limit of seconds stopped {one}"
    return Claim(statement, verdict(share >= least, possible >= least), evidence)


def verdict(holds: bool, possible: bool) -> str:
    """Say whether a claim holds; what only a clock kept from holding was not tested."""
    if holds:
        return HOLDS
    return UNTESTED if possible else FAILS


def _independent(part: Part, outcomes: Sequence[Outcome]) -> list[Claim]:
    """Check that the paper's algorithm does equally well at every width, and pruning better with more."""
    stable = f"{part.title}: the quality of IHT does not depend on m"
    rising = f"{part.title}: IMP improves with m"
    ranges = [max(column) - min(column) for column in _columns(mean_scores(outcomes, "paper"))]
    trends = [_trend(column) for column in _columns(mean_scores(outcomes, "imp-paper"))]
    found = []
    if ranges:
        middle = statistics.median(ranges)
        evidence = (
            f"over m, its PSNR spans {middle:.1f} dB in the median over s, {max(ranges):.1f} dB at most"
        )
        found.append(Claim(stable, HOLDS if middle <= STABLE else FAILS, evidence))
    else:
        found.append(Claim(stable, UNTESTED, f"no budget of {NAMES['paper']} has {LEAST} widths"))
    if trends:
        rises = sum(trend > 0 for trend in trends)
        evidence = f"its PSNR rises with m at {rises} of {len(trends)} budgets"
        found.append(Claim(rising, HOLDS if rises > len(trends) / 2 else FAILS, evidence))
    else:
        found.append(Claim(rising, UNTESTED, f"no budget of {NAMES['imp-paper']} has {LEAST} widths"))
    return found


def _columns(scores: Scores) -> list[list[float]]:
    """Give the scores at each budget from the smallest width to the largest, where there are enough."""
    budgets = sorted({s for _, s in scores})
    columns = [[scores[place] for place in sorted(scores) if place[1] == s] for s in budgets]
    return [column for column in columns if len(column) >= LEAST]


def _times(part: Part, outcomes: Sequence[Outcome]) -> list[Claim]:
    """Check that the time of our methods rises with the budget, and that of pruning falls."""
    found = []
    for method, sign, word in (("paper", 1, "rises"), ("auto", 1, "rises"), ("imp-paper", -1, "falls")):
        # The time of the processor: that of the clock grows when others use the machine.
        every = mean_scores(outcomes, method, "processor_seconds")
        stopped = stopped_places(outcomes, method)
        times = {place: seconds for place, seconds in every.items() if place not in stopped}
        rows = [
            [times[place] for place in sorted(times) if place[0] == m] for m in sorted({m for m, _ in times})
        ]
        trends = [_trend(row) for row in rows if len(row) >= LEAST]
        if not every and method == "auto":
            # The paper says nothing of ours.
            continue
        statement = f"{part.title}: the time of {NAMES[method]} {word} with s"
        if not trends:
            why = f"no width has {LEAST} budgets" if every else "no cell has a time of the processor"
            cut = f"{why} at which no limit of seconds stopped the fit"
            found.append(Claim(statement, UNTESTED, cut if stopped else why))
            continue
        right = sum(sign * trend > 0 for trend in trends)
        evidence = (
            f"it {word} at {right} of {len(trends)} widths; the median rank correlation is "
            f"{statistics.median(trends):+.2f}"
        )
        found.append(Claim(statement, HOLDS if right > len(trends) / 2 else FAILS, evidence))
    return found


def _trend(values: Sequence[float]) -> float:
    """Give the rank correlation of values with their order: 1 rises always, -1 falls always.

    Examples
    --------
    >>> _trend([1.0, 2.0, 5.0]), _trend([3.0, 2.0, 1.0]), _trend([1.0, 1.0])
    (1.0, -1.0, 0.0)
    """
    from scipy.stats import rankdata

    ranks = rankdata(values)
    if np.ptp(ranks) == 0:
        return 0.0
    return float(round(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1], 12))


def _almost_always(part: Part, outcomes: Sequence[Outcome]) -> list[Claim]:
    return _better(part, outcomes, ALMOST_ALWAYS, "IHT is almost always at least as good as IMP")


def _competitive(part: Part, outcomes: Sequence[Outcome]) -> list[Claim]:
    return _better(part, outcomes, COMPETITIVE, "IHT is competitive with IMP")


CHECKS: dict[str, Callable[[Part, Sequence[Outcome]], list[Claim]]] = {
    "better than pruning": _almost_always,
    "competitive with pruning": _competitive,
    "independent of width": _independent,
    "times": _times,
}
