"""Adam on the weights held: torch's steps, a proximal L1 step, a budget that falls."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from dense import CASES, NetworkCase, dense_network
from torch import Tensor

from thresher.objective.relu import Relu
from thresher.solvers.auto.adam import Adam, AdamSchedule, falling, train

CASE = NetworkCase((4, 3, 1), fused=True, direct=True, weighted=True)
relu_cases = pytest.mark.parametrize("case", [case for case in CASES if len(case.widths) > 2], ids=str)


def schedule(**changes: object) -> AdamSchedule:
    """Plan a training at a constant rate, unless changes say otherwise."""
    plain = AdamSchedule(passes=30, first=0.05, last=0.05, warm_up=0, betas=(0.9, 0.99), epsilon=1e-8)
    return replace(plain, **changes)  # type: ignore[arg-type]


def mean_loss(objective: Relu, case: NetworkCase, values: Tensor) -> Tensor:  # ()
    """Give the mean loss of all rows as autograd can differentiate it."""
    data = objective.data
    X = data.read(slice(0, data.rows))
    output = dense_network(objective.layout, case.point(), case.absolute, X)(values)
    return objective.loss.value(output, data.targets) @ data.share


@relu_cases
@pytest.mark.parametrize("epsilon", [1e-8, 1e-3])
def test_steps_are_those_of_torch(case: NetworkCase, epsilon: float) -> None:
    objective, point = case.objective(), case.point()
    plan = schedule(epsilon=epsilon)
    values = point.w.values.clone().requires_grad_(True)
    truth = torch.optim.Adam([values], lr=0.05, betas=plan.betas, eps=epsilon)
    adam, batch = Adam(objective, point, plan, 10), objective.data.batch(slice(0, 40))
    for _ in range(10):
        before = mean_loss(objective, case, values)
        truth.zero_grad()
        before.backward()  # type: ignore[no-untyped-call]
        truth.step()
        loss = adam.step(batch)
        assert float(loss) == pytest.approx(float(before.detach()), rel=1e-9)
        torch.testing.assert_close(adam.values, values.detach(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bias", [True, False])
def test_the_squared_penalty_is_that_of_torch_and_spares_biases(bias: bool) -> None:
    case = replace(CASE, bias=bias)
    objective, point = case.objective(alpha=0.3), case.point()
    weight = ~objective.layout.is_bias(point.w.indices)
    assert bool(weight.all()) != bias
    values = point.w.values.clone().requires_grad_(True)
    truth = torch.optim.Adam([values], lr=0.05, betas=(0.9, 0.99), eps=1e-8)
    adam, batch = Adam(objective, point, schedule(), 10), objective.data.batch(slice(0, 40))
    for _ in range(10):
        truth.zero_grad()
        penalty = 0.15 * (values.square() * weight).sum()
        (mean_loss(objective, case, values) + penalty).backward()  # type: ignore[no-untyped-call]
        truth.step()
        adam.step(batch)
    torch.testing.assert_close(adam.values, values.detach(), rtol=1e-6, atol=1e-8)


def test_a_proximal_step_draws_every_weight_to_zero_and_not_beyond() -> None:
    objective, point, l1 = CASE.objective(), CASE.point(), 12.0
    plain, drawn = (Adam(objective, point, schedule(l1=share), 10) for share in (0.0, l1))
    batch = objective.data.batch(slice(0, 40))
    plain.step(batch), drawn.step(batch)
    expected = torch.nn.functional.softshrink(plain.values, l1 * 0.05)
    torch.testing.assert_close(drawn.values, expected, rtol=0, atol=1e-15)
    assert 0 < int((drawn.values == 0).sum()) < drawn.values.numel()


def test_a_proximal_step_is_for_those_it_applies_to_and_ends_in_time() -> None:
    objective, point = CASE.objective(), CASE.point()
    batch = objective.data.batch(slice(0, 40))
    even = Adam(objective, point, schedule(l1=1.0, l1_until=0.3), 10, thresholded=lambda at: at % 2 == 0)
    plain = Adam(objective, point, schedule(), 10)
    even.step(batch), plain.step(batch)
    taken = even.values != plain.values
    assert torch.equal(taken, point.w.indices % 2 == 0)
    for _ in range(3):
        even.step(batch)
    late = Adam(objective, even.point, schedule(l1=1.0, l1_until=0.3), 10)
    late.done = 4
    free = Adam(objective, even.point, schedule(), 10)
    free.done = 4
    late.step(batch), free.step(batch)
    assert torch.equal(late.values, free.values)


@pytest.mark.parametrize("every", [1, 3])
def test_the_budget_is_met_and_the_largest_weights_stay_with_their_moments(every: int) -> None:
    case = NetworkCase((4, 3, 1), fused=True, direct=True, density=1.0)
    objective, point = case.objective(), case.point()
    plan = schedule(budget=falling(point.w.nonzeros, 5, 0.5), budget_every=every)
    held = []
    adam, batch = Adam(objective, point, plan, 12), objective.data.batch(slice(0, 40))
    free = Adam(objective, point, schedule(), 12)
    for step in range(1, 13):
        adam.step(batch)
        held.append(adam.values.numel())
        if step <= every:
            free.step(batch)
        if step == every:
            kept = free.values.abs().topk(held[-1]).indices.sort().values
            assert held[-1] < point.w.nonzeros
            assert torch.equal(adam.indices, point.w.indices[kept])
            for mine, truth in ((adam.values, free.values), (adam.first, free.first)):
                torch.testing.assert_close(mine, truth[kept], rtol=0, atol=1e-15)
        if step % every == 0:
            assert held[-1] <= falling(point.w.nonzeros, 5, 0.5)(step / 12)
    assert held[-1] == 5


def test_a_falling_budget_falls_from_one_number_to_the_other() -> None:
    plan = falling(1000, 10, 0.5)
    assert [plan(share) for share in (0.0, 0.25, 0.5, 1.0)] == [1000, 100, 10, 10]
    assert falling(3, 10, 0.5)(0.0) == 10
    assert falling(0, 2, 0.5)(0.3) == 2


@pytest.mark.parametrize("decay", ["geometric", "cosine"])
def test_rates_fall_from_the_first_to_the_last_after_warming_up(decay: str) -> None:
    plan = schedule(first=1.0, last=0.01, decay=decay)
    rates = [plan.rate(step, 1000) for step in range(1, 1001)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(1.0, rel=0.01)
    assert rates[-1] == pytest.approx(0.01, rel=0.01)
    assert rates[499] == pytest.approx(math.sqrt(0.01) if decay == "geometric" else 0.505, rel=0.01)
    warm = replace(plan, warm_up=100.0)
    assert [warm.rate(step, 1000) / rates[step - 1] for step in (1, 50, 100, 500)] == pytest.approx(
        [0.01, 0.5, 1, 1]
    )


def test_training_by_whole_batches_is_so_many_steps_and_leaves_the_start_alone() -> None:
    objective, point = CASE.objective(), CASE.point()
    before = point.w.values.clone()
    told = list(train(objective, point, schedule(passes=7.0), 1000, np.random.default_rng(0)))
    adam, batch = Adam(objective, point, schedule(passes=7.0), 7), objective.data.batch(slice(0, 40))
    losses = [float(adam.step(batch)) for _ in range(7)]
    assert [loss for _, loss, _ in told] == losses
    assert [passes for _, _, passes in told] == [1.0] * 7
    assert torch.equal(told[-1][0].w.values, adam.values)
    assert not torch.equal(told[0][0].w.values, told[-1][0].w.values)
    assert torch.equal(point.w.values, before)


def test_passes_are_counted_to_the_last_batch() -> None:
    objective, point = CASE.objective(), CASE.point()
    told = [
        passes for *_, passes in train(objective, point, schedule(passes=2.5), 10, np.random.default_rng(0))
    ]
    assert told == [1.0, 1.0, 0.5]


def test_training_lowers_the_loss_and_the_same_order_gives_the_same_bits() -> None:
    objective, point = CASE.objective(), CASE.point()
    ends = []
    for seed in (0, 0, 1):
        *_, (trained, _, _) = train(objective, point, schedule(last=1e-4), 10, np.random.default_rng(seed))
        assert objective.value(trained) < 0.8 * objective.value(point)
        ends.append(trained.w.values)
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


def test_an_exchange_is_called_after_every_step_and_may_change_what_is_held() -> None:
    objective, point, seen = CASE.objective(), CASE.point(), []

    def exchange(adam: Adam) -> None:
        seen.append(adam.done)
        if adam.done == 3:
            adam.keep(torch.arange(4))

    *_, (trained, _, _) = train(
        objective, point, schedule(passes=2.0), 10, np.random.default_rng(0), exchange=exchange
    )
    assert seen == list(range(1, 9))
    assert torch.equal(trained.w.indices, point.w.indices[:4])
