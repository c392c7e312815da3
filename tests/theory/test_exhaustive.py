"""Tiny problems, all alternatives tried: whatever else fits the same rows is never certified in its place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from thresher.experiments.spoiled import network
from thresher.network import Network
from thresher.theory.certificate import certify


def other_networks(X: np.ndarray, y: np.ndarray, generators: np.ndarray, size: int) -> Iterator[Network]:
    """Give all ReLU networks of so many weights, over the gates of given generators, that fit the rows."""
    gates = (X @ generators > 0).T
    places = [(gate, feature) for gate in range(len(gates)) for feature in range(X.shape[1])]
    columns = np.stack([X[:, feature] * gates[gate] for gate, feature in places], axis=1)
    for support in combinations(range(len(places)), size):
        weights, _, rank, _ = np.linalg.lstsq(columns[:, support], y, rcond=None)
        if (
            rank < size
            or np.abs(columns[:, support] @ weights - y).max() > 1e-10
            or (np.abs(weights) < 1e-9).any()
        ):
            continue
        chosen = sorted({places[column][0] for column in support})
        fused = np.zeros((X.shape[1], len(chosen)))
        for weight, column in zip(weights, support, strict=True):
            fused[places[column][1], chosen.index(places[column][0])] += weight
        signs = np.array(
            [1.0 if ((X @ w > 0) == gates[g]).all() else -1.0 for g, w in zip(chosen, fused.T, strict=True)]
        )
        if all(
            ((sign * X @ w > 0) == gates[g]).all() for g, w, sign in zip(chosen, fused.T, signs, strict=True)
        ):
            yield network(fused * signs, signs)


def by_gate(made: Network, X: np.ndarray) -> dict[bytes, np.ndarray]:
    """Give the fused weights of every gate on these rows: what identical gates hold counts together."""
    U, v = made.layers[0].weights.toarray(), made.layers[1].weights.toarray()[:, 0]
    found: dict[bytes, np.ndarray] = {}
    for u, sign in zip(U.T, v, strict=True):
        gate = X @ u > 0
        if gate.any():
            found[gate.tobytes()] = found.get(gate.tobytes(), np.zeros(len(u))) + sign * u
    return found


def planted(seed: int) -> tuple[np.ndarray, Network, np.ndarray]:
    """Draw a few rows, some with ties, some nearly all positive; a network of two weights; generators."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((int(rng.integers(8, 20)), 3))
    if seed % 3 == 1:
        X = np.round(2 * X) / 2
    elif seed % 3 == 2:
        X = np.abs(X) + 0.1 * X
    size = 1 + seed % 2
    U = np.zeros((3, 3 - size))
    for column in U.T:
        column[rng.choice(3, size, replace=False)] = rng.choice([-2.0, -1.0, 0.5, 1.0], size)
    generators = np.hstack([np.eye(3), -np.eye(3), U, -U, rng.standard_normal((3, 3))])
    return X, network(U, rng.choice([-1.0, 1.0], U.shape[1])), generators


def test_no_other_network_that_fits_is_certified_unique() -> None:
    seen = {"planted, certified": 0, "planted, not certified": 0, "another": 0}
    for seed in range(40):
        X, truth, generators = planted(seed)
        y, wanted = truth.predict(X), by_gate(truth, X)
        for made in other_networks(X, y, generators, 2):
            found = certify(made, X, y, dictionary=("own", "opposite", "one-sided", "one-sparse"))
            claimed = any(status == "holds" for name, status in found.levels.items() if "dictionary" in name)
            got = by_gate(made, X)
            if wanted.keys() == got.keys() and all(np.allclose(wanted[gate], got[gate]) for gate in got):
                seen["planted, certified" if claimed else "planted, not certified"] += 1
            else:
                assert not claimed
                seen["another"] += 1
    assert all(seen.values()), seen
