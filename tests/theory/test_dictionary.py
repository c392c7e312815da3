"""Dictionaries: what is in them, and that the pass over their columns computes what it says."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.assumed import assumed
from thresher.theory.dictionary import NAMES, dictionary_of, scan, whole_spectrum
from thresher.theory.forms import network_of
from thresher.theory.fused import Fused, fused_of
from thresher.theory.patterns import pack
from thresher.theory.spectra import spectrum


def fused(seed: int = 0, n: int = 60) -> Fused:
    drawn = assumed(n, 4, 3, 2, seed=seed)
    return fused_of(network_of(drawn), drawn.X.astype(float))


def test_the_columns_of_the_support_make_the_answer() -> None:
    drawn = assumed(50, 5, 3, 2, seed=3)
    made = network_of(drawn)
    held = fused_of(made, drawn.X.astype(float))
    assert held.size == made.nonzeros
    assert np.allclose(held.output, made.predict(drawn.X))
    assert np.allclose(held.columns @ held.unit_weights, held.output)


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_over_the_columns_equals_the_dense_computation(name: str) -> None:
    held = fused()
    asked = dictionary_of(name, held, seed=0)
    residual = np.random.default_rng(1).standard_normal(60)
    errors = np.full(60, 0.1)
    found = scan(asked, held, residual, spectrum(held.columns), residual, errors, 0.0)
    gates = held.patterns.gates()
    if asked.patterns is not None:
        gates = np.vstack([gates, asked.patterns.gates()])
    columns = np.hstack([held.inputs * gate[:, None] for gate in gates])
    assert columns.shape[1] == asked.columns
    norms = np.linalg.norm(columns, axis=0)
    outside = norms > 0
    outside[: held.taken().size] &= ~held.taken().ravel()
    units = columns[:, outside] / norms[outside]
    inverse = np.linalg.pinv(held.columns)
    dual = inverse.T @ np.sign(held.weights)
    assert found.tropp == pytest.approx(np.abs(inverse @ units).sum(axis=0).max())
    assert found.fuchs == pytest.approx(np.abs(dual @ units).max())
    assert found.gradient == pytest.approx(np.abs(residual @ units).max())
    assert found.fuchs <= found.tropp + 1e-9
    entry = np.abs(residual @ units)
    blur = 0.1 * np.sqrt(1 - entry**2 / (residual @ residual))
    assert found.remainder == pytest.approx((entry / blur).max())


def test_dictionaries_hold_what_their_names_say() -> None:
    held = fused()
    sizes = {name: dictionary_of(name, held, seed=0).columns // 4 for name in NAMES}
    assert sizes["own"] == 3
    assert sizes["opposite"] == 6
    assert sizes["one-sided"] <= 3 + 4
    assert sizes["one-sparse"] <= 3 + 8
    assert sizes["one-sparse"] < sizes["two-sparse"] <= 3 + 6 * 120
    given = dictionary_of(pack(np.ones((1, 60), dtype=bool)), held, seed=0)
    assert (given.name, given.columns // 4) == ("given", 4)


def test_gates_and_their_complements_are_dependent_and_halves_are_not() -> None:
    held = fused(n=200)
    for name, independent in (("own", True), ("one-sided", True), ("opposite", False), ("one-sparse", False)):
        whole = whole_spectrum(dictionary_of(name, held, seed=0), held)
        assert whole is not None
        assert (whole.certain > 0) == independent
    assert whole_spectrum(dictionary_of("two-sparse", held, seed=0), held) is None


def test_tropps_condition_does_not_exclude_something_sparser() -> None:
    """Two nearly opposite columns with large weights can do with fewer nonzeros what three columns do."""
    rng = np.random.default_rng(0)
    three = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    support, beside = three[:, :3], three[:, 3]
    w = np.array([1.0, -1.0, 1.0])
    lean = support @ w / 20
    height = np.sqrt(1 - lean @ lean)
    pair = np.column_stack([lean + height * beside, lean - height * beside])
    assert np.allclose(np.linalg.norm(pair, axis=0), 1)
    assert np.abs(np.linalg.pinv(support) @ pair).sum(axis=0).max() < 1
    assert np.allclose(pair @ [10.0, 10.0], support @ w)
