"""Problems for certificates: labels are those of the planted network, rounded as is said."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.experiments.certified_problems import DATA, KINDS, problem_of


@pytest.mark.parametrize("outputs", [1, 4])
def test_a_batch_of_twenty_holds_every_pair_of_network_and_data(outputs: int) -> None:
    drawn = [problem_of(300, 0, number, outputs) for number in range(20)]
    assert {(one.kind, one.data) for one in drawn} == {(kind, data) for kind in KINDS for data in DATA}
    for one in drawn:
        exact = np.maximum(one.X @ one.U, 0) @ one.V + one.c
        assert (np.abs(one.y - exact) <= one.hidden_by + 1e-15 * np.abs(exact).max()).all()
        assert one.V.any(axis=0).all() and one.V.any(axis=1).all()
        assert 1 <= one.y.shape[1] <= outputs and (outputs == 1 or one.y.shape[1] > 1)
    again = problem_of(300, 0, 7, outputs)
    assert np.array_equal(again.X, drawn[7].X) and np.array_equal(again.y, drawn[7].y)


def test_data_is_what_its_name_says() -> None:
    by_data = {
        data: [problem_of(600, 1, 4 * place + kind, 1) for kind in range(4)]
        for place, data in enumerate(DATA)
    }
    assert all(abs(one.c[0]) >= 100 for one in by_data["offset"])
    assert all(
        np.abs(one.X).max(axis=0).max() > 10 * np.abs(one.X).max(axis=0).min() for one in by_data["scales"]
    )
    assert all(len(np.unique(one.X, axis=0)) <= 6 * one.nonzeros + 3 for one in by_data["repeated"])
    for one in by_data["exact"]:
        assert np.array_equal(one.X * 32, np.round(one.X * 32)) and not one.hidden_by.any()
        assert (one.y.astype(np.float32) == one.y).all()
        if one.kind != "triple":
            assert not (one.X @ one.U == 0).any()
