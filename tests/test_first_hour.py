"""The first hour of a stranger: every command of the page runs in turn, and prints what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from thresher.cli.app import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first-hour.md"
PROMPT = "$ "
SILENT = " 2>/dev/null"


def blocks(language: str) -> list[str]:
    """List the blocks of the page that are written in a language."""
    tokens = MarkdownIt("commonmark").parse(PAGE.read_text(encoding="utf-8"))
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


def sessions() -> list[tuple[str, list[str]]]:
    """List the commands of the page, each with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(blocks("console")).splitlines():
        if line.startswith(PROMPT):
            found.append((line.removeprefix(PROMPT), []))
        else:
            found[-1][1].append(line)
    return found


def pattern_of(lines: list[str]) -> str:
    """Write lines as a pattern: widths of columns do not matter, dots are anything, alone any lines."""
    parts = []
    for line in lines:
        words = (re.escape(word).replace(re.escape("..."), ".*") for word in line.split())
        parts.append(r"(.*\n)*?" if line.strip() == "..." else " ".join(words) + r"\n")
    return "".join(parts)


def spaced(text: str) -> str:
    """Write text with single spaces."""
    return "".join(" ".join(line.split()) + "\n" for line in text.splitlines())


def printed_by(command: str) -> str:
    """Run a command as a shell does, and give what it prints; Thresher's own run in this process."""
    program, _, rest = command.partition(" | ")
    if not program.startswith("thresher "):
        return by_shell(command, "")
    arguments = shlex.split(program.removesuffix(SILENT))[1:]
    result = CliRunner().invoke(app, arguments, prog_name="thresher")
    if rest:
        return result.stderr + by_shell(rest, result.stdout)
    return result.stdout if program.endswith(SILENT) else result.output


def by_shell(command: str, given: str) -> str:
    """Run other programs, which read what is given."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        env={**os.environ, "PATH": path},
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout


def test_every_command_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("make_flats.py").write_text(blocks("python")[0], encoding="utf-8")
    for command, shown in sessions():
        printed = printed_by(command)
        assert re.fullmatch(pattern_of(shown), spaced(printed)), f"{command} printed\n{printed}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a   1", "a 1", True),
        ("a 1", "a 2", False),
        ("a ...", "a 2 s", True),
        ("...\nb", "a\na\nb", True),
        ("...\nb", "a\nc", False),
        ("a (b)", "a (b)", True),
    ],
)
def test_what_is_printed_is_compared(shown: str, printed: str, same: bool) -> None:
    assert bool(re.fullmatch(pattern_of(shown.splitlines()), spaced(printed))) == same
