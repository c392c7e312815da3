"""Bounds on false inputs are those of the paper, and halves have nothing in common."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.errors import DataError, ParameterError
from thresher.stability.bounds import unimodal_bound, worst_case_bound
from thresher.stability.halves import check_halves, complementary_pairs


def test_the_worst_case_is_meinshausen_and_buehlmanns():
    assert worst_case_bound(5.0, 100, 0.75) == pytest.approx(25 / 100 / 0.5)
    assert worst_case_bound(9.0, 10, 0.51) == 10.0


@pytest.mark.parametrize("threshold", [0.55, 0.65, 0.75, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("selected", [0.0, 1.0, 5.0, 40.0])
def test_one_peak_is_never_worse(threshold, selected):
    worst, better = worst_case_bound(selected, 60, threshold), unimodal_bound(selected, 60, threshold, 50)
    assert 0 <= better <= worst
    # The paper's table: with q^2 = 0.3 p and a threshold of 0.9 the factor falls from 1.25 to 0.4 and a bit.
    assert unimodal_bound(3.0, 30, 0.9, 50) == pytest.approx(4 * 0.11 / 1.02 * 0.3)


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.1])
def test_thresholds_without_a_bound_are_refused(threshold):
    with pytest.raises(ParameterError, match=r"above 0\.5"):
        worst_case_bound(1.0, 10, threshold)


@pytest.mark.parametrize("rows", [20, 21])
def test_halves_are_complementary(rows):
    for one, two in complementary_pairs(rows, 5, seed=3):
        assert len(one) == len(two) == rows // 2
        assert not set(one.tolist()) & set(two.tolist())
    first = [pair[0].tolist() for pair in complementary_pairs(rows, 5, seed=3)]
    assert first == [pair[0].tolist() for pair in complementary_pairs(rows, 5, seed=3)]
    assert len({tuple(rows) for rows in first}) == 5


def test_classes_are_halved_alike():
    labels = np.repeat(["a", "b", "c"], [20, 5, 9])
    for pair in complementary_pairs(len(labels), 4, 0, labels):
        for rows in pair:
            assert np.unique(labels[rows], return_counts=True)[1].tolist() == [10, 2, 4]


def test_rows_that_cannot_be_halved_are_refused():
    with pytest.raises(DataError, match="19 rows came"):
        check_halves(np.zeros(19), False)
    with pytest.raises(DataError, match="class 'b' has 3 rows"):
        check_halves(np.repeat(["a", "b"], [20, 3]), True)
