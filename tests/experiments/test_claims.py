"""What the paper says about its figures: verdicts follow from cells, and nothing is claimed without any."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from thresher.experiments.catalogue import FIGURES
from thresher.experiments.claims import FAILS, HOLDS, UNTESTED, check_claims, mean_scores
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.runtimes import LINES, RUNTIMES

IMAGE = FIGURES[3]
Value = Callable[[int, int], float]


def grid(
    method: str,
    score: Value,
    seconds: Value = lambda m, s: 1.0,
    seeds: int = 1,
    status: Callable[[int, int], str] = lambda m, s: "finished",
) -> list[Outcome]:
    return [
        Outcome(
            Cell(IMAGE.name, {"part": "left", "method": method, "hidden": m, "budget": s}, seed),
            "print",
            "done",
            1.0,
            {
                "score": score(m, s) + seed,
                # The clock runs backwards here: claims must not look at it.
                "fit_seconds": 1.0 / seconds(m, s),
                "processor_seconds": seconds(m, s),
                "peak_bytes": 1,
                "status": status(m, s),
            },
        )
        for m in (1, 10, 100)
        for s in (2, 20, 200)
        for seed in range(seeds)
    ]


def verdicts(outcomes: list[Outcome], part: int = 0) -> dict[str, str]:
    """Give the verdicts on one part, by what is claimed."""
    head = f"{IMAGE.parts[part].title}: "
    claims = check_claims(IMAGE, outcomes)
    return {
        claim.statement.removeprefix(head): claim.verdict
        for claim in claims
        if claim.statement.startswith(head)
    }


def test_scores_are_averaged_over_seeds() -> None:
    assert mean_scores(grid("paper", lambda m, s: m, seeds=3), "paper")[10, 20] == 11.0


@pytest.mark.parametrize(("slope", "verdict"), [(0.0, HOLDS), (1.0, HOLDS), (10.0, FAILS)])
def test_quality_does_or_does_not_depend_on_width(slope: float, verdict: str) -> None:
    width = {1: 0, 10: 1, 100: 2}
    found = verdicts(grid("paper", lambda m, s: 30 + slope * width[m]))
    assert found["the quality of IHT does not depend on m"] == verdict


def test_pruning_does_or_does_not_improve_with_width() -> None:
    assert verdicts(grid("imp-paper", lambda m, s: m))["IMP improves with m"] == HOLDS
    assert verdicts(grid("imp-paper", lambda m, s: -m))["IMP improves with m"] == FAILS


def test_times_rise_for_us_and_fall_for_pruning() -> None:
    ours = grid("paper", lambda m, s: 1.0, seconds=lambda m, s: float(s))
    pruning = grid("imp-paper", lambda m, s: 1.0, seconds=lambda m, s: 1.0 / s)
    found = verdicts(ours + pruning)
    assert found["the time of paper (IHT) rises with s"] == HOLDS
    assert found["the time of IMP as in the paper falls with s"] == HOLDS
    swapped = grid("paper", lambda m, s: 1.0, seconds=lambda m, s: 1.0 / s)
    assert verdicts(swapped)["the time of paper (IHT) rises with s"] == FAILS


def test_almost_always_is_nine_times_in_ten() -> None:
    better = grid("paper", lambda m, s: 20.0) + grid("imp-paper", lambda m, s: 10.0)
    assert verdicts(better)["IHT is almost always at least as good as IMP"] == HOLDS
    worse = grid("paper", lambda m, s: 20.0) + grid("imp-paper", lambda m, s: 30.0 if m == 1 else 10.0)
    assert verdicts(worse)["IHT is almost always at least as good as IMP"] == FAILS


def test_what_both_have_found_is_a_tie() -> None:
    tie = grid("paper", lambda m, s: 160.0) + grid("imp-paper", lambda m, s: 161.0)
    assert verdicts(tie)["IHT is almost always at least as good as IMP"] == HOLDS


@pytest.mark.parametrize(("stopped", "verdict"), [(1, UNTESTED), (10, FAILS)])
def test_what_a_limit_of_seconds_stopped_does_not_fail(stopped: int, verdict: str) -> None:
    def status(m: int, s: int) -> str:
        return "callback" if m == stopped else "finished"

    ours = grid("auto", lambda m, s: 5.0 if m == 1 else 20.0, status=status)
    found = verdicts(ours + grid("imp", lambda m, s: 10.0))
    assert found["ours is at least as good as IMP, retrained"] == verdict


def test_times_that_a_limit_of_seconds_cut_are_not_compared() -> None:
    falling = grid("auto", lambda m, s: 1.0, seconds=lambda m, s: 1.0 / s, status=lambda m, s: "callback")
    assert verdicts(falling)["the time of Thresher (auto) rises with s"] == UNTESTED
    left = grid(
        "auto",
        lambda m, s: 1.0,
        seconds=lambda m, s: float(s) if m == 1 else 1.0 / s,
        status=lambda m, s: "finished" if m == 1 else "callback",
    )
    assert verdicts(left)["the time of Thresher (auto) rises with s"] == HOLDS


def test_nothing_is_claimed_without_cells_to_compare() -> None:
    found = verdicts(grid("paper", lambda m, s: 1.0))
    assert found["IHT is almost always at least as good as IMP"] == UNTESTED
    assert "ours is at least as good as IMP, retrained" not in found
    assert check_claims(IMAGE, []) == []


def test_what_was_not_run_is_not_tested() -> None:
    outcomes = grid("auto", lambda m, s: 10.0, seconds=lambda m, s: float(s))
    left, right = (verdicts(outcomes, part) for part in (0, 1))
    assert left.pop("the time of Thresher (auto) rises with s") == HOLDS
    assert left == right
    assert set(right.values()) == {UNTESTED}
    assert {"IMP improves with m", "the time of paper (IHT) rises with s"} <= right.keys()


def runtime(method: str, score: float, seconds: float, processor: float = 30.0) -> Outcome:
    cell = Cell("runtimes", {"line": LINES[0].text, "method": method}, 0)
    times = {"fit_seconds": seconds, "processor_seconds": processor}
    return Outcome(cell, "print", "done", 1.0, {"score": score, **times, "peak_bytes": 2**20})


@pytest.mark.parametrize(
    ("score", "seconds", "processor", "verdict"),
    [
        (0.9885, 0.5, 0.9, HOLDS),
        (0.9885, 1.3, 1.25, FAILS),
        (0.9885, 1.3, 1.1, UNTESTED),
        (0.98, 0.5, 0.4, FAILS),
        (0.98, 1.3, 1.1, FAILS),
    ],
)
def test_runtimes_are_compared_with_the_papers(
    score: float, seconds: float, processor: float, verdict: str
) -> None:
    summary = RUNTIMES.summarise([runtime("auto", score, seconds, processor), runtime("imp", 0.5, 20.0)])
    (claim,) = summary.numbers["claims"]
    assert claim["verdict"] == verdict
    rows = {row[1]: row for row in summary.tables[0].rows if row[0] == LINES[0].text}
    assert rows["paper's IHT on an A6000"][2:4] == ("98.85 %", 1.2)
    assert rows["Thresher (auto)"][2:] == (f"{100 * score:.2f} %", seconds, 1.0)
