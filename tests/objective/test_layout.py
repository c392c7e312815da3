"""Places of weights: every one has a block, a neuron and a feature, and they have a place."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.objective.layout import Layout, spread_evenly


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draw a layout of 1 to 4 layers; a fused one has a hidden layer and one output."""
    hidden = draw(st.lists(st.integers(1, 6), max_size=3))
    fused = bool(hidden) and draw(st.booleans())
    outputs = 1 if fused else draw(st.integers(1, 4))
    return Layout(
        (draw(st.integers(1, 7)), *hidden, outputs), draw(st.booleans()), fused, draw(st.booleans())
    )


def weights_by_hand(layout: Layout) -> int:
    """Count the weights there could be, layer by layer."""
    widths = layout.widths
    count = 0
    for layer in range(len(widths) - 1):
        summed = layout.fused and layer == len(widths) - 2
        count += (0 if summed else widths[layer] * widths[layer + 1]) + layout.bias * widths[layer + 1]
    return count + layout.direct * widths[0] * widths[-1]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(layouts())
def test_every_place_is_one_neurons_one_feature(layout: Layout) -> None:
    assert layout.size == weights_by_hand(layout)
    everywhere = torch.arange(layout.size)
    parts = layout.split(everywhere)
    assert len(parts) == layout.blocks == layout.layers + layout.direct
    seen = []
    for block, part in enumerate(parts):
        neuron, feature = layout.pairs(everywhere[part], block)
        neurons, places = layout.shapes[block]
        assert neuron.numel() == neurons * places
        assert ((neuron >= 0) & (neuron < neurons)).all()
        assert ((feature >= 0) & (feature < places)).all()
        assert torch.equal(layout.position(block, neuron, feature), everywhere[part])
        seen.append(everywhere[part])
    assert torch.equal(torch.cat(seen), everywhere)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(layouts())
def test_biases_are_the_last_place_of_each_neuron_and_direct_connections_have_none(layout: Layout) -> None:
    is_bias = layout.is_bias(torch.arange(layout.size))
    assert int(is_bias.sum()) == layout.bias * sum(layout.widths[1:])
    if not layout.bias:
        assert layout.output_biases.numel() == 0
        return
    for layer in range(layout.layers):
        places = layout.biases(layer, torch.arange(layout.widths[layer + 1]))
        assert is_bias[places].all()
        assert torch.equal((places + 1 - layout.offsets[layer]) % layout.shapes[layer][1], 0 * places)
    assert torch.equal(
        layout.output_biases, layout.biases(layout.layers - 1, torch.arange(layout.widths[-1]))
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(layouts(), st.data())
def test_some_places_are_split_as_all_are(layout: Layout, data: st.DataObject) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, max(0, layout.size - 1)), max_size=layout.size)))
    indices = torch.tensor([at for at in chosen if at < layout.size], dtype=torch.int64)
    for block, part in enumerate(layout.split(indices)):
        first, last = layout.offsets[block], layout.offsets[block + 1]
        assert torch.equal(indices[part], indices[(indices >= first) & (indices < last)])
    assert torch.equal(layout.is_bias(indices), layout.is_bias(torch.arange(layout.size))[indices])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(layouts(), st.integers(0, 300))
def test_weights_are_shared_out_to_the_last_one_and_no_layer_gets_more_than_it_has(
    layout: Layout, count: int
) -> None:
    sizes = [neurons * places for neurons, places in layout.shapes[: layout.layers]]
    given_out = spread_evenly(layout, count)
    assert sum(given_out) == min(count, sum(sizes))
    assert all(0 <= part <= size for part, size in zip(given_out, sizes, strict=True))


def test_small_layers_are_denser_than_large_ones() -> None:
    layout = Layout((1000, 100, 10), bias=False)
    first, second = spread_evenly(layout, 500)
    assert first / (1000 * 100) < second / (100 * 10)


@pytest.mark.parametrize("bias", [False, True])
def test_a_fused_output_has_a_bias_at_most(bias: bool) -> None:
    layout = Layout((5, 4, 1), bias, fused=True)
    assert layout.shapes == ((4, 5 + bias), (1, int(bias)))
