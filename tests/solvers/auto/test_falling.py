"""Training under a falling budget: never more than the schedule allows, at any step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from dense import CASES, NetworkCase

from thresher.solvers.auto.adam import Adam
from thresher.solvers.auto.falling import Falling, chosen_within, largest_within, within
from thresher.solvers.auto.tuning import FallingTuning

relu_cases = pytest.mark.parametrize(
    "case", [case for case in CASES if len(case.widths) > 2 and not case.absolute], ids=str
)
TUNING = FallingTuning(exchanges=10)


@relu_cases
def test_never_more_than_the_schedule_allows(case: NetworkCase, monkeypatch: pytest.MonkeyPatch) -> None:
    objective, budget = case.objective(count=64, dtype=torch.float32), 5
    falling = Falling(objective, budget, 6, 8, 0, TUNING)
    exchange, held = Falling._exchange, []

    def watched(self: Falling, adam: Adam) -> None:
        before = adam.indices.numel()
        exchange(self, adam)
        share = (1 - min(1.0, adam.share / TUNING.falling)) ** 3
        held.append((adam.indices.numel(), budget + int((falling.most - budget) * share), before))

    monkeypatch.setattr(Falling, "_exchange", watched)
    start = falling.start(0)
    largest = start.w.nonzeros
    for point, _, _ in falling.run(start):
        assert point.w.nonzeros <= max(largest, falling.most)
    # The support changes at exchanges only, and those keep to the schedule.
    assert held
    for after, allowed, before in held:
        assert after == before or after <= allowed
    assert largest_within(objective, point, budget).w.nonzeros <= budget


@relu_cases
def test_the_same_seed_gives_the_same_bits(case: NetworkCase) -> None:
    objective = case.objective(count=64, dtype=torch.float32)
    one, two, other = (
        list(falling.run(falling.start(seed)))[-1][0]
        for seed in (0, 0, 1)
        for falling in [Falling(objective, 5, 2, 8, seed, TUNING)]
    )
    assert torch.equal(one.w.indices, two.w.indices)
    assert torch.equal(one.w.values, two.w.values)
    assert one.w.nonzeros == 0 or not torch.equal(one.w.to_dense(), other.w.to_dense())


@relu_cases
@pytest.mark.parametrize("budget", [0, 1, 4])
def test_a_cut_is_within_the_budget_with_the_biases_it_brings_along(case: NetworkCase, budget: int) -> None:
    objective = case.objective()
    if case.bias:
        origins = torch.arange(case.widths[0]).double()
        objective = type(objective)(
            objective.data, objective.layout, objective.loss, 0.0, origins, torch.ones(case.widths[-1])
        )
    budget = max(budget, case.widths[-1] if case.bias else 0)
    point = case.point()
    usefulness = torch.from_numpy(np.random.default_rng(0).random(point.w.nonzeros))
    cut = within(objective, point, usefulness, budget)
    assert cut.w.nonzeros <= budget
    kept = chosen_within(objective, point.w.indices, usefulness, budget)
    assert torch.isin(point.w.indices[kept], cut.w.indices).all()


@relu_cases
def test_screening_looks_at_a_share_of_the_blocks_of_every_layer(case: NetworkCase) -> None:
    objective = replace(case.objective(count=64, dtype=torch.float32), memory_limit=64)
    falling = Falling(objective, 5, 6, 8, 0, replace(TUNING, screen=0.3))
    looked: dict[range, set[int]] = {}

    def some(blocks: range) -> list[int]:
        looked[blocks] = set(falling._some(blocks))
        return sorted(looked[blocks])

    objective.largest_gradients(falling.start(0), falling._tried(), 5, some)
    assert looked
    for blocks, chosen in looked.items():
        assert chosen <= set(blocks)
        assert len(chosen) == min(len(blocks), max(1, round(0.3 * len(blocks))))
    # In time all are looked at, and without a share all at once.
    blocks = range(0, 40, 4)
    assert set().union(*(falling._some(blocks) for _ in range(100))) == set(blocks)
    assert list(Falling(objective, 5, 6, 8, 0, TUNING)._some(blocks)) == list(blocks)


def test_what_is_held_first_fits_into_the_memory_limit() -> None:
    tuning, objective = replace(TUNING, small=0), CASES[-1].objective(count=64, dtype=torch.float32)
    plenty = Falling(objective, 5, 6, 8, 0, tuning)
    tight = Falling(replace(objective, memory_limit=20 * 200), 5, 6, 8, 0, tuning)
    none = Falling(replace(objective, memory_limit=1), 5, 6, 8, 0, tuning)
    assert (plenty.most, tight.most, none.most) == (50, 20, 5)


def test_large_fused_networks_begin_at_the_size_of_their_targets() -> None:
    objective = CASES[-1].objective(count=64, dtype=torch.float32)
    usual, large = (
        Falling(objective, 5, 6, 8, 0, replace(TUNING, crowded=crowded)).start(0) for crowded in (2000, 0)
    )
    assert torch.equal(usual.w.indices, large.w.indices)
    assert 0 < float(large.w.values.abs().max()) < float(usual.w.values.abs().max())
