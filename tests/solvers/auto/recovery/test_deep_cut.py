"""Cutting deep students down: neurons that do the same, paths that are missing, layers found anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from problems import normal

from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.newton import Fit, measured
from thresher.solvers.auto.recovery.deep_cut import Cutting
from thresher.solvers.auto.recovery.deep_merge import held, merged, written_out
from thresher.solvers.auto.recovery.deep_sides import with_sides
from thresher.solvers.auto.recovery.deep_sprout import sprouted
from thresher.solvers.auto.recovery.deep_student import (
    random_student,
    student_layout,
    telling_inputs,
    usefulness,
    widened,
)
from thresher.solvers.auto.recovery.deep_tuning import DeepTuning
from thresher.solvers.auto.recovery.deep_upper import joined, upper_objective

TUNING = DeepTuning()


def dense_point(layout: Layout, seed: int = 0) -> Point:
    """Draw every weight."""
    return random_student(layout, np.random.default_rng(seed), False, TUNING)


def objective_of(layout: Layout, teacher: Point | None = None, rows: int = 400) -> Relu:
    """Give rows, and the targets that a teacher gives them."""
    X = normal(rows, layout.widths[0], seed=5)
    data = Data(X, torch.zeros(rows, layout.widths[-1]), dtype=torch.float64)
    objective = Relu(data, layout, SquaredError())
    if teacher is None:
        return objective
    return replace(objective, data=Data(X, outputs(objective, teacher), dtype=torch.float64))


def outputs(objective: Relu, point: Point) -> torch.Tensor:
    """Run a network on all rows."""
    X = objective.data.batch(slice(0, objective.data.rows)).X
    return objective.run(point).forward(X).output


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("layer", [0, 1])
def test_neurons_that_are_multiples_become_one_and_nothing_changes(fused: bool, layer: int) -> None:
    layout = Layout((4, 5, 5, 1 if fused else 2), bias=True, fused=fused)
    point = dense_point(layout)
    blocks = written_out(layout, point)
    blocks[layer][3] = 2.5 * blocks[layer][1]
    twins = held(layout, blocks, point.signs)
    objective = objective_of(layout)
    one = merged(layout, twins, 1e-9)
    assert one.w.nonzeros < twins.w.nonzeros
    torch.testing.assert_close(outputs(objective, one), outputs(objective, twins))
    assert merged(layout, point, 1e-9).w.nonzeros == int((point.w.values != 0).sum())


def test_neurons_that_cancel_go() -> None:
    layout = Layout((3, 2, 2, 1), bias=False, fused=True)
    blocks = written_out(layout, dense_point(layout))
    blocks[1][1] = blocks[1][0]
    point = held(layout, blocks, torch.tensor([1.0, -1.0], dtype=torch.float64))
    left = merged(layout, point, 1e-9)
    assert float(outputs(objective_of(layout), left).abs().max()) == 0


@pytest.mark.parametrize("outputs_of", [1, 2])
def test_paths_are_added_where_they_explain_most(outputs_of: int) -> None:
    layout = Layout((4, 6, 6, outputs_of), bias=False, fused=outputs_of == 1)
    blocks = [torch.zeros_like(block) for block in written_out(layout, dense_point(layout))]
    blocks[0][0, 0], blocks[0][1, 1] = 1.0, -2.0
    blocks[1][0, 0], blocks[1][0, 1] = 1.0, 0.8
    if outputs_of > 1:
        blocks[2][:, 0] = 1.0
    signs = torch.ones(6, dtype=torch.float64) if outputs_of == 1 else None
    teacher = held(layout, blocks, signs)
    blocks[1][0, 1] = 0.0
    blocks[0][1, 1] = 0.0
    objective = objective_of(layout, teacher)
    known = held(layout, blocks, signs)
    grown = sprouted(objective, known, 1)
    before, after = objective.value(known), objective.value(grown)
    assert after < 0.5 * before
    first = layout.split(grown.w.indices)[0]
    feature = layout.pairs(grown.w.indices[first], 0)[1]
    assert {1} == set(feature.tolist()) - {0}
    assert grown.w.nonzeros == known.w.nonzeros + 2


@pytest.mark.parametrize("bias", [False, True])
def test_neurons_on_the_wrong_side_are_turned_round(bias: bool) -> None:
    layout = Layout((4, 3, 5, 1), bias, fused=True)
    blocks = written_out(layout, dense_point(layout, seed=1))
    right, signs = blocks[1], torch.tensor([1.0, -1.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    right[:] = 0
    right[0, 0], right[0, 1], right[0, 2] = 1.0, -0.6, 0.8
    right[1, 1], right[1, 2] = 0.7, -0.9
    planted = held(layout, blocks, signs)
    # relu(z) = z + relu(-z), and z is the difference of two neurons that are on for all rows.
    right[3], right[4], right[0] = right[0].clamp(min=0), right[0].neg().clamp(min=0), -right[0]
    signs[4] = -1.0
    wrong = held(layout, blocks, signs)
    objective = objective_of(layout)
    assert wrong.w.nonzeros == planted.w.nonzeros + 3
    torch.testing.assert_close(outputs(objective, wrong), outputs(objective, planted))
    turned = with_sides(layout, wrong, 1e-9, TUNING.sides)
    assert turned.w.nonzeros == planted.w.nonzeros
    torch.testing.assert_close(outputs(objective, turned), outputs(objective, planted))
    assert with_sides(layout, planted, 1e-9, TUNING.sides) is planted


def test_layers_above_the_first_are_a_network_of_their_own() -> None:
    layout = Layout((4, 3, 3, 1), bias=False, fused=True)
    point = dense_point(layout, seed=2)
    objective = objective_of(layout, dense_point(layout, seed=3))
    upper = upper_objective(objective, point, (5,))
    above = dense_point(upper.layout, seed=4)
    whole, both = joined(layout, point, upper.layout, above)
    assert whole.widths == (4, 3, 5, 1)
    assert upper.value(above) == pytest.approx(replace(objective, layout=whole).value(both))


def test_an_exact_student_is_cut_down_to_its_teacher() -> None:
    small, layout = Layout((4, 2, 2, 1), False, fused=True), Layout((4, 6, 6, 1), False, fused=True)
    blocks = [torch.zeros_like(block) for block in written_out(layout, dense_point(layout))]
    blocks[0][0, :2], blocks[0][1, 2:] = torch.tensor([1.0, -0.5]), torch.tensor([0.7, 1.2])
    blocks[1][0, :2], blocks[1][1, 1] = torch.tensor([1.0, -0.6]), 0.9
    signs = torch.ones(6, dtype=torch.float64)
    teacher = held(layout, blocks, signs)
    objective = objective_of(layout, teacher, rows=600)
    # Neurons in halves, and a pair that does nothing.
    blocks[0][3], blocks[1][:, 3] = 2 * blocks[0][0], blocks[1][:, 0] / 4
    blocks[1][:, 0] /= 2
    blocks[0][4] = torch.tensor([0.3, 0.2, 0.1, -0.4])
    student = held(layout, blocks, signs)
    least = 1e-12
    cutting = Cutting(objective, teacher.w.nonzeros, small.widths[1:-1], least, TUNING)
    fit = cutting.narrowed(measured(objective, student))
    assert cutting.explains(fit) and cutting.fits(fit)
    assert cutting.fits(Fit(teacher, 0.0)) and not cutting.fits(measured(objective, student))
    forced = cutting.within(student)
    assert cutting.fits(forced)


def test_students_are_wide_within_limits_and_hold_every_weight() -> None:
    layout = Layout((50, 10, 1000, 1), bias=True, fused=True)
    room = student_layout(layout, 40, 200, TUNING)
    assert room.size <= TUNING.weights
    assert room.widths[0] == 40 and room.widths[1] >= 20
    assert student_layout(layout, 40, 10, TUNING).widths[1:3] == (TUNING.neurons, TUNING.neurons)
    random = np.random.default_rng(0)
    point = random_student(room, random, True, TUNING)
    assert bool((point.signs == 1).all())
    some = point.at(torch.arange(0, room.size, 7))
    wide = widened(room, some, random, TUNING)
    assert wide.w.nonzeros == room.size
    kept = some.w.values != 0
    torch.testing.assert_close(wide.w.values[::7][kept], some.w.values[kept])


def test_inputs_that_do_nothing_are_told() -> None:
    layout = Layout((4, 3, 3, 1), bias=False, fused=True)
    blocks = written_out(layout, dense_point(layout))
    blocks[0][:, 2] = 1e-9
    blocks[1] = blocks[1].abs()
    point = held(layout, blocks, torch.ones(3, dtype=torch.float64))
    objective = objective_of(layout, point)
    assert telling_inputs(objective, point, 1e-9).tolist() == [True, True, False, True]
    assert usefulness(objective, point).shape == (point.w.nonzeros,)
    nothing = Point(SparseVector.zeros(layout.size, torch.float64), point.signs)
    assert not bool(telling_inputs(objective, nothing, 0.0).any())
