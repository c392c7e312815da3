"""Requirements: what a network has is counted from its weights, and what it breaks is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thresher import Network
from thresher.network import Layer
from thresher.network.requirements import Requirements, counts, requirements_of, violations

# Inputs 0 and 1 rise, 2 falls, 3 goes either way, 4 is not read.
NETWORK = Network.fused(
    np.array([[1.0, 0.0], [2.0, -1.0], [-0.5, 1.0], [1.0, 1.0], [0.0, 0.0]]),
    bias=[0.0, 1.0],
    signs=[1, -1],
    direct=[0.0, 0.0, 0.0, 0.0, 0.0],
)


@pytest.mark.parametrize(
    ("required", "broken"),
    [
        ({"max_inputs": 4}, None),
        ({"max_inputs": 3}, "4 inputs are used, but max_inputs=3"),
        ({"max_inputs": 2, "groups": ((0, 1), (2, 3))}, None),
        ({"max_inputs": 1, "groups": ((0, 1), (2, 3))}, "2 inputs are used"),
        ({"max_fan_in": 4}, None),
        ({"max_fan_in": 3}, "reads 4 inputs"),
        ({"costs": {0: 2.0, 4: 9.0}, "max_cost": 2.0}, None),
        ({"costs": {0: 2.0, 3: 1.0}, "max_cost": 2.0}, "cost 3"),
        ({"costs": {0: 2.0, 1: 1.0}, "groups": ((0, 1),), "max_cost": 2.0}, None),
        ({"costs": {4: 2.0}, "groups": ((0, 4),), "max_cost": 1.0}, "cost 2"),
        ({"monotone": {0: 1, 1: 1, 2: -1, 4: 1}}, None),
        ({"monotone": {2: 1}}, "may fall with column 2"),
        ({"monotone": {0: -1}}, "may rise with column 0"),
        ({"monotone": {3: 1}}, "may fall with column 3"),
    ],
)
def test_what_is_broken_is_said(required: dict[str, Any], broken: str | None) -> None:
    problems = violations(NETWORK, Requirements(**required))
    assert problems == [] if broken is None else (len(problems) == 1 and broken in problems[0])


def test_directions_follow_every_path_of_deep_networks() -> None:
    inner = Layer(np.array([[1.0, -1.0], [0.0, 1.0]]), np.zeros(2))
    outer = Layer(np.array([[1.0], [-1.0]]), np.zeros(1))
    network = Network((inner, Layer(np.eye(2), np.ones(2)), outer))
    assert violations(network, Requirements(monotone={0: 1, 1: -1})) == []
    assert len(violations(network, Requirements(monotone={0: -1, 1: 1}))) == 2
    several = Network((inner, Layer(np.eye(2), np.ones(2))))
    assert len(violations(several, Requirements(monotone={0: 1}))) == 1


def test_requirements_come_back_from_a_file_and_are_described(tmp_path: Path) -> None:
    required = Requirements(4, 4, ((0, 1),), {2: 1.5}, 3.0, {2: -1})
    network = Network(NETWORK.layers, details={"requirements": required.to_details()})
    network.save(tmp_path / "a.thresher")
    loaded = Network.load(tmp_path / "a.thresher")
    assert requirements_of(loaded) == required
    told = "3 of at most 4 inputs; neurons of 4 of at most 4 inputs; cost 1.5 of at most 3; never rises with"
    assert told in loaded.describe()
    assert "NOT MET" not in loaded.describe()
    broken = Requirements(max_inputs=1).to_details()
    assert "NOT MET: 4 inputs" in Network(NETWORK.layers, details={"requirements": broken}).describe()


@pytest.mark.parametrize(
    "told",
    [
        3,
        {},
        {"max_inputs": "many"},
        {**Requirements(max_inputs=1).to_details(), "monotone": {"9": 1}},
        {**Requirements(max_inputs=1).to_details(), "monotone": {"0": 2}},
        {**Requirements(max_inputs=1).to_details(), "groups": [[0], [0]]},
        {**Requirements(max_inputs=1).to_details(), "groups": [[]]},
        Requirements().to_details(),
    ],
)
def test_details_that_make_no_sense_require_nothing(told: Any) -> None:
    network = Network(NETWORK.layers, details={"requirements": told})
    assert requirements_of(network) is None
    assert "required" not in network.describe()


def test_columns_are_numbered_anew_among_others() -> None:
    required = Requirements(2, None, ((0, 3), (1,)), {3: 2.0, 4: 1.0}, 2.0, {4: 1, 1: -1})
    among = required.among(np.array([3, 4]))
    assert among == Requirements(2, None, ((0,),), {0: 2.0, 1: 1.0}, 2.0, {1: 1})
    assert required.unit_costs(5).tolist() == [2.0, 0.0, 0.0, 1.0]


def test_counts_are_those_of_the_weights() -> None:
    found = counts(NETWORK, Requirements(groups=((1, 2),), costs={1: 2.0}, max_cost=9.0))
    assert (found.inputs, found.fan_in, found.cost, found.against) == (3, 4, 2.0, ())
