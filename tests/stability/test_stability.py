"""Stability selection finds what recurs, says what is random, and a pool holds networks that are as good."""

from __future__ import annotations

import json

import numpy as np
import pytest

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.errors import DataError, ParameterError
from thresher.network import Network
from thresher.stability import pool, stability
from thresher.stability.kinks import kinks_of


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 8)) * 3 + 50
    return X, 2 * np.maximum(X[:, 0] - 50.5, 0) + 0.8 * X[:, 2] + rng.normal(size=100)


@pytest.fixture(scope="module")
def fitted(problem):
    return SparseMLPRegressor(6, hidden=6, max_iter=20, random_state=0).fit(*problem)


def test_what_is_planted_recurs(problem, fitted):
    heard = []
    found = stability(fitted, *problem, pairs=2, resamples=20, each=lambda *one: heard.append(one))
    shares = {each.column: each.frequency for each in found.inputs}
    assert shares[0] == shares[2] == 1.0
    assert set(found.stable) >= {0, 2}
    assert all(share in (0.25, 0.5, 0.75, 1.0) for share in shares.values())
    assert found.selected == pytest.approx(sum(shares.values()))
    assert found.bound >= found.bound_unimodal > 0
    assert ("says nothing here" in " ".join(found.notes)) == (found.bound >= len(found.stable))
    assert [kink.columns for kink in found.kinks][:1] == [(0,)]
    assert 49 < found.kinks[0].threshold < 52
    assert heard[3] == ("half-samples", 4, 4)
    assert heard[-1] == ("resamples", 20, 20)
    assert "false inputs to be expected" in str(found)
    plain = json.loads(json.dumps(found.plain(), allow_nan=False))
    assert plain["stable"] == list(found.stable)


def test_the_same_seed_gives_the_same(problem, fitted):
    found = fitted.stability(*problem, pairs=1, resamples=0, random_state=3)
    assert fitted.stability_ is found
    assert found.intervals == ()
    assert stability(fitted, *problem, pairs=1, resamples=0, random_state=3) == found


@pytest.mark.parametrize("wrong", [{"resamples": 5}, {"coverage": 1.0}])
def test_what_intervals_cannot_be_made_of_is_refused_before_the_fits(problem, fitted, wrong):
    heard = []
    with pytest.raises(ParameterError, match=r"but intervals need 20|but it is a share"):
        stability(fitted, *problem, pairs=1, each=lambda *one: heard.append(one), **wrong)
    assert not heard


def test_classes_and_what_gives_no_intervals():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 1] > 0, "yes", "no")
    model = SparseMLPClassifier(3, hidden=(3, 2), max_iter=3, random_state=0).fit(X, y)
    found = stability(model, X, y, pairs=1)
    assert found.intervals == ()
    assert found.kinks == ()
    assert "several hidden layers" in " ".join(found.notes)
    assert found.inputs[0].column == 1


def test_kinks_are_the_same_where_they_divide_rows_alike():
    X = np.linspace(0, 10, 101)[:, None] * [1.0, 1.0]

    def kink(threshold, column=0, side=1.0):
        weights = np.zeros((2, 1))
        weights[column] = side
        return kinks_of(Network.fused(weights, [-side * threshold], [1]), X)

    (five,) = kink(5.0)
    assert five.same(kink(5.4)[0])
    assert five.same(kink(5.4, side=-3.0)[0])
    assert not five.same(kink(7.0)[0])
    assert not five.same(kink(5.0, column=1)[0])
    assert kink(11.0) == kink(-1.0) == []


def test_a_pool_is_of_different_networks_that_are_as_good(problem, fitted):
    found = fitted.pool(*problem, size=2)
    assert 1 <= len(found) <= 2
    assert all(network.nonzeros <= 6 for network in found.networks)
    assert (found.worse <= 1.0).all()
    assert (np.diff(found.scores) >= 0).all()
    assert np.allclose(found.inputs, found.inputs.T)
    assert (np.diag(found.answers) == 0).all()
    assert found.scores[0] < 0.2
    json.dumps(found.plain(), allow_nan=False)
    assert f"{len(found)} of 4 networks" in str(found)


def test_what_cannot_be_asked_is_refused(problem, fitted):
    X, y = problem
    with pytest.raises(ParameterError, match="pairs=0"):
        stability(fitted, X, y, pairs=0)
    with pytest.raises(ParameterError, match=r"above 0\.5"):
        stability(fitted, X, y, threshold=0.4)
    with pytest.raises(DataError, match="8 columns"):
        stability(fitted, X[:, :3], y)
    with pytest.raises(DataError, match="12 rows came"):
        stability(fitted, X[:12], y[:12])
    with pytest.raises(ParameterError, match="size=1"):
        pool(fitted, X, y, size=1)
