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
