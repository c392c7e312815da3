"""Tolerances are those of each weight: no large one hides a small one that is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from thresher.data.assumed import assumed
from thresher.experiments.spoiled import _refitted_with, network
from thresher.network import Layer, Network
from thresher.theory.certificate import Certificate, certify
from thresher.theory.effects import refit_of
from thresher.theory.forms import network_of
from thresher.theory.fused import fused_of
from thresher.theory.levels import ISOLATED, ON_SUPPORT
from thresher.theory.rounding import ROUNDOFF, ROUNDOFF_32, Precision, rounding_of

LEVELS = (ON_SUPPORT, ISOLATED)


def proved(found: Certificate) -> list[str]:
    return [name for name, status in found.levels.items() if status == "holds"]


def sixteenths(rows: int = 400, seed: int = 0) -> np.ndarray:
    return np.round(16 * np.random.default_rng(seed).standard_normal((rows, 3))) / 16


@pytest.mark.parametrize("off", [0.1, 1e-3, 1e-7])
def test_an_offset_hides_no_weight_that_is_wrong(off: float) -> None:
    """Weights 1 and 1 have error 0; an output bias of a million excuses nothing else."""
    X, U = sixteenths(), np.eye(3)[:, :2]
    truth = Network.fused(U, None, [1, -1], output_bias=1e6)
    made = Network.fused(U * [1 + off, 1 - off], None, [1, -1], output_bias=1e6)
    found = certify(made, X, truth.predict(X))
    assert found["stationary"].status == "fails"
    assert not proved(found)
    assert set(LEVELS) <= set(proved(certify(truth, X, truth.predict(X))))


@pytest.mark.parametrize("off", [0.1, 1e-3])
def test_weights_stored_in_float32_hide_no_weight_but_their_own(off: float) -> None:
    """An output bias of a million is rounded by 0.06 there, and a weight of 1 by 0.00000006."""
    X, U = sixteenths(), np.eye(3)[:, :2]
    y = Network.fused(U, None, [1, -1], output_bias=1e6).predict(X)
    for c in (1e6, 1e6 + 0.03):
        wrong = Network.fused(U * [1 + off, 1 - off], None, [1, -1], output_bias=c)
        hidden, last = wrong.layers
        narrow = replace(
            wrong,
            layers=(
                Layer(hidden.weights.astype(np.float32), hidden.bias.astype(np.float32)),
                Layer(last.weights.astype(np.float32), last.bias.astype(np.float32)),
            ),
        )
        assert narrow.layers[0].weights.dtype == np.float32
        assert not proved(certify(narrow, X, y))


@pytest.mark.parametrize("other", [0.1, 0.499, 0.5000001])
def test_a_large_weight_hides_no_small_one_that_is_wrong(other: float) -> None:
    X = sixteenths(seed=1)
    truth = Network.fused(np.eye(3)[:, :2] * [1e6, other], None, [1, 1])
    made = Network.fused(np.eye(3)[:, :2] * [1e6, 0.5], None, [1, 1])
    found = certify(made, X, truth.predict(X))
    assert found["stationary"].status == "fails"
    assert not proved(found)
    assert set(LEVELS) <= set(proved(certify(truth, X, truth.predict(X))))


def test_a_large_weight_that_is_slightly_wrong_is_not_the_refitted_one() -> None:
    X = sixteenths(seed=2)
    truth = Network.fused(np.eye(3)[:, :2], None, [1, -1], output_bias=1e6)
    made = replace(truth, layers=(truth.layers[0], replace(truth.layers[1], bias=np.array([1e6 + 0.5]))))
    assert not proved(certify(made, X, truth.predict(X)))


def test_a_missing_weight_below_the_rounding_of_labels_is_seen_where_they_are_exact() -> None:
    """Labels on a grid fit into float32, whose rounding there could hide a weight of 1/16: it hides none."""
    X = np.round(8 * np.random.default_rng(3).standard_normal((400, 3))) / 8
    truth = Network.fused(np.diag([1.0, 1.0, 1 / 16]), None, [1, -1, 1], output_bias=1e5)
    made = Network.fused(np.eye(3)[:, :2], None, [1, -1], output_bias=1e5)
    y = truth.predict(X)
    assert (y.astype(np.float32) == y).all()
    refitted = fused_of(made, X)
    a, b, c = np.linalg.lstsq(refitted.raw, y, rcond=None)[0]
    found = certify(Network.fused(np.eye(3)[:, :2] * [a, -b], None, [1, -1], output_bias=c), X, y)
    assert not [level for level in proved(found) if "dictionary" in level]
    assert found["fits"].status == "fails" or found["remainder"].status == "fails"


@pytest.mark.parametrize("precision", [ROUNDOFF, ROUNDOFF_32])
def test_the_refit_is_least_squares_and_labels_hide_what_they_are_rounded_by(precision: float) -> None:
    drawn = assumed(300, 5, 3, 2, seed=4)
    made = network_of(drawn)
    fused = fused_of(made, drawn.X.astype(float))
    exact = fused.output
    y = exact.astype(np.float32).astype(float) if precision == ROUNDOFF_32 else exact
    rounding = rounding_of(made, fused.spread, y, Precision(precision))
    refit = refit_of(fused, exact - y, rounding, fitting=True)
    wanted = np.linalg.lstsq(fused.columns, y, rcond=None)[0]
    assert np.allclose(fused.unit_weights - refit.step, wanted, rtol=1e-12)
    assert refit.worst <= 1
    # A weight that is off is told, whatever the sizes of the others.
    for place in range(fused.size):
        moved = fused.weights.copy()
        moved[place] *= 1 + 1000 * precision
        again = refit_of(replace(fused, weights=moved), fused.raw @ moved - y, rounding, fitting=True)
        assert np.argmax(again.missed) == place
        assert again.worst > 1


@pytest.mark.parametrize("seed", range(4))
def test_labels_far_from_zero_hide_which_way_neurons_open(seed: int) -> None:
    """Three neurons that sum to zero turn over at once; refitted, they do so only to what labels show."""
    rng = np.random.default_rng(seed)
    pair = rng.standard_normal((4, 2))
    U, v = np.hstack([pair, -pair.sum(axis=1, keepdims=True)]), np.ones((3, 1))
    X, c = rng.standard_normal((400, 4)), np.array([1e5])
    y = (np.maximum(X @ U, 0) @ v + c).astype(np.float32).astype(float)
    turned, _, bias = _refitted_with(-U, v, X, y, c)
    sums = np.abs(turned.sum(axis=1))
    assert sums.max() > 1e-5 * np.abs(turned).max()
    for made in (network(turned, v, bias), network(U, v, c)):
        found = certify(made, X, y[:, 0])
        assert found["fits"].holds
        assert found["identity"].status == "unknown"
        assert not [level for level in proved(found) if "dictionary" in level]


def test_noise_leaves_a_thousandth_of_a_standard_error() -> None:
    drawn = assumed(300, 5, 3, 2, seed=5)
    made = network_of(drawn)
    fused = fused_of(made, drawn.X.astype(float))
    y = fused.output + 0.1 * np.random.default_rng(0).standard_normal(300)
    rounding = rounding_of(made, fused.spread, y, Precision(ROUNDOFF))
    refit = refit_of(fused, fused.output - y, rounding, fitting=False)
    assert np.allclose(np.abs(refit.step) / refit.missed, 1e-3 * refit.deviations, rtol=1e-3)
    assert np.sqrt(np.mean((refit.step / refit.deviations) ** 2)) < 3
    assert 0 < refit.saved < 0.2
