"""Pictures of effects and of stability show what was found, whatever there is of it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from networks import NETWORKS, fused, rows_for

from thresher.explain import effects
from thresher.report.effects import MOST, plot_effects
from thresher.report.stability import plot_stability
from thresher.stability import InputStability, KinkStability, Stability


def drawn(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=50)
    return content.getvalue()


@pytest.mark.parametrize("name", ["direct", "direct, softmax", "zero", "log, direct", "sparse and wide"])
def test_every_effect_has_a_panel_of_its_name(name: str) -> None:
    network = NETWORKS[name]
    found = effects(network, rows_for(network).astype(float))
    outputs = [f"output {place}" for place in range(network.outputs)]
    figure = plot_effects(found, outputs)
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    assert titles == [effect.name for effect in found[:MOST]]
    for axes, effect in zip(figure.axes, found[:MOST], strict=False):
        curves = [line for line in axes.lines if len(line.get_xdata()) == len(effect.grid)]
        assert len(curves) == min(network.outputs, 4)
        assert np.array_equal(curves[0].get_ydata(), effect.values[:, 0])
        assert bool(axes.collections) == (not effect.alone)
    assert len(drawn(figure)) > 1_000


def test_names_cannot_begin_mathematics_and_indicators_are_yes_or_no() -> None:
    network = fused(features=[f"${place}_x$" for place in range(10)])
    X = (rows_for(network) > 0).astype(float)
    figure = plot_effects(effects(network, X))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["no", "yes"]
    assert len(drawn(figure)) > 1_000


@pytest.mark.parametrize("kinks", [0, 30])
def test_stability_is_drawn_with_its_threshold(kinks: int) -> None:
    found = Stability(
        tuple(InputStability(place, f"${place}$", 0.9, True, True) for place in range(3)),
        tuple(KinkStability(f"x{place}", (place,), 1.5, "K", 0.5, 1.0, 2.0) for place in range(kinks)),
        (),
        pairs=5,
        rows=40,
        threshold=0.75,
        selected=3.0,
        candidates=20,
        bound=0.9,
        bound_unimodal=0.5,
        coverage=0.9,
        notes=(),
    )
    figure = plot_stability(found)
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.9] * 3
    assert len(figure.axes[1].patches) == min(kinks, 20)
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [0.75]
    assert len(drawn(figure)) > 1_000
