"""Whatever a network is taken apart into adds up to the network again."""

from __future__ import annotations

import numpy as np
import pytest
from networks import NETWORKS, random_network, rows_for
from scipy import sparse

from thresher.errors import DataError
from thresher.explain.parts import parts_of, rows_read


@pytest.mark.parametrize("name", NETWORKS)
def test_parts_add_up_to_the_outputs(name):
    network = NETWORKS[name]
    X = rows_for(network).astype(float)
    parts, rows = parts_of(network), rows_read(network, X)
    assert np.allclose(parts.values(rows), network.forward(X), rtol=1e-12, atol=1e-12)
    assert parts.read.tolist() == network.inputs_used().tolist()
    moved = rows.copy()
    for place in range(len(parts.read)):
        # Only the parts that read an input change with it.
        moved[:, place] += 1.5
        change = parts.reading(place).values(moved) - parts.reading(place).values(rows)
        assert np.allclose(parts.values(moved) - parts.values(rows), change, atol=1e-9)
        moved[:, place] = rows[:, place]


def test_rows_may_be_sparse_and_wide():
    network = NETWORKS["direct, sparse and wide"]
    X = rows_for(network).astype(float) * (np.random.default_rng(0).random((40, 300)) < 0.1)
    dense, wide = rows_read(network, X), rows_read(network, sparse.csr_array(X))
    assert np.array_equal(dense, wide)
    assert dense.shape[1] == len(network.inputs_used())
    assert rows_read(network, X, most=7).shape[0] == 7


def test_rows_that_cannot_be_are_refused():
    network = random_network((3, 2, 1))
    with pytest.raises(DataError, match="no rows"):
        rows_read(network, np.zeros((0, 3)))
    with pytest.raises(DataError, match="2 columns"):
        rows_read(network, np.zeros((4, 2)))
    with pytest.raises(DataError, match="NaN"):
        rows_read(network, np.full((4, 3), np.nan))
