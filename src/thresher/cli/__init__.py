"""The command line: parse, call, print."""

from __future__ import annotations


def main() -> None:
    """Run the command that the program was started with."""
    import sys
    from contextlib import suppress

    from thresher.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        # What a terminal has no letter for is shown as its escape, rather than ending the command.
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="thresher")
