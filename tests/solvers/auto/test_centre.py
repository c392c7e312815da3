"""Inputs about their means: the same network, and the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from dense import CASES, NetworkCase

from thresher.objective.relu import Relu
from thresher.solvers.auto.centre import centred

BIASED = [case for case in CASES if case.objective().layout.bias]
cases = pytest.mark.parametrize("case", BIASED, ids=str)


def unmoved(case: NetworkCase) -> Relu:
    """Give an objective of which no origin was moved."""
    objective = case.objective()
    return replace(objective, origins=torch.zeros(objective.layout.widths[0], dtype=torch.float64))


@cases
def test_inputs_have_no_mean_and_the_size_that_they_had(case: NetworkCase) -> None:
    objective = unmoved(case)
    before, after = (one.data.read(slice(0, one.data.rows)) for one in (objective, centred(objective).part))
    share = objective.data.share
    torch.testing.assert_close(share @ after, torch.zeros_like(after[0]), rtol=0, atol=1e-12)
    torch.testing.assert_close(share @ after.square(), share @ before.square())


@cases
def test_a_network_that_is_lifted_does_the_same(case: NetworkCase) -> None:
    objective = unmoved(case)
    inputs = centred(objective)
    point = case.point(seed=2)
    point = point.at(inputs.part.closed(point.w.indices))
    assert objective.value(inputs.lift(point)) == pytest.approx(inputs.part.value(point), rel=1e-9)


@cases
def test_biases_that_are_zero_in_raw_units_are_gone(case: NetworkCase) -> None:
    objective = unmoved(case)
    inputs = centred(objective)
    point = case.point(seed=2)
    point = point.at(inputs.part.closed(point.w.indices))
    places, zeros = inputs.part.raw_biases(point)
    values = point.w.values.clone()
    values[torch.searchsorted(point.w.indices, places)] = zeros.to(values.dtype)
    assert not torch.isin(places, inputs.lift(point.with_values(values)).w.indices).any()


def test_columns_that_are_often_zero_stay(case: NetworkCase = BIASED[0]) -> None:
    objective = unmoved(case)
    X = objective.data.read(slice(0, objective.data.rows)).clone()
    X[::2, 0] = 0
    objective = replace(objective, data=type(objective.data)(X, objective.data.targets, dtype=X.dtype))
    shift = centred(objective).shift
    assert shift is not None
    assert float(shift[0]) == 0
    assert bool((shift[1:] != 0).all())


@cases
def test_inputs_that_are_not_to_be_centred_are_left_alone(case: NetworkCase) -> None:
    objective = case.objective()
    assert objective.origins is None
    assert centred(objective).part is objective
