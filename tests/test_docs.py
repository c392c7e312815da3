"""The documentation holds what it promises: its code runs and prints what it shows, its commands and links
exist."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import thresher

ROOT = Path(__file__).resolve().parents[1]
WITH_CODE = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*WITH_CODE, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md"))]

MAKE_TARGET = re.compile(r"^([a-z][\w-]*):", re.MULTILINE)
LANGUAGES = {"python", "bash", "console", "text"}


def name_of(page: Path) -> str:
    """Name a page by its place in the project."""
    return page.relative_to(ROOT).as_posix()


def tokens_of(page: Path) -> list[Token]:
    """Parse a page."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def fences(page: Path) -> list[Token]:
    """List the code blocks of a page."""
    return [token for token in tokens_of(page) if token.type == "fence"]


def shown_after(blocks: list[Token], number: int) -> str | None:
    """Give the text block that follows a code block after an empty line: what the code prints."""
    if number + 1 == len(blocks):
        return None
    here, following = blocks[number], blocks[number + 1]
    assert here.map is not None and following.map is not None
    adjacent = following.map[0] == here.map[1] + 1
    return following.content if adjacent and following.info == "text" else None


def commands(page: Path) -> Iterator[list[str]]:
    """List the command lines of a page's bash blocks, as words, comments left out."""
    for block in fences(page):
        if block.info == "bash":
            for line in block.content.replace("\\\n", " ").splitlines():
                if words := shlex.split(line, comments=True):
                    yield words


def links(page: Path) -> Iterator[str]:
    """List where the links and images of a page lead, addresses on the web left out."""
    for token in tokens_of(page):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target is not None and not re.match(r"[a-z]+:", str(target)):
                yield str(target)


def anchors(page: Path) -> set[str]:
    """Give the anchors that the headings of a page get."""
    found = set()
    tokens = tokens_of(page)
    for position, token in enumerate(tokens):
        if token.type == "heading_open":
            text = re.sub(r"[^\w\- ]", "", tokens[position + 1].content.lower())
            found.add(text.strip().replace(" ", "-"))
    return found


def program(words: list[str]) -> list[str]:
    """Drop settings such as ``NAME=value`` before a command, and the folder of its program."""
    start = next(i for i, word in enumerate(words) if not re.match(r"[A-Z_]+=", word))
    return [Path(words[start]).name, *words[start + 1 :]]


def make_problems(arguments: list[str]) -> list[str]:
    """List targets that the Makefile does not have."""
    known = set(MAKE_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    return [word for word in arguments if "=" not in word and word not in known]


def thresher_problems(arguments: list[str]) -> list[str]:
    """List what the command line does not know: the command, its options, the experiment."""
    import typer

    from thresher.cli.app import app
    from thresher.experiments import ALL, EXPERIMENTS

    group: Any = typer.main.get_command(app)
    if not arguments or arguments[0].startswith("-"):
        return [word for word in arguments if word not in {"--version", "--help"}]
    if arguments[0] not in group.commands:
        return arguments[:1]
    command, rest = group.commands[arguments[0]], arguments[1:]
    names = ((*parameter.opts, *parameter.secondary_opts) for parameter in command.params)
    options = {"--help"}.union(*names)
    # A dash alone is standard input or output.
    unknown = [word for word in rest if word.startswith("-") and word.split("=")[0] not in {*options, "-"}]
    if arguments[0] == "reproduce" and (not rest or rest[0] not in {*EXPERIMENTS, ALL, "NAME", "--help"}):
        unknown.append(rest[0] if rest else "reproduce without an experiment")
    return unknown


def python_problems(arguments: list[str]) -> list[str]:
    """List files that do not exist; what follows ``-m thresher`` is the command line."""
    if arguments[:2] == ["-m", "thresher"]:
        return thresher_problems(arguments[2:])
    paths = [word for word in arguments if not word.startswith("-") and ("/" in word or word.endswith(".py"))]
    return [word for word in paths if not (ROOT / word).exists()]


CHECKS = {"make": make_problems, "thresher": thresher_problems, "python": python_problems}


def test_there_is_something_to_check() -> None:
    assert {"README.md", "docs/architecture.md", "docs/how-it-works.md"} <= {name_of(page) for page in PAGES}
    assert sum(block.info == "python" for page in WITH_CODE for block in fences(page)) >= 6


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_blocks_name_their_language(page: Path) -> None:
    assert [block.content for block in fences(page) if block.info not in LANGUAGES] == []


@pytest.mark.parametrize(
    "page", [page for page in WITH_CODE if "```python" in page.read_text(encoding="utf-8")], ids=name_of
)
def test_code_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = fences(page)
    for number, block in enumerate(blocks):
        if block.info != "python":
            continue
        assert block.map is not None
        # Empty lines in front give errors the line numbers of the page.
        code = "\n" * (block.map[0] + 1) + block.content
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, str(page), "exec"), namespace)
        shown = shown_after(blocks, number)
        assert shown is None or printed.getvalue() == shown


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_exist(page: Path) -> None:
    unknown = []
    for words in commands(page):
        name, *arguments = program(words)
        problems = CHECKS[name](arguments) if name in CHECKS else [f"no check for the program {name}"]
        unknown += [f"{shlex.join(words)}: {problem}" for problem in problems]
    assert unknown == []


def test_the_page_of_the_command_line_names_every_command_and_option() -> None:
    import typer

    from thresher.cli.app import app

    group: Any = typer.main.get_command(app)
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    general, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    section_of = {section.split("`")[1]: section for section in sections if section.startswith("`")}
    assert section_of.keys() == {f"thresher {name}" for name in group.commands}
    missing = [
        f"thresher {name} {option}"
        for name, command in group.commands.items()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
        # Not as the beginning of another: --s is not --seeds.
        and not re.search(rf"{option}(?![\w-])", general + section_of[f"thresher {name}"])
    ]
    assert missing == []


def test_the_page_of_the_architecture_names_every_module() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = {path.name for path in (ROOT / "src" / "thresher").rglob("[!_]*.py")}
    assert len(modules) > 50
    assert sorted(name for name in modules if f"`{name}`" not in page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, fragment = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (fragment and fragment not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("make test", True),
        ("THRESHER_DATA=DIR make test", True),
        ("make PYTHON=python3.12 test", True),
        ("make everything", False),
        ("thresher demo --seed 1", True),
        ("thresher --version", True),
        ("thresher fly", False),
        ("thresher demo --fast", False),
        ("thresher reproduce table-1 --seeds 0,1", True),
        ("thresher reproduce table-9", False),
        ("python -m thresher demo", True),
        ("python -m thresher fly", False),
        (".venv/bin/python -m pytest tests/linear", True),
        (".venv/bin/python -m pytest tests/nowhere", False),
        ("python benchmarks/run.py", True),
    ],
)
def test_the_checks_find_what_does_not_exist(line: str, known: bool) -> None:
    name, *arguments = program(shlex.split(line))
    assert (CHECKS[name](arguments) == []) == known


def test_the_command_line_answers_as_the_readme_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "thresher", "reproduce", "table-1", "--quick", "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "to run" in done.stdout


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(ROOT / "docs"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    reference = (tmp_path / "api.html").read_text(encoding="utf-8")
    for name in thresher.__all__:
        assert name.startswith("_") or f"thresher.{name}" in reference, name
