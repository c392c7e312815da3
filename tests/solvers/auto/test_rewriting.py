"""Rewriting a network: duplicates, opposites and lines become the fewest weights that do the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.clean import _merged, _turned, cleaned, raw_nonzeros, through_zero
from thresher.solvers.auto.newton import Fit, measured, refit
from thresher.solvers.auto.newton_tuning import NewtonTuning
from thresher.solvers.auto.tuning import CleanTuning

CLEAN, NEWTON = CleanTuning(), NewtonTuning()
X = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1, (60, 3)))
HIDDEN = 4
KINK = (1.0, 2.0, 0.0, 0.1)  # three weights and a bias
HALF, TWICE, OPPOSITE = (tuple(factor * part for part in KINK) for factor in (0.5, 2.0, -1.0))
OTHER = (0.0, 1.0, -1.0, 0.2)

Neurons = list[tuple[float, tuple[float, ...]]]  # signs; weights and biases


def network(neurons: Neurons, direct: tuple[float, ...] = (0, 0, 0), constant: float = 0.0) -> Point:
    """Write a fused network down as a point."""
    weights, signs = torch.zeros(HIDDEN, 4, dtype=torch.float64), torch.ones(HIDDEN, dtype=torch.float64)
    for number, (sign, row) in enumerate(neurons):
        weights[number], signs[number] = torch.tensor(row, dtype=torch.float64), sign
    rest = torch.tensor([constant, *direct], dtype=torch.float64)
    return Point(SparseVector.from_dense(torch.cat([weights.view(-1), rest])), signs)


def outputs(objective: Relu, point: Point) -> Tensor:  # (rows, 1)
    return objective.run(point).forward(X).output


def same(objective: Relu, one: Point, two: Point) -> None:
    """Insist that two networks have the same outputs on all rows."""
    torch.testing.assert_close(outputs(objective, one), outputs(objective, two), rtol=0, atol=1e-12)


def explained(point: Point, centred: bool = False) -> tuple[Relu, Fit]:
    """Give an objective that a network explains exactly, and the network as a fit."""
    layout = Layout((3, HIDDEN, 1), fused=True, direct=True)
    blank = Relu(Data(X, torch.zeros(len(X), 1), dtype=torch.float64), layout, SquaredError())
    middle = torch.ones(1, dtype=torch.float64) if centred else None
    data = Data(X, outputs(blank, point), dtype=torch.float64)
    objective = replace(blank, data=data, middle=middle)
    return objective, measured(objective, point)


# Networks, and the nonzeros that are left beside an output bias, and the output bias if there must be one.
REWRITTEN: dict[str, tuple[Point, int, bool]] = {
    "duplicates": (network([(1, KINK), (1, KINK)]), 3, False),
    "multiples": (network([(-1, KINK), (-1, TWICE), (-1, HALF)], constant=0.5), 3, True),
    "a multiple subtracted": (network([(1, KINK), (-1, HALF)]), 3, False),
    "a larger multiple subtracted": (network([(1, KINK), (-1, TWICE)]), 3, False),
    "duplicates that cancel": (network([(1, KINK), (1, OTHER), (-1, KINK)]), 3, False),
    "opposites that make a line": (network([(1, KINK), (-1, OPPOSITE)]), 2, True),
    "opposites that make a line that is there": (
        network([(1, KINK), (-1, OPPOSITE)], direct=(-1, -2, 3), constant=-0.1),
        1,
        False,
    ),
    "opposites that leave a kink and a line": (network([(1, KINK), (1, OPPOSITE)]), 5, True),
    "three of one kink": (network([(1, KINK), (1, tuple(2 * v for v in OPPOSITE)), (-1, KINK)]), 3, False),
    "on for all rows": (network([(1, (1, 2, 0, 9)), (1, OTHER)], constant=1.0), 5, True),
    "on for all rows, cancelled": (network([(1, (1, 0, 0, 9)), (1, OTHER)], (-1, 0, 0), -9.0), 3, False),
    "on for no row": (network([(1, (1, 2, 0, -9)), (-1, OTHER)]), 3, False),
    "on for no row, nothing else": (network([(1, (1, 2, 0, -9))]), 0, False),
    "a hinge as a line and the opposite kink": (network([(1, OPPOSITE)], (1, 2, 0), 1.1), 3, True),
    "a subtracted hinge written so": (network([(-1, OPPOSITE)], (-1, -2, 0), 1.0), 3, True),
    "two hinges, one of them written so": (network([(1, OTHER), (1, OPPOSITE)], (1, 2, 0), 1.1), 6, True),
    "nothing to do": (network([(1, KINK), (-1, OTHER)], (0, 0, 1), 0.5), 7, True),
}

names = pytest.mark.parametrize("name", REWRITTEN)
centrings = pytest.mark.parametrize("centred", [False, True])


@names
@centrings
def test_the_fewest_nonzeros_are_left_and_outputs_stay(name: str, centred: bool) -> None:
    point, nonzeros, constant = REWRITTEN[name]
    objective, fit = explained(point, centred)
    clean = cleaned(objective, fit, CLEAN, NEWTON)
    assert clean.nonzeros == nonzeros + (constant or centred)
    same(objective, clean.point, point)
    assert clean.value == pytest.approx(objective.value(clean.point), abs=1e-20)


@names
@centrings
def test_cleaning_again_changes_nothing(name: str, centred: bool) -> None:
    objective, fit = explained(REWRITTEN[name][0], centred)
    once = cleaned(objective, fit, CLEAN, NEWTON)
    twice = cleaned(objective, once, CLEAN, NEWTON)
    assert twice.point.w.same_support(once.point.w)
    torch.testing.assert_close(twice.point.w.values, once.point.w.values, rtol=1e-12, atol=1e-12)
    assert once.point.signs is not None and twice.point.signs is not None
    assert torch.equal(once.point.signs, twice.point.signs)


@pytest.mark.parametrize(
    "name", ["on for no row", "on for no row, nothing else", "on for all rows, cancelled"]
)
def test_neurons_that_are_off_or_on_for_all_rows_go_before_any_trial(name: str) -> None:
    point, nonzeros, _ = REWRITTEN[name]
    objective, fit = explained(point)
    assert cleaned(objective, fit, replace(CLEAN, rounds=0), NEWTON).nonzeros == nonzeros


@pytest.mark.parametrize(
    ("neuron", "direct", "constant", "nonzeros"),
    [((-1, 0, 0, 0), (1, 0, 0), 0.0, 1), ((-1, -2, 0, 0), (1, 2, 0), 0.0, 2), (OPPOSITE, (1, 2, 0), 0.1, 3)],
)
def test_a_hinge_whose_constant_cancels_leaves_no_output_bias(
    neuron: tuple[float, ...], direct: tuple[float, ...], constant: float, nonzeros: int
) -> None:
    objective, fit = explained(network([(1, neuron)], direct, constant))
    assert cleaned(objective, fit, CLEAN, NEWTON).nonzeros == nonzeros


@pytest.mark.parametrize("seed", range(6))
@centrings
def test_no_network_gains_nonzeros_or_loses_what_it_explains(seed: int, centred: bool) -> None:
    random = np.random.default_rng(seed)
    kinks = random.standard_normal((2, 4)) * (random.random((2, 4)) < 0.7)
    factors = random.choice([-2.0, -1.0, 1.0, 3.0], HIDDEN)
    neurons = [(random.choice([-1.0, 1.0]), tuple(factors[k] * kinks[k % 2])) for k in range(HIDDEN)]
    point = network(neurons, tuple(random.integers(-1, 2, 3)), float(random.integers(2)))
    objective, fit = explained(point, centred)
    clean = cleaned(objective, fit, CLEAN, NEWTON)
    assert clean.nonzeros <= fit.nonzeros
    same(objective, clean.point, point)
    # Two kinks and a line say all that multiples of two kinks say.
    assert clean.nonzeros <= 2 * 4 + 3 + 1


@pytest.mark.parametrize("seed", range(4))
def test_noise_that_is_not_explained_rises_by_no_more_than_is_allowed(seed: int) -> None:
    objective, fit = explained(
        network([(1, KINK), (1, HALF), (-1, OTHER), (1, (1, 0, 0, -9))], (0, 1, 0), 1.0)
    )
    noise = torch.from_numpy(np.random.default_rng(seed).standard_normal((len(X), 1)))
    objective = replace(objective, data=Data(X, objective.data.targets + noise, dtype=torch.float64))
    fit = measured(objective, fit.point)
    clean = cleaned(objective, fit, CLEAN, NEWTON)
    assert clean.nonzeros <= fit.nonzeros - 4
    assert clean.value <= fit.value * (1 + 4 * CLEAN.share)


@pytest.mark.parametrize("near", CLEAN.collinear)
def test_merging_is_exact_where_kinks_are_the_same(near: float) -> None:
    for name in ("duplicates", "multiples", "a larger multiple subtracted", "three of one kink"):
        objective, fit = explained(REWRITTEN[name][0])
        merged = _merged(objective, fit.point, near)
        live = objective.layout.pairs(merged.w.indices[objective.layout.split(merged.w.indices)[0]], 0)[0]
        assert len(set(live.tolist())) == 1
        same(objective, merged, fit.point)


def test_merging_is_for_kinks_that_are_near() -> None:
    tilted = (1.0, 2.0, 0.01, 0.1)
    point = network([(1, KINK), (1, tilted)])
    objective, _ = explained(point)
    assert _merged(objective, point, 1e-6).w.nonzeros == point.w.nonzeros
    assert _merged(objective, point, 1e-3).w.nonzeros == 4


def test_what_cancels_but_for_rounding_leaves_no_neuron() -> None:
    tenths = [tuple(factor * part for part in KINK) for factor in (0.1, 0.2, 0.3)]
    point = network([(1, tenths[0]), (1, tenths[1]), (-1, tenths[2])], direct=(0, 0, 1))
    objective, _ = explained(point)
    assert _merged(objective, point, 1e-6).w.nonzeros == 1


def test_opposites_are_not_merged_where_there_is_no_room_for_a_line() -> None:
    point = network([(1, KINK), (-1, OPPOSITE)])
    objective, _ = explained(point)
    layout = replace(objective.layout, direct=False)
    w = SparseVector(point.w.indices, point.w.values, layout.size)
    merged = _merged(replace(objective, layout=layout), Point(w, point.signs), 1e-6)
    assert torch.equal(merged.w.indices, w.indices)
    assert torch.equal(merged.w.values, w.values)


def test_turning_keeps_outputs_and_stops_where_nothing_cancels() -> None:
    for sign in (1.0, -1.0):
        written = network([(1, OTHER), (sign, OPPOSITE)], (sign, 2 * sign, 0), 2.0)
        objective, _ = explained(written)
        turned = _turned(objective, written)
        assert turned.w.nonzeros == written.w.nonzeros - 2
        torch.testing.assert_close(
            outputs(objective, turned), outputs(objective, written), rtol=0, atol=1e-12
        )
        again = _turned(objective, turned)
        assert torch.equal(again.w.indices, turned.w.indices)
        assert torch.equal(again.w.values, turned.w.values)


def without_biases(neurons: list[tuple[float, ...]], direct: tuple[float, ...]) -> tuple[Relu, Point]:
    """Give a network of added neurons that has no biases, and an objective that it explains."""
    layout = Layout((3, len(neurons), 1), bias=False, fused=True, direct=True)
    grid = torch.tensor([*neurons, direct], dtype=torch.float64)
    point = Point(SparseVector.from_dense(grid.view(-1)), torch.ones(len(neurons), dtype=torch.float64))
    blank = Relu(Data(X, torch.zeros(len(X), 1), dtype=torch.float64), layout, SquaredError())
    return replace(blank, data=Data(X, outputs(blank, point), dtype=torch.float64)), point


def test_neurons_without_biases_turn_round_several_at_once() -> None:
    first, second, third = (1.0, 2.0, 3.0), (-1.0, 1.0, 0.5), (2.0, -1.0, 1.0)
    # Both of the first two are on the wrong side, and either alone leaves as many direct connections.
    direct = tuple(-(one + two) for one, two in zip(first, second, strict=True))
    objective, point = without_biases([first, second, third], direct)
    turned = _turned(objective, point)
    assert turned.w.nonzeros == 9
    same(objective, turned, point)
    assert cleaned(objective, Fit(point, objective.value(point)), CLEAN, NEWTON).nonzeros == 9


@pytest.mark.parametrize("rows", [50, 5000])
def test_weights_that_fit_rounding_alone_go_whether_some_rows_or_all_decide(rows: int) -> None:
    X = np.random.default_rng(0).standard_normal((1000, 6)).astype(np.float32)
    layout = Layout((6, 5, 1), bias=False, fused=True)
    grid = torch.zeros(5, 6, dtype=torch.float64)
    grid[0, :3], grid[1, 3:5] = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([1.0, 1.5])
    signs = torch.ones(5, dtype=torch.float64)
    planted = Point(SparseVector.from_dense(grid.view(-1)), signs)
    blank = Relu(Data(X, torch.zeros(1000, 1), dtype=torch.float64), layout, SquaredError())
    y = blank.run(planted).forward(torch.from_numpy(X).double()).output.float()
    objective = replace(blank, data=Data(X, y, dtype=torch.float64))
    full = refit(objective, measured(objective, planted.at(torch.arange(12))), 20, NEWTON)
    assert full.nonzeros == 12
    clean = cleaned(objective, full, replace(CLEAN, rows=rows), NEWTON)
    assert clean.nonzeros == 5
    assert torch.equal(clean.point.w.indices, planted.w.indices)
    assert clean.value <= 1.5 * full.value


ORIGINS = torch.tensor([5.0, 0.0, -2.0], dtype=torch.float64)


def shifted(point: Point, noise: float = 0.0) -> tuple[Relu, Fit]:
    """Give an objective whose first and last input were moved, with targets that were centred at 3."""
    objective, _ = explained(point, centred=True)
    data = objective.data
    rows = torch.from_numpy(np.random.default_rng(1).standard_normal((len(X), 1)))
    objective = replace(
        objective,
        data=Data(X, data.targets + noise * rows, dtype=torch.float64),
        origins=ORIGINS,
        middle=torch.full((1,), 3.0, dtype=torch.float64),
    )
    return objective, measured(objective, point)


def raw_count(point: Point) -> int:
    """Count nonzeros with inputs and targets written in raw units."""
    whole = point.w.to_dense()
    grid, constant, direct = whole[: 4 * HIDDEN].view(HIDDEN, 4), whole[4 * HIDDEN], whole[4 * HIDDEN + 1 :]
    biases = grid[:, 3] - grid[:, :3] @ ORIGINS
    constant = constant - direct @ ORIGINS + 3.0
    weights = int((grid[:, :3] != 0).sum() + (direct != 0).sum())
    return weights + int((biases.abs() > 1e-6).sum()) + int(constant.abs() > 1e-6)


# Through zero in raw units are the first neuron (5 - 2 * 2 = 1) and the output (5 - 3 = 2).
RAW = {
    "both through zero": (network([(1, (1, 1, 2, 1)), (1, (0, 1, 0, 0.1))], (1, 0, 0), 2.0), 6),
    "neither": (network([(1, (1, 1, 2, 0.5)), (1, (0, 1, 0, 0.1))], (1, 0, 0), 1.0), 8),
    "the neuron alone": (network([(1, (1, 1, 2, 1)), (1, (0, 1, 0, 0.1))], (1, 0, 0), 1.0), 7),
    "the output alone": (network([(1, (1, 1, 2, 0.5)), (1, (0, 1, 0, 0.1))], (1, 0, 0), 2.0), 7),
}


@pytest.mark.parametrize("name", RAW)
def test_nonzeros_are_counted_in_raw_units(name: str) -> None:
    point, nonzeros = RAW[name]
    objective, fit = shifted(point)
    assert raw_count(point) == nonzeros
    assert raw_nonzeros(objective, fit.point) == nonzeros


@pytest.mark.parametrize("name", RAW)
def test_biases_a_little_off_go_through_zero_and_others_stay(name: str) -> None:
    point, nonzeros = RAW[name]
    objective, fit = shifted(point)
    bias = objective.layout.is_bias(fit.point.w.indices)
    off = fit.point.with_values(fit.point.w.values + 1e-13 * bias)
    assert raw_nonzeros(objective, off) == 8
    through = through_zero(objective, measured(objective, off), CLEAN)
    assert raw_nonzeros(objective, through.point) == nonzeros
    assert through.value == objective.value(through.point)
    torch.testing.assert_close(through.point.w.values, fit.point.w.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", RAW)
def test_an_accident_is_no_more_than_some_rows_lose(name: str) -> None:
    point, nonzeros = RAW[name]
    objective, fit = shifted(point, noise=0.1)
    downhill = -objective.curvature(fit.point)[1] * objective.layout.is_bias(fit.point.w.indices)
    fit = measured(objective, fit.point.with_values(fit.point.w.values + 0.1 * downhill))
    assert raw_nonzeros(objective, through_zero(objective, fit, CLEAN).point) == 8
    through = through_zero(objective, fit, CLEAN, CLEAN.accident)
    assert raw_nonzeros(objective, through.point) == nonzeros
    assert fit.value < through.value <= fit.value * (1 + CLEAN.accident / len(X)) or nonzeros == 8


def test_an_accident_is_counted_in_mean_losses_of_one_row() -> None:
    objective, fit = shifted(RAW["the output alone"][0], noise=0.1)
    place = torch.searchsorted(fit.point.w.indices, objective.layout.output_biases)
    # The curvature of a constant is one, so this is its best value.
    values = fit.point.w.values.index_add(0, place, -objective.curvature(fit.point)[1][place])
    best = measured(objective, fit.point.with_values(values))
    cost = (fit.value / best.value - 1) * len(X)
    assert cost > 0.01
    for accident, nonzeros in ((0.99 * cost, 8), (1.01 * cost, 7)):
        through = through_zero(objective, best, CLEAN, accident)
        assert raw_nonzeros(objective, through.point) == nonzeros
