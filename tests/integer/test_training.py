"""Training with rounding in the loop keeps the support and its bits, and answers nearer to those before."""

from __future__ import annotations

import numpy as np
import pytest
from networks import NETWORKS, rows_for
from sklearn.datasets import load_digits

from thresher import SparseMLPClassifier
from thresher.errors import ParameterError
from thresher.integer.polish import loss_of


@pytest.mark.parametrize(
    "how",
    [
        {"weights": "int4", "activation_bits": 2, "bias_bits": 6},
        {"weights": "pow2", "activation_bits": 3},
        {"bits": 2, "activation_bits": 8},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", NETWORKS)
def test_support_and_bits_are_kept(name: str, how: dict[str, object]) -> None:
    network, X = NETWORKS[name], rows_for(NETWORKS[name], 300)
    found = network.quantise(X, **how, passes=3)
    assert found.nonzeros <= network.nonzeros
    largest = {"int4": 7, "pow2": 128}.get(str(how.get("weights")), 1)
    for layer in found.layers:
        sizes = np.abs(layer.weights.data)
        assert layer.signs_only or (sizes <= largest).all()
        if how.get("weights") == "pow2" and not layer.signs_only:
            assert (np.bitwise_count(sizes) == 1).all()
    assert found.equals(network.quantise(X, **how, passes=3))


def test_two_bits_of_a_neuron_answer_nearer_for_it() -> None:
    X, y = load_digits(return_X_y=True)
    model = SparseMLPClassifier(budget=300, hidden=20, max_iter=60, random_state=0).fit(X[::2], y[::2])
    network = model.network_
    how = {"weights": "int4", "activation_bits": 2, "inputs": "uint5"}
    plain, ours = (network.quantise(X[::2], **how, passes=passes) for passes in (0, 60))
    far = [loss_of(one, one.codes(X[::2]), network.forward(X[::2]), "softmax") for one in (plain, ours)]
    assert far[1] < 0.9 * far[0]
    right = [(one.predict(X[1::2]) == y[1::2]).mean() for one in (plain, ours)]
    assert right[1] >= right[0]
    assert right[1] > model.score(X[1::2], y[1::2]) - 0.03


@pytest.mark.parametrize("passes", [-1, 1.5, True])
def test_passes_that_cannot_be_are_refused(passes: object) -> None:
    network = NETWORKS["fused"]
    with pytest.raises(ParameterError, match="passes="):
        network.quantise(rows_for(network, 10), passes=passes)
