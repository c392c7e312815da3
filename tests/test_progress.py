"""Progress: a bar on a terminal, a plain line now and then elsewhere, nothing on standard output."""

from __future__ import annotations

import io
from typing import Any

import pytest

from thresher import progress
from thresher.progress import Progress


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def record(passes: float) -> dict[str, Any]:
    return {"passes": passes, "loss": 1.25}


def show(passes: int, shown: bool = True) -> None:
    with Progress(10, shown=shown) as bar:
        for done in range(1, passes + 1):
            bar.update(record(done))


def test_lines_come_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    show(6)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "fitting: 3/10 passes, loss 1.25"
    assert 1 <= len(lines) < 6


def test_a_quick_fit_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show(10)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_shown_unless_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", -1.0)
    show(3, shown=False)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    show(3)
    assert "fitting" in screen.getvalue()
    assert "passes, loss" in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_the_bar_is_cleared_when_a_fit_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with pytest.raises(RuntimeError, match="no more"), Progress(10, shown=True) as bar:
        bar.update(record(1))
        raise RuntimeError("no more")
    # The cursor is shown again.
    assert "\x1b[?25h" in screen.getvalue()


def test_the_time_left_is_what_the_pace_of_a_phase_promises(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with Progress(100, shown=True) as bar:
        for left in (50, 49, 48, 47):
            bar.update({**record(100 - left), "way": "training", "left": left})
            now += 20.0
        bar.update({**record(54), "way": "other"})
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("1.25")[2] for line in lines] == [
        ", about 16 min of training left",
        ", about 16 min of training left",
        ", about 16 min of training left",
        "",
    ]
