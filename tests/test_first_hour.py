"""The first hour of a stranger: every command of the page runs in turn, and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first-hour.md"
PROMPT = "$ "


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


def test_every_command_prints_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "make_flats.py").write_text(blocks("python")[0], encoding="utf-8")
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
    }
    for command, shown in sessions():
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert re.fullmatch(pattern_of(shown), spaced(done.stdout)), f"{command} printed\n{done.stdout}"


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
