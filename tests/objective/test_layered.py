"""Layered networks: positions, products and gradients equal those of dense networks."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import normal
from torch import Tensor

from thresher.objective.design import Design
from thresher.objective.layered import Held, LayeredObjective, Layout, erdos_renyi
from thresher.objective.losses import CrossEntropy, Logistic, Loss, SquaredError
from thresher.solvers import layered

# The test of silence below is the one place where torch's remark on its sparse tensors matters.
ROWS = 37

LAYOUTS = {
    "one hidden layer": Layout((6, 5, 3), bias=False),
    "with biases": Layout((6, 5, 3), bias=True),
    "two hidden layers": Layout((6, 5, 4, 3), bias=True),
    "three hidden layers, no biases": Layout((9, 3, 7, 2, 4), bias=False),
    "fused": Layout((6, 5, 1), bias=True, fused=True),
    "fused, two hidden layers, no biases": Layout((6, 4, 5, 1), bias=False, fused=True),
    "one of each": Layout((1, 1, 1), bias=True),
}

layouts = st.builds(
    lambda widths, bias, fused: Layout((*widths[:-1], 1) if fused else tuple(widths), bias, fused),
    st.lists(st.integers(1, 5), min_size=3, max_size=5),
    st.booleans(),
    st.booleans(),
)


def dense_layers(layout: Layout, w: Tensor) -> list[tuple[Tensor, Tensor]]:  # (inputs, neurons), (neurons,)
    """Cut a vector of all weights into matrices and biases, by the words of the layout's docstring."""
    layers, position = [], 0
    for layer, (inputs, neurons) in enumerate(pairwise(layout.widths)):
        if layout.fused and layer == len(layout.widths) - 2:
            inputs = 0
        places = inputs + int(layout.bias)
        rows = w[position : position + neurons * places].view(neurons, places)
        bias = rows[:, inputs] if layout.bias else torch.zeros(neurons, dtype=w.dtype)
        layers.append((rows[:, :inputs].T, bias))
        position += neurons * places
    assert position == layout.size == w.numel()
    return layers


def dense_output(
    layout: Layout, w: Tensor, X: Tensor, factor: Tensor | None, signs: Tensor | None
) -> Tensor:  # (rows, outputs)
    """Run the dense network that a vector of all weights stands for."""
    fed = X if factor is None else X * factor
    layers = dense_layers(layout, w)
    for weights, bias in layers[:-1]:
        fed = torch.relu(fed @ weights + bias)
    weights, bias = layers[-1]
    return (fed @ signs)[:, None] + bias if signs is not None else fed @ weights + bias


@dataclass(frozen=True, eq=False)
class Case:
    """A sparse network on some data, and all it takes to compute it densely."""

    objective: LayeredObjective
    indices: Tensor
    values: Tensor

    @property
    def held(self) -> Held:
        """The network that holds the weights."""
        return self.objective.hold(self.indices, self.values.clone())

    @property
    def data(self) -> Tensor:
        """The data as it is."""
        return self.objective.design.chunk(0, ROWS)

    @property
    def rows(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """All rows, with targets and weights."""
        return self.objective.read(np.arange(ROWS))

    def dense(self) -> Tensor:
        """Write all weights out."""
        w = torch.zeros(self.objective.size, dtype=self.values.dtype)
        w[self.indices] = self.values
        return w

    def truth(self, w: Tensor) -> Tensor:  # (rows, outputs)
        """Run the dense network of some weights."""
        objective = self.objective
        return dense_output(objective.layout, w, self.data, objective.design.factor, objective.signs)

    def mean_loss(self, w: Tensor) -> Tensor:
        """Compute the weighted mean of the loss in a way that can be differentiated."""
        output, y = self.truth(w), self.objective.y
        if isinstance(self.objective.loss, SquaredError):
            each = 0.5 * (output - y).square().sum(1)
        elif isinstance(self.objective.loss, Logistic):
            each = torch.nn.functional.binary_cross_entropy_with_logits(output, y, reduction="none").sum(1)
        else:
            each = torch.nn.functional.cross_entropy(output, y.argmax(1), reduction="none")
        weight = torch.ones(ROWS).double() if self.objective.weight is None else self.objective.weight
        return (each * weight).sum() / weight.sum()

    def gradient(self) -> Tensor:  # (size,)
        """Differentiate the mean loss at every place."""
        w = self.dense().requires_grad_()
        (out,) = torch.autograd.grad(self.mean_loss(w), w)
        return out


def case_of(
    layout: Layout,
    share: float = 0.5,
    scaled: bool = False,
    weighted: bool = False,
    loss: Loss | None = None,
    seed: int = 0,
    memory_limit: int = 2**20,
) -> Case:
    """Draw a sparse network, and data for it."""
    rng = np.random.default_rng(seed)
    X = normal(ROWS, layout.widths[0], seed=seed + 1)
    outputs = layout.widths[-1]
    scale = np.exp2(rng.integers(-3, 4, layout.widths[0])) * 1.3 if scaled else None
    if loss is None:
        loss = SquaredError()
    y = rng.standard_normal((ROWS, outputs))
    if not loss.quadratic:
        y = np.eye(outputs)[y.argmax(1)] if outputs > 1 else (y > 0).astype(float)
    signs = torch.from_numpy(rng.choice([-1.0, 1.0], layout.widths[-2])) if layout.fused else None
    weight = torch.from_numpy(rng.integers(0, 4, ROWS).astype(float)) if weighted else None
    objective = LayeredObjective(
        Design(X, scale, False, torch.float64),
        layout,
        torch.from_numpy(y),
        loss,
        weight,
        signs=signs,
        memory_limit=memory_limit,
    )
    indices = torch.from_numpy(np.flatnonzero(rng.random(layout.size) < share))
    return Case(objective, indices, torch.from_numpy(rng.standard_normal(len(indices))))


@pytest.fixture(params=["dense products", "sparse products", "sparse products in pieces"])
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force one way of multiplying, whatever the size."""
    name: str = request.param
    dense = name == "dense products"
    monkeypatch.setattr(layered, "DENSE_SIZE", 2**30 if dense else 0)
    monkeypatch.setattr(layered, "DENSE_SHARE", 0)
    if name.endswith("pieces"):
        monkeypatch.setattr(layered, "PAIR_NUMBERS", 2 * ROWS)
    return name


any_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
# With few weights most columns are not used, which is another way through the products.
any_share = pytest.mark.parametrize("share", [0.0, 0.15, 0.5, 1.0])


# Positions.


@given(layouts)
def test_every_position_is_one_place_of_one_layer(layout: Layout) -> None:
    last = len(layout.widths) - 2
    expected = [
        (layer, neuron, feature)
        for layer, (inputs, neurons) in enumerate(pairwise(layout.widths))
        for neuron in range(neurons)
        for feature in range((0 if layout.fused and layer == last else inputs) + int(layout.bias))
    ]
    indices = torch.arange(layout.size)
    found = []
    for layer, piece in enumerate(layout.split(indices)):
        neuron, feature = layout.pairs(indices[piece], layer)
        found += [(layer, *pair) for pair in zip(neuron.tolist(), feature.tolist(), strict=True)]
    assert found == expected
    assert len(set(found)) == layout.size
    assert layout.layers == len(layout.shapes) == len(layout.widths) - 1


@given(layouts, st.data())
def test_splitting_some_positions_loses_none(layout: Layout, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.integers(0, layout.size - 1))) if layout.size else set()
    indices = torch.tensor(sorted(chosen), dtype=torch.int64)
    pieces = layout.split(indices)
    assert torch.equal(torch.cat([indices[piece] for piece in pieces]), indices)
    for layer, piece in enumerate(pieces):
        first, end = layout.offsets[layer], layout.offsets[layer + 1]
        assert all(first <= index < end for index in indices[piece].tolist())


def test_the_size_counts_weights_and_biases_but_not_signs() -> None:
    assert Layout((784, 100, 10), bias=False).size == 784 * 100 + 100 * 10
    assert Layout((784, 300, 100, 10)).size == 785 * 300 + 301 * 100 + 101 * 10
    assert Layout((784, 100, 1), fused=True).size == 785 * 100 + 1
    assert Layout((784, 100, 1), bias=False, fused=True).size == 784 * 100
    assert Layout((10**6, 10**6, 10)).size == (10**6 + 1) * (10**6 + 10)


# Products.


@any_layout
@any_share
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
def test_forward_equals_the_dense_network(layout: Layout, share: float, scaled: bool, products: str) -> None:
    case = case_of(layout, share, scaled)
    fed = case.held.forward(case.data)
    assert [tuple(values.shape) for values in fed] == [(ROWS, width) for width in layout.widths]
    torch.testing.assert_close(fed[-1], case.truth(case.dense()), rtol=1e-12, atol=1e-12)
    assert all(bool((hidden >= 0).all()) for hidden in fed[1:-1])


@any_layout
@any_share
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
def test_the_gradient_of_what_is_held_equals_the_dense_one(
    layout: Layout, share: float, scaled: bool, products: str
) -> None:
    case = case_of(layout, share, scaled)
    held = case.held
    fed = held.forward(case.data)
    gradient = held.gradient(fed, case.objective.slope(fed[-1], case.objective.y, None))
    torch.testing.assert_close(gradient, case.gradient()[case.indices], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("two hidden layers", SquaredError()),
        ("two hidden layers", CrossEntropy()),
        ("fused", SquaredError()),
        ("fused", Logistic()),
    ],
)
def test_gradients_hold_for_every_loss_and_for_weights(
    name: str, loss: Loss, weighted: bool, products: str
) -> None:
    case = case_of(LAYOUTS[name], 0.6, scaled=True, weighted=weighted, loss=loss)
    held, (X, y, weight) = case.held, case.rows
    fed = held.forward(X)
    gradient = held.gradient(fed, case.objective.slope(fed[-1], y, weight))
    torch.testing.assert_close(gradient, case.gradient()[case.indices], rtol=1e-10, atol=1e-12)
    mean = float(case.mean_loss(case.dense())) * case.objective.total
    assert case.objective.value(held) == pytest.approx(mean, rel=1e-9)


def test_the_gradient_is_that_of_finite_differences() -> None:
    case = case_of(LAYOUTS["two hidden layers"], 0.6, scaled=True)
    objective, step = case.objective, 1e-6
    held = case.held
    fed = held.forward(case.data)
    gradient = held.gradient(fed, objective.slope(fed[-1], objective.y, None))
    for place in range(case.indices.numel()):
        moved = torch.zeros_like(case.values)
        moved[place] = step
        up, down = (
            objective.value(objective.hold(case.indices, case.values + sign * moved)) for sign in (1, -1)
        )
        expected = (up - down) / (2 * step * ROWS)
        assert float(gradient[place]) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_values_may_be_changed_in_place(products: str) -> None:
    case = case_of(LAYOUTS["two hidden layers"], 0.4)
    held = case.held
    held.forward(case.data)
    held.values.mul_(-0.5)
    expected = case.truth(-0.5 * case.dense())
    torch.testing.assert_close(held.forward(case.data)[-1], expected, rtol=1e-12, atol=1e-12)


def test_the_data_is_left_alone(products: str) -> None:
    case = case_of(LAYOUTS["with biases"], 0.5, scaled=True)
    X, before = case.data, case.data.clone()
    held = case.held
    fed = held.forward(X)
    held.gradient(fed, torch.ones_like(fed[-1]))
    assert torch.equal(X, before)


def test_float32_stays_float32(products: str) -> None:
    case = case_of(LAYOUTS["two hidden layers"], 0.5)
    held = Held(case.objective.layout, case.indices, case.values.float())
    fed = held.forward(case.data.float())
    gradient = held.gradient(fed, torch.ones_like(fed[-1]))
    assert fed[-1].dtype is gradient.dtype is torch.float32


def test_the_penalty_is_half_alpha_times_the_squares() -> None:
    case = case_of(LAYOUTS["with biases"])
    plain = case.objective.value(case.held)
    penalised = LayeredObjective(
        case.objective.design, case.objective.layout, case.objective.y, SquaredError(), alpha=0.7
    )
    expected = plain + 0.35 * float(case.values.square().sum())
    assert penalised.value(case.held) == pytest.approx(expected)


def test_sparse_products_are_silent() -> None:
    # In a process of its own, because torch says what it says only once.
    program = (
        "import torch\n"
        "from thresher.solvers import layered\n"
        "layered.DENSE_SIZE = layered.DENSE_SHARE = 0\n"
        "layout = layered.Layout((6, 5, 3), bias=False)\n"
        "held = layered.Held(layout, torch.arange(0, 45, 9), torch.ones(5))\n"
        "fed = held.forward(torch.ones(2, 6))\n"
        "held.gradient(fed, torch.ones(2, 3))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


# Gradients at every place, in blocks.


@any_layout
@pytest.mark.parametrize("memory_limit", [1, 300, 1000, 2**26])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_blocks_are_the_dense_gradient_with_zeros_where_weights_are_held(
    layout: Layout, memory_limit: int, share: float
) -> None:
    case = case_of(layout, share, scaled=True, weighted=True, memory_limit=memory_limit)
    expected = case.gradient()
    expected[case.indices] = 0
    found = torch.full((layout.size,), torch.nan, dtype=torch.float64)
    largest = 0
    for start, block in case.objective.gradient_blocks(case.held, case.rows):
        assert bool(found[start : start + block.numel()].isnan().all()), "blocks must not overlap"
        found[start : start + block.numel()] = block
        largest = max(largest, block.numel())
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    # No block is larger than the limit, unless one neuron alone is.
    assert largest <= max(memory_limit // 8, *(places for _, places in layout.shapes))


@given(st.integers(1, 5000), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_blocks_do_not_depend_on_the_memory_limit(memory_limit: int, seed: int) -> None:
    layout = LAYOUTS["two hidden layers"]

    def whole(limit: int) -> Tensor:
        case = case_of(layout, 0.3, seed=seed, memory_limit=limit)
        out = torch.zeros(layout.size, dtype=torch.float64)
        for start, block in case.objective.gradient_blocks(case.held, case.rows):
            out[start : start + block.numel()] = block
        return out

    torch.testing.assert_close(whole(memory_limit), whole(2**26), rtol=1e-12, atol=1e-14)


# Paths.


def on_a_path(layout: Layout, indices: list[int]) -> list[bool]:
    """Walk forwards from every weight to an output and backwards to an input or a bias, one by one."""
    edges, last = [], len(layout.widths) - 2
    for layer, piece in enumerate(layout.split(torch.tensor(indices, dtype=torch.int64))):
        part = torch.tensor(indices[piece], dtype=torch.int64)
        for neuron, feature in zip(*(side.tolist() for side in layout.pairs(part, layer)), strict=True):
            edges.append((layer, feature if feature < layout.inputs[layer] else None, neuron))

    def reaches_output(layer: int, neuron: int) -> bool:
        if layer == last or (layout.fused and layer == last - 1):
            return True
        return any(
            reaches_output(layer + 1, to) for at, source, to in edges if (at, source) == (layer + 1, neuron)
        )

    def is_reached(layer: int, source: int | None) -> bool:
        if layer == 0 or source is None:
            return True
        return any(is_reached(layer - 1, start) for at, start, to in edges if (at, to) == (layer - 1, source))

    return [is_reached(layer, source) and reaches_output(layer, to) for layer, source, to in edges]


@given(layouts, st.data())
@settings(max_examples=150, deadline=None)
def test_alive_are_the_weights_on_a_path(layout: Layout, data: st.DataObject) -> None:
    places = st.integers(0, max(0, layout.size - 1))
    chosen = sorted(data.draw(st.sets(places, max_size=12))) if layout.size else []
    indices = torch.tensor(chosen, dtype=torch.int64)
    signs = torch.ones(layout.widths[-2]) if layout.fused else None
    held = Held(layout, indices, torch.ones(len(chosen)), signs=signs)
    assert held.alive().tolist() == on_a_path(layout, chosen)


def test_weights_off_every_path_change_nothing() -> None:
    case = case_of(LAYOUTS["three hidden layers, no biases"], 0.4, seed=3)
    alive = case.held.alive()
    assert 0 < int(alive.sum()) < alive.numel()
    objective = case.objective
    without = objective.hold(case.indices[alive], case.values[alive])
    torch.testing.assert_close(without.forward(case.data)[-1], case.held.forward(case.data)[-1])


# The start's shares.


@given(layouts, st.integers(0, 200))
def test_shares_add_up_and_fit(layout: Layout, count: int) -> None:
    shares = erdos_renyi(layout, count)
    sizes = [neurons * places for neurons, places in layout.shapes]
    assert sum(shares) == min(count, layout.size)
    assert all(0 <= share <= size for share, size in zip(shares, sizes, strict=True))


def test_shares_grow_with_the_sides_and_not_with_the_area() -> None:
    layout = Layout((784, 300, 100, 10), bias=True)
    count = 2662
    shares = erdos_renyi(layout, count)
    sides = np.array([300 + 785, 100 + 301, 10 + 101])
    assert shares == pytest.approx(count * sides / sides.sum(), abs=len(sides))


@given(layouts, st.integers(0, 200))
def test_more_weights_never_mean_fewer_in_a_layer(layout: Layout, count: int) -> None:
    fewer, more = erdos_renyi(layout, count), erdos_renyi(layout, count + len(layout.widths) ** 2)
    assert all(one <= other + len(layout.widths) for one, other in zip(fewer, more, strict=True))
