"""Networks: value, gradient and curvature are those of the dense network that autograd differentiates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from dense import CASES, NetworkCase, dense_network, random_point
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective import data as data_module
from thresher.objective.data import Batch, Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.objective.running import Point, Running

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def outputs_of(case: NetworkCase, point: Point, X: Tensor) -> Tensor:
    """Give the outputs of the dense network."""
    return dense_network(case.layout, point, case.absolute, X)(point.w.values)


def mean_loss(case: NetworkCase, objective: Relu, point: Point) -> tuple[Tensor, Tensor]:
    """Give the values held as a leaf, and the mean loss of the dense network there."""
    batch = objective.data.batch(slice(0, objective.data.rows))
    values = point.w.values.double().clone().requires_grad_()
    output = dense_network(case.layout, point.to(torch.float64), case.absolute, batch.X.double())(values)
    share = batch.share.double()
    return values, (case.loss.value(output, batch.y) * share).sum()


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_forward_pass_gives_what_the_dense_network_gives(case: NetworkCase, dtype: torch.dtype) -> None:
    X = torch.from_numpy(case.rows()[0]).to(dtype)
    point = case.point(dtype=dtype)
    run = Running(case.layout, point, case.absolute).forward(X)
    assert run.output.dtype is dtype
    close(run.output, outputs_of(case, point, X))


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_the_gradient_is_that_of_autograd(case: NetworkCase, dtype: torch.dtype) -> None:
    objective, point = case.objective(dtype=dtype), case.point(dtype=dtype)
    values, loss = mean_loss(case, objective, point)
    loss.backward()
    batch = objective.data.batch(slice(0, objective.data.rows))
    value, gradient = objective.batch_gradient(objective.run(point), batch)
    assert gradient.dtype is dtype
    assert float(value) == pytest.approx(loss.item(), rel=1e-5 if dtype is torch.float32 else 1e-12)
    assert values.grad is not None
    close(gradient, values.grad.to(dtype))


@every_case
def test_the_jacobian_is_that_of_autograd(case: NetworkCase) -> None:
    X, point = torch.from_numpy(case.rows()[0]), case.point()
    running = Running(case.layout, point, case.absolute)
    expected = torch.autograd.functional.jacobian(
        dense_network(case.layout, point, case.absolute, X), point.w.values
    )
    close(running.jacobian(running.forward(X)), expected)


@every_case
@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_the_curvature_is_that_of_gauss_and_newton(case: NetworkCase, alpha: float) -> None:
    objective, point = case.objective(alpha=alpha), case.point()
    batch = objective.data.batch(slice(0, objective.data.rows))
    network = dense_network(case.layout, point, case.absolute, batch.X)
    J = torch.autograd.functional.jacobian(network, point.w.values)  # (rows, outputs, held)
    roots = case.loss.scaled(network(point.w.values), batch.y, J)
    expected = torch.einsum("r,rok,rol->kl", batch.share, roots, roots)
    penalised = (~case.layout.is_bias(point.w.indices)).double()
    expected += torch.diag(alpha * penalised)
    values, loss = mean_loss(case, objective, point)
    (loss + 0.5 * alpha * (penalised * values.square()).sum()).backward()
    H, g = objective.curvature(point)
    close(H, expected)
    assert values.grad is not None
    close(g, values.grad)
    rough, same = objective.curvature(objective.run(point), rough=True)
    assert torch.allclose(rough, H, rtol=1e-4, atol=1e-5 * float(H.abs().max().clamp(min=1)))
    close(same, g)


@pytest.mark.parametrize("case", [case for case in CASES if case.bias and case.loss.name != "huber"], ids=str)
def test_the_curvature_is_the_second_derivative_in_the_last_weights(case: NetworkCase) -> None:
    # Outputs are linear in the weights of the last layer and in direct connections, so there nothing is
    # approximate. (Huber's curvature is that of the parabola above it.)
    objective, point, layout = case.objective(), case.point(), case.layout
    last = point.w.indices >= layout.offsets[layout.layers - 1]
    network = dense_network(
        layout, point, case.absolute, objective.data.batch(slice(0, objective.data.rows)).X
    )

    def loss(part: Tensor) -> Tensor:
        values = point.w.values.clone()
        values[last] = part
        return (case.loss.value(network(values), objective.data.targets) * objective.data.share).sum()

    expected = torch.autograd.functional.hessian(loss, point.w.values[last])
    close(objective.curvature(point)[0][last][:, last], expected)


@every_case
def test_a_network_serves_other_values_on_its_support(case: NetworkCase) -> None:
    X, point = torch.from_numpy(case.rows()[0]), case.point()
    other = point.with_values(torch.flip(point.w.values, [0]) + 1)
    running = Running(case.layout, point, case.absolute)
    before = running.forward(X).output
    moved = running.at(other.w.values)
    assert torch.equal(moved.forward(X).output, Running(case.layout, other, case.absolute).forward(X).output)
    assert torch.equal(moved.point.w.values, other.w.values)
    assert torch.equal(running.forward(X).output, before)
    slope = torch.ones_like(before)
    anew = Running(case.layout, other, case.absolute)
    close(moved.gradient(moved.forward(X), slope), anew.gradient(anew.forward(X), slope))
    close(moved.jacobian(moved.forward(X)), anew.jacobian(anew.forward(X)))


def blocks_of(objective: Relu, point: Point, batch: Batch) -> Iterator[tuple[int, Tensor]]:
    """Give the derivatives at every place of every layer."""
    running = objective.run(point)
    run = running.forward(batch.X)
    for number, fed, delta in running.deltas(run, objective.slope(run.output, batch)):
        places = objective.layout.shapes[number][1]
        for first, columns, block in objective.layer_blocks(number, fed, delta):
            assert torch.equal(columns, torch.arange(places)), "dense rows have all columns"
            yield objective.layout.offsets[number] + first * places, block.view(-1)


@every_case
@pytest.mark.parametrize("limit", [1, 2**20])
def test_streamed_gradients_are_those_of_all_places(case: NetworkCase, limit: int) -> None:
    objective, point = replace(case.objective(), memory_limit=limit), case.point()
    everywhere = point.at(torch.arange(case.layout.size))
    _, loss = (pair := mean_loss(case, objective, everywhere))
    loss.backward()
    expected = pair[0].grad
    assert expected is not None
    batch, streamed = (
        objective.data.batch(slice(0, objective.data.rows)),
        torch.full_like(expected, torch.nan),
    )
    for start, block in blocks_of(objective, point, batch):
        assert block.numel() <= max(limit // 64, max(places for _, places in case.layout.shapes))
        streamed[start : start + block.numel()] = block
    close(streamed, expected)


@every_case
@pytest.mark.parametrize("count", [1, 5])
def test_new_places_are_those_with_the_largest_gradients(case: NetworkCase, count: int) -> None:
    objective, point = case.objective(), case.point()
    free = torch.ones(case.layout.size, dtype=torch.bool)
    free[point.w.indices] = False
    batch = objective.data.batch(slice(0, objective.data.rows))
    gradient = torch.zeros(case.layout.size, dtype=torch.float64)
    for start, block in blocks_of(objective, point, batch):
        gradient[start : start + block.numel()] = block
    gradient = gradient * free
    found = objective.largest_gradients(point, batch, count)
    assert not torch.isin(found.indices, point.w.indices).any()
    expected = gradient.abs().topk(min(count, case.layout.size)).values
    close(found.values.double().abs().sort(descending=True).values, expected[expected > 0])
    close(found.values.double(), gradient[found.indices])


@every_case
def test_sums_do_not_depend_on_the_size_of_chunks(case: NetworkCase, monkeypatch: pytest.MonkeyPatch) -> None:
    point = case.point()

    def everything() -> tuple[float, Tensor, Tensor, Tensor]:
        objective = case.objective(alpha=0.1)
        return objective.value(point), objective.row_values(point), *objective.curvature(point)

    whole = everything()
    for name in ("LEAST_ROWS", "MOST_ROWS", "LEAST_WIDE_ROWS"):
        monkeypatch.setattr(data_module, name, 7)
    pieces = everything()
    assert pieces[0] == pytest.approx(whole[0], rel=1e-12)
    for one, two in zip(pieces[1:], whole[1:], strict=True):
        close(one, two)


@every_case
def test_a_weight_equals_repeats(case: NetworkCase) -> None:
    X, y, _ = case.rows()
    times = np.arange(len(X)) % 4
    weighted = Data(X, y, torch.from_numpy(times.astype(np.float64)), dtype=torch.float64)
    repeated = Data(
        np.repeat(X, times, 0), y.repeat_interleave(torch.from_numpy(times), 0), dtype=torch.float64
    )
    point = case.point()
    one, two = (
        Relu(data, case.layout, case.loss, 0.2 / data.amount, absolute=case.absolute)
        for data in (weighted, repeated)
    )
    assert one.value(point) == pytest.approx(two.value(point), rel=1e-12)
    for first, second in zip(one.curvature(point), two.curvature(point), strict=True):
        close(first, second)


def test_the_penalty_is_the_same_beside_a_sum_over_any_rows() -> None:
    case = CASES[0]
    objective = case.objective(count=40, alpha=0.5)
    half = objective.on(objective.data.take(np.arange(20)))
    assert half.alpha * half.data.amount == pytest.approx(objective.alpha * objective.data.amount)


def test_biases_are_not_penalised() -> None:
    layout = Layout((2, 1, 1), fused=True)
    point = Point(SparseVector(torch.arange(4), torch.tensor([1.0, 2.0, 30.0, 40.0]), 4), torch.ones(1))
    data = Data(np.zeros((1, 2)), torch.full((1, 1), 70.0), dtype=torch.float64)
    objective = Relu(data, layout, SquaredError(), alpha=0.1)
    assert objective.value(point.to(torch.float64)) == pytest.approx(0.05 * (1 + 4))


# Biases that raw units bring along.


def moved_objective(layout: Layout, origins: list[float] | None, middle: list[float] | None) -> Relu:
    """Give an objective of three inputs in moved coordinates."""
    data = Data(np.zeros((2, 3)), torch.zeros(2, layout.widths[-1]), dtype=torch.float64)
    as_tensor = [None if part is None else torch.tensor(part).double() for part in (origins, middle)]
    return Relu(data, layout, SquaredError(), 0.0, *as_tensor)


def test_a_neuron_that_reads_a_moved_input_holds_a_bias() -> None:
    layout = Layout((3, 2, 1), fused=True, direct=True)
    objective = moved_objective(layout, [0.0, 5.0, 0.0], None)
    first = layout.position(0, torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert objective.closed(first).tolist() == [*first.tolist(), int(layout.biases(0, torch.tensor([1])))]
    direct = layout.position(2, torch.tensor([0]), torch.tensor([1]))
    assert set(objective.closed(direct).tolist()) == {int(direct), *layout.output_biases.tolist()}
    still = layout.position(2, torch.tensor([0]), torch.tensor([2]))
    assert objective.closed(still).tolist() == still.tolist()


def test_moved_targets_hold_output_biases() -> None:
    layout = Layout((3, 2, 2), direct=True)
    objective = moved_objective(layout, None, [1.0, 2.0])
    nothing = torch.zeros(0, dtype=torch.int64)
    assert torch.equal(objective.closed(nothing), layout.output_biases)
    without = moved_objective(replace(layout, bias=False), [1.0, 1.0, 1.0], [1.0, 2.0])
    assert without.closed(nothing).numel() == 0


@pytest.mark.parametrize(
    "layout", [Layout((3, 4, 1), fused=True, direct=True), Layout((3, 4, 3, 2), direct=True)]
)
def test_closing_twice_adds_nothing_more(layout: Layout) -> None:
    objective = moved_objective(layout, [0.0, 5.0, -1.0], [1.0] * layout.widths[-1])
    for seed in range(10):
        once = objective.closed(random_point(layout, 0.3, seed).w.indices)
        assert torch.equal(objective.closed(once), once)
        assert torch.equal(once, once.unique())


@pytest.mark.parametrize(
    "layout", [Layout((3, 4, 1), fused=True, direct=True), Layout((3, 4, 2), direct=True)]
)
def test_raw_biases_are_zero_in_raw_units(layout: Layout) -> None:
    origins, middle = [0.0, 5.0, -1.0], [3.0, -2.0][: layout.widths[-1]]
    objective = moved_objective(layout, origins, middle)
    point = random_point(layout, 0.7, 4)
    point = point.at(objective.closed(point.w.indices))
    places, zeros = objective.raw_biases(point)
    assert torch.isin(places, point.w.indices).all()
    values = point.w.values.clone()
    values[torch.searchsorted(point.w.indices, places)] = zeros
    # At raw zero an input is minus its origin, and the raw output is the output plus what targets lost.
    raw_zero = -torch.tensor([origins], dtype=torch.float64)
    summed = Running(layout, point.with_values(values)).blocks[0].forward(raw_zero)
    given = layout.is_bias(places) & (places < layout.offsets[1])
    neurons = layout.pairs(places[given], 0)[0]
    assert summed[0, neurons].abs().max() < 1e-12
    outer = places[places >= layout.offsets[1]]
    if outer.numel():
        output = layout.pairs(outer, layout.layers - 1)[0]
        direct = Running(layout, point).blocks[-1].forward(raw_zero)[0, output]
        raw = direct + point.with_values(values).w.at(outer) + torch.tensor(middle).double()[output]
        assert raw.abs().max() < 1e-12


# Ways from inputs to outputs.


def test_places_off_every_path_are_not_alive() -> None:
    layout = Layout((2, 3, 2, 1))

    def at(block: int, neuron: int, feature: int) -> int:
        return int(layout.position(block, torch.tensor([neuron]), torch.tensor([feature])))

    alive = {at(0, 0, 1), at(1, 1, 0), at(2, 0, 1), at(2, 0, 2), at(1, 1, 3)}
    dead_end = {at(0, 1, 0), at(1, 0, 1), at(0, 1, 2)}  # nobody reads neuron 0 of the second layer
    dead_start = {at(1, 1, 2)}  # neuron 2 of the first layer reads nothing
    indices = torch.tensor(sorted(alive | dead_end | dead_start))
    objective = moved_objective(replace(layout, widths=(3, 3, 2, 1)), None, None)
    objective = replace(objective, layout=layout)
    assert set(indices[objective.alive(indices)].tolist()) == alive


@every_case
def test_what_is_not_alive_changes_nothing(case: NetworkCase) -> None:
    X = torch.from_numpy(case.rows()[0])
    for seed in range(3):
        point = random_point(case.layout, 0.25, seed)
        alive = case.objective().alive(point.w.indices)
        whole = Running(case.layout, point, case.absolute).forward(X).output
        rest = Running(case.layout, point.keep(alive), case.absolute).forward(X).output
        # Biases of neurons that read nothing give a constant, which is alive.
        close(rest, whole)


def close(one: Tensor, two: Tensor) -> None:
    tolerance = 2e-4 if one.dtype is torch.float32 else 1e-10
    torch.testing.assert_close(one, two, rtol=tolerance, atol=tolerance)
