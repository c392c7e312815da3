"""How a command ends: 0 done, 1 some cells failed, 2 bad input, 130 interrupted."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from thresher.cli.screen import visible
from thresher.errors import ThresherError

SOME_FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


@contextmanager
def reported(debug: bool, when_interrupted: str) -> Iterator[None]:
    """Turn what goes wrong inside into one message on standard error and an exit code.

    Parameters
    ----------
    debug : bool
        Whether errors are shown with their traceback instead.
    when_interrupted : str
        What to say after Ctrl-C, before the command.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nInterrupted. {when_interrupted}\n  {typed_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        # A reader that has gone away, such as `head`, is nobody's mistake.
        gone = isinstance(error, OSError) and error.errno == errno.EPIPE
        if debug or gone:
            raise
        if isinstance(error, (ThresherError, OSError)):
            typer.echo(f"Error: {visible(str(error))}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        typer.echo(
            f"Error: {type(error).__name__}: {visible(str(error))}. This should not happen; --debug shows "
            "where it did.",
            err=True,
        )
        raise typer.Exit(SOME_FAILED) from None


def typed_command() -> str:
    """Give the command that was typed."""
    program = "python -m thresher" if Path(sys.argv[0]).name == "__main__.py" else "thresher"
    return f"{program} {shlex.join(sys.argv[1:])}".strip()
