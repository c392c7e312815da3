"""The command line as a whole: help is light, mistakes are explained, exit codes keep their promise."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

import thresher
from thresher.cli.app import app

HEAVY = {"torch", "sklearn", "matplotlib"}


def invoke(*args: str) -> Result:
    return CliRunner().invoke(app, args, prog_name="thresher")


# Each looks up or lists something, and has nothing to compute.
LIGHT = (
    "--help",
    "demo --help",
    "fit --help",
    "predict --help",
    "reproduce --help",
    "inspect --help",
    "stability --help",
    "export --help",
    "report --help",
    "certify --help",
    "device --help",
    "--version",
    "reproduce table-1 --dry-run",
    "reproduce all --quick --dry-run",
)


def test_help_and_lists_load_nothing_heavy() -> None:
    # One after the other in a fresh interpreter: what is loaded stays, and is told of who loads it first.
    code = (
        "import sys\n"
        "from thresher.cli import main\n"
        f"for line in {LIGHT!r}:\n"
        "    sys.argv = ['thresher', *line.split()]\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n        assert not end.code, end.code\n"
        f"    print([line, *({HEAVY!r} & sys.modules.keys())], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [str([line]) for line in LIGHT]


COMMANDS = (
    "demo",
    "fit",
    "predict",
    "reproduce",
    "report",
    "inspect",
    "stability",
    "export",
    "certify",
    "device",
)


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_every_help_has_an_example(command: tuple[str, ...]) -> None:
    result = invoke(*command, "--help")
    assert result.exit_code == 0
    assert f"Example: {' '.join(('thresher', *command))}" in result.stdout


@pytest.mark.parametrize("command", ["demo", "fit", "reproduce"])
def test_every_command_has_the_common_options(command: str) -> None:
    text = invoke(command, "--help").stdout
    for option in ("--json", "--quiet", "--debug", "--out", "--seed"):
        assert option in text


def test_the_version_is_that_of_the_package() -> None:
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"thresher {thresher.__version__}\n")


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "thresher", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"thresher {thresher.__version__}\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("reproduce", "tabel-1"), "Did you mean table-1?"),
        (
            ("reproduce", "table-1", "--seeds", "0,x"),
            "--seeds '0,x', but it takes whole numbers of 0 or more",
        ),
        (("reproduce", "table-1", "--seeds", "-1"), "whole numbers of 0 or more"),
        (("reproduce", "table-1", "--k", "0"), "--k '0', but it takes whole numbers of 1 or more"),
        (("reproduce", "table-1", "--m", "3"), "--m means nothing to table-1"),
        (("reproduce", "recovery", "--solvers", "papr"), "Did you mean paper?"),
        (("reproduce", "figure1"), "Did you mean figure-1?"),
        (("reproduce", "figure-1", "--methods", "imp-papr"), "Did you mean imp-paper?"),
        (("reproduce", "figure-1", "--methods", "imp", "--solvers", "imp"), "--solvers are the same"),
        (("reproduce", "figure-1", "--jobs", "0"), "--jobs '0', but it takes a whole number of 1 or more"),
        (("reproduce", "figure-4", "--rows", "9"), "--rows means nothing to figure-4"),
        (("report", "no-such-folder"), "no-such-folder does not exist"),
        (("reproduce",), "Missing argument"),
        (("repoduce", "table-1"), "No such command"),
        (("demo", "--seed", "-1"), "--seed '-1', but it takes a whole number of 0 or more"),
        (("reproduce", "table-1", "--rows", "0"), "--rows '0', but it takes a whole number of 1 or more"),
        (("demo", "--seed", "x"), "--seed 'x', but it takes a whole number of 0 or more"),
        (("demo", "--speed"), "No such option"),
    ],
)
def test_bad_input_is_explained(args: tuple[str, ...], message: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
