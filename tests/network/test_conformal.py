"""Intervals and sets hold as many targets as promised, live in the file, and are refused in words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thresher import Network
from thresher.errors import DataError, ParameterError
from thresher.network.conformal import MOST_SCORES, between, doubts, entry, misses


def line(scores: np.ndarray, link: str = "identity") -> Network:
    """Make a network that answers its input, or the exponential of that, with a calibration."""
    kept = {"calibration": entry(scores, "held out")}
    return Network.fused([[0.0]], None, [1], direct=[1.0], link=link, details=kept)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("rows", [19, 200, 5 * MOST_SCORES])
def test_coverage_is_what_was_promised(rows: int, coverage: float) -> None:
    draw = np.random.default_rng(rows)
    held = []
    for _ in range(40):
        X, noise = draw.normal(size=(500, 1)), draw.standard_t(3, size=500)
        ends = line(np.abs(draw.standard_t(3, size=rows))).predict_interval(X, coverage)
        held.append(np.mean((ends[:, 0] <= X[:, 0] + noise) & (X[:, 0] + noise <= ends[:, 1])))
    assert coverage - 0.02 < np.mean(held) < coverage + 0.02 + 1 / rows


@pytest.mark.parametrize("kind", ["standard_normal", "standard_exponential", "random"])
@pytest.mark.parametrize("rows", [12, 25, 56, 91])
def test_few_rows_hold_what_was_promised_and_hardly_more(kind: str, rows: int) -> None:
    # The next rank up would hold 92.3, 92.3, 91.2 and 90.2 %.
    draw = np.random.default_rng(rows)
    shares = {
        "standard_normal": lambda reach: math.erf(reach / math.sqrt(2)),
        "standard_exponential": lambda reach: 1 - math.exp(-reach),
        "random": lambda reach: min(reach, 1.0),
    }
    scores = np.sort(np.abs(getattr(draw, kind)(size=(20_000, rows))), axis=1)
    held = np.mean([shares[kind](reach) for reach in between(scores, 0.9 * (rows + 1))])
    assert 0.8985 < held < 0.91


def test_no_data_loses_more_than_one_row() -> None:
    # Misses of two sizes are the worst there is: nothing lies between them.
    draw = np.random.default_rng(0)
    for rows in (12, 25, 56):
        for often in np.linspace(0.8, 0.97, 18):
            scores = np.sort(draw.random((5000, rows)) > often, axis=1).astype(float)
            reach = between(scores, 0.9 * (rows + 1))
            held = np.mean(np.where(reach >= 1.0, 1.0, often))
            assert held > 0.9 - 1 / (rows + 1) - 0.01


def test_a_larger_coverage_never_makes_a_narrower_interval() -> None:
    network = line(np.random.default_rng(0).exponential(size=3000))
    widths = [np.ptp(network.predict_interval([[0.0]], share)) for share in np.linspace(0.01, 0.99, 50)]
    assert (np.diff(widths) >= 0).all()


def test_counts_get_wider_intervals_where_they_are_larger_and_none_below_zero() -> None:
    ends = line(np.linspace(0.1, 3, 50), link="log").predict_interval([[0.0], [4.0]])
    assert ends[0, 0] == 0.0
    assert np.ptp(ends[1]) > 3 * np.ptp(ends[0])
    assert misses("log", np.array([9.0]), np.array([4.0])) == 2.5


def test_sets_hold_the_right_class_and_never_are_empty() -> None:
    draw = np.random.default_rng(1)
    scores = 2 * draw.normal(size=(3000, 1))
    truth = (draw.random(3000) < 1 / (1 + np.exp(-scores[:, 0]))).astype(int)
    bare = Network.fused([[0.0]], None, [1], direct=[1.0], link="logistic", classes=[0, 1])
    kept = {
        "calibration": entry(
            doubts(bare.classes, truth[:1500], bare.predict_proba(scores[:1500])), "held out"
        )
    }
    network = Network(bare.layers, bare.classes, bare.link, None, kept, bare.direct)
    for coverage in (0.2, 0.9):
        sets = network.predict_set(scores[1500:], coverage)
        assert sets.any(axis=1).all()
        held = sets[np.arange(1500), truth[1500:]].mean()
        # Where the most probable class alone is right more often than asked for, it still is in the set.
        right = (network.predict(scores[1500:]) == truth[1500:]).mean()
        assert max(coverage, right) - 0.03 < held < max(coverage, right) + 0.03


def test_a_file_keeps_the_calibration(tmp_path: Path) -> None:
    network = line(np.random.default_rng(2).exponential(size=(2 * MOST_SCORES, 1)))
    network.save(tmp_path / "m.thresher")
    again = Network.load(tmp_path / "m.thresher")
    X = [[1.0], [2.0]]
    assert (again.predict_interval(X) == network.predict_interval(X)).all()
    assert again.details["calibration"]["rows"] == 2 * MOST_SCORES
    assert len(again.details["calibration"]["scores"][0]) == MOST_SCORES


@pytest.mark.parametrize("coverage", [0, 1, 1.5, "0.9", True, None, float("nan")])
def test_a_coverage_that_is_no_share_is_refused(coverage: Any) -> None:
    with pytest.raises(ParameterError, match="must be a share between 0 and 1"):
        line(np.ones(50)).predict_interval([[0.0]], coverage)


def test_what_cannot_be_promised_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"needs 99 calibration rows.*has 9\. Ask for 0\.9 or less"):
        line(np.ones(9)).predict_interval([[0.0]], 0.99)
    line(np.ones(9)).predict_interval([[0.0]], 0.9)
    with pytest.raises(ParameterError, match="has no calibration rows"):
        Network.fused([[1.0]], None, [1]).predict_interval([[0.0]])
    with pytest.raises(ParameterError, match="use predict_interval"):
        line(np.ones(9)).predict_set([[0.0]])
    with pytest.raises(DataError, match="no rows came"):
        entry(np.empty(0), "held out")


@pytest.mark.parametrize("scores", [None, [], [[]], [["a"]], [[1.0], [2.0]], [[1.0, None]], [1.0, 2.0]])
def test_a_damaged_calibration_is_said_to_be_one(scores: Any) -> None:
    network = Network.fused([[1.0]], None, [1], details={"calibration": {"scores": scores}})
    with pytest.raises(ParameterError, match="is damaged"):
        network.predict_interval([[0.0]])
