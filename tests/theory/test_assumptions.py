"""Probabilities, widths and distances of the paper's assumptions, as stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.errors import DataError, ParameterError
from thresher.theory.assumptions import (
    activity_probability,
    binary_entropy,
    departure_from_gaussian,
    discrete_separation,
    geodesic_separation,
    mean_width,
    packing_separation,
    rows_needed,
    separation_allowed,
    separation_probability,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.integers(5, 9), st.integers(0, 10**6))
def test_discrete_neurons_are_as_far_apart_as_stated(k: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    neurons = np.zeros((2, d))
    for row in neurons:
        row[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    if not np.array_equal(neurons[0], neurons[1]):
        assert geodesic_separation(neurons) >= discrete_separation(k)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.floats(1e-4, math.pi))
def test_a_chord_bounds_the_angle(angle: float) -> None:
    units = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
    chord = float(np.linalg.norm(units[0] - units[1]))
    assert geodesic_separation(units) == pytest.approx(angle / math.pi, rel=1e-6)
    assert geodesic_separation(units) >= packing_separation(chord) * (1 - 1e-12)


def test_activity_holds_with_the_stated_probability_only_for_tiny_epsilon() -> None:
    assert activity_probability(rows=100_000, patterns=1000, epsilon=1e-4, largest=3) > 0.99
    assert activity_probability(rows=100_000, patterns=1000, epsilon=0.01, largest=3) == 0.0
    assert activity_probability(rows=11, patterns=1, epsilon=1e-6, largest=3) == 0.0
    assert binary_entropy(0.5) == pytest.approx(math.log(2))


def test_separation_follows_the_stated_conditions() -> None:
    assert separation_probability(1000, 0.1) == pytest.approx(1 - 2 * math.exp(-10))
    assert separation_probability(10, 0.01) == 0.0
    assert separation_allowed(2, gamma=0.05, delta=0.05)
    assert not separation_allowed(3, gamma=0.05, delta=0.05)
    assert rows_needed(100, delta=1.0, width=1.0) == 400
    with pytest.raises(ParameterError, match="delta=0"):
        rows_needed(1, delta=0, width=1)


def test_width_grows_with_the_nonzeros_and_is_that_of_a_ball_when_all_are_allowed() -> None:
    widths = [mean_width(20, k) for k in (1, 3, 10, 20)]
    assert widths == sorted(widths)
    assert widths[-1] == pytest.approx(math.sqrt(20), rel=0.03)
    with pytest.raises(ParameterError, match="'a' or 'b'"):
        mean_width(20, 3, "c")


def test_gaussian_data_is_told_from_other_data() -> None:
    rng = np.random.default_rng(0)
    assert departure_from_gaussian(rng.standard_normal((2000, 10))) < 6
    assert departure_from_gaussian(rng.random((2000, 10))) > 6
    assert departure_from_gaussian(3 * rng.standard_normal((2000, 10))) > 6


def test_a_distance_needs_two_generators() -> None:
    with pytest.raises(DataError, match="two generators"):
        geodesic_separation([[0.0, 0.0], [1.0, 0.0]])
