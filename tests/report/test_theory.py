"""Figures of the theory: a phase diagram, and a certificate's spectrum and margin."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from thresher.data.assumed import assumed
from thresher.experiments import Cell, Outcome
from thresher.network import Layer, Network
from thresher.report.certificate import spectrum_and_margin
from thresher.report.figures import draw, save
from thresher.theory.certificate import certify
from thresher.theory.forms import network_of


def test_a_phase_diagram_writes_every_share(tmp_path: Path) -> None:
    cells = [
        Outcome(
            Cell("phase-diagram", {"n": n, "s": s, "d": 4, "draws": 4, "solver": solver}, 0),
            "data",
            "done",
            1.0,
            {"recovered": share},
        )
        for solver, n, s, share in (
            ("theorem", 20, 1, 0.25),
            ("theorem", 40, 1, 1.0),
            ("refined", 20, 1, 0.5),
        )
    ]
    figure = draw("phase-diagram", cells)["phase-diagram"]
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes[:2]]
    assert texts == [["25%", "100%"], ["50%"]]
    assert all(path.stat().st_size > 0 for path in save(figure, tmp_path, "phase"))


def test_experiments_without_a_figure_draw_nothing() -> None:
    assert draw("certificates", [Outcome(Cell("certificates", {}, 0), "data", "done", 1.0)]) == {}


def test_a_certificate_shows_eigenvalues_weights_and_the_largest_gradient() -> None:
    problem = assumed(200, 5, 3, 2, seed=1)
    found = certify(network_of(problem), problem.X, problem.y)
    left, right = spectrum_and_margin(found).axes
    assert np.array_equal(left.lines[0].get_ydata(), found.eigenvalues)
    assert np.array_equal(right.lines[0].get_ydata(), found.weights)
    assert right.lines[1].get_ydata()[0] == found.gradient
    assert right.get_ylim()[0] < found.gradient < found.weights.min() < right.get_ylim()[1]


def test_eigenvalues_are_counted_in_whole_numbers() -> None:
    for weights in (2, 3, 5):
        problem = assumed(200, 5, weights, 1, seed=1)
        figure = spectrum_and_margin(certify(network_of(problem), problem.X, problem.y))
        figure.draw_without_rendering()
        for axes in figure.axes:
            ticks = axes.get_xticks()
            assert len(ticks)
            assert np.array_equal(ticks, np.round(ticks))


def test_a_network_beyond_the_theory_is_told_so() -> None:
    deep = Network((Layer(np.eye(2), np.zeros(2)),) * 2 + (Layer(np.ones((2, 1)), np.zeros(1)),))
    X = np.random.default_rng(0).standard_normal((20, 2))
    axes = spectrum_and_margin(certify(deep, X, deep.predict(X))).axes[0]
    assert "does not apply" in axes.texts[0].get_text()
