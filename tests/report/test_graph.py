"""The graph of a network shows what is there, and can be read at any size."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from networks import NETWORKS, fused, random_network

from thresher.network import Network
from thresher.network.layer import live
from thresher.report.graph import _apart, graph
from thresher.report.style import BLUE, ORANGE


def lines_of(figure):
    return [each for each in figure.axes[0].collections if isinstance(each, LineCollection)]


def texts_of(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def drawn(figure):
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=50)
    return content.getvalue()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_live_weight_is_a_line_of_its_sign(name):
    network = NETWORKS[name]
    figure = network.plot()
    masks = live(network.layers, network.direct)
    weights = [
        layer.weights[before][:, after]
        for layer, before, after in zip(network.layers, masks, masks[1:], strict=False)
    ]
    if network.direct is not None:
        direct = network.direct[masks[0]]
        weights = [*weights, direct] if network.hidden else [weights[0] + direct]
    signs = [np.sign(matrix.data) for matrix in weights]
    expected = [BLUE if sign > 0 else ORANGE for sign in np.concatenate(signs)]
    colours = [to_hex(colour).upper() for lines in lines_of(figure) for colour in lines.get_colors()]
    assert sorted(colours) == sorted(expected)
    assert len(drawn(figure)) > 1_000


def test_larger_weights_are_wider_and_bear_their_numbers():
    network = Network.fused([[4.0], [-1.0], [0.25]], None, [1], features=["a", "b", "c"])
    figure = network.plot()
    first = lines_of(figure)[0]
    segments, widths = first.get_segments(), np.asarray(first.get_linewidths())
    assert np.all(np.diff(widths) > 0)  # drawn from thin to wide
    assert len(segments) == 3
    assert {"4", "-1", "0.25", "a", "b", "c", "y"} <= set(texts_of(figure))


def test_direct_connections_meet_beside_the_neurons_and_lead_to_their_output():
    network = random_network((6, 5, 4, 3), seed=1, density=0.4, direct=[[1.0, 0.0, -2.0]] + [[0.0] * 3] * 5)
    axes = network.plot().axes[0]
    ways = [line.get_xydata() for line in axes.lines if line.get_color() == "#9E9E9E"]
    assert [way[:, 0].tolist() for way in ways] == [[1.0, 2.0, 3.0]] * 2
    nodes = [
        each.get_offsets().data.tolist() for each in axes.collections if not isinstance(each, LineCollection)
    ]
    squares, outputs = nodes[-1], nodes[-2]
    assert [way[0].tolist() for way in ways] == squares
    assert [way[-1].tolist() for way in ways] == [outputs[0], outputs[2]]
    ends = lines_of(network.plot())[0].get_segments()
    assert sum(segment[-1].tolist() in squares for segment in ends) == 2
    assert not any(square in column for square in squares for column in nodes[:-1])
    assert "linear part" in [text.get_text() for text in axes.get_legend().get_texts()]
    assert "linear part" not in [text.get_text() for text in fused().plot().axes[0].get_legend().get_texts()]


def test_weights_of_inputs_count_for_their_spread():
    parts = {"weights": [[4.0], [-1.0]], "bias": None, "signs": [1]}
    plain, scaled = Network.fused(**parts), Network.fused(**parts, details={"spread": [0.01, 100.0]})
    for network, wide in ((plain, BLUE), (scaled, ORANGE)):
        first = lines_of(network.plot())[0]
        assert to_hex(first.get_colors()[int(np.argmax(first.get_linewidths()))]).upper() == wide


def test_many_connections_are_curves_that_keep_together_and_few_are_straight():
    few, many = fused(), random_network((40, 40, 1), density=0.15)
    assert many.nonzeros > 100
    (segments, *_), (bent, *_) = (
        [line.get_segments() for line in lines_of(one.plot())] for one in (few, many)
    )
    assert all(len(segment) == 2 for segment in segments)
    assert all(len(segment) > 10 for segment in bent)
    starts, ends = np.array([one[0] for one in bent]), np.array([one[-1] for one in bent])
    assert set(starts[:, 0]) == {0.0}
    assert set(ends[:, 0]) == {1.0}
    # Half-way they are nearer to each other than straight lines would be.
    middle = np.array([one[len(one) // 2][1] for one in bent])
    assert middle.std() < ((starts[:, 1] + ends[:, 1]) / 2).std() + 0.05
    # Weak ones are fainter.
    drawn = lines_of(many.plot())[0]
    faint = np.asarray(drawn.get_alpha())
    assert (np.diff(faint) >= 0).all()
    assert faint[0] < 0.5 < faint[-1]


def test_names_are_those_of_the_user():
    names = [f"column {i}" for i in range(10)]
    network = fused(features=names)
    used = {name for name, in_use in zip(names, network.support(), strict=True) if in_use}
    assert 4 < len(used) < 10
    assert {text for text in texts_of(network.plot()) if text.startswith("column")} == used
    assert {"a", "b c", "d"} <= set(texts_of(NETWORKS["deep, many outputs"].plot()))
    assert {"0.5", "1.5", "2.5"} <= set(texts_of(NETWORKS["softmax, deep, floats"].plot()))
    assert "100% {of} \\$x_1^2\\$ & ~#" in " ".join(
        texts_of(fused(features=["100% {of} $x_1^2$ & ~#"] * 10).plot())
    )


def test_a_large_network_names_the_inputs_that_matter_most():
    network = random_network((784, 20, 10), density=0.05, classes=range(10), link="softmax")
    figure = network.plot()
    named = [text for text in texts_of(figure) if text.startswith("x")]
    assert len(named) == 32
    order = np.argsort(-network.importance())[:32]
    assert set(named) == {f"x{i}" for i in order}
    assert figure.get_size_inches().max() < 15
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text().startswith("x")]
    assert sum(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[:i]) == 0


@pytest.mark.parametrize("count", [1, 5, 20])
def test_labels_are_moved_apart_and_stay_inside(count):
    rng = np.random.default_rng(count)
    heights = np.sort(rng.random(count) ** 3)[::-1]
    moved = _apart(heights, 1 / 24)
    assert np.all(-np.diff(moved) >= 1 / 24 - 1e-12)
    assert moved.min() >= 0
    assert moved.max() <= 1


def test_drawing_leaves_no_trace_and_is_the_same_each_time():
    settings = dict(matplotlib.rcParams)
    network = NETWORKS["softmax"]
    assert drawn(graph(network)) == drawn(network.plot())
    assert dict(matplotlib.rcParams) == settings
