"""Fits of planted networks: what is measured is what the model does, and fingerprints tell data apart."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from thresher.data.planted import label_floor, planted, psnr
from thresher.experiments import fits
from thresher.experiments.fits import (
    PERFECT,
    decibels,
    fingerprint,
    fit_planted,
    measured,
    plant,
    psnr_curve,
    settled_step,
)
from thresher.experiments.record import Cell

CELL = Cell("toy", {"n": 200, "d": 12, "hidden": 2, "budget": 5}, seed=0)


def changed(**configuration: int) -> Cell:
    return replace(CELL, configuration={**CELL.configuration, **configuration})


def test_a_fingerprint_belongs_to_the_data_alone() -> None:
    assert fingerprint(CELL) == fingerprint(changed(steps=7))
    others = [changed(n=201), changed(d=13), changed(hidden=3), changed(budget=6), replace(CELL, seed=1)]
    assert len({fingerprint(cell) for cell in [CELL, *others]}) == 6


def test_layers_and_outputs_are_planted_and_have_their_own_print() -> None:
    deep = changed(layers=2, outputs=3)
    assert plant(deep).settings.hidden == (2, 2)
    assert plant(deep, rows=7).y.shape == (7, 3)
    assert len({fingerprint(cell) for cell in (CELL, deep, changed(layers=2), changed(outputs=3))}) == 4


def test_a_fingerprint_notices_another_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    def otherwise(*args: Any, **settings: Any) -> object:
        problem = planted(*args, **settings)
        problem.y[0] += 1
        return problem

    before = fingerprint(CELL)
    monkeypatch.setattr(fits, "planted", otherwise)
    fits._fingerprint.cache_clear()
    assert fingerprint(CELL) != before
    fits._fingerprint.cache_clear()


def test_a_smaller_draw_has_the_same_first_rows() -> None:
    few, many = planted(8, 12, 2, 5, seed=3), planted(300, 12, 2, 5, seed=3)
    assert np.array_equal(few.X, many.X[:8])
    assert np.array_equal(few.y, many.y[:8])


def test_what_is_measured_is_what_the_model_does() -> None:
    problem = planted(300, 12, 2, 5, seed=0)
    fitted = fit_planted(
        problem, budget=5, hidden=2, solver="paper", max_iter=20, dtype="float64", tol=0.0, random_state=0
    )
    result = measured(problem, fitted)
    assert result["psnr"] == pytest.approx(psnr(problem.y, fitted.model.predict(problem.X)), abs=1e-3)
    assert result["floor"] == pytest.approx(label_floor(problem), abs=1e-3)
    assert result["nonzeros"] <= 5
    assert result["passes"] == 20
    assert result["peak_bytes"] >= 0
    assert result["cut"] == ["300 of 50,000 rows"]
    # The loss is that of the network itself when the gates follow every step.
    losses = [record["loss"] for record in fitted.model.history_]
    assert psnr_curve(problem, losses)[-1] == pytest.approx(result["psnr"], abs=1e-2)


def test_a_fit_stops_when_its_time_is_over() -> None:
    problem = planted(300, 12, 2, 5, seed=0)
    fitted = fit_planted(
        problem, seconds=0.0, budget=5, hidden=2, solver="paper", max_iter=50, tol=0.0, random_state=0
    )
    assert fitted.model.status_.name == "callback"
    assert fitted.model.n_iter_ == 1


def test_a_fit_that_is_kept_waiting_has_the_time_it_would_have_had() -> None:
    spent = fits.time_limit(0.2)
    assert not spent({"seconds": 1000.0})
    began = time.process_time()
    while time.process_time() - began <= 0.2:
        pass
    assert spent({"seconds": 1000.0})
    assert not spent({"seconds": 0.1})


def test_an_interrupted_fit_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from thresher.solvers.iht import IHT

    def interrupted(self: IHT, iterate: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(IHT, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_planted(planted(50, 5, 1, 2), budget=2, hidden=1, solver="paper", random_state=0)


def test_a_perfect_fit_can_be_written_down() -> None:
    assert decibels(float("inf")) == PERFECT


@pytest.mark.parametrize(
    ("changes", "moves", "expected"),
    [
        ("1100", "0111", 3),  # settled, gates moved since
        ("1111", "1111", None),  # still changing at the last step
        ("1100", "1000", None),  # gates have not moved since the last change
        ("1100", "0100", 3),  # they moved with the last change, and the support stood it
        ("0000", "0100", 1),  # never changed
    ],
)
def test_when_a_support_has_settled(changes: str, moves: str, expected: int | None) -> None:
    history = [
        {"step": step, "support_changed": change == "1", "gates_moved": moved == "1"}
        for step, (change, moved) in enumerate(zip(changes, moves, strict=True), start=1)
    ]
    assert settled_step(history) == expected
