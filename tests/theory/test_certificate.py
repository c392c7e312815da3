"""Certificates: what they claim is so, and they claim nothing where they cannot know."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from thresher.data.assumed import assumed
from thresher.data.planted import PlantedProblem, fresh_rows, planted
from thresher.errors import DataError, MemoryLimitError, ParameterError
from thresher.experiments.spoiled import network, shuffled, variants
from thresher.network import Layer, Network
from thresher.theory.certificate import Certificate, certify
from thresher.theory.forms import network_of
from thresher.theory.fused import fused_of
from thresher.theory.identity import identity
from thresher.theory.levels import ISOLATED, ON_SUPPORT
from thresher.theory.matching import match
from thresher.theory.patterns import pack

LEVELS = (ON_SUPPORT, ISOLATED)


def problem(seed: int = 0, **changes: int) -> PlantedProblem:
    return assumed(**{"n": 200, "d": 6, "neurons": 3, "largest": 2, "seed": seed, **changes})


def proved(found: Certificate) -> list[str]:
    return [name for name, status in found.levels.items() if status == "holds"]


@pytest.mark.parametrize("seed", range(6))
def test_planted_networks_are_certified_whatever_their_order_and_scaling(seed: int) -> None:
    drawn = problem(seed)
    assert drawn.signs is not None
    plain = certify(network_of(drawn), drawn.X, drawn.y)
    U, v = drawn.weights[0].toarray().astype(float), drawn.signs.astype(float)
    moved = certify(shuffled(U, v, np.random.default_rng(seed)), drawn.X, drawn.y)
    assert set(LEVELS) <= set(proved(plain))
    assert "unique in the dictionary (own)" in proved(plain)
    assert plain.levels == moved.levels


@pytest.mark.parametrize("seed", range(12))
def test_nothing_false_is_claimed_of_spoiled_networks(seed: int) -> None:
    drawn = assumed(150 + 30 * seed, 4, 3 + seed % 2, 1 + seed % 3, "ab"[seed % 2], seed=seed)
    assert drawn.signs is not None
    U, v = drawn.weights[0].toarray().astype(float), drawn.signs.astype(float)
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        pair = rng.standard_normal((4, 2))
        U, v = np.hstack([U, pair, -pair.sum(axis=1, keepdims=True)]), np.append(v, np.ones(3))
    X = drawn.X.astype(float)
    y = np.maximum(X @ U, 0) @ v
    truth = network(U, v)
    names = []
    for name, made in variants(U, v, X, y, rng):
        found = certify(made, X, y, dictionary=("own", "opposite", "one-sided", "one-sparse"))
        claims = [level for level in proved(found) if "dictionary" in level]
        assert not claims or match(made, truth).equivalent(1e-6), name
        if name in ("turned over", "two-sided"):
            assert found["fits"].holds
            assert found["identity"].status == "unknown"
        names.append(name)
    assert {"perturbed", "flipped", "padded"} <= set(names)
    assert ("turned over" in names) == (seed % 3 == 0)


def test_a_unique_network_is_the_one_of_least_norm() -> None:
    """Where Tropp or Fuchs say so, a linear program finds no other weights with as small an L1 norm."""
    from scipy.optimize import linprog

    checked = 0
    for seed in range(6):
        drawn = assumed(60, 4, 2, 1, "b", seed=seed)
        made = network_of(drawn)
        found = certify(made, drawn.X, drawn.y, dictionary="one-sparse")
        if not (found["tropp (one-sparse)"].holds or found["fuchs (one-sparse)"].holds):
            continue
        X = drawn.X.astype(float)
        fused = fused_of(made, X)
        gates = np.vstack([(X > 0).T, (X < 0).T])
        columns = np.hstack([X * gate[:, None] for gate in gates])
        columns /= np.linalg.norm(columns, axis=0)
        both = np.hstack([columns, -columns])
        best = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=fused.output)
        assert best.fun == pytest.approx(np.abs(fused.unit_weights).sum(), rel=1e-6)
        assert np.count_nonzero(best.x > 1e-7) == fused.size
        checked += 1
    assert checked >= 2


def test_noise_is_called_noise_and_the_rest_stays_known() -> None:
    drawn = problem(1, n=400)
    rng = np.random.default_rng(0)
    y = drawn.y + 0.1 * rng.standard_normal(400)
    found = certify(network_of(drawn), drawn.X, y)
    assert found["fits"].status == "fails"
    assert found["stationary"].status == "fails"
    assert found.levels[ON_SUPPORT] == "fails"
    assert not [level for level in proved(found) if "dictionary" in level]
    assert "fits" in found.verdict


def test_least_squares_weights_on_noisy_labels_are_unique_on_their_support() -> None:
    from thresher.experiments.spoiled import _refitted

    drawn = problem(2, n=400)
    assert drawn.signs is not None
    X = drawn.X.astype(float)
    y = drawn.y + 0.01 * np.random.default_rng(1).standard_normal(400)
    U, v = drawn.weights[0].toarray().astype(float), drawn.signs.astype(float)
    for _ in range(5):
        U, v = _refitted(U, v, X, y)
    found = certify(network(U, v), X, y)
    assert (found["fits"].status, found["stationary"].status) == ("fails", "holds")
    assert found.levels[ON_SUPPORT] == "holds"
    assert not [level for level in proved(found) if "dictionary" in level]


def test_biases_of_both_layers_take_part() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 4))
    made = Network.fused(
        np.array([[1.0, 0.0], [0.0, -2.0], [0.0, 0.0], [0.5, 0.0]]), [0.3, 0.0], [1, -1], output_bias=0.7
    )
    found = certify(made, X, made.predict(X), dictionary="own")
    assert proved(found) == [ON_SUPPORT, ISOLATED, "unique in the dictionary (own)"]
    assert "a constant" in found.dictionaries[0]
    assert not certify(made, X, made.predict(X) + 0.1)["fits"].holds


def test_two_neurons_with_one_gate_are_not_unique() -> None:
    X = np.random.default_rng(4).standard_normal((100, 3))
    made = network(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]]), np.array([1.0, 0.5]))
    found = certify(made, X, made.predict(X))
    assert found.levels[ON_SUPPORT] == "fails"
    assert found["independent"].status == "fails"
    assert not proved(found)
    assert "share their gate" in found["separation"].sentence or found["separation"].number is None


def test_weights_that_lead_nowhere_are_not_unique() -> None:
    X = np.random.default_rng(5).standard_normal((100, 2))
    made = network(np.eye(2), np.array([1.0, 0.0]))
    found = certify(made, X, made.predict(X))
    assert found["independent"].status == "fails"
    assert "take no part" in found["independent"].sentence


def test_a_neuron_that_is_always_on_hides_which_way_others_open() -> None:
    """On positive rows relu(x0 - x1) - (3 x0 + x1) is relu(x1 - x0) - (2 x0 + 2 x1): no claim of either."""
    X = np.abs(np.random.default_rng(9).standard_normal((60, 3)))
    one = network(np.array([[1.0, 3.0], [-1.0, 1.0], [0.0, 0.0]]), np.array([1.0, -1.0]))
    two = network(np.array([[-1.0, 2.0], [1.0, 2.0], [0.0, 0.0]]), np.array([1.0, -1.0]))
    y = one.predict(X)
    assert np.allclose(two.predict(X), y)
    for made in (one, two):
        found = certify(made, X, y)
        assert found["fits"].holds and found["injective (own)"].holds
        assert found["activity"].status == "fails"
        assert not [level for level in proved(found) if "dictionary" in level]


def test_as_many_weights_as_rows_prove_nothing() -> None:
    drawn = problem(0, n=9, neurons=4, largest=2)
    found = certify(network_of(drawn), drawn.X, drawn.y)
    assert found["rows"].status == "fails"
    assert not [level for level in proved(found) if "dictionary" in level]


def test_a_row_on_the_edge_of_a_gate_leaves_it_open() -> None:
    X = np.random.default_rng(6).standard_normal((50, 2))
    X[0] = [0.1, -0.1]
    made = network(np.array([[1.0], [1.0]]), np.ones(1))
    found = certify(made, X, made.predict(X))
    assert found["gates"].status == "unknown"
    assert found.levels[ON_SUPPORT] == "unknown"


def with_direct(seed: int, **parts: Any) -> tuple[Network, np.ndarray]:
    """Give a planted network of six inputs with direct connections from two of them, and rows."""
    drawn = problem(seed, n=300)
    planted_network = network_of(drawn)
    direct = np.zeros((6, 1))
    direct[[1, 4], 0] = [0.7, -1.3]
    return replace(planted_network, direct=direct, **parts), drawn.X.astype(float)


@pytest.mark.parametrize("seed", range(4))
def test_direct_connections_are_columns_that_no_gate_closes(seed: int) -> None:
    made, X = with_direct(seed)
    fused = fused_of(made, X)
    assert fused.size == made.nonzeros
    assert np.allclose(fused.output, made.predict(X), rtol=1e-12, atol=1e-12)
    assert np.allclose(fused.raw[:, -2:], X[:, [1, 4]])
    found = certify(made, X, made.predict(X), dictionary=("own", "opposite", "one-sparse"))
    assert found["fits"].holds
    assert found.levels[ON_SUPPORT] == "holds"
    # Least squares on the columns says the same.
    assert np.allclose(np.linalg.lstsq(fused.raw, made.predict(X), rcond=None)[0], fused.weights)
    noisy = certify(made, X, made.predict(X) + X[:, 1])
    assert noisy["stationary"].status == "fails"


def test_a_direct_weight_that_would_enter_is_seen() -> None:
    made, X = with_direct(0)
    found = certify(made, X, made.predict(X) + 5 * X[:, 0], dictionary="own")
    assert found["margin"].status == "fails"
    assert found.levels[ISOLATED] == "fails"


@pytest.mark.parametrize("seed", range(4))
def test_direct_connections_can_make_up_for_a_neuron_that_turns_over(seed: int) -> None:
    """Neither of two networks that are the same function is ever called unique in a dictionary."""
    made, X = with_direct(seed)
    hidden, last = made.layers
    U, sign = hidden.weights.toarray(), float(last.weights.toarray()[0, 0])
    turned = U.copy()
    turned[:, 0] = -U[:, 0]
    other = replace(
        made,
        layers=(Layer(turned, hidden.bias), last),
        direct=made.direct_coef + sign * U[:, :1],
    )
    y = made.predict(X)
    assert np.allclose(other.predict(X), y)
    for one in (made, other):
        found = certify(one, X, y, dictionary=("own", "opposite", "one-sided", "one-sparse"))
        assert found["identity"].status == "unknown"
        assert not [level for level in proved(found) if "dictionary" in level]
    # Two halves on a line are the line: direct connections that cancel one of them leave the other.
    cancelled = replace(made, direct=-sign * U[:, :1])
    assert identity(cancelled).told is False


def test_direct_connections_match_as_two_halves_of_a_line() -> None:
    made, _ = with_direct(1)
    U, v = (layer.weights.toarray() for layer in made.layers)
    line = made.direct_coef
    halves = network(np.hstack([U, line, -line]), np.append(v[:, 0], [1.0, -1.0]))
    assert match(halves, made).equivalent()
    assert match(made, halves).equivalent()
    assert not match(replace(made, direct=2 * line), made).equivalent()
    assert len(match(made, replace(made, direct=None)).invented) == 2


@pytest.mark.parametrize("kind", ["unfed", "layers", "classes", "linear", "dead", "log", "direct alone"])
def test_beyond_the_theory_everything_is_unknown(kind: str) -> None:
    X = np.random.default_rng(7).standard_normal((80, 3))
    one, two = Layer(np.eye(3), np.zeros(3)), Layer(np.ones((3, 2)), np.zeros(2))
    last = Layer(np.ones((2, 1)), np.zeros(1))
    made = {
        "unfed": Network((one, Layer(np.array([[1.0, 0.0]] * 3), np.array([0.0, 1.0])))),
        "layers": Network((one, two, last)),
        "classes": Network(
            (one, Layer(np.ones((3, 1)), np.zeros(1))), classes=["no", "yes"], link="logistic"
        ),
        "linear": Network((last,)),
        "dead": network(np.zeros((3, 1)), np.ones(1)),
        "log": Network.fused(np.eye(3), None, [1, 1, -1], link="log"),
        "direct alone": Network.fused(np.zeros((3, 1)), None, [1], direct=[1.0, -1.0, 0.0]),
    }[kind]
    rows = X[:, : made.inputs]
    found = certify(made, rows, made.predict(rows), held_out=None)
    assert set(found.levels.values()) == {"unknown"}
    assert found["theory"].status == "unknown"
    assert "Nothing is proved" in found.verdict


def test_fresh_rows_bound_the_disagreement() -> None:
    drawn = planted(n=300, d=8, hidden=3, budget=6, seed=2)
    X, y = fresh_rows(drawn, 400)
    found = certify(network_of(drawn), drawn.X, drawn.y, held_out=(X, y), confidence=0.95)
    assert found["held out"].status == "holds"
    assert found["held out"].number == pytest.approx(np.log(20) / 400)
    y = y.copy()
    y[:7] += 0.5
    wrong = certify(network_of(drawn), drawn.X, drawn.y, held_out=(X, y))
    assert wrong["held out"].status == "fails"
    assert "7 of 400" in wrong["held out"].sentence


def test_data_that_is_not_gaussian_is_measured_and_said_so() -> None:
    X = np.random.default_rng(8).random((500, 3)) ** 2
    made = Network.fused(np.array([[1.0, -1.0], [-2.0, 0.0], [0.0, 0.5]]), None, [1, 1])
    found = certify(made, X, made.predict(X))
    assert found["gaussian"].status == "fails"
    assert "nothing presumed" in found["gaussian"].sentence
    assert 0 < (found["activity"].number or 0) < 1


def test_float32_labels_count_as_rounded_and_others_do_not() -> None:
    drawn = problem(3)
    made = network_of(drawn)
    exact = made.predict(drawn.X)
    assert certify(made, drawn.X, exact)["fits"].holds
    assert certify(made, drawn.X, exact.astype(np.float32))["fits"].holds
    rough = np.round(exact, 5) + 1e-13
    assert not certify(made, drawn.X, rough)["fits"].holds
    assert certify(made, drawn.X, rough, precision=1e-5)["fits"].holds


def test_a_certificate_is_plain_and_readable() -> None:
    drawn = problem(4)
    found = thresher.certify(network_of(drawn), drawn.X, drawn.y)
    plain = json.loads(json.dumps(found.plain(), allow_nan=False))
    assert plain["levels"] == found.levels
    assert {each["status"] for each in plain["conditions"]} <= {"holds", "fails", "unknown"}
    assert all(each["sentence"].endswith(".") for each in plain["conditions"])
    assert found.verdict in str(found)
    with pytest.raises(KeyError, match="It has fits"):
        found["fit"]


def test_what_does_not_belong_together_is_refused() -> None:
    drawn = problem(0)
    made = network_of(drawn)
    with pytest.raises(DataError, match="5 columns, but the network takes 6"):
        certify(made, drawn.X[:, :5], drawn.y)
    frame = pd.DataFrame(drawn.X, columns=list("bacdef"))
    with pytest.raises(DataError, match="column 0 of X is 'b'"):
        certify(replace(made, features=tuple("abcdef")), frame, drawn.y)
    with pytest.raises(DataError, match="200 rows"):
        certify(made, drawn.X, drawn.y[:-1])
    with pytest.raises(DataError, match="2 columns, but the network has 1 outputs"):
        certify(made, drawn.X, np.column_stack([drawn.y, drawn.y]))
    with pytest.raises(DataError, match="NaN"):
        certify(made, drawn.X, np.full(200, np.nan))
    with pytest.raises(DataError, match="not a number"):
        certify(made, drawn.X, np.full(200, "a"))
    with pytest.raises(ParameterError, match="own, opposite"):
        certify(made, drawn.X, drawn.y, dictionary="everything")
    with pytest.raises(ParameterError, match="at least one"):
        certify(made, drawn.X, drawn.y, dictionary=())
    with pytest.raises(ParameterError, match="confidence=1"):
        certify(made, drawn.X, drawn.y, confidence=1)
    with pytest.raises(DataError, match="same rows"):
        certify(made, drawn.X, drawn.y, dictionary=pack(np.ones((1, 5), dtype=bool)))
    with pytest.raises(MemoryLimitError, match=r"patterns of 200 rows would need [\d,]+ bytes"):
        certify(made, drawn.X, drawn.y, dictionary="two-sparse", memory_limit=50_000)
    with pytest.raises(MemoryLimitError, match=r"columns of \d nonzeros on 200 rows would need [\d,]+ bytes"):
        certify(made, drawn.X, drawn.y, memory_limit=1000)
    labelled = Network(made.layers, classes=[0, 1], link="logistic")
    with pytest.raises(DataError, match="knows the classes"):
        certify(labelled, drawn.X, np.full(200, 2))


def test_several_sets_of_patterns_keep_their_names_apart() -> None:
    drawn = problem(5)
    sets = [pack(np.random.default_rng(seed).random((2, 200)) > 0.5) for seed in range(2)]
    found = certify(network_of(drawn), drawn.X, drawn.y, dictionary=[*sets, "own", "own"])
    names = [name for name in found.levels if "dictionary" in name]
    assert names == [f"unique in the dictionary ({name})" for name in ("given", "given 2", "own")]
