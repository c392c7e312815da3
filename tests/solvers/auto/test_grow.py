"""Growing: never worse, never over the count, and kinks where they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dense import CASES, NetworkCase
from sklearn.datasets import load_digits

from thresher.device import from_host
from thresher.linear.vector import SparseVector
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import CrossEntropy, SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.grow import grow
from thresher.solvers.auto.newton import Fit, measured, refit
from thresher.solvers.auto.newton_tuning import NewtonTuning
from thresher.solvers.auto.tuning import GrowTuning
from thresher.solvers.auto.wide import alternating

GROW = GrowTuning()
two_layers = pytest.mark.parametrize(
    "case", [case for case in CASES if len(case.widths) == 3 and not case.absolute], ids=str
)


def nothing(objective: Relu) -> Fit:
    """Hold nothing but what moved targets bring along."""
    zero = SparseVector.zeros(objective.size, torch.float64)
    return measured(objective, Point(zero, alternating(objective.layout)))


@two_layers
@pytest.mark.parametrize("count", [1, 2, 7])
def test_growing_is_never_worse_and_never_over_its_count(case: NetworkCase, count: int) -> None:
    objective = case.objective(count=60, alpha=0.01)
    fit = nothing(objective)
    for _ in range(3):
        grown = grow(objective, fit, count, GROW)
        assert grown.nonzeros <= fit.nonzeros + count
        assert grown.value <= fit.value
        assert grown.value == pytest.approx(objective.value(grown.point), rel=1e-12)
        assert torch.isin(fit.point.w.indices, grown.point.w.indices).all()
        fit = refit(objective, grown, 4, NewtonTuning())


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_hinge_is_found_at_its_kink(sign: float, side: float) -> None:
    x = np.linspace(-1, 1, 101)
    X = np.stack([np.sin(40 * x), x], 1)
    y = torch.from_numpy(sign * np.maximum(side * (x - 0.3), 0))[:, None]
    # In moved coordinates every kink costs a bias, so that none is cheap but wrong.
    layout = Layout((2, 3, 1), fused=True)
    objective = Relu(Data(X, y, dtype=torch.float64), layout, SquaredError(), origins=torch.ones(2))
    fit = refit(objective, grow(objective, nothing(objective), 2, GROW), 20, NewtonTuning(helps=0.0), False)
    assert fit.nonzeros == 2
    assert fit.value < 1e-20
    weight, bias = fit.point.w.values.tolist()
    assert fit.point.w.indices.tolist()[0] % 3 == 1
    assert -bias / weight == pytest.approx(0.3)


def test_nothing_grows_where_everything_is_explained() -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    layout = Layout((3, 3, 1), fused=True, direct=True)
    objective = Relu(Data(X, torch.zeros(40, 1), dtype=torch.float64), layout, SquaredError())
    fit = nothing(objective)
    assert grow(objective, fit, 5, GROW).nonzeros == 0


def test_no_more_neurons_than_there_are() -> None:
    X = np.random.default_rng(0).standard_normal((80, 3))
    y = torch.from_numpy(np.sin(3 * X).sum(1))[:, None]
    layout = Layout((3, 2, 1), fused=True)
    objective = Relu(Data(X, y, dtype=torch.float64), layout, SquaredError())
    grown = grow(objective, nothing(objective), 30, GROW)
    assert grown.nonzeros <= layout.size


@pytest.mark.parametrize("away", [0.0, 1.0])
def test_a_neuron_is_grown_where_there_is_room_for_its_bias(away: float) -> None:
    X = np.random.default_rng(0).standard_normal((200, 3)) + 1.0
    y = torch.from_numpy(np.maximum(X[:, [1]] - away, 0))
    layout = Layout((3, 2, 1), fused=True)
    objective = Relu(Data(X, y, dtype=torch.float64), layout, SquaredError())
    biases = layout.biases(0, torch.arange(2))
    for room in (1, 2):
        grown = grow(objective, nothing(objective), room, GROW)
        assert grown.nonzeros <= room
        assert bool(torch.isin(biases, grown.point.w.indices).any()) == (room == 2 and away > 0)


def test_growing_gives_the_same_bits_whatever_memory_held_before() -> None:
    X, y = load_digits(n_class=10, return_X_y=True)
    layout = Layout((64, 4, 10))
    data = Data(X[:400], torch.from_numpy(y[:400, None]), dtype=torch.float64)
    objective = Relu(data, layout, CrossEntropy(10), alpha=0.01)
    start = grow(objective, nothing(objective), 30, GROW)
    kept = []
    draw = np.random.default_rng(0)
    for _ in range(6):
        # A factorisation that reads memory before it writes there reads these.
        junk = [from_host(draw.integers(0, 2, 10, dtype=np.int32)).clone() for _ in range(5000)]
        del junk
        grown = grow(objective, start, 30, GROW)
        kept.append((grown.point.w.indices.tolist(), grown.point.w.values.tolist()))
    assert all(one == kept[0] for one in kept)
