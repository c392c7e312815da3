"""The command line: parse, call, print."""

from __future__ import annotations


def main() -> None:
    """Run the command that the program was started with."""
    from thresher.cli.app import app

    app(prog_name="thresher")
