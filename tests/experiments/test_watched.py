"""Watching trained networks: cells as declared, weights counted up to order and scale, a summary of all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thresher.errors import ParameterError
from thresher.experiments import Choices, experiment_named, experiments_named, watched
from thresher.experiments.record import DONE, Cell, Outcome
from thresher.experiments.watched import WATCHED, shares_found
from thresher.network import Layer, Network
from thresher.report.figures import draw, save

VARIES = np.array([True, True, True, False])


def network(order: tuple[int, ...] = (0, 1), scale: float = 1.0, last: float = 1.0) -> Network:
    """Make a network of two neurons and two outputs, its neurons in some order and of some scale."""
    hidden = np.array([[1.0, 0.0], [2.0, -1.0], [0.0, 3.0], [5.0, 0.0]])[:, order]
    outer = np.array([[1.0, 0.0], [-1.0, 2.0 * last]])[list(order)]
    direct = np.array([[0.0, 0.5], [0, 0], [0, 0], [0, 0]])
    bias = np.array([0.5, 0.0])[list(order)]
    layers = (Layer(hidden * scale, bias * scale), Layer(outer / scale, np.zeros(2)))
    return Network(layers, direct=direct)


def test_order_and_scale_of_neurons_make_no_difference() -> None:
    shares = shares_found(network(), network((1, 0), scale=3.0), VARIES)
    assert shares == {"hidden": 1.0, "outer": 1.0, "direct": 1.0, "all": 1.0}


def test_a_weight_that_differs_is_not_found_and_one_that_no_row_shows_does_not_count() -> None:
    shares = shares_found(network(), network(last=1.1), VARIES)
    assert shares["hidden"] == shares["direct"] == 1.0
    assert shares["outer"] == round(2 / 3, 4)
    hidden = network().layers[0].weights.toarray()
    hidden[3] = 0
    blind = Network((Layer(hidden, network().layers[0].bias), network().layers[1]), direct=network().direct)
    assert shares_found(network(), blind, VARIES)["all"] == 1.0
    assert shares_found(network(), blind, np.ones(4, dtype=bool))["hidden"] < 1.0


def test_a_network_without_neurons_holds_none_of_them() -> None:
    nothing = Network((Layer(np.zeros((4, 1)), np.zeros(1)), Layer(np.zeros((1, 2)), np.zeros(2))))
    shares = shares_found(network(), nothing, VARIES)
    assert shares == {"hidden": 0.0, "outer": 0.0, "direct": 0.0, "all": 0.0}


def test_cells_are_widths_budgets_and_rows_and_all_leaves_them_out() -> None:
    cells = WATCHED.chosen(Choices(m=(10, 20), s=(100,), seeds=(3,), rows=500))
    found = [(one["hidden"], one["budget"], one["n"], one.seed) for one in cells]
    assert found == [(10, 100, 500, 3), (20, 100, 500, 3)]
    assert any(
        (one["hidden"], one["budget"], one["n"]) == (100, 1000, 60_000) for one in WATCHED.cells(Choices())
    )
    assert WATCHED is experiment_named("watched") and WATCHED not in experiments_named("all")
    with pytest.raises(ParameterError, match="at most so many"):
        WATCHED.chosen(Choices(rows=60_001))


def test_the_summary_and_the_figure_show_every_cell(tmp_path: Path) -> None:
    outcomes = [
        Outcome(
            Cell("watched", {"n": n, "hidden": 10, "budget": 100}, 0),
            "data",
            DONE,
            1.0,
            {
                "psnr": psnr,
                "weights_found": {"all": share},
                "agreement": 1.0,
                "nonzeros": 99,
                "processor_seconds": 2.0,
            },
        )
        for n, psnr, share in ((1000, 35.2, 0.25), (2000, 151.0, 1.0))
    ]
    summary = WATCHED.summarise(outcomes)
    assert summary.numbers == {"found": 1, "of": 2}
    assert [row[2:6] for row in summary.tables[0].rows] == [(1000, 0, 35.2, 25.0), (2000, 0, 151.0, 100.0)]
    figure = draw("watched", outcomes)["watched"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["35 dB\n25%", "151 dB\n100%"]
    assert all(path.stat().st_size > 0 for path in save(figure, tmp_path, "watched"))


def test_a_small_trained_network_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    X = random.integers(0, 256, (2300, 6), dtype=np.uint8)
    labels = 1 * (X[:, 0].astype(int) + X[:, 1] > 255) + (X[:, 2] > 128)
    monkeypatch.setattr(watched, "IMAGES", 2000)
    monkeypatch.setattr(watched, "_images", lambda folder: (X, labels))
    shape = {"n": 2000, "d": 6, "hidden": 3, "budget": 18, "training": 10, "passes": 200}
    result = WATCHED.measure(Cell("watched", shape, 0))
    assert result["psnr"] > 100 and result["agreement"] == 1.0
    assert result["weights_found"]["all"] > 0.5
    assert result["nonzeros"] <= 18 and result["nonzeros_watched"] <= 18
